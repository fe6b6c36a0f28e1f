"""How this brain is called in notes, on NATS and by the other brains of its cell."""

import socket

from agent.contract import subjects
from brain.config import BrainConfig


def own_name(config: BrainConfig) -> str:
    """Returns the configured name, else that of its machine. ConfigError: the machine's can be none."""
    return config.brain or subjects.node_name(socket.gethostname(), "set `brain` in brain.toml")
