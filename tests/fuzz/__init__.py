"""Coverage-guided fuzzing of everything that reads text from outside (`make fuzz`)."""
