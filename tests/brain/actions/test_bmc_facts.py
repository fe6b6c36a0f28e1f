"""What follows from what a BMC says: states that begin, change, last and end; trends; the entries of its log. No I/O."""

from collections.abc import Sequence
from typing import Any

from agent.contract.kinds import Kind
from agent.contract.messages import Severity
from brain.actions import bmc_facts, ipmi_health
from brain.actions.bmc_facts import AGAIN_S, HISTORY_S, LOOKS, BmcFact, NodeMemory, PollLimits
from brain.actions.bmc_health import (
    MOST_PARTS,
    BmcHealth,
    LogEntry,
    NodePart,
    PartKind,
    PartState,
    part,
    unique,
)
from brain.core.pack import bmc_kinds

EVERY_S = 300.0
LIMITS = PollLimits(inlet_celsius=35.0, every_s=EVERY_S)
KINDS: dict[str, Kind] = {kind.name: kind for kind in bmc_kinds.KINDS}
W, C = PartState.WELL, PartState.CRITICAL


class Watched:
    """One node, and what its looks told."""

    def __init__(self) -> None:
        self.memory = NodeMemory()
        self.now_s = 1e9

    def look(self, *parts: NodePart, later_s: float = EVERY_S, **more: Any) -> list[BmcFact]:
        """Looks after a while; what is told fits the declared kinds."""
        self.now_s += later_s
        told = bmc_facts.facts(BmcHealth(parts=unique(parts), **more), self.memory, LIMITS, self.now_s)
        for one in told:
            kind = KINDS[one.kind]
            names = {field.name for field in kind.fields}
            assert set(one.data) <= names, one
            assert {field.name for field in kind.fields if field.always} <= set(one.data), one
        return told


def kinds(told: Sequence[BmcFact]) -> list[tuple[str, object]]:
    return [(one.kind, one.data.get("active")) for one in told]


def supplies(*states: PartState) -> list[NodePart]:
    return [part(PartKind.PSU, f"PS{n}", state) for n, state in enumerate(states, 1)]


def test_a_supply_fails_another_one_too_and_both_are_replaced() -> None:
    """Each change is told once; what lasts again after an hour; the end once."""
    node = Watched()
    assert node.look(*supplies(W, W, W)) == []
    (first,) = node.look(*supplies(W, C, W))
    assert (first.kind, first.severity) == (bmc_kinds.BMC_POWER, Severity.ERROR)
    assert (first.data["failed"], first.data["working"], first.data["redundant"]) == (1, 2, False)
    assert first.data["parts"] == "PS2"
    assert node.look(*supplies(W, C, W)) == []
    (again,) = node.look(*supplies(W, C, W), later_s=AGAIN_S)
    assert again.digest == first.digest
    (both,) = node.look(*supplies(C, C, W))
    assert both.data["parts"] == "PS1, PS2"
    (over,) = node.look(*supplies(W, W, W))
    assert (over.data["active"], over.severity) == (False, Severity.INFO)
    assert node.look(*supplies(W, W, W)) == []


def test_what_could_not_be_read_proves_nothing() -> None:
    """A look without the supplies, or with others only, neither ends the fault nor tells it anew."""
    node = Watched()
    node.look(*supplies(W, C))
    assert node.look(missing=("Power: no time left",)) == []
    assert node.look() == []
    assert node.look(part(PartKind.PSU, "PS1", W), missing=("PS2: no time left",)) == []
    assert kinds(node.look(*supplies(W, W), missing=("Sensors: 404",))) == [(bmc_kinds.BMC_POWER, False)]


def test_lost_redundancy_without_a_failed_supply() -> None:
    """Two feeds, one of them off: all supplies may be well."""
    told = Watched().look(*supplies(W, W), part(PartKind.PSU_REDUNDANCY, "Redundancy", PartState.WARNING))
    assert kinds(told) == [(bmc_kinds.BMC_POWER, True)]
    assert (told[0].data["failed"], told[0].data["redundant"]) == (0, False)


def test_fans_of_a_node_that_is_off_stand_still_by_right() -> None:
    """Its supplies and leak detectors still say what is so."""
    fans = [part(PartKind.FAN, f"Fan {n}", C, reading=0.0) for n in range(4)]
    assert Watched().look(*fans, on=False) == []
    assert kinds(Watched().look(*fans, part(PartKind.LEAK, "Cold plate", C), on=False)) == [
        (bmc_kinds.BMC_LEAK, True)
    ]
    assert kinds(Watched().look(*fans)) == [(bmc_kinds.BMC_FAN, True)]


def inlet(celsius: float, state: PartState = W, limit: float | None = 45.0) -> NodePart:
    return part(PartKind.INLET, "Inlet", state, reading=celsius, limit=limit)


