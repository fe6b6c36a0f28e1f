"""One node, for people who want to know all of it."""
