"""Random stories of a whole cell against the safety laws (design, section 6): `python -m tests.laws --stories 10000`.

The generator knows nothing of the engine's inside, and the oracles are written from the laws' text: they see what comes in,
what the engine asks for, and what the simulated cell really is.
"""
