"""What helped, what did not, and what would have: learned from what became of each fault."""
