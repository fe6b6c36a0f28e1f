"""What DCGM finds, from what dcgmi prints to the incident: one fault is one incident, whoever tells it."""

from collections.abc import Sequence

import pytest

from agent.collectors.dcgm import DcgmCollector
from agent.collectors.samples_node import DcgmFinding, DcgmHealth
from agent.contract import dcgm_errors
from agent.contract.messages import UnsentEvent
from agent.shared import dcgmi
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Example, Expect, Given, Pack
from brain.core.rehearsal import examples
from tests.agent import dcgm_kit as kit
from tests.agent.dcgm_kit import Fails
from tests.shipped import shipped_pack

BDF = "0000:3b:00"
ON = f"gpu/{BDF}"
# What only DCGM tells → the rule about it, of a GPU; the others are of the node.
RULES = {
    "CORRUPT_INFOROM": "gpu-inforom-corrupt",
    "RETIRED_PAGES_LIMIT": "gpu-dcgm-pages",
    "RETIRED_PAGES_DBE_LIMIT": "gpu-dcgm-pages",
    "UNCORRECTABLE_ROW_REMAP_LIMIT": "gpu-dcgm-pages",
    "POWER_UNREADABLE": "gpu-dcgm-other",
    "NVLINK_SYMBOL_BER_THRESHOLD": "gpu-dcgm-other",
    "FIELD_THRESHOLD": "gpu-dcgm-other",
    "UNKNOWN": "gpu-dcgm-unknown",
}
OF_THE_NODE = ("CONNECTX_HEALTH", "FIELD_THRESHOLD", "UNKNOWN", "CORRUPT_INFOROM")


@pytest.fixture(scope="module")
def pack() -> Pack:
    """gpuward's own rules."""
    return shipped_pack()


def found(name: str, *, of_gpu: bool = True, at: float = 0.0) -> list[Given]:
    """What the agent tells of an error that dcgmi prints."""
    message, failed = kit.MESSAGES.get(name, ("A new kind of trouble.", True))
    answer = dcgmi.health(kit.report([Fails(message=message, failed=failed)]))
    findings = tuple(
        DcgmFinding(
            bdf=BDF if of_gpu else "",
            entity=one.entity,
            system=one.system,
            failed=one.failed,
            code=one.error.code,
            name=one.error.name,
            told_by=one.error.told_by,
            xid=one.error.xid,
            message=one.message,
        )
        for one in answer.incidents
        if not one.error.ordinary
    )
    return [given(one, at) for one in DcgmCollector().feed(DcgmHealth(findings=findings), 0.0)]


def given(event: UnsentEvent, at: float) -> Given:
    """As an example has it."""
    return Given(
        at=at,
        event=event.kind,
        component=event.component,
        data=event.data,
        severity=event.severity.value,
    )


def outcome(pack: Pack, what: Sequence[Given], expect: Expect) -> str:
    """Empty: as expected."""
    return examples.run(pack, ACTIONS, Example(name="", given=tuple(what), expect=expect))


@pytest.mark.parametrize("name", dcgm_errors.NAMES)
def test_each_error_alone_is_one_incident_or_none(pack: Pack, name: str) -> None:
    """None where gpuward tells the same itself: DCGM keeps XIDs until its engine restarts, long after the GPU was reset."""
    rule = RULES.get(name, "")
    expect = Expect(incident=rule, scope=f"gpu/n1/{BDF}", incidents=1) if rule else Expect(nothing=True)
    if name != "CONNECTX_HEALTH":  # it is of no GPU
        assert outcome(pack, found(name), expect) == ""
    told_elsewhere = all(one.data["told_by"] for one in found(name))
    assert told_elsewhere == (not rule and name != "CONNECTX_HEALTH")


@pytest.mark.parametrize("name", OF_THE_NODE)
def test_what_has_no_address_is_the_nodes(pack: Pack, name: str) -> None:
    """One incident as well."""
    expect = Expect(incident="node-dcgm", scope="node/n1", incidents=1)
    assert outcome(pack, found(name, of_gpu=False), expect) == ""


def event(kind: str, component: str = ON, severity: str = "", **data: object) -> Given:
    """What NVML tells."""
    return Given(event=kind, component=component, severity=severity, data=data)  # type: ignore[arg-type]  # as the rows have it


def xid(code: int, text: str) -> Given:
    """What the kernel log tells."""
    return Given(kernel=f"NVRM: Xid (PCI:{BDF}): {code}, pid=4711, name=python3, {text}")


# The fault → what gpuward tells of it, what DCGM tells a minute later, the one incident.
BOTH: dict[str, tuple[list[Given], tuple[str, ...], str]] = {
    "a GPU off the bus": (
        [xid(79, "GPU has fallen off the bus.")],
        ("FALLEN_OFF_BUS", "POWER_UNREADABLE"),
        "gpu-lost",
    ),
    "a GPU off the bus, and gone from DCGM's list": (
        [xid(79, "GPU has fallen off the bus.")],
        ("node CORRUPT_INFOROM",),
        "gpu-lost",
    ),
    "an uncontained error": (
        [xid(95, "Uncontained: FBHUB. RST: Yes, D-RST: No")],
        ("UNCONTAINED_ERROR", "VOLATILE_DBE_DETECTED"),
        "gpu-fatal-xid",
    ),
    "a double-bit error": (
        [event("gpu.ecc", location="dram", corrected=False, counter="volatile", delta=1, errors=1)],
        ("VOLATILE_DBE_DETECTED", "XID_ERROR", "PENDING_ROW_REMAP"),
        "gpu-ecc",
    ),
    "a remap that failed": (
        [event("gpu.remap", pending=False, failure=True, corrected=0, uncorrected=8)],
        ("ROW_REMAP_FAILURE", "UNCORRECTABLE_ROW_REMAP_LIMIT"),
        "gpu-memory-replace",
    ),
    "pages that wait": (
        [event("gpu.retired_pages", pending=True, single_bit=2, double_bit=1)],
        ("PENDING_PAGE_RETIREMENTS",),
        "gpu-memory-reset",
    ),
    "an NVLink that is down": (
        [event("gpu.nvlink_state", down=1, active=17, expected=18, links="9")],
        ("NVLINK_DOWN", "FABRIC_HEALTH"),
        "gpu-nvlink-down",
    ),
    "PCIe replays": (
        [event("gpu.pcie_errors", counter="replay", delta=41, value=41)],
        ("PCI_REPLAY_RATE",),
        "gpu-pcie",
    ),
    "SRAM that is spent": (
        [event("gpu.sram_threshold", exceeded=True)],
        ("SRAM_THRESHOLD",),
        "gpu-memory-replace",
    ),
    "a driver that hangs, and DCGM with it": (
        [
            event("nvml.hung", "node", call="nvmlInit", waited_s=10.0, times=1),
            Given(at=310, event="agent.source_failed", data={"source": "dcgm", "reason": "it hangs"}),
        ],
        (),
        "nvml-blind",
    ),
}


@pytest.mark.parametrize("fault", BOTH)
def test_a_fault_that_both_tell_is_one_incident(pack: Pack, fault: str) -> None:
    """That of what gpuward sees itself, with its runbook."""
    own, errors, rule = BOTH[fault]
    late = [
        one
        for name in errors
        for one in found(name.removeprefix("node "), of_gpu=not name.startswith("node "), at=60.0)
    ]
    assert late or not errors
    assert outcome(pack, [*own, *late], Expect(incident=rule, incidents=1)) == ""
