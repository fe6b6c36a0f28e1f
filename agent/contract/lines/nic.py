"""Lines of the mlx5 driver (InfiniBand and Ethernet cards), and of others and the network stack about a stuck queue.

Formats: Linux, drivers/net/ethernet/mellanox/mlx5/core (health.c, cmd.c, events.c, en/reporter_*.c, en_main.c),
net/sched/sch_generic.c (before and after 6.8), drivers/infiniband/ulp/ipoib; i40e, ice, ixgbe, bnxt_en, ena and others under
drivers/net/ethernet; drivers/pci/pci.c for the bandwidth of a slot, drivers/base/dd.c for a driver that does not start.
"""

import re
from typing import ClassVar

from agent.contract.lines.base import component, unsent
from agent.contract.messages import Severity, UnsentEvent

_HEAD = re.compile(
    r"\s*mlx5_core ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])(?: (?!\()([\w.@-]{1,31}))?: "
    r"(?:[a-z_0-9]{1,60}:[0-9]{1,6}:\(pid [0-9]{1,10}\): )?(.*)",
    re.DOTALL,
)
_WATCHDOG = re.compile(
    r"\s*NETDEV WATCHDOG: ([\w.@-]{1,31}) \(([\w-]{1,40})\): transmit queue [0-9]{1,6} timed out"
)
_NEW_WATCHDOG = re.compile(
    r"\s*(?:[\w-]{1,40} \S{1,60} )?([\w.@-]{1,31}): NETDEV WATCHDOG: CPU: [0-9]{1,5}: transmit queue [0-9]{1,6} timed out"
)
_IPOIB = re.compile(r"\s*(ib[\w.]{1,15}): (?:transmit timeout|Transmit timeout|queue stopped)\b")
_STUCK = re.compile(
    r"\s*[\w-]{1,40} [0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7] ([\w.@-]{1,31}): "
    r"(?:[\w-]{1,20}: )?(?:tx_timeout: |TX timeout|[Ii]nitiating reset due to tx timeout|Detected Tx Unit Hang"
    r"|Found a Tx that wasn't completed on time|transmit timed out)"
)
# Where the driver did not start on the card, the driver core writes it in the driver's name.
_PROBED = re.compile(
    r"\s*mlx5_core: probe of ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]) (failed with error -[0-9]{1,4})"
)
_MODULE = re.compile(r"Port module event(?:\[error\])?: module ([0-9]{1,3}), (.{1,120})", re.DOTALL)
_HEALTH = re.compile(
    r"Health issue observed, .{1,60}?, severity\(([0-9]{1,2})\)"
)  # of the kernel's levels: 3 is an error
_COMMAND = re.compile(r"([A-Z][A-Z0-9_]{2,50})\(0x[0-9a-f]{1,4}\)")

ERROR, WARNING, FATAL = Severity.ERROR, Severity.WARNING, Severity.FATAL
# Part of the message, what it means, severity; the first that is in the message decides.
_MESSAGES: tuple[tuple[str, str, Severity], ...] = (
    ("unrecoverable hardware error", "hardware_error", FATAL),
    ("device's health compromised", "health_compromised", FATAL),
    ("High temperature", "high_temperature", ERROR),
    ("High Temperature", "high_temperature", ERROR),
    ("timeout. Will cause a leak of a command resource", "command_timeout", FATAL),
    ("Detected insufficient power on the PCIe slot", "insufficient_power", ERROR),
    ("insufficient/unadvertised power", "insufficient_power", ERROR),
    ("Fatal error", "fatal_error", FATAL),
    ("firmware internal error", "firmware_error", FATAL),
    ("health recovery flow aborted", "recovery_failed", FATAL),
    ("health recovery failed", "recovery_failed", FATAL),
    ("initializing state, aborting", "start_failed", FATAL),
    ("init_one failed with error", "start_failed", FATAL),
    ("load_one failed with error", "start_failed", FATAL),
    ("probe with driver mlx5_core failed with error", "start_failed", FATAL),
    ("TX timeout", "tx_timeout", ERROR),
    ("NETDEV WATCHDOG", "tx_timeout", ERROR),
    ("RX timeout on channel", "rx_timeout", ERROR),
    ("failed, status", "command_failed", WARNING),
    ("available PCIe bandwidth, limited by", "pcie_limited", WARNING),
)  # fmt: skip


class NicArea:
    """nic.driver: errors that a card's driver reports."""

    markers: ClassVar[tuple[str, ...]] = (
        *("mlx5_core ", "mlx5_core: probe of ", "NETDEV WATCHDOG: ", "ransmit timeout", ": queue stopped"),
        *(
            "tx_timeout: ",
            "TX timeout",
            "tx timeout",
            "Tx Unit Hang",
            "Found a Tx that",
            "transmit timed out",
        ),
    )
    kinds: ClassVar[tuple[str, ...]] = ("nic.driver",)
    distinguishing: ClassVar[tuple[str, ...]] = ("what", "command")

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _HEAD.match(text):
            return _mlx5(match[1].lower(), match[2] or "", match[3], text)
        if match := _PROBED.match(text):
            data = {"what": "start_failed", "message": match[2], "address": match[1].lower()}
            return unsent("nic.driver", component("nic", match[1].lower()), FATAL, data, text)
        if (
            (match := _WATCHDOG.match(text))
            or (match := _NEW_WATCHDOG.match(text))
            or (match := _IPOIB.match(text))
            or (match := _STUCK.match(text))
        ):
            return unsent(
                "nic.driver",
                component("link", match[1]),
                ERROR,
                {"what": "tx_timeout", "message": text.strip(), "interface": match[1]},
                text,
            )
        return None


def _mlx5(address: str, interface: str, message: str, text: str) -> UnsentEvent | None:
    data: dict[str, str | int | None] = {
        "address": address,
        "interface": interface,
        "message": message.strip(),
    }
    if module := _MODULE.match(message):
        found = _module(module[2])
        if found is None:
            return None
        data["module"] = int(module[1])
    else:
        found = next(((what, severity) for part, what, severity in _MESSAGES if part in message), None)
        if health := _HEALTH.search(message):
            trouble = ("firmware_error", FATAL if int(health[1]) <= 3 else WARNING)
            found = trouble if found is None else found
        if found is None:
            return None
    what, severity = found
    if what.startswith("command_") and (command := _COMMAND.search(message)):
        data["command"] = command[1]
    where = component("link", interface) if interface else component("nic", address)
    return unsent("nic.driver", where, severity, {"what": what, **data}, text)


def _module(event: str) -> tuple[str, Severity] | None:
    """What happened to a cable or transceiver; None when it is all right."""
    lower = event.lower()
    if "unplugged" in lower:
        return "cable_unplugged", WARNING
    if "high temperature" in lower:
        return "high_temperature", ERROR
    if "power budget" in lower or "insufficient" in lower or "power on the pcie slot" in lower:
        return "insufficient_power", ERROR
    if "plugged" in lower or "enabled" in lower or "disabled" in lower:
        return None
    return "module_error", ERROR