def test_an_inlet_is_too_warm_by_the_sites_limit_and_does_not_flutter_about_it() -> None:
    """It begins at 35 °C and ends two degrees below; degrees in between are no news."""
    node = Watched()
    assert node.look(inlet(34.9)) == []
    (hot,) = node.look(inlet(35.0))
    assert (hot.data["celsius"], hot.data["critical"], hot.severity) == (35.0, False, Severity.WARNING)
    assert node.look(inlet(36.0)) == []
    assert node.look(inlet(33.5)) == []
    (worse,) = node.look(inlet(46.0, C))
    assert (worse.data["critical"], worse.severity) == (True, Severity.ERROR)
    assert kinds(node.look(inlet(32.0))) == [(bmc_kinds.BMC_INLET, False)]


def test_an_inlet_that_rises_is_told_before_it_is_too_warm() -> None:
    """Six degrees above its usual value in three looks in a row; not before there is a usual value, nor for one look."""
    node = Watched()
    assert node.look(inlet(20.0)) == node.look(inlet(28.0)) == node.look(inlet(28.0)) == []
    node = Watched()
    for _ in range(int(HISTORY_S / EVERY_S) + 1):
        assert node.look(inlet(22.0)) == []
    assert node.look(inlet(30.0)) == node.look(inlet(22.0)) == []
    assert node.look(inlet(30.0)) == node.look(inlet(30.0)) == []
    (rises,) = node.look(inlet(30.0))
    assert (rises.kind, rises.what, rises.data["what"]) == (bmc_kinds.BMC_RISING, "inlet", "inlet")
    assert rises.data["value"] == 30.0
    assert 22.0 <= float(rises.data["usual"]) < 23.0
    assert node.look(inlet(27.0)) == []
    assert kinds(node.look(inlet(23.0))) == [(bmc_kinds.BMC_RISING, False)]


def test_fans_that_turn_faster_together_are_no_trend_and_one_alone_is() -> None:
    """A job heats the node, and all fans follow; a bearing wears, and one stays behind."""
    node = Watched()

    def fans(speed: float, third: float | None = None) -> list[NodePart]:
        speeds = [speed, speed * 1.1, third or speed, speed * 0.9, speed]
        return [part(PartKind.FAN, f"Fan {n}", W, reading=one) for n, one in enumerate(speeds)]

    for n in range(int(HISTORY_S / EVERY_S) + LOOKS):
        assert node.look(*fans(6000.0 if n % 2 else 14000.0)) == []
    for _ in range(LOOKS - 1):
        assert node.look(*fans(9000.0, third=6500.0)) == []
    (slower,) = node.look(*fans(9000.0, third=6500.0))
    assert (slower.data["what"], slower.data["parts"]) == ("fan", "Fan 2")
    assert float(slower.data["value"]) < 0.8


def dimm(errors: float, name: str = "DIMM A3", **more: Any) -> NodePart:
    return part(PartKind.DIMM, name, more.pop("state", W), reading=errors, **more)


def test_corrected_errors_that_grow_at_each_reading_are_a_trend() -> None:
    """Not those that were counted before, nor a burst that is over."""
    node = Watched()
    assert node.look(dimm(5000.0)) == node.look(dimm(5030.0)) == node.look(dimm(5030.0)) == []
    node = Watched()
    assert node.look(dimm(5000.0)) == node.look(dimm(5010.0)) == node.look(dimm(5020.0)) == []
    (grows,) = node.look(dimm(5030.0))
    assert (grows.data["what"], grows.data["parts"], grows.data["value"]) == ("memory", "DIMM A3", 30.0)
    assert node.look(dimm(7.0, "DIMM B1")) == []  # this look read another module
    assert kinds(node.look(dimm(0.0))) == [(bmc_kinds.BMC_RISING, False)]


def test_a_module_that_loses_data_counts_and_an_old_loss_does_not() -> None:
    """Only some modules are read at each look: a look at the others does not end it."""
    node = Watched()
    assert node.look(dimm(0.0, uncorrected=3)) == []
    (lost,) = node.look(dimm(0.0, uncorrected=4))
    assert (lost.kind, lost.data["uncorrected"]) == (bmc_kinds.BMC_DIMM, True)
    assert node.look(dimm(0.0, "DIMM B1")) == []


def test_only_what_is_critical_of_other_sensors_and_of_the_whole() -> None:
    """The whole is told where nothing else explains it."""
    node = Watched()
    whole = part(PartKind.SYSTEM, "system", C, text="Health Critical")
    assert node.look(part(PartKind.SENSOR, "VRM", PartState.WARNING)) == []
    assert kinds(node.look(part(PartKind.SENSOR, "VRM", C), whole)) == [(bmc_kinds.BMC_SENSOR, True)]
    assert kinds(node.look(part(PartKind.SENSOR, "VRM", W), whole)) == [
        (bmc_kinds.BMC_SENSOR, False),
        (bmc_kinds.BMC_HEALTH, True),
    ]


def entry(number: int, text: str = "CPU1 IERR", state: PartState = C, age_s: float | None = None) -> LogEntry:
    return LogEntry(id=f"Sel {number}", state=state, text=text, age_s=age_s)


