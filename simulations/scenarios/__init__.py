"""Scenarios: what happens when on which nodes of a simulated fleet, and what a good engineer would want to come of it."""
