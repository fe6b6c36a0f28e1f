"""Why the engine judges as it does, for people who ask: reads its state, and changes nothing."""
