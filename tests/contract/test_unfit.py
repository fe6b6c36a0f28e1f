"""Which conditions make a node unfit: the table, and what a story of events leaves standing."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.collectors.samples import Gpu
from agent.conditions import MOST, Conditions
from agent.contract.fitness import GPU, GROUPS
from agent.contract.kinds import KINDS
from agent.contract.look import RESTATED
from agent.contract.messages import Scalar, Severity, UnsentEvent
from agent.contract.unfit import FIT, TABLE, text_of
from agent.host import Host

DISK = "disk/nvme0"
FIRST = "gpu/0000:3b:00"
LOST: Mapping[str, Scalar] = {"reason": "lost", "index": 0}
COUNT: Mapping[str, Scalar] = {"gpus": 7, "expected": 8, "missing": 1, "unnamed": 1, "basis": "config"}
FABRIC: Mapping[str, Scalar] = {
    "healthy": False,
    "state": "in_progress",
    "status": 0,
    "trouble": "in_progress",
}
HUNG: Mapping[str, Scalar] = {"call": "nvmlDeviceGetName", "waited_s": 10.0, "times": 1}
REFUSED: Mapping[str, Scalar] = {"what": "driver", "code": 999, "reason": "Unknown Error", "gpus": 8}
Told = tuple[str, str, Mapping[str, Scalar]]


def told(kind: str, component: str, data: Mapping[str, Scalar], *, age_s: float = 0.0) -> UnsentEvent:
    """An event with the severity of its kind; `good` in the data: of severity info."""
    fields = {name: value for name, value in data.items() if name != "good"}
    severity = Severity.INFO if "good" in data else KINDS[kind].severity
    return UnsentEvent(kind=kind, component=component, severity=severity, data=fields, age_s=age_s)


def standing(*events: UnsentEvent, group: str = GPU) -> list[str]:
    """What stands after them, in words."""
    conditions = Conditions(Host())
    for event in events:
        conditions.note((event,))
    return [one.text for one in conditions.lasting() if one.group == group]


@pytest.mark.parametrize(
    ("story", "group", "stands"),
    [
        ([("gpu.lost", FIRST, LOST)], GPU, ["GPU 0000:3b:00 is lost (lost)"]),
        ([("gpu.lost", FIRST, LOST), ("gpu.returned", FIRST, {"by": "nvml"})], GPU, []),
        ([("gpu.lost", FIRST, LOST), ("gpu.returned", "gpu/0000:3c:00", {"by": "nvml"})], GPU, ["lost"]),
        ([("gpu.lost", FIRST, LOST), ("gpu.lost", FIRST, LOST)], GPU, ["lost"]),
        ([("gpu.removed", FIRST, {})], GPU, ["GPU 0000:3b:00 is gone from the PCI bus"]),
        ([("gpu.count", "node", COUNT)], GPU, ["7 of 8 GPUs answer"]),
        # The lost one has a line of its own.
        ([("gpu.count", "node", {**COUNT, "unnamed": 0})], GPU, []),
        ([("gpu.recovery_action", FIRST, {"action": 2, "name": "reboot"})], GPU, ["needs reboot"]),
        ([("gpu.recovery_action", FIRST, {"action": 3, "name": "drain_p2p"})], GPU, []),
        (
            [
                ("gpu.recovery_action", FIRST, {"action": 1, "name": "reset"}),
                ("gpu.recovery_action", FIRST, {"action": 0, "name": "none", "good": True}),
            ],
            GPU,
            [],
        ),
        ([("gpu.fabric", FIRST, FABRIC)], GPU, ["not in the NVSwitch fabric (in_progress, status 0)"]),
        # Fewer lanes to the fabric: jobs run.
        ([("gpu.fabric", FIRST, {**FABRIC, "state": "completed"})], GPU, []),
        ([("gpu.fabric", FIRST, {**FABRIC, "state": "completed", "status": 999})], GPU, ["status 999"]),
        ([("nvml.refused", "node", REFUSED)], GPU, ["lets no program in: Unknown Error (999)"]),
        # A driver that was rolled out to all nodes: only where the site asks.
        ([("nvml.refused", "node", {**REFUSED, "what": "other_version"})], GPU, []),
        ([("nvml.refused", "node", {**REFUSED, "what": "other_version"})], "software", ["other_version"]),
        ([("node.module", "node", {"module": "nvidia", "loaded": False})], GPU, ["module nvidia is not"]),
        ([("node.module", "node", {"module": "nvidia_peermem", "loaded": False})], GPU, []),
        ([("node.module", "node", {"module": "mlx5_ib", "loaded": False})], "network", ["mlx5_ib"]),
        (
            [
                ("node.module", "node", {"module": "nvidia", "loaded": False}),
                ("node.module", "node", {"module": "nvidia_uvm", "loaded": False}),
                ("node.module", "node", {"module": "nvidia", "loaded": True, "good": True}),
            ],
            GPU,
            ["nvidia_uvm"],
        ),
        # What jobs do, and what only slows them down.
        ([("gpu.spinning", FIRST, {"active": True})], GPU, []),
        ([("gpu.remap", FIRST, {"pending": True, "failure": False})], GPU, []),
        ([("gpu.remap", FIRST, {"pending": True, "failure": False})], "degraded", ["waits for a reset"]),
        # What many nodes share.
        ([("mount.state", "mount//home", {"state": "hung", "before": "ok", "fstype": "nfs4"})], GPU, []),
        ([("mount.state", "mount//home", {"state": "hung"})], "storage", ["file system /home is hung"]),
        ([("disk.health", DISK, {"answers": True, "read_only": True})], GPU, []),
        ([("disk.health", DISK, {"answers": True, "read_only": True})], "storage", ["nvme0 can only be"]),
        ([("disk.health", DISK, {"answers": True, "unreliable": True})], "storage", ["no longer reliable"]),
        ([("disk.health", DISK, {"answers": False, "waited_s": 10.0})], "storage", ["does not answer"]),
        ([("disk.health", DISK, {"answers": True, "worn": True})], "storage", []),
        ([("ib.port_state", "port/mlx5_0.1", {"state": "DOWN"})], GPU, []),
        ([("ib.port_state", "port/mlx5_0.1", {"state": "DOWN"})], "network", ["mlx5_0.1 is DOWN"]),
        ([("ib.sm_answer", "port/mlx5_0.1", {"answers": False})], "network", []),
    ],
)
def test_what_stands_after_a_story(story: list[Told], group: str, stands: list[str]) -> None:
    """Events in; the conditions of a group that last, each with these words."""
    found = standing(*(told(*event) for event in story), group=group)
    assert len(found) == len(stands), found
    for text, part in zip(found, stands, strict=True):
        assert part in text


def test_a_hang_counts_after_two_minutes() -> None:
    """A machine under load may answer late; what is over by then never counted."""
    assert standing(told("nvml.hung", "node", HUNG, age_s=100)) == []
    hung = told("nvml.hung", "node", HUNG, age_s=121)
    assert standing(hung) == ["the GPU driver hangs in nvmlDeviceGetName"]
    again = told("nvml.hung", "node", HUNG)
    assert standing(hung, again) == ["the GPU driver hangs in nvmlDeviceGetName"], "since the first one"
    assert standing(hung, told("nvml.answers", "node", {"after_s": 130.0})) == []


def test_a_node_is_not_filled_up_with_conditions() -> None:
    """However many parts an odd machine has."""
    events = [told("service.state", f"service/u{n}.service", {"active": "failed"}) for n in range(3 * MOST)]
    assert len(standing(*events, group="software")) == MOST


def test_what_a_device_says_is_harmless() -> None:
    """In the words of a condition, too."""
    (text,) = standing(told("nvml.refused", "node", {**REFUSED, "reason": "\x1b[2J\n" + "x" * 900}))
    assert text.isprintable()
    assert len(text) <= 120


def test_every_lasting_condition_is_judged() -> None:
    """Each kind that agent.look tells again as present stands in the table, or is said to be none of a job's business."""
    present = {kind for kind in RESTATED if KINDS[kind].severity is not Severity.INFO}
    judged = {row.kind for row in TABLE}
    assert judged.isdisjoint(FIT)
    unjudged = present - judged - set(FIT)
    assert not unjudged, f"add {sorted(unjudged)} to TABLE or FIT in agent/contract/unfit.py"
    # The agent tells their end by another kind.
    assert judged - present == {"gpu.removed", "nvml.blind", "nvml.refused"} - present


def test_each_row_can_be_told() -> None:
    """Its group is one, its kinds are declared, and its words are made of fields that are always there."""
    for row in TABLE:
        assert row.group in GROUPS
        assert {row.kind, *row.ends} <= set(KINDS)
        kind = KINDS[row.kind]
        example = dict(kind.example or {})
        always = {field.name for field in kind.fields if field.always}
        data = {name: value for name, value in example.items() if name in always}
        assert isinstance(row.when(data), bool)
        assert text_of(row, f"{kind.component.partition(',')[0]}/x", data)
        assert not row.by or row.by in always


def test_the_sample_that_shows_a_lost_gpu(tmp_path: Path) -> None:
    """From the collector that tells it to the words."""
    from agent import config, wiring

    host = Host(root=tmp_path)
    conditions = Conditions(host)
    lost = Gpu(index=0, bdf="0000:3b:00", uuid="GPU-1", lost="not_found", mono_s=1.0)
    for collector in wiring.collectors_for(host, config.AgentConfig(node="n1")):
        if isinstance(lost, collector.wants):
            conditions.note(list(collector.feed(lost, 1.0)))
    assert [one.text for one in conditions.lasting()] == ["GPU 0000:3b:00 is lost (not_found)"]
