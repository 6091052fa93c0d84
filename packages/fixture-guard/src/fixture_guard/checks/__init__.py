"""The checks by family; each takes the tree and yields findings. The table of all of them is in ``guard.py``."""
