"""`gpuward incidents`, `nodes` and `status` on terminals of any width: nothing is cut, and no word is broken."""

import io
from typing import Any

import click
import pytest
from click.testing import CliRunner
from rich.cells import cell_len
from rich.console import Console

from brain.cli import queries
from brain.cli.client import Client
from brain.cli.queries import IncidentList, NodeList, status
from brain.leader import leader_watch


def incident(**fields: Any) -> Any:
    """As the API gives it."""
    whole = {
        "id": "inc-7kq2m4xz", "severity": "P1", "state": "needs_human", "opened_at": "2026-11-20T13:17:35Z",
        "cause": "gpu-nvlink-discovery-failed", "scope": "gpu/gpu-0017/0000:3b:00", "nodes": 1, "runs": ["r1"],
        "pages": {"acked_by": ""},
    }  # fmt: skip
    return whole | fields


def shown(width: int, *found: Any) -> list[str]:
    """The lines."""
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(IncidentList(list(found)), crop=False)
    return out.getvalue().splitlines()


def test_a_wide_terminal_has_a_table() -> None:
    """One line each, under a head."""
    head, line = shown(140, incident(nodes=12))
    assert head.split() == ["ID", "SEV", "STATE", "SINCE", "CAUSE", "WHERE", "RUNS"]
    assert "gpu/gpu-0017/0000:3b:00 (12 nodes)" in line


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_one_has_two_lines_for_each(width: int) -> None:
    """Identifiers, cause and place are whole, to be copied."""
    assert shown(width, incident(), incident(id="inc-b", runs=[])) == [
        "inc-7kq2m4xz  P1  needs_human  11-20 13:17:35Z  1 run",
        "    gpu-nvlink-discovery-failed at gpu/gpu-0017/0000:3b:00",
        "inc-b  P1  needs_human  11-20 13:17:35Z",
        "    gpu-nvlink-discovery-failed at gpu/gpu-0017/0000:3b:00",
    ]


def test_what_waits_for_a_person_does_not_look_healed() -> None:
    """Its state is that of its run: whoever reads `healing` at night goes back to bed. What came back says how often."""
    asking = incident(state="healing", asks="inc-7kq2m4xz.r1", times=3)
    assert shown(100, asking)[0] == "inc-7kq2m4xz  P1  approval  11-20 13:17:35Z  1 run  it came back 2 times"
    assert "approval" in shown(140, asking)[1]
    assert "healing" in shown(140, incident(state="healing", asks=""))[1]
    assert "healing" in shown(140, incident(state="healing"))[1], "of an older brain"


def test_a_very_narrow_one_has_more() -> None:
    """Lines break between words, and none is longer than the terminal is wide."""
    assert shown(40, incident(runs=["r1", "r2"], nodes=12)) == [
        "inc-7kq2m4xz  P1  needs_human  11-20",
        "    13:17:35Z  2 runs",
        "    gpu-nvlink-discovery-failed at",
        "    gpu/gpu-0017/0000:3b:00 (12 nodes)",
    ]


def test_who_has_acknowledged_is_shown() -> None:
    """Whoever takes over sees whom to ask, in the table and below it."""
    taken = incident(pages={"acked_by": "ann"})
    assert shown(140, taken, incident(id="inc-b"))[1].split()[-1] == "ann"
    assert shown(60, taken)[1] == "    gpu-nvlink-discovery-failed at gpu/gpu-0017/0000:3b:00,"
    assert shown(60, taken)[2] == "    ann has it"


@pytest.mark.parametrize("width", [24, 40, 60, 99])
def test_chinese_takes_two_columns(width: int) -> None:
    """Names of people may be Chinese, and so may what a site calls its faults."""
    lines = shown(
        width, incident(cause="显卡的温度太高而且风扇已经停止转动需要更换", pages={"acked_by": "王小明"})
    )
    scope = "gpu/gpu-0017/0000:3b:00"
    assert [one for one in lines if cell_len(one) > max(width, len(scope) + 5)] == []
    assert "王小明" in "".join(one.strip() for one in lines)


NODE: Any = {
    "name": "gpu-0017.cluster.example.com", "alive": True, "beat_age_s": 3.2, "version": "0.1.0", "spooled": 0,
    "dropped": 0, "pod": "p1", "rack": "r07", "leaf": "leaf-3", "chassis": "",
}  # fmt: skip


