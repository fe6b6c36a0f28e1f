"""The agent's command line: run, once, decode, list."""
