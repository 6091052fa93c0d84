"""A run as one HTML page; imported only where one is made."""
