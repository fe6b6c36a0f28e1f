"""What needs a person now."""
