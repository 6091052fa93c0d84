"""The commands of ``session-snapshot``, a module each: flags are read here, and nothing is decided."""
