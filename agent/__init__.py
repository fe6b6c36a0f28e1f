"""The node agent: reports facts about one machine, and carries out signed commands."""

__version__ = "0.2.1"