def nodes(width: int) -> list[str]:
    """The lines of two nodes."""
    out = io.StringIO()
    silent: Any = NODE | {
        "name": "n2",
        "alive": False,
        "beat_age_s": None,
        "version": "",
        "spooled": None,
        "dropped": None,
    }
    Console(file=out, width=width, force_terminal=False).print(NodeList([NODE, silent]), crop=False)
    return out.getvalue().splitlines()


def test_nodes_have_a_table_where_it_fits() -> None:
    """One line each, under a head."""
    head, first, second = nodes(100)
    assert head.split() == ["NODE", "STATE", "BEAT", "AGENT", "SPOOLED", "DROPPED", "PLACE"]
    assert first.split()[:2] == ["gpu-0017.cluster.example.com", "alive"]
    assert second.split()[:3] == ["n2", "unreachable", "never"]


@pytest.mark.parametrize("width", [40, 60])
def test_nodes_on_a_narrow_terminal(width: int) -> None:
    """Each value has its name, as no head stands above it."""
    lines = nodes(width)
    assert max(map(len, lines)) <= width
    assert lines[0] == "gpu-0017.cluster.example.com  alive"
    text = " ".join(" ".join(lines).split())
    assert "beat 3 s ago, agent 0.1.0, spooled 0, dropped 0, place p1 r07 leaf-3" in text
    assert "n2 unreachable beat never, place p1 r07 leaf-3" in text


def test_the_status_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its texts hang under their beginning."""
    hold = {
        "scope": "node/gpu-0017",
        "why": "a person looks at it",
        "id": "hold-abcdefgh",
        "who": "ann",
        "since": None,
        "until": None,
    }
    found = {
        "brain": "b1", "cell": "c1", "connected": True, "leads": True, "leader": "b1", "seq": 1, "log_time": None,
        "caught_up": True, "pack": "36309a064ce7", "rules": 1, "runbooks": 37, "nodes": 1, "nodes_unreachable": 0,
        "matcher": "plain Python (durable_rules cannot be had: No module named 'durable_rules_engine')",
        "incidents_open": 0, "stopped": "", "troubles": [], "malformed": 1, "holds": [hold], "modes": [], "proposals": [],
    }  # fmt: skip
    monkeypatch.setattr(Client, "get", lambda *_, **__: found)
    monkeypatch.setenv("COLUMNS", "40")
    output = CliRunner().invoke(status, obj=Client("http://localhost:1")).output
    assert max(map(len, output.splitlines())) <= 40
    text = " ".join(output.split())
    assert "log 1 input, newest at none" in text
    assert "36309a064ce7: 1 rule, 37 runbooks; matched by plain Python (durable_rules cannot be had: " in text
    assert "node/gpu-0017: a person looks at it" in text


STATUS: Any = {
    "brain": "b1", "cell": "c", "connected": True, "leads": True, "leader": "b1", "seq": 7, "caught_up": True,
    "log_time": "2026-11-20T13:17:35.000Z", "pack": "", "rules": 1, "runbooks": 1, "matcher": "m", "nodes": 2,
    "nodes_unreachable": 0, "incidents_open": 0, "stopped": "", "troubles": [], "malformed": 0, "holds": [], "modes": [],
    "proposals": [],
}  # fmt: skip


@pytest.mark.parametrize("command", [status, queries.nodes, queries.incidents, queries.runs])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, ""),
        ({"connected": False, "leads": False}, "it is not connected to NATS"),
        ({"troubles": [{"cause": leader_watch.NOBODY_LEADS, "text": "t", "since": None}]}, "nobody leads"),
        ({"caught_up": False}, "it is still reading the log"),
    ],
)
def test_what_a_brain_that_hears_nobody_shows_is_called_outdated(
    monkeypatch: pytest.MonkeyPatch, command: click.Command, more: dict[str, Any], why: str
) -> None:
    """At once, not only when it pages: "nothing is open", or a node that is alive, would be read as good news."""
    told = {
        "status": STATUS | more,
        "nodes": {"nodes": [NODE]},
        "incidents": {"incidents": []},
        "runs": {"runs": []},
    }
    monkeypatch.setattr(Client, "get", lambda _, path, **__: told[path])
    ran = CliRunner().invoke(command, obj=Client("http://localhost:1"))
    assert ran.exit_code == 0
    text = " ".join(ran.output.split())
    assert ("OUTDATED" in text) == bool(why)
    if why:
        assert f"as of 11-20 13:17:35Z: {why}" in text
    if command is status:
        assert ("b1 of cell c, leads" in text) == (why in ("", "it is still reading the log"))
