"""What a keyless replay does differently: differences as values, their kinds, and taking them in."""