def test_entries_are_told_once_and_old_ones_never() -> None:
    """At the first look only what the BMC itself calls young; a flood is cut short, and counted."""
    node = Watched()
    told = node.look(entries=(entry(3, age_s=60.0), entry(2, age_s=86400.0), entry(1)))
    assert [one.data["entry"] for one in told] == ["Sel 3"]
    assert node.look(entries=(entry(4, state=PartState.WARNING), entry(3), entry(2))) == []
    (new,) = node.look(entries=(entry(5, "DIMM A3 Uncorrectable ECC"), entry(4), entry(3)))
    assert (new.data["about"], new.data["uncorrected"]) == ("memory", True)
    flood = node.look(entries=tuple(entry(n) for n in range(60, 5, -1)))
    assert [one.data["entry"] for one in flood] == [f"Sel {n}" for n in range(56, 61)]
    assert flood[0].data["left_out"] == 50


def test_a_dead_bmc_is_told_once_and_a_refusal_at_once() -> None:
    """Three looks without an answer; then silence until it answers or an hour is over."""
    node = Watched()

    def misses(*, refused: bool = False, after_s: float = EVERY_S) -> list[BmcFact]:
        node.now_s += after_s
        return bmc_facts.missed("timed out", node.memory, node.now_s, refused=refused)

    assert misses() == misses() == []
    assert kinds(misses()) == [(bmc_kinds.BMC_UNREACHABLE, True)]
    assert misses() == []
    assert kinds(misses(after_s=AGAIN_S)) == [(bmc_kinds.BMC_UNREACHABLE, True)]
    assert kinds(node.look(*supplies(W))) == [(bmc_kinds.BMC_UNREACHABLE, False)]
    assert misses() == []
    assert kinds(misses(refused=True)) == [(bmc_kinds.BMC_UNREACHABLE, True)]


def test_a_bmc_that_says_too_much_is_cut_short() -> None:
    """So many parts, so long a name: what comes of it has its bounds."""
    parts = [part(PartKind.FAN, f"fan {n} " + "x" * 500, C) for n in range(5000)]
    assert len(unique(parts)) == MOST_PARTS
    (told,) = Watched().look(*parts)
    assert all(len(str(value)) <= 500 for value in told.data.values())


SDR = """\
Inlet Temp       | 04h | unc | 64.1 | 41 degrees C
CPU1 Temp        | 0Eh | ok  |  3.1 | 45 degrees C
DIMM A Temp      | 0Fh | ok  | 32.1 | 38 degrees C
Fan1A            | 30h | ok  |  7.1 | 9360 RPM
Fan1B            | 31h | lcr |  7.1 | 0 RPM
Fan Redundancy   | 75h | ok  |  7.1 | Redundancy Lost
PS1 Status       | C8h | ok  | 10.1 | Presence detected, Power Supply AC lost
PS2 Status       | C9h | ok  | 10.2 | Presence detected
PS Redundancy    | 77h | ok  |  7.1 | Fully Redundant
PS1 Voltage      | 6Dh | ok  | 10.1 | 230 Volts
DIMM A3          | 10h | ok  | 32.3 | Correctable ECC
DIMM A4          | 11h | ok  | 32.4 | Presence Detected
Leak Detect 1    | 90h | ok  | 30.1 | State Deasserted
Leak Detect 2    | 91h | ok  | 30.2 | Leak detected
Empty Slot       | 55h | ns  | 11.1 | No Reading
not a line of it
"""
SEL = """\
   1 | 11/30/2026 | 10:12:01 | Power Supply PS1 Status | Power Supply AC lost | Asserted
   2 | 11/30/2026 | 10:12:09 | Power Supply PS1 Status | Power Supply AC lost | Deasserted
   3 | 11/30/2026 | 10:13:00 | Memory DIMM_A3 | Correctable ECC | Asserted
   4 | 11/30/2026 | 10:14:00 | Memory DIMM_A3 | Uncorrectable ECC | Asserted
"""


def test_what_ipmitool_prints() -> None:
    """Words decide for discrete sensors; the temperature of a module is not its errors; "Uncorrectable" is not "correctable"."""
    found = ipmi_health.read(SDR, SEL, [], on=True)
    states = {one.name: (one.kind.value, one.state.value) for one in found.parts}
    assert states == {
        "Inlet Temp": ("inlet", "warning"),
        "CPU1 Temp": ("sensor", "well"),
        "DIMM A Temp": ("sensor", "well"),
        "Fan1A": ("fan", "well"),
        "Fan1B": ("fan", "critical"),
        "Fan Redundancy": ("fan_redundancy", "critical"),
        "PS1 Status": ("psu", "critical"),
        "PS2 Status": ("psu", "well"),
        "PS Redundancy": ("psu_redundancy", "well"),
        "PS1 Voltage": ("sensor", "well"),
        "DIMM A3": ("dimm", "warning"),
        "DIMM A4": ("dimm", "well"),
        "Leak Detect 1": ("leak", "well"),
        "Leak Detect 2": ("leak", "critical"),
    }
    assert [(one.id[:1], one.state.value) for one in found.entries] == [
        ("4", "critical"),
        ("3", "unknown"),
        ("1", "critical"),
    ]
