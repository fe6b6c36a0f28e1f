"""Kinds of facts that UFM tells of the fabric and of nodes' cables (brain/ufm/meanings.py)."""

from agent.contract.kinds import Field, Kind
from agent.contract.messages import Severity

UFM_PORT_ERRORS = "ufm.port_errors"
UFM_UNHEALTHY = "ufm.port_unhealthy"
UFM_HOT = "ufm.module_hot"
UFM_SM_CHANGED = "ufm.sm_changed"
UFM_SWITCH_DOWN = "ufm.switch_down"

_EVENT = (
    Field(name="event", type="text", summary="UFM's number of the event's type"),
    Field(name="name", type="text", summary="UFM's name of it"),
    Field(name="text", type="text", summary="UFM's description"),
)
_SIDE = Field(name="side", type="text", summary="node | switch: the end of the node's cable that it is about")

KINDS: tuple[Kind, ...] = (
    Kind(
        name=UFM_PORT_ERRORS,
        component="port",
        severity=Severity.WARNING,
        source="UFM",
        summary="An error counter at one end of a node's cable grew faster than UFM's threshold.",
        fields=(Field(name="counter", type="text", summary="e.g. symbol_error"), _SIDE, *_EVENT),
        example={
            "counter": "symbol_error",
            "side": "switch",
            "event": "110",
            "name": "Symbol Error",
            "text": "Symbol error counter rate threshold exceeded.",
        },
    ),
    Kind(
        name=UFM_UNHEALTHY,
        component="port",
        severity=Severity.ERROR,
        source="UFM",
        summary="UFM found a port of a node's cable unhealthy: it flaps or was taken out of the fabric.",
        fields=(_SIDE, *_EVENT),
        example={"side": "switch", "event": "702", "name": "Port is Considered Unhealthy", "text": ""},
    ),
    Kind(
        name=UFM_HOT,
        component="port",
        severity=Severity.WARNING,
        source="UFM",
        summary="The module or transceiver at one end of a node's cable is hot; severity info when no longer.",
        fields=(_SIDE, *_EVENT),
        example={"side": "switch", "event": "919", "name": "Cable Temperature High", "text": ""},
    ),
    Kind(
        name=UFM_SM_CHANGED,
        component="node",
        severity=Severity.WARNING,
        source="UFM",
        summary="UFM saw another subnet manager, or another state of it. About the fabric, no node.",
        fields=_EVENT,
        example={"event": "0", "name": "SM state change", "text": ""},
    ),
    Kind(
        name=UFM_SWITCH_DOWN,
        component="node",
        severity=Severity.ERROR,
        source="UFM",
        summary="UFM lost a switch. About the fabric, no node.",
        fields=(Field(name="switch", type="text", summary="UFM's name of the switch"), *_EVENT),
        example={"switch": "0002c903007b78b0", "event": "907", "name": "Switch is Down", "text": ""},
    ),
)
