"""PCI Express errors: Advanced Error Reporting and Downstream Port Containment.

Formats: Linux, drivers/pci/pcie/aer.c (6.6 changed the words from Corrected/Uncorrected to Correctable/Uncorrectable), dpc.c
(6.16 put the cause into the containment's own line). An error is announced by the root port and then reported by the device
itself, and is one fact. Of a corrected one that is the second line; of an uncorrected one the first, as a device that is gone
reports nothing any more. A containment stands in the place of an announcement. Where the firmware handles errors (APEI), its
report stands in their place (drivers/firmware/efi/cper.c): its severity, its section, then the device.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from agent.contract.lines.base import device, unsent
from agent.contract.messages import Severity, UnsentEvent

_BDF = r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_DEVICE = re.compile(
    rf"\s*([\w-]{{1,40}}) {_BDF}: (?:AER: )?(?:PCIe Bus Error|PCIE Bus Error): "
    r"severity=([A-Za-z ()-]{1,40}), type=([A-Za-z /-]{1,40}), \(?([A-Za-z ]{0,40})\)?"
)
_ANNOUNCED = re.compile(
    rf"\s*[\w-]{{1,40}} {_BDF}: AER: (?:Multiple )?(Uncorrect(?:ed|able) \([A-Za-z-]{{1,12}}\)) "
    rf"error (?:message )?received(?: from|:) {_BDF}"
)
_FAILED = re.compile(rf"\s*([\w-]{{1,40}}) {_BDF}: (?:AER: )?(?:device|subordinate device) recovery failed")
_DPC = re.compile(
    rf"\s*([\w-]{{1,40}}) {_BDF}:(?:pcie[0-9]{{1,4}}:)? DPC:? containment event, status:(0x[0-9a-f]{{1,8}})"
    rf"(?: source:0x([0-9a-f]{{4}})\b|, ERR_(?:NON)?FATAL received from {_BDF})?"
)
_FIRMWARE = re.compile(
    r"\s*(?:\{[0-9]{1,9}\})?\[Hardware Error\]: +(?:event severity|Error [0-9]{1,3}, type|section_type|device_id): (.{1,60})"
)
_FIRMWARE_CLASSES = {
    "corrected": ("corrected", Severity.WARNING),
    "recoverable": ("nonfatal", Severity.ERROR),
    "fatal": ("fatal", Severity.FATAL),
}
_NAMED = re.compile(rf"(?<![\w-])(nvidia|mlx5_core) {_BDF}: ")
_CLASSES = (
    ("non-fatal", "nonfatal", Severity.ERROR),
    ("fatal", "fatal", Severity.FATAL),
    ("correct", "corrected", Severity.WARNING),
)
NO_DRIVERS: Mapping[str, str] = {}
_MOST_DEVICES = 4096
_MOST = 64  # errors that were announced and not reported by their devices


class PcieArea:
    """pcie.error."""

    markers: ClassVar[tuple[str, ...]] = (
        *("PCIe Bus Error: ", "PCIE Bus Error: ", "AER: ", " recovery failed", "containment event, "),
        *("event severity: ", ", type: ", "section_type: ", "device_id: "),
    )
    kinds: ClassVar[tuple[str, ...]] = ("pcie.error",)
    distinguishing: ClassVar[tuple[str, ...]] = ("class",)

    def __init__(self, drivers: Mapping[str, str] = NO_DRIVERS) -> None:
        """`drivers`: PCI address with the function → its kernel driver. A port does not say which one a device has."""
        self._drivers = dict(drivers)
        # (address, class) of errors that were announced, the oldest first.
        self._announced: dict[tuple[str, str], None] = {}
        # Port or device → (device, class) of the newest uncorrected error that was announced there.
        self._uncorrected: dict[str, tuple[str, str]] = {}
        # What the firmware's report has said so far: its severity, and whether it is about PCI Express.
        self._firmware, self._firmware_pcie = "", False

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _DEVICE.match(text):
            severity = _class(match[3])
            if severity is None:
                return None
            word, rank = severity
            self._knows(match[2].lower(), match[1])
            if (match[2].lower(), word) in self._announced:
                del self._announced[match[2].lower(), word]
                return None
            data = {
                "class": word,
                "layer": match[4].strip(),
                "role": match[5].strip(),
                "address": match[2].lower(),
            }
            return unsent("pcie.error", device(match[1], match[2]), rank, data, text)
        if match := _ANNOUNCED.match(text):
            word, rank = _class(match[2]) or ("fatal", Severity.FATAL)
            address = match[3].lower()
            self._remember(address, address, word)
            self._uncorrected[match[1].lower()] = (address, word)
            data = {"class": word, "address": address, "port": match[1].lower()}
            return unsent("pcie.error", device(self._drivers.get(address, ""), address), rank, data, text)
        if match := _FAILED.match(text):
            return self._not_recovered(match[1], match[2].lower(), text)
        if match := _DPC.match(text):
            return self._contained(match, text)
        if match := _FIRMWARE.match(text):
            return self._reported_by_firmware(match[0].partition("]: ")[2].lstrip(), match[1].strip(), text)
        return None

    def _contained(self, match: re.Match[str], text: str) -> UnsentEvent:
        """The port cut off what is below it. What it reports then, and whether it recovers, is the same fact."""
        port = match[2].lower()
        address, driver = port, match[1]
        if (source := match[5] or _source(port, int(match[3], 16), match[4])) is not None:
            address = source.lower()
            driver = self._drivers.get(address, "")
        for word in ("fatal", "nonfatal"):
            self._remember(port, address, word)
        self._uncorrected[port] = (address, "fatal")
        data = {"class": "contained", "address": address, "port": port if address != port else ""}
        return unsent("pcie.error", device(driver, address), Severity.FATAL, data, text)

    def _remember(self, reporter: str, address: str, word: str) -> None:
        """`reporter` will say more of an error of the device at `address`."""
        if len(self._announced) >= _MOST:
            del self._announced[next(iter(self._announced))]
        self._announced[reporter, word] = None
        if len(self._uncorrected) >= _MOST:
            self._uncorrected.clear()
        self._uncorrected[reporter] = self._uncorrected[address] = (address, word)

    def _not_recovered(self, driver: str, address: str, text: str) -> UnsentEvent | None:
        """The port says so of the device whose error it announced; of a fatal error that is no further fact."""
        found, word = self._uncorrected.pop(address, (address, ""))
        if word == "fatal":
            return None
        driver = driver if found == address else self._drivers.get(found, "")
        data = {"class": "recovery_failed", "address": found}
        return unsent("pcie.error", device(driver, found), Severity.FATAL, data, text)

    def _reported_by_firmware(self, line: str, value: str, text: str) -> UnsentEvent | None:
        if line.startswith("section_type"):
            self._firmware_pcie = value == "PCIe error"
        elif not line.startswith("device_id"):
            self._firmware, self._firmware_pcie = value, False
        elif self._firmware_pcie and self._firmware in _FIRMWARE_CLASSES:
            self._firmware_pcie = False
            address = value.split()[0].lower()
            word, rank = _FIRMWARE_CLASSES[self._firmware]
            data = {"class": word, "address": address, "role": "reported by the firmware (APEI)"}
            return unsent("pcie.error", device(self._drivers.get(address, ""), address), rank, data, text)
        return None

    def _knows(self, address: str, driver: str) -> None:
        if len(self._drivers) < _MOST_DEVICES:
            self._drivers[address] = driver


def _source(port: str, status: int, requester: str | None) -> str | None:
    """The device whose message was the cause, where the status says that one was (PCI Express base specification, DPC Status)."""
    if requester is None or status >> 1 & 3 not in (1, 2) or not (number := int(requester, 16)):
        return None
    return f"{port.partition(':')[0]}:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"


def pci_drivers(lines: Iterable[str]) -> dict[str, str]:
    """PCI address with the function → driver, of the GPUs and cards that any line of a log names."""
    return {match[2].lower(): match[1] for text in lines if (match := _NAMED.search(text[:200])) is not None}


def _class(severity: str) -> tuple[str, Severity] | None:
    lower = severity.lower()
    if lower.startswith("uncorrect") and "(" not in lower:
        return "fatal", Severity.FATAL
    if lower.startswith("uncorrect"):
        lower = lower.partition("(")[2]
    return next(((word, rank) for mark, word, rank in _CLASSES if mark in lower), None)
