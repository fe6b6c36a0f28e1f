"""`gpuward drill --wait`: what it says of the drill's incidents, and when it ends."""

import re
from typing import Any

import pytest

from agent.shared.words import speaking
from brain.cli.main import FOLDERS
from simulations import cli
from simulations.drills import DRILLS


class Brain:
    """A client of a brain whose incidents stand in these states, one after the other."""

    def __init__(self, *states: str, times: int = 1) -> None:
        self._states = list(states)
        self._times = times

    def get(self, what: str, *_: str, **__: str) -> dict[str, Any]:
        """The incidents, or the notes of one."""
        if what == "explain":
            kinds = ["incident.opened", "incident.closed", *["incident.reopened"] * (self._times > 1)]
            return {"notes": [{"id": f"n{at}", "kind": kind} for at, kind in enumerate(kinds)]}
        state = self._states.pop(0) if len(self._states) > 1 else "".join(self._states)
        one = {"id": "inc-1", "node": "sim-01", "state": state, "times": self._times}
        return {"incidents": [one] if state else []}


def follow(brain: Any, *, heals: bool, within: float = 5, before: dict[str, int] | None = None) -> bool:
    """Waits for a drill on one node. `before`: how often each incident had been opened."""
    return cli._follow(brain, before or {}, {"nodes": ["sim-01"], "heals": heals}, within, False)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "POLL_S", 0.001)
    monkeypatch.setattr(cli, "line", lambda note: note["kind"])


@pytest.mark.parametrize("heals", [True, False])
def test_a_drill_that_needs_a_person_is_told_at_once(heals: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that heals as a rule: this time something stood in its way."""
    assert not follow(Brain("settling", "healing", "needs_human"), heals=heals)
    assert capsys.readouterr().err == "It needs a person: `gpuward explain inc-1`\n"


def test_a_drill_that_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    """It is followed through its states."""
    assert follow(Brain("healing", "recovered", "closed"), heals=True)
    assert "It is over: `gpuward explain inc-1`" in capsys.readouterr().out


def test_a_fault_that_comes_back_opens_its_incident_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The same drill a second time: it waited in vain for another incident. What was before is not told again."""
    assert follow(Brain("healing", "closed", times=2), heals=True, before={"inc-1": 1})
    assert capsys.readouterr().out.splitlines()[0] == "incident.reopened"
    assert not follow(Brain("closed", times=2), heals=True, before={"inc-1": 2}, within=0.05)


def test_a_drill_without_an_incident_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Its rule may want it to last longer: nobody can tell from here that no rule regards it as a fault."""
    assert not follow(Brain(""), heals=True, within=0.05)
    assert capsys.readouterr().err.endswith("No incident within 0.05 s. Some faults need longer: --within\n")


def test_what_breaks_is_told_in_the_readers_language(capsys: pytest.CaptureFixture[str]) -> None:
    """A drill's own words have their Chinese where the console's pages have it."""
    one = DRILLS["gpu-dead"]
    row = {"name": one.name, "affects": "one", "summary": one.summary, "ends": one.ends}
    with speaking("zh", FOLDERS):
        cli._list({"drills": [row]}, False)
    said = capsys.readouterr().out
    assert not re.search("[a-z]+ [a-z]+ [a-z]+", said), said
    cli._list({"drills": [row]}, False)
    assert one.summary in capsys.readouterr().out
