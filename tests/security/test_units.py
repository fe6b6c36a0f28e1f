"""How tight the units are, by systemd's own measure; and that they say why they are no tighter."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.contract.actions import ACTIONS
from agent.contract.actions.spec import Right
from tests.security.units import AGENT, BRAIN, HANDS, comments, settings

ROOT = BRAIN.parents[2]
KUBERNETES = ROOT / "deploy/kubernetes/single/brain.yaml"
# Capabilities that only hands need.
HANDS_ONLY = {right.value for right in Right} - {Right.ROOT.value}
# How systemd-analyze names a group of capabilities or system calls → how people say it.
SAID = {"CapabilityBoundingSet": "capabilities", "AmbientCapabilities": "capabilities"}


def analyze(unit: Path, scratch: Path) -> list[dict[str, object]]:
    """What systemd-analyze says of the unit without drop-ins, one entry for each thing that it looks at."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs apt-get install systemd")
    shutil.copy(unit, scratch)
    command = [
        *("systemd-analyze", "security", "--no-pager", "--offline=true", "--json=short"),
        str(scratch / unit.name),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.component("systemd")
@pytest.mark.parametrize(("unit", "most"), [(BRAIN, 2.5), (AGENT, 5.0)], ids=["brain", "agent"])
def test_exposure_stays_below_its_limit(unit: Path, most: float, tmp_path: Path) -> None:
    """`systemd-analyze security` itself refuses a unit above the limit (10 times its figure)."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs apt-get install systemd")
    shutil.copy(unit, tmp_path)
    command = [
        *("systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={round(most * 10)}"),
        str(tmp_path / unit.name),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Overall exposure level" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout.splitlines()[-1]


@pytest.mark.component("systemd")
@pytest.mark.parametrize("unit", [BRAIN, AGENT], ids=["brain", "agent"])
def test_each_point_that_is_left_has_its_reason(unit: Path, tmp_path: Path) -> None:
    """Whoever reads the unit sees why each thing that systemd-analyze still counts must be so."""
    said = comments(unit)
    unsaid = set()
    for item in analyze(unit, tmp_path):
        name = str(item["name"])
        if item["set"] is False and item["exposure"]:
            key, _, _ = name.partition("=")
            known = {name, key, *key.split("/"), SAID.get(key, key)}
            if key == "SystemCallFilter":
                known = {name}
            if not any(word.rstrip("=") in said for word in known):
                unsaid.add(name)
    assert unsaid == set()


def test_an_agent_that_observes_has_no_right_of_the_hands() -> None:
    """No capability that an action needs, no user 0; hands.conf has all of them."""
    base, hands = settings(AGENT), settings(HANDS)
    for key in ("CapabilityBoundingSet", "AmbientCapabilities"):
        assert not HANDS_ONLY & set(base[key].split()), key
    assert base["User"] != "root"
    assert hands["User"] == "root"
    needed = {right.value for spec in ACTIONS.values() for right in spec.needs}
    assert needed - {Right.ROOT.value} == HANDS_ONLY == set(hands["CapabilityBoundingSet"].split())


def test_what_only_reads_needs_no_hands() -> None:
    """What a node may do by default works in an agent that observes."""
    assert [name for name in ("agent.look", "evidence.collect", "port.check") if ACTIONS[name].needs] == []


@pytest.mark.parametrize(
    ("file", "limit"),
    [(BRAIN, r"(?m)^MemoryMax=(\d+)G$"), (KUBERNETES, r"cpu: 500m.*\n *limits: \{memory: (\d+)Gi\}")],
    ids=["unit", "pod"],
)
def test_a_storm_of_the_largest_cell_fits_into_the_memory(file: Path, limit: str) -> None:
    """The unit's limit, and the pod's, are for the brain and its NATS server together: what both took in the storm that was
    measured, and half as much again for what the kernel counts besides (buffers of 10,000 connections, files that are written).
    """
    figures = re.findall(
        r"\| the (?:brain|broker) \| [^|]*?, ([\d,]+) MB \|", (ROOT / "docs/benchmarks.md").read_text()
    )
    assert len(figures) == 2, figures
    took_bytes = sum(int(one.replace(",", "")) for one in figures) * 10**6
    (most_gib,) = re.findall(limit, file.read_text())
    assert int(most_gib) * 1024**3 >= 1.5 * took_bytes


def test_the_users_of_the_units_are_made() -> None:
    """Each unit's file for systemd-sysusers names its user, and no other."""
    for unit in (BRAIN, AGENT):
        lines = unit.with_suffix(".sysusers.conf").read_text().splitlines()
        assert [line.split()[1] for line in lines if line.startswith("u ")] == [settings(unit)["User"]]
