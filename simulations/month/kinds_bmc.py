"""Kinds of faults that a node's BMC sees: supplies, fans, water, air, memory modules, boards; and of the BMC itself. Pure."""

from simulations.faults import Fix
from simulations.month.kinds import Cured, FaultKind, Harm
from simulations.month.signs import Facts, Shows, says, shows, well

_ENTRY: Facts = {
    "entry": "9 11/30/2026 10:12:01",
    "about": "processor",
    "uncorrected": False,
    "text": "Processor CPU1 Status: IERR",
}
_POLL_S = 60.0  # between two looks at a BMC


def _bmc(kind: str, ill: Facts, over: Facts) -> Shows:
    """What the next look at the BMC says, and the one after it has ended."""
    return shows(
        "node",
        says(kind, active=True, more=ill),
        well=(well(kind, active=False, more=over),),
        after_s=_POLL_S,
    )


def _dimm(text: str, *, uncorrected: bool) -> Shows:
    return _bmc(
        "bmc.dimm",
        {"parts": "DIMM A3", "uncorrected": uncorrected, "text": text},
        {"parts": "", "uncorrected": False, "text": ""},
    )


def _inlet(celsius: float, *, critical: bool) -> Shows:
    warm: Facts = {"parts": "Inlet Temp", "celsius": celsius, "limit": 45.0}
    return _bmc(
        "bmc.inlet",
        {**warm, "critical": critical, "text": f"Inlet Temp {celsius:g}"},
        {**warm, "celsius": 24.0, "critical": False, "text": ""},
    )


KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        name="supply-failed",
        summary="a power supply of a node fails; the node runs on the others",
        plan=_bmc(
            "bmc.power",
            {"parts": "PSU 2", "failed": 1, "working": 5, "redundant": False, "text": "PSU 2: Enabled Critical"},
            {"parts": "", "failed": 0, "working": 6, "redundant": True, "text": ""},
        ),
        harm=Harm.NONE,
        seen_as="bmc-power",
    ),
    FaultKind(
        name="fan-failed",
        summary="a fan of a node fails; the others turn faster",
        plan=_bmc(
            "bmc.fan",
            {"parts": "Fan 4A", "failed": 1, "working": 11, "text": "Fan 4A 0: Enabled Critical"},
            {"parts": "", "failed": 0, "working": 12, "text": ""},
        ),
        harm=Harm.NONE,
        seen_as="bmc-fan",
    ),
    FaultKind(
        name="coolant-leaks",
        summary="the leak detector under a cold plate is wet",
        plan=_bmc(
            "bmc.leak", {"parts": "Cold plate 2", "text": "Cold plate 2: Critical"}, {"parts": "", "text": ""}
        ),
        harm=Harm.NONE,
        seen_as="bmc-leak",
    ),
    FaultKind(
        name="inlet-warm",
        summary="the air at a node's inlet is warm for some hours",
        plan=_inlet(38.0, critical=False),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="bmc-inlet",
        lasts=(3 * 3600.0, 0.5),
        alerts=False,
    ),
    FaultKind(
        name="inlet-critical",
        summary="the air at a node's inlet is beyond its critical limit",
        plan=_inlet(47.0, critical=True),
        harm=Harm.SLOWS,
        cured=Cured.TIME,
        seen_as="bmc-inlet",
        lasts=(3600.0, 0.5),
    ),
    FaultKind(
        name="memory-marked",
        summary="the BMC finds that a memory module corrects more errors than its vendor allows",
        plan=_dimm("DIMM A3 412: more corrected errors than the BMC allows", uncorrected=False),
        harm=Harm.NONE,
        seen_as="bmc-dimm",
    ),
    FaultKind(
        name="memory-failed",
        summary="the BMC finds uncorrectable errors of a memory module",
        plan=_dimm("DIMM A3: uncorrectable errors", uncorrected=True),
        harm=Harm.KILLS,
        seen_as="bmc-dimm-failed",
    ),
    FaultKind(
        name="regulator-hot",
        summary="a voltage regulator is beyond its critical temperature",
        plan=_bmc(
            "bmc.sensor",
            {"parts": "CPU2 VRM Temp", "text": "CPU2 VRM Temp 118: Enabled Critical"},
            {"parts": "", "text": ""},
        ),
        harm=Harm.SLOWS,
        seen_as="bmc-sensor",
    ),
    FaultKind(
        name="chassis-ill",
        summary="the BMC calls its system critical, and no reading says why",
        plan=_bmc("bmc.health", {"parts": "system", "text": "Health Critical"}, {"parts": "", "text": ""}),
        harm=Harm.NONE,
        seen_as="bmc-health",
    ),
    FaultKind(
        name="air-rises",
        summary="a node's inlet becomes warmer from look to look, within its limits",
        plan=_bmc(
            "bmc.rising",
            {"what": "inlet", "parts": "Inlet Temp", "value": 31.0, "usual": 24.0, "text": ""},
            {"what": "inlet", "parts": "Inlet Temp", "value": 24.0, "usual": 24.0, "text": ""},
        ),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="bmc-rising",
        lasts=(2 * 3600.0, 0.6),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="processor-logged",
        summary="the BMC's log has an internal error of a processor, which the node has survived (noise)",
        plan=shows(
            "node",
            says("bmc.entry", more=_ENTRY),
            after_s=_POLL_S,
        ),
        harm=Harm.NONE,
        cured=Cured.TIME,
        seen_as="bmc-entry",
        lasts=(120.0, 0.0),
        alerts=False,
        checked=False,
    ),
    FaultKind(
        name="bmc-gone",
        summary="the BMC of a node does not answer",
        plan=_bmc(
            "bmc.unreachable",
            {"parts": "bmc", "refused": False, "text": "redfish does not answer: timed out"},
            {"parts": "", "refused": False, "text": ""},
        ),
        harm=Harm.NONE,
        cures={Fix.CYCLE_POWER: 0.5},
        seen_as="bmc-unreachable",
    ),
)  # fmt: skip
