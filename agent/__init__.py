"""The node agent: reports facts about one machine, and does what a signed command tells it."""

__version__ = "0.1.0"
