"""File systems of the node: which are watched, and how much is in their directories."""
