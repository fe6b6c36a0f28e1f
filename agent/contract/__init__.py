"""What nodes and brain exchange: events, heartbeats, commands, and their tables. Imports the standard library only."""
