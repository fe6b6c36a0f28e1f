"""Kinds of facts that the brain tells of a node from what its BMC says (brain/actions/bmc_poll.py)."""

from agent.contract.kinds import Field, Kind
from agent.contract.messages import Severity

BMC_POWER = "bmc.power"
BMC_FAN = "bmc.fan"
BMC_INLET = "bmc.inlet"
BMC_LEAK = "bmc.leak"
BMC_DIMM = "bmc.dimm"
BMC_SENSOR = "bmc.sensor"
BMC_HEALTH = "bmc.health"
BMC_RISING = "bmc.rising"
BMC_ENTRY = "bmc.entry"
BMC_UNREACHABLE = "bmc.unreachable"

_ACTIVE = Field(name="active", type="bool", summary="false: it is well again")
_PARTS = Field(name="parts", type="text", summary="which, as the BMC names them, by commas apart")
_TEXT = Field(name="text", type="text", summary="what the BMC says of them")
_FAILED = Field(name="failed", type="int", summary="so many have failed")
_WORKING = Field(name="working", type="int", summary="so many are well")


def _kind(
    name: str, severity: Severity, summary: str, *fields: Field, **example: str | int | float | bool
) -> Kind:
    return Kind(
        name=name,
        component="node",
        severity=severity,
        source="BMC",
        summary=summary,
        fields=fields,
        example=example,
    )


KINDS: tuple[Kind, ...] = (
    _kind(
        BMC_POWER,
        Severity.ERROR,
        "A power supply of the node has failed, or they are no longer redundant; severity info when all are well.",
        _ACTIVE,
        _PARTS,
        _FAILED,
        _WORKING,
        Field(name="redundant", type="bool", summary="the others carry the node if one more fails"),
        _TEXT,
        active=True,
        parts="PSU 2",
        failed=1,
        working=5,
        redundant=False,
        text="PSU 2: Enabled Critical",
    ),
    _kind(
        BMC_FAN,
        Severity.ERROR,
        "A fan of the node has failed or is out of its limits; severity info when all are well.",
        _ACTIVE,
        _PARTS,
        _FAILED,
        _WORKING,
        _TEXT,
        active=True,
        parts="Fan 4A",
        failed=1,
        working=11,
        text="Fan 4A 0: Enabled Critical",
    ),
    _kind(
        BMC_INLET,
        Severity.WARNING,
        "The air that comes into the node is too warm, by its BMC or by the site's limit; severity info when no longer.",
        _ACTIVE,
        _PARTS,
        Field(name="celsius", type="float", summary="the warmest", unit="°C"),
        Field(name="limit", type="float", summary="where it is critical", unit="°C"),
        Field(name="critical", type="bool", summary="it is beyond that limit"),
        _TEXT,
        active=True,
        parts="Inlet Temp",
        celsius=41.0,
        limit=40.0,
        critical=True,
        text="Inlet Temp 41: Enabled Critical",
    ),
    _kind(
        BMC_LEAK,
        Severity.ERROR,
        "A detector of the node sees liquid; severity info when it no longer does.",
        _ACTIVE,
        _PARTS,
        _TEXT,
        active=True,
        parts="Cold plate 2",
        text="Cold plate 2: Critical",
    ),
    _kind(
        BMC_DIMM,
        Severity.WARNING,
        "The BMC is not content with a memory module; severity info when it is.",
        _ACTIVE,
        _PARTS,
        Field(name="uncorrected", type="bool", summary="it has failed, or has lost data"),
        _TEXT,
        active=True,
        parts="DIMM A3",
        uncorrected=False,
        text="DIMM A3 412: more corrected errors than the BMC allows",
    ),
    _kind(
        BMC_SENSOR,
        Severity.ERROR,
        "Another sensor of the node is beyond its critical limit; severity info when none is.",
        _ACTIVE,
        _PARTS,
        _TEXT,
        active=True,
        parts="CPU2 VRM Temp",
        text="CPU2 VRM Temp 118: Enabled Critical",
    ),
    _kind(
        BMC_HEALTH,
        Severity.ERROR,
        "The BMC calls the node critical, and none of the parts that it names is unwell; severity info when no longer.",
        _ACTIVE,
        _PARTS,
        _TEXT,
        active=True,
        parts="system",
        text="Health Critical",
    ),
    _kind(
        BMC_RISING,
        Severity.WARNING,
        "A reading is on its way out of what it usually is, and no limit is reached yet; severity info when it is back.",
        _ACTIVE,
        Field(
            name="what",
            type="text",
            summary="inlet (temperature) | fan (speed against the node's others) | memory (corrected errors of a module)",
        ),
        _PARTS,
        Field(name="value", type="float", summary="of the worst: °C, share of the others' speed, new errors"),
        Field(name="usual", type="float", summary="what it usually is"),
        _TEXT,
        active=True,
        what="inlet",
        parts="Inlet Temp",
        value=31.5,
        usual=24.0,
        text="Inlet Temp 31.5: Enabled OK",
    ),
    _kind(
        BMC_ENTRY,
        Severity.ERROR,
        "A new critical entry stands in the BMC's event log.",
        Field(name="entry", type="text", summary="which: its log, number and time"),
        Field(
            name="about",
            type="text",
            summary="by its words: power | fan | temperature | memory | leak | pcie | processor | other",
        ),
        Field(
            name="uncorrected", type="bool", summary="it tells of memory errors that could not be corrected"
        ),
        Field(name="left_out", type="int", always=False, summary="further critical ones of the same look"),
        _TEXT,
        entry="Sel 117 2026-11-30T10:12:01Z",
        about="processor",
        uncorrected=False,
        text="Processor CPU1 Status: IERR",
    ),
    _kind(
        BMC_UNREACHABLE,
        Severity.WARNING,
        "The BMC of a node has not answered three times in a row, or does not let us in; severity info when it answers.",
        _ACTIVE,
        _PARTS,
        Field(name="refused", type="bool", summary="it answers, and refuses our user, password or protocol"),
        _TEXT,
        active=True,
        parts="bmc",
        refused=False,
        text="redfish https://n1-bmc does not answer: timed out",
    ),
)
