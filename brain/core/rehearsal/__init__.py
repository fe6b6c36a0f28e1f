"""The engine in simulated time: the examples of rules, and the proof that a pack may be put into force."""
