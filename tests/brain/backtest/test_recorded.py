"""`gpuward backtest` of a log that a brain has written: the same incidents, runs and pages; with other rules what they say."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from brain.core.inputs import Input, PackLoaded, Pulse, TimerFired
from brain.core.pack.spec import Mode, ModeSetting, Settings
from brain.core.rehearsal.timeline import Timeline
from brain.core.state import STANDS_STILL_S, IncidentState
from simulations.virtual_time import Simulator
from tests.brain.backtest.kit import NotedEngine, ask, ask_json, write_log
from tests.shipped import ROOT, shipped_pack

NODES = [f"sim-{n:02}" for n in range(1, 9)]
DRILLS = (("link-down", "sim-01"), ("gpu-off-bus", "sim-03"), ("cable-cut", "sim-05"))


@pytest.fixture(scope="module")
def lived() -> tuple[list[tuple[Input, float]], Timeline]:
    """A cell in which faults are healed, and its log."""
    engine = NotedEngine()
    settings = Settings(modes=(ModeSetting(mode=Mode.AUTO),))
    world = Simulator(engine, shipped_pack(settings), NODES)
    for number, (drill, node) in enumerate(DRILLS):
        world.inject(drill, node, at_s=60 + 900 * number)
    world.command("hold", at_s=1800, scope="node/sim-05", why="the cable is being replaced")
    return engine.log, world.run(7200)


def lived_incidents(timeline: Timeline) -> list[tuple[str, str, str, str, str]]:
    """What the brain had: id, cause, place, severity, state."""
    quiet = {
        note.incident for note in timeline.notes if note.kind == "incident.closed" and note.data.get("quiet")
    }
    return sorted(
        (one.id, one.cause, one.scope, one.severity, one.state.value)
        for one in timeline.incidents.values()
        if one.state is not IncidentState.EXPLAINED and one.id not in quiet
    )


def found_incidents(found: dict[str, list[dict[str, str]]]) -> list[tuple[str, str, str, str, str]]:
    keys = ("id", "cause", "place", "severity", "state")
    return sorted(tuple(one[key] for key in keys) for one in found["incidents"])  # type: ignore[misc]  # JSON has no types


@pytest.mark.parametrize("name", ["log.ndjson", "log.ndjson.gz"])
def test_a_log_gives_what_the_brain_had(
    name: str, lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """Its incidents with their ids and states, its runs with their ends, its holds with their gates."""
    log, timeline = lived
    found = ask_json(write_log(tmp_path / name, log))
    assert found_incidents(found) == lived_incidents(timeline)
    assert len(found["incidents"]) >= 3
    runs = {one.id: one.state.value for one in timeline.runs.values()}
    assert {one["id"]: one["state"] for one in found["decisions"]} == {
        run: state for run, state in runs.items() if run in {one["id"] for one in found["decisions"]}
    }
    assert "succeeded" in runs.values()
    held = {note.data["gate"] for note in timeline.notes if note.kind == "run.held" and note.data.get("gate")}
    assert {one["gate"] for one in found["holds"] if one["answer"] == "hold"} == held
    assert sum(sum(one["sent"].values()) for one in found["pages"]) == len(timeline.pages)
    assert found["input"]["nodes"] == len(
        {node for _, node in DRILLS} | {one.node for one in timeline.incidents.values() if one.node}
    )
    assert found["ok"]


def test_timers_that_the_log_does_not_have_fire_when_they_are_due(
    lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """A later version may set others than the one that wrote the log: nothing waits for ever."""
    log, _ = lived
    without = [one for one in log if not isinstance(one[0], TimerFired)]
    found = ask_json(write_log(tmp_path / "log.ndjson", without))
    assert {(one["cause"], one["state"]) for one in found["incidents"]} >= {
        ("link-down", "closed"),
        ("gpu-lost", "closed"),
    }


def stamped(log: Iterable[tuple[Input, float]], set_at: float, back_s: float) -> list[tuple[Input, float]]:
    """The stamps of a server whose clock was set back, for an engine that sees the same times as before (decision 45)."""
    found: list[tuple[Input, float]] = []
    before = stamp = 0.0
    for given, at in log:
        if at >= set_at and not stamp:
            stamp = before - back_s
            found.append((Pulse(id="the clock is set"), stamp))
        stamp += 2 * (at - before) if stamp else 0.0
        found.append((given, stamp if stamp and stamp < before - STANDS_STILL_S else at))
        before = at
    return found


def test_a_clock_that_was_set_back_keeps_the_logs_time(
    lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """The log's time goes on at half the speed of the server's until the two meet: the same incidents, to the second."""
    log, timeline = lived
    first_drill = log[0][1] + 60
    plain = ask_json(write_log(tmp_path / "plain.ndjson", log))
    found = ask_json(write_log(tmp_path / "log.ndjson", stamped(log, first_drill, 600.0)))
    assert found_incidents(found) == lived_incidents(timeline)
    assert [one["since"] for one in found["incidents"]] == [one["since"] for one in plain["incidents"]]
    assert found["input"]["until"] == plain["input"]["until"]


def test_with_other_rules_nothing_of_the_runs_counts(
    lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """Whether a step would have worked is not known: each run is only planned."""
    log, _ = lived
    found = ask_json(write_log(tmp_path / "log.ndjson", log), "--rules", str(ROOT / "rules"))
    assert {one["state"] for one in found["decisions"]} == {"observed"}
    assert found["rules"]["from"] == str(ROOT / "rules")
    assert {one["cause"] for one in found["incidents"]} >= {"link-down", "gpu-lost"}


def test_a_log_without_rules_is_judged_by_gpuwards_own(
    lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """As a part of a log is, that was exported from a time on."""
    log, _ = lived
    found = ask_json(
        write_log(tmp_path / "log.ndjson", [one for one in log if not isinstance(one[0], PackLoaded)])
    )
    assert found["rules"]["from"] == "gpuward's own"
    assert {one["cause"] for one in found["incidents"]} >= {"link-down", "gpu-lost"}


def test_a_log_that_was_cut_off_gives_what_is_there(
    lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """And says so, with status 1."""
    log, _ = lived
    file = write_log(tmp_path / "log.ndjson", log)
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 9 // 10])  # the rules are most of it
    found = ask_json(file, status=1)
    assert "cut off" in found["input"]["unreadable"]["log.ndjson"]
    assert found["incidents"]
    assert not found["ok"]


def test_against_the_same_rules_nothing_changes(
    lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """Neither by the settings nor by the places of the log's site."""
    log, _ = lived
    file = write_log(tmp_path / "log.ndjson", log)
    text = ask(file, "--rules", str(ROOT / "rules"), "--against", str(ROOT / "rules"))
    assert "**Nothing changes**" in text
    text = ask(file, "--against", str(ROOT / "rules"))  # the log's own
    assert "**Nothing changes**" in text


def test_a_file_that_is_no_log_says_what_to_do(tmp_path: Path) -> None:
    """A single kernel log is for `diagnose`."""
    from click.testing import CliRunner

    from brain.cli.backtest_command import backtest

    (tmp_path / "dmesg").write_text("[ 1.0] hello\n")
    for path, says in (
        (tmp_path / "dmesg", "ask `gpuward diagnose`"),
        (tmp_path / "none", "there is no such"),
    ):
        assert says in str(CliRunner().invoke(backtest, [str(path)]).exception)


def test_the_rules_of_a_pack_are_only_as_new_as_the_log(
    lived: tuple[list[tuple[Input, float]], Timeline], tmp_path: Path
) -> None:
    """Rules that were changed on the way are in force from then on."""
    log, _ = lived
    first = next(given for given, _ in log if isinstance(given, PackLoaded))
    mute = replace(first.pack, version="000000000000", rules=())
    half = len(log) // 2
    changed = [*log[:half], (PackLoaded(id="pack-2", pack=mute), log[half][1]), *log[half:]]
    found = ask_json(write_log(tmp_path / "log.ndjson", changed))
    assert found["rules"] == {"from": "those of the log", "version": "000000000000"}
    assert found["incidents"]
