"""Reports: what happened in a time."""
