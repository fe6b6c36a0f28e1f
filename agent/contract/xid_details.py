"""Reads what the messages of certain XIDs tell: where a kernel failed, the address, the row, the registers.

Grammar: NVIDIA's open kernel modules (kern_gr_*.c, printing of MMU faults, row remapper, ECC containment) and the samples
of the XID catalogue. Every field is optional, since drivers differ.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from agent.contract.messages import Scalar
from agent.contract.nvlink4_table import ROWS

UNKNOWN_REPAIR_AT: Final = 3  # more than two on one link
_IGNORED: Final = "ignore"  # as the catalogue writes it
_SM = re.compile(r"\(?GPC (?P<gpc>[0-9]{1,3}), TPC (?P<tpc>[0-9]{1,3})(?:, SM (?P<sm>[0-9]{1,3}))?\)?")
_SM_ERROR = re.compile(r"\): (?P<error>[A-Za-z][\w /-]{1,80})")
_MMU = re.compile(
    r"ENGINE (?P<engine>[A-Z][A-Z0-9_]{0,30})(?: (?:GPC(?P<gpc>[0-9]{1,3}) )?(?P<client>[A-Z][A-Z0-9_]{1,40}))?"
    r" faulted @ (?P<address>0x[0-9a-fA-F_]{1,24})"
)
_FAULT = re.compile(
    r"Fault is of type (?P<type>FAULT_[A-Z_]{1,40})(?: (?P<access>ACCESS_TYPE_[A-Z_]{1,40}))?"
)
_CONTAINED = re.compile(
    r"(?P<how>Contained|Uncontained)(?: error)?: (?P<unit>[A-Z][\w ]{0,40}?)"
    r"(?: \((?P<where>0x[0-9a-fA-F]{1,8}(?:, ?0x[0-9a-fA-F]{1,8}){0,3})\)|\.? RST: |\. |\.?$)",
    re.IGNORECASE,
)
_RESETS = re.compile(r"\bRST: (?P<rst>Yes|No), D-RST: (?P<drst>Yes|No)\b", re.IGNORECASE)
_TRAINING = re.compile(
    r"\blinks? (?P<hex>0x[0-9a-fA-F]{1,16}|)(?P<number>[0-9]{1,3}|)(?![0-9a-zA-Z])", re.IGNORECASE
)
_ADDRESS = re.compile(r"\((?P<address>0x[0-9a-fA-F]{1,16})\)|address (?P<other>0x[0-9a-fA-F]{1,16})")
_PARTITION = re.compile(r"partition (?P<partition>[0-9]{1,3})(?:, subpartition (?P<sub>[0-9]{1,3}))?")
_REGISTERS = re.compile(r"\((0x[0-9a-fA-F]{1,8}(?:, ?0x[0-9a-fA-F]{1,8}){6})\)")

Details = dict[str, Scalar]


def details(code: int, message: str) -> Details:
    """The further fields of gpu.xid in the message of this code; none for other codes. Never raises."""
    read = _READERS.get(code)
    return read(message[:2000]) if read is not None else {}


def registers_advice(registers: tuple[int, ...]) -> tuple[str, bool]:
    """The vendor's advice for the seven registers of XID 74, and whether the error may be ignored.

    The catalogue has bits of registers 1, 3, 4 and 5; an error with any other bit is never ignored.
    """
    verdicts: list[str] = []
    unknown = False
    for at, value in enumerate(registers, 1):
        left = value
        for register, bits, verdict, _ in ROWS:
            if register == at and value & bits:
                left &= ~bits
                if verdict not in verdicts:
                    verdicts.append(verdict)
        unknown = unknown or left != 0
    ignored = verdicts == [_IGNORED] and not unknown
    if len(verdicts) > 1 and _IGNORED in verdicts:
        verdicts.remove(_IGNORED)
    return "; ".join([*verdicts, *(["bits that the catalogue does not know"] if unknown else [])]), ignored


def registers_repair_at(registers: tuple[int, ...]) -> int:
    """How many errors like this one, on one link within a day, make it a link to repair. 0: never; 1: this one does.

    Bits that the catalogue does not know count like those that it calls likely hardware.
    """
    found: list[int] = []
    for at, value in enumerate(registers, 1):
        left = value
        for register, bits, _, repair_at in ROWS:
            if register == at and value & bits:
                left &= ~bits
                found.append(repair_at)
        if left:
            found.append(UNKNOWN_REPAIR_AT)
    return min((one for one in found if one), default=0) if found else UNKNOWN_REPAIR_AT


def _exception(message: str) -> Details:
    """XID 13: the streaming multiprocessor."""
    found: Details = {}
    if place := _SM.search(message):
        found |= {name: int(value) for name, value in place.groupdict().items() if value is not None}
    if error := _SM_ERROR.search(message):
        found["error"] = error["error"].strip()
    return found


def _mmu_fault(message: str) -> Details:
    """XID 31: engine, client, address and type of the fault."""
    found: Details = {}
    if place := _MMU.search(message):
        found |= {"engine": place["engine"], "fault_address": place["address"].replace("_", "").lower()}
        if place["gpc"] is not None:
            found["gpc"] = int(place["gpc"])
        if place["client"] is not None:
            found["client"] = place["client"]
    if fault := _FAULT.search(message):
        found["fault_type"] = fault["type"]
        if fault["access"] is not None:
            found["access"] = fault["access"]
    return found


def _double_bit(message: str) -> Details:
    """XID 48."""
    found: Details = {}
    if place := _PARTITION.search(message):
        found["partition"] = int(place["partition"])
        if place["sub"] is not None:
            found["subpartition"] = int(place["sub"])
    return found


def _remapped(message: str) -> Details:
    """XIDs 63 and 64: a row was remapped (Ampere and newer) or a page retired (older cards), or that failed."""
    lower = message.lower()
    found: Details = {}
    if "row remap" in lower or "remapp" in lower:
        found["memory"] = "row_remap_failed" if "error" in lower or "fail" in lower else "row_remap_pending"
    elif "page" in lower:
        failed = "fail" in lower or "error" in lower or "unable" in lower
        found["memory"] = "page_retirement_failed" if failed else "page_retired"
    if "all reserved rows" in lower:
        found["exhausted"] = True
    if "reset gpu to activate" in lower or "reboot to" in lower:
        found["needs_reset"] = True
    if place := _ADDRESS.search(message):
        found["fault_address"] = (place["address"] or place["other"]).lower()
    return found


def _contained(message: str) -> Details:
    """XIDs 94 and 95: where the error occurred, and whether the unit must be reset (RST) after a drain (D-RST)."""
    match = _CONTAINED.search(message)
    if match is None:
        return {}
    found: Details = {"contained": match["how"].lower() == "contained", "unit": match["unit"].strip()}
    if match["where"]:
        found["location"] = match["where"]
    if (resets := _RESETS.search(message, match.start())) is not None:
        found |= {
            "needs_reset": resets["rst"].lower() == "yes",
            "needs_drain": resets["drst"].lower() == "yes",
        }
    return found


def _training(message: str) -> Details:
    """XID 136: the link that did not train, or a bit mask of several (`link 5(...`, `links 0x30 (...`)."""
    match = _TRAINING.search(message)
    if match is None or not (match["hex"] or match["number"]):
        return {}
    if not match["hex"]:
        return {"link": int(match["number"])}
    mask = int(match["hex"], 16)
    numbers = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    if len(numbers) == 1:
        return {"link": numbers[0]}
    return {"links": ", ".join(map(str, numbers))} if numbers else {}


def _nvlink(message: str) -> Details:
    """XID 74."""
    match = _REGISTERS.search(message)
    if match is None:
        return {"repair_at": UNKNOWN_REPAIR_AT}
    registers = tuple(int(word.strip(), 16) for word in match[1].split(","))
    advice, _ = registers_advice(registers)
    found: Details = {
        "registers": " ".join(f"0x{value:x}" for value in registers),
        "repair_at": registers_repair_at(registers),
    }
    if advice:
        found["advice"] = advice
    return found


def nvlink_ignored(message: str) -> bool:
    """May XID 74 be ignored, by the bits of its registers?"""
    match = _REGISTERS.search(message[:2000])
    return match is not None and registers_advice(tuple(int(word, 16) for word in match[1].split(",")))[1]


_READERS: Final[Mapping[int, Callable[[str], Details]]] = {
    13: _exception,
    31: _mmu_fault,
    48: _double_bit,
    63: _remapped,
    64: _remapped,
    74: _nvlink,
    94: _contained,
    95: _contained,
    136: _training,
}
