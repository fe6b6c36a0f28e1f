"""What `kubectl describe node` would show of our drain: the parts that need no server."""

import asyncio
from typing import Any

import pytest

from agent.contract.errors import TimedOut
from brain.actions import kube_tell
from brain.actions.marks import Mark


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("gpu_off_bus on gpu/0000:3b:00 (rule gpu-off-bus)", "GpuOffBus"),
        ("xid-79 at gpu/0000:3b:00", "Xid79"),
        ("79 at gpu/0000:3b:00", "Fault79"),
        ("", "Fault"),
    ],
)
def test_reasons_of_conditions(why: str, reason: str) -> None:
    """In CamelCase, and never empty: the server wants neither spaces nor nothing."""
    assert kube_tell.camel(why) == reason
    made = kube_tell.condition(None, [Mark(incident="inc-1", why=why)], "2026-01-01T00:00:00Z")
    assert made is not None
    assert made["reason"] == reason


def test_errors_of_both_halves_are_told_together() -> None:
    """The first one's kind decides whether it is asked again."""

    class Api:
        """Refuses everything."""

        async def request(self, method: str, path: str, **_: object) -> None:
            raise TimedOut(path)

    async def look(_: str) -> dict[str, Any]:
        return {"metadata": {}}

    def marks(_: object) -> list[Mark]:
        return [Mark(incident="inc-1", why="x")]

    teller = kube_tell.NodeTeller(Api(), ("events", "conditions"), look, marks, bool)  # type: ignore[arg-type]  # all that it asks
    with pytest.raises(TimedOut, match=r"/status; /api/v1/namespaces/default/events"):
        asyncio.run(teller.tell("gpu1", {"inc-1"}, ()))
