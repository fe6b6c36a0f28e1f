"""What npu-smi and hccn_tool print: tables and `key : value` lines of Ascend's documentation. Pure; no text breaks it.

Formats: npu-smi command reference of the Ascend HDK (`npu-smi info`, `info -t health`, `info -t ecc`), HCCN tool's interface
reference (`-link -g`). The second line of a row has the physical number beside the chip's in some versions. What a tool prints
is foreign: numbers are bounded, names cut, a row that does not look like one is left out, and a figure that is no number (`-`,
`NA`, as for the power of one chip of a card with two) is not known.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent.contract import components
from agent.contract.errors import ContractError

_MOST = 64  # chips of one machine, and processes of one chip
_NAMED = re.compile(
    r"\|\s*([0-9]{1,4})\s+([A-Za-z0-9 _.-]{1,32}?)\s*\|\s*([A-Za-z]{1,16})\s*\|\s*([0-9A-Za-z./-]{1,8})\s+([0-9A-Za-z./-]{1,8})\s"
)
_PLACED = re.compile(
    r"\|\s*([0-9]{1,4})(?:\s+([0-9]{1,4}))?\s*\|\s*([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*\|\s*([0-9A-Za-z./-]{1,8})\s"
    r"(?:.*?\s([0-9]{1,7})\s*/\s*([0-9]{1,7})\s*\|)?"
)
_PROCESS = re.compile(
    r"\|\s*([0-9]{1,4})\s+([0-9]{1,4})\s*\|\s*([0-9]{1,10})\s*\|\s*(\S{1,64})\s*\|\s*([0-9]{1,7})\s*\|"
)
_WHOLE, _NUMBER = re.compile(r"-?[0-9]{1,4}"), re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_FIELD = re.compile(r"\s*([A-Za-z][A-Za-z0-9 ()_/-]{1,60}?)\s*:\s*(.{0,400}?)\s*")
_CODE = re.compile(r"\b(?:0x)?([0-9A-Fa-f]{8})\b")
_LINK = re.compile(r"\s*link status:\s*(UP|DOWN)\b")
_COUNTS = {
    "HBM Single Bit Error Count": "ecc.volatile.corrected.dram",
    "HBM Double Bit Error Count": "ecc.volatile.uncorrected.dram",
    "HBM Single Bit Aggregate Total Err Cnt": "ecc.aggregate.corrected.dram",
    "HBM Double Bit Aggregate Total Err Cnt": "ecc.aggregate.uncorrected.dram",
    "HBM Single Bit Isolated Pages Count": "retired.single_bit",
    "HBM Double Bit Isolated Pages Count": "retired.double_bit",
}
# Pages that the next reset of the NPU sets aside.
_WAITING = ("HBM Single Bit Next-Isolated Pages Count", "HBM Double Bit Next-Isolated Pages Count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Npu:
    """One chip in `npu-smi info`. None: `-` or not shown."""

    # npu-smi's number of the card, and of the chip on it; the number by which the driver's lines and hccn_tool name it.
    card: int
    chip: int
    device: int
    bdf: str
    name: str
    # OK | Warning | Alarm | Critical | UNKNOWN | ...
    health: str
    power_w: float | None = None
    temperature_c: int | None = None
    busy: int | None = None
    memory_used_mb: int | None = None
    # pid, name, MiB
    processes: tuple[tuple[int, str, int], ...] = ()


def info(text: str) -> list[Npu]:
    """The chips in `npu-smi info`, in its order; none where it is no such table."""
    found: list[Npu] = []
    held: dict[tuple[int, int], list[tuple[int, str, int]]] = {}
    above: re.Match[str] | None = None
    for line in text.splitlines():
        if match := _PROCESS.match(line):
            row = held.setdefault((int(match[1]), int(match[2])), [])
            if len(row) < _MOST:
                row.append((int(match[3]), match[4], int(match[5])))
        elif (match := _PLACED.match(line)) and above is not None and len(found) < _MOST:
            found.append(_npu(above, match, len(found)))
            above = None
        else:
            above = _NAMED.match(line)
    return [replace(npu, processes=tuple(held.get((npu.card, npu.chip), ()))) for npu in found]


def health(text: str) -> tuple[tuple[str, ...], str] | None:
    """The fault codes of `npu-smi info -t health`, each once, and what it says of the first; None where it is no such answer: an
    error's text, with which some versions end well, names no codes either.
    """
    codes: dict[str, None] = {}
    said = ""
    fields = _fields(text)
    if all(key != "Error Code" for key, _ in fields):
        return None
    for key, value in fields:
        if key == "Error Code":
            codes.update(dict.fromkeys(code.upper() for code in _CODE.findall(value)))
        elif key == "Error Information" and not said and value != "NA":
            said = value
    return tuple(codes)[:_MOST], said


def ecc(text: str) -> Mapping[str, int]:
    """The counters of `npu-smi info -t ecc`, by the names of GpuHealth."""
    numbers = {key: int(value) for key, value in _fields(text) if value.isdigit() and len(value) < 16}
    found = {name: numbers[key] for key, name in _COUNTS.items() if key in numbers}
    if all(key in numbers for key in _WAITING):
        found["retired.pending"] = int(any(numbers[key] for key in _WAITING))
    return found


def link(text: str) -> bool | None:
    """Is the NPU's network port up, by `hccn_tool -link -g`? None: it does not say."""
    match = next(filter(None, map(_LINK.match, text.splitlines())), None)
    return None if match is None else match[1] == "UP"


def _npu(above: re.Match[str], row: re.Match[str], number: int) -> Npu:
    try:
        bdf = components.bdf(row[3])
    except ContractError:  # the pattern allows no other
        bdf = ""
    return Npu(
        card=int(above[1]),
        chip=int(row[1]),
        device=int(row[2]) if row[2] else number,
        bdf=bdf,
        name=above[2],
        health=above[3],
        power_w=_float(above[4]),
        temperature_c=_whole(above[5]),
        busy=_whole(row[4]),
        memory_used_mb=int(row[5]) if row[5] else None,
    )


def _float(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _fields(text: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for line in text.splitlines()[:500] if (match := _FIELD.fullmatch(line))]
