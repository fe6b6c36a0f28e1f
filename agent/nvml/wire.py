"""What the agent and its NVML child (agent/nvml/child.py) share; it imports almost nothing."""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # typing itself would cost the child 0.6 MB
if TYPE_CHECKING:
    from typing import Any

# The board, a page of memory that both see: the start of the call in ns (0: none), NVML index (-1: none), name.
BOARD = struct.Struct("=Qi52s")
# After it on the board: the number of the latest look that the agent has asked for (a whole sample).
LOOK = struct.Struct("=Q")
# After it when the child began its newest sample, ns of CLOCK_MONOTONIC: it lives, also while it has nothing to send.
SAMPLED = struct.Struct("=Q")
SAMPLED_AT = BOARD.size + LOOK.size
BOARD_BYTES = SAMPLED_AT + SAMPLED.size


def json_text(value: Any) -> str:
    """`value` as JSON; a number that JSON cannot write is null."""
    if isinstance(value, dict):
        return "{" + ",".join([f"{json_text(key)}:{json_text(one)}" for key, one in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([json_text(one) for one in value]) + "]"
    if isinstance(value, str):
        if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
            return f'"{value}"'
        return '"' + "".join([f"\\u{min(ord(one), 0xFFFD):04x}" for one in value]) + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value - value != 0:  # NaN, infinity
        return "null"
    return repr(value)
