"""The agent's command line: run, join, check, once, decode, list."""
