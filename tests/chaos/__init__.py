"""Chaos: a whole cell of real processes, seeded trouble, and what must hold all the same. `python -m tests.chaos`."""
