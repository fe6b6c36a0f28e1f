"""`gpuward diagnose` over many nodes: a folder, a topology, lines that a tool has gathered from several machines."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agent.contract.log_hosts import nodes_of
from brain.cli.diagnose import diagnose
from tests.brain.backtest.kit import DOWN, HELLO, LOST, UP, folder, syslog

NODES = [f"gpu{n:03}" for n in range(7, 13)]


def asked(*args: str | Path, status: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(diagnose, ["--json", *map(str, args)])
    assert result.exit_code == status, f"{result.output} {result.exception!r}"
    return dict(json.loads(result.stdout))


def scopes(found: dict[str, Any]) -> list[str]:
    return sorted(one["scope"] for one in found["incidents"])


def test_a_folder_is_read_with_its_topology(tmp_path: Path) -> None:
    """Links that go down together have one cause, which says on how many nodes."""
    logs = {
        f"messages-{node}": syslog(node, ("03:11:00", UP), (f"03:12:0{n}", DOWN), ("03:40:00", HELLO))
        for n, node in enumerate(NODES)
    }
    logs["topology.yaml"] = [f"{node}: {{leaf: l1, rack: r1}}" for node in NODES]
    (incident,) = asked(folder(tmp_path, logs))["incidents"]
    assert incident["cause"].startswith("shared-link-down")
    assert incident["sure"] == "very: 6 nodes show it at once"


def test_a_topology_can_be_named(tmp_path: Path) -> None:
    """For files that lie elsewhere; one that is wrong is named."""
    folder(tmp_path, {"gpu007.log": syslog("gpu007", ("03:12:00", LOST)), "t.yaml": ["gpu007: {laef: l1}"]})
    result = CliRunner().invoke(
        diagnose, ["--topology", str(tmp_path / "t.yaml"), str(tmp_path / "gpu007.log")]
    )
    assert "laef" in str(result.exception)


def test_what_cannot_be_read_in_a_folder_is_no_all_clear(tmp_path: Path) -> None:
    """The others are judged all the same."""
    folder(tmp_path, {"gpu007.log": syslog("gpu007", ("03:12:00", LOST))})
    (tmp_path / "gpu008.log").symlink_to(tmp_path / "nowhere")
    found = asked(tmp_path, status=1)
    assert scopes(found) == ["gpu/gpu007/0000:3b:00"]
    assert any("gpu008.log" in name for name in found["blind"])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gpu007.log", "[   12.345678] {text}"),
        ("messages-gpu007", "2026-11-24T03:12:00+00:00 gpu007 kernel: {text}"),
        ("messages", "Nov 24 03:12:00 gpu007 kernel: {text}"),
        ("all.txt", "gpu[007-007]: [   12.345678] {text}"),
    ],
)
def test_whose_lines_they_are(name: str, line: str, tmp_path: Path) -> None:
    """By the file's name, by the lines, or by what gathered them."""
    wanted = "gpu/all/0000:3b:00" if name == "all.txt" else "gpu/gpu007/0000:3b:00"
    assert scopes(asked(folder(tmp_path, {name: [line.format(text=LOST)]}) / name)) == [wanted]


@pytest.mark.parametrize(
    "time", ["[   12.345678]", "[Tue Nov 24 03:12:00 2026]", "2026-11-24T03:12:00+00:00 x kernel:", ""]
)
def test_what_several_nodes_say_alike_may_be_folded(time: str, tmp_path: Path) -> None:
    """`clush -bL dmesg`: one line for four nodes, then one for another."""
    lines = [f"gpu[007-010]: {time} {LOST}", f"gpu011: {time} {HELLO}"]
    if not time:
        lines = [f"gpu[007-010]: [   1.5] {LOST}"]
    found = asked(folder(tmp_path, {"all.txt": lines}) / "all.txt")
    nodes = {one["scope"].split("/")[1] for one in found["incidents"] if one["scope"].startswith("gpu/")}
    shared = [one for one in found["incidents"] if one["cause"].startswith("shared-")]
    assert nodes == {"gpu007", "gpu008", "gpu009", "gpu010"} or shared


@pytest.mark.parametrize(
    ("host", "nodes"),
    [
        ("gpu[007-010]", ["gpu007", "gpu008", "gpu009", "gpu010"]),
        ("gpu[9-11,20]-ib", ["gpu9-ib", "gpu10-ib", "gpu11-ib", "gpu20-ib"]),
        ("gpu007", ["gpu007"]),
        ("gpu[1-99999]", ["gpu[1-99999]"]),  # more than any cluster has
        ("gpu[5-2]", ["gpu[5-2]"]),
        ("gpu[1-2-3]", ["gpu[1-2-3]"]),
        ("gpu[,]", ["gpu[,]"]),
    ],
)
def test_folded_names(host: str, nodes: list[str]) -> None:
    """As clush writes node sets; what is none stays a name."""
    assert nodes_of(host) == nodes


@pytest.mark.parametrize(
    "line",
    [
        "mlx5_core 0000:5e:00.0 ens1f0np0: Link {state}",
        "bnxt_en 0000:3b:00.0 ens3f0np0: NIC Link is {State}",
        "ice 0000:17:00.0 ens1f0: NIC Link is {State}",
        "ixgbe 0000:01:00.0 eth0: NIC Link is {State}",
        "i40e 0000:01:00.0 eth0: NIC Link is {State}",
        "tg3 0000:01:00.0 eth0: Link is {state}",
    ],
)
def test_ethernet_drivers_say_that_a_link_is_down(line: str, tmp_path: Path) -> None:
    """Each in its own words."""
    rows = [
        ("03:11:00", line.format(state="up", State="Up")),
        ("03:12:00", line.format(state="down", State="Down")),
        ("03:30:00", HELLO),
    ]
    (incident,) = asked(folder(tmp_path, {"n1.log": syslog("n1", *rows)}))["incidents"]
    assert incident["cause"] == "link-down"
