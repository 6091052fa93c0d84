"""The workspace's own plumbing: what makes the tools, the lock and the wheelhouse, and what checks them."""
