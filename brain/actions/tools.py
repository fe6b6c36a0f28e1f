"""Runs programs that look at or change what is outside of the brain: the only place in brain/actions that starts any."""

from collections.abc import Mapping, Sequence

from agent.shared import tool
from agent.shared.tool import MAX_OUTPUT_BYTES, Completed
from brain import fence


async def read(
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    max_bytes: int = MAX_OUTPUT_BYTES,
) -> Completed:
    """Runs a program that only looks. Errors as in agent/shared/tool.py."""
    return await tool.run(argv, deadline_s=deadline_s, env=env, max_bytes=max_bytes)


async def change(
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    max_bytes: int = MAX_OUTPUT_BYTES,
) -> Completed:
    """Runs a program that changes something, if this brain still leads. Deposed: it was not started."""
    await fence.passed()
    return await tool.run(argv, deadline_s=deadline_s, env=env, max_bytes=max_bytes)
