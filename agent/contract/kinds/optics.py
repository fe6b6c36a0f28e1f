"""Kinds about the pluggable modules and cables of network interfaces. Only with `optics_interval_s`."""

from agent.contract.kinds.base import Field, Kind
from agent.contract.messages import Severity

_SOURCE = "memory of modules"
_NAMED = (
    Field(name="vendor", type="text", summary="empty: it does not tell"),
    Field(name="part", type="text", summary="part number; empty: it does not tell"),
    Field(
        name="serial",
        type="text",
        summary="serial number: of a cable the same at both ends; empty: it does not tell",
    ),
    Field(
        name="cable",
        type="bool",
        summary="its ends cannot be taken off: a cable of copper or an active optical one",
    ),
)
_PORT = Field(
    name="port", type="text", summary="port of RDMA that the interface belongs to, `mlx5_2.1`; empty: none"
)

KINDS: tuple[Kind, ...] = (
    Kind(
        name="optics.module",
        component="link",
        severity=Severity.WARNING,
        source=_SOURCE,
        summary="What the optical module of an interface says is beyond its own alarm limits, when something of it begins or "
        "ends, and each hour while it lasts (severity info: all is well). Only with `optics_interval_s`.",
        fields=(
            Field(
                name="receive_low",
                type="bool",
                summary="a lane receives too little light, or none while others do; false where no lane has any: the far end "
                "is off, or no fibre is in",
            ),
            Field(
                name="laser_dying",
                type="bool",
                summary="a laser needs too much current, sends too little light, or has failed",
            ),
            Field(name="hot", type="bool", summary="it is hotter than it may be"),
            Field(
                name="other", type="bool", summary="something else is beyond its limit: `alarms` says what"
            ),
            Field(
                name="alarms",
                type="text",
                summary="`receive_low on lanes 2, 3; temperature_high`; empty: none",
            ),
            Field(name="warnings", type="text", summary="what is beyond its limit of warning only, likewise"),
            *_NAMED,
            Field(name="temperature_c", type="float", summary="now", unit="°C", always=False),
            Field(
                name="receive_dbm",
                type="float",
                summary="of the lane that receives least",
                unit="dBm",
                always=False,
            ),
            Field(
                name="transmit_dbm",
                type="float",
                summary="of the lane that sends least",
                unit="dBm",
                always=False,
            ),
            Field(
                name="bias_ma",
                type="float",
                summary="of the laser that needs most current",
                unit="mA",
                always=False,
            ),
            _PORT,
        ),
        example={
            "receive_low": True,
            "laser_dying": False,
            "hot": False,
            "other": False,
            "alarms": "receive_low on lane 2",
            "warnings": "",
            "vendor": "NVIDIA",
            "part": "MMA4Z00-NS",
            "serial": "MT2321FT00042",
            "cable": False,
            "temperature_c": 51.5,
            "receive_dbm": -11.2,
            "transmit_dbm": 1.3,
            "bias_ma": 7.4,
            "port": "mlx5_2.1",
        },
    ),
    Kind(
        name="node.inventory.module",
        component="link",
        severity=Severity.INFO,
        source=_SOURCE,
        summary="The module or cable in an interface: at start, and when it is another one. Only with `optics_interval_s`.",
        fields=(
            *_NAMED,
            Field(name="revision", type="text", summary="empty: it does not tell"),
            Field(
                name="layout",
                type="text",
                summary="SFP (SFF-8472) | QSFP (SFF-8636) | CMIS (QSFP-DD, OSFP, ...)",
            ),
            Field(name="copper", type="bool", summary="a copper cable: it measures nothing"),
            _PORT,
        ),
        example={
            "vendor": "NVIDIA",
            "part": "MCP7Y50-N002",
            "serial": "MT2318VS01234",
            "cable": True,
            "revision": "A3",
            "layout": "CMIS",
            "copper": True,
            "port": "mlx5_2.1",
        },
        no_rule="it says which part to order, and which other end has the same serial number.",
    ),
)
