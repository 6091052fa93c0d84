"""``session-snapshot init``: a new suite from a command line, and scenarios for it."""
