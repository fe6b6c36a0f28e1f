"""What a node can say and what it can be told. Imports the standard library only; the brain sees nothing else of the agent."""
