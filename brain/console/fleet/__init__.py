"""The fleet now and in the past, for a map of it."""
