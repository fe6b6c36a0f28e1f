"""What asks another system now and then: silent while another brain leads, one word for a failure, and one when it is over."""

import asyncio
from collections.abc import Iterator

import pytest

from agent.contract.errors import ActionError
from brain import polling

UNREADABLE = "it: its answer has a form that nobody here knows (ValueError: 1 is not in list)"


class Asked(Exception):
    """The script is at its end."""


def asked(script: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], list[str]]:
    """(pauses, what was told) of a script: `.` an answer, `x` none, `?` one that nobody can read, `-` another brain leads."""
    pauses: list[float] = []
    told: list[str] = []
    steps: Iterator[str] = iter(script)
    now = ""

    async def sleep(seconds: float) -> None:
        nonlocal now
        now = next(steps, "")
        if not now:
            raise Asked
        pauses.append(seconds)

    async def ask() -> None:
        if now == "x":
            raise ActionError("no answer")
        if now == "?":
            [0].index(1)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(Asked):
        asyncio.run(
            polling.ask_on(
                ask,
                whom="it",
                every_s=10.0,
                slowest_s=60.0,
                leads=lambda: now != "-",
                fails=lambda error: told.append(str(error)),
                answers=lambda: told.append("again"),
            )
        )
    return pauses, told


@pytest.mark.parametrize(
    ("script", "pauses", "told"),
    [
        ("...", [10, 10, 10], []),
        ("xxxxx.", [10, 20, 40, 60, 60, 60], ["no answer", "again"]),
        ("x.x.", [10, 20, 10, 20], ["no answer", "again", "no answer", "again"]),
        ("xx-.", [10, 20, 40, 10], ["no answer", "again"]),
        ("??.", [10, 20, 40], [UNREADABLE, "again"]),
    ],
)
def test_a_failure_is_told_once_and_the_pauses_grow(
    script: str, pauses: list[float], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(script, monkeypatch) == (pauses, told)
