"""Reads what the NVIDIA driver prints about a GPU in the kernel log: XIDs, and GPUs that fell off the bus.

A text is one record of the kernel log as agent.contract.kernel_text returns it. The grammar is the driver's print format:

    NVRM: Xid (PCI:dddd:bb:dd[ GPU-I:n[ GPU-CI:n]]): code, [pid=p, name=n, ]text[ caused by previous Xid code]

and what older and newer drivers print instead: no `PCI:`, an address with a function, no comma after the code, a pid in
quotes or `<unknown>`, no name.
"""

import re
from dataclasses import dataclass

from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.xid_table import XIDS

# The kernel prints no record longer than about 1,000 characters; programs may write longer ones.
_LIMIT = 8000

_XID = re.compile(
    r"\s*NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{5,17})(?: GPU-I:([0-9]{1,4}))?(?: GPU-CI:([0-9]{1,4}))?\):"
    r"\s*([0-9]{1,6})(?![0-9]),?\s*(.*)",
    re.DOTALL,
)
_PROCESS = re.compile(r"pid=('[^',]*'|[^,\s]*)(?:,\s*|\s+|$)(?:name=(.*?)(?:,\s+|,?$))?(.*)", re.DOTALL)
_NAME = re.compile(r"name=(.*?)(?:,\s+|,?$)(.*)", re.DOTALL)
_CAUSED_BY = re.compile(r"caused by previous Xid ([0-9]{1,6})\b")
_RECOVERY = re.compile(r"recovery action changed from 0x[0-9a-fA-F]{1,8} \([^)]*\) to 0x([0-9a-fA-F]{1,8})\b")
_LINK = re.compile(r"\blink ([0-9]{1,3})\b", re.IGNORECASE)
_NVLINK5 = re.compile(
    r"([A-Z][A-Za-z0-9_]*(?: [A-Z][a-z]+)?)\s+(Fatal|Non-?fatal)\s+XC[0-9]\s+i[0-9]\s+Link\s+(-?[0-9]{1,3})"
    r"\s+\((0x[0-9a-fA-F]{1,8})\s+(0x[0-9a-fA-F]{1,8})\b"
)
_OFF_BUS = re.compile(
    r"\s*NVRM: GPU (?:at )?(?:PCI:)?([0-9a-fA-F:.]{7,17}?):? ((?:GPU )?has fallen off the bus\b.*)", re.DOTALL
)
_PROBE = re.compile(
    r"NVRM: The NVIDIA GPU ([0-9a-fA-F:.]{7,17})\s+(?:\(PCI ID: [0-9a-fA-F:]+\)\s+)?"
    r"installed in this system has\s+fallen off the bus and is not responding to commands\.?"
)
_BUS_AND_SLOT = re.compile(
    r"00([0-9a-fA-F]{2}):([01][0-9a-fA-F])"
)  # before 256: no domain, a bus of four digits
# Where the message goes on in another line: as it is, escaped as exports do, or with only a blank left of it.
_JOIN = re.compile(r"(?:\s|\\[nrt])*(?:\n|\\n)(?:\s|\\[nrt])*(?:NVRM: )?|\s+NVRM: ")
# What begins as a report that a GPU has failed, and has to be understood.
_BEGUN = re.compile(
    r"^\s*NVRM: Xid\b|NVRM: Xid \(|has fallen off the bus|NVRM: GPU\b[^\n]{0,60}?\bhas(?: f[a-z]{0,5})?(?: off[a-z ]{0,7})?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvlink5:
    """The report of a unit in XIDs 144 to 150."""

    unit: str
    fatal: bool
    # 32 bits that identify the interrupt.
    intr_info: int
    # 32 bits.
    error_status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One XID line. None or empty: the line does not have it."""

    # `gpu/0000:3b:00`, for a MIG instance with `/gi5/ci0`.
    component: str
    code: int
    # The text after the code, without pid and name.
    message: str
    pid: int | None = None
    process: str = ""
    # NVLink number.
    link: int | None = None
    # XID 154: the new recovery action.
    recovery_action: int | None = None
    # The previous XID that caused it.
    caused_by: int | None = None
    nvlink5: Nvlink5 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffBus:
    """The driver reports without an XID that a GPU fell off the bus."""

    component: str
    message: str


def parse(text: str) -> Xid | None:
    """The XID in one record of the kernel log; None for every other text.

    >>> parse("NVRM: Xid (PCI:0000:38:00): 79, GPU has fallen off the bus.").code
    79
    """
    match = _XID.match(text[:_LIMIT])
    if match is None:
        return None
    component = _component(match[1])
    if component is None or (match.end(4) == len(text.rstrip()) and _may_be_longer(match[4])):
        return None
    for name, instance in (("gi", match[2]), ("ci", match[3])):
        if instance is not None:
            component += f"/{name}{int(instance)}"
    code = int(match[4])
    pid, process, message = _process(match[5].strip())
    caused_by = _CAUSED_BY.search(message)
    recovery = _RECOVERY.search(message) if code == 154 else None
    report = _NVLINK5.match(message) if 144 <= code <= 150 else None
    return Xid(
        component=component,
        code=code,
        message=message,
        pid=pid,
        process=process,
        link=_link(code, message, report),
        recovery_action=int(recovery[1], 16) if recovery else None,
        caused_by=int(caused_by[1]) if caused_by else None,
        nvlink5=report
        and Nvlink5(
            unit=report[1],
            fatal=report[2] == "Fatal",
            intr_info=int(report[4], 16),
            error_status=int(report[5], 16),
        ),
    )


def parse_off_bus(text: str) -> OffBus | None:
    """The GPU that a record reports off the bus without an XID, at run time or at probe."""
    text = text[:_LIMIT]
    if match := _OFF_BUS.match(text):
        component, message = _component(match[1]), match[2].strip()
    elif "NVRM: The NVIDIA GPU" in text and (match := _PROBE.match(unbroken(text))):
        component, message = _component(match[1]), match[0].removeprefix("NVRM: ")
    else:
        return None
    return OffBus(component=component, message=message) if component else None


def is_cut(text: str) -> bool:
    """Does a report that a GPU has failed begin somewhere in a text, and is not whole?

    >>> is_cut("NVRM: Xid (PCI:0000:3b:00): 7"), is_cut("NVRM: Xid (PCI:0000:3b:00): 43, pid=7, name=train, Ch 00000010")
    (True, False)
    """
    text = text[:_LIMIT]
    if parse(text) is not None or parse_off_bus(text) is not None:
        return False
    return any(
        parse(text[at:]) is None and parse_off_bus(text[at:]) is None
        for at in (begun.start() for begun in _BEGUN.finditer(text))
    )


def _may_be_longer(code: str) -> bool:
    """Of a code that ends its record the last digits may be missing: is there a longer one that begins with it?"""
    return any(len(known) > len(code) and known.startswith(code) for known in map(str, XIDS))


def unbroken(text: str) -> str:
    """A message that the driver prints over several lines, as one; each line has the driver's name in front."""
    return _JOIN.sub(" ", text.strip())


def _component(address: str) -> str | None:
    if (old := _BUS_AND_SLOT.fullmatch(address)) is not None:
        address = f"0000:{old[1]}:{old[2]}"
    try:
        return components.gpu(address)
    except ContractError:
        return None


def _process(rest: str) -> tuple[int | None, str, str]:
    """Splits the text after the code into pid, process and message."""
    if match := _PROCESS.match(rest):
        pid, name, message = match[1].strip("'"), match[2] or "", match[3]
    elif match := _NAME.match(rest):
        pid, name, message = "", match[1], match[2]
    else:
        return None, "", rest
    name = name.strip("'\" ")
    known = pid.isascii() and pid.isdigit() and len(pid) <= 10
    return int(pid) if known else None, "" if name == "<unknown>" else name, message.strip()


def _link(code: int, message: str, report: re.Match[str] | None) -> int | None:
    if report is not None:
        number = int(report[3])
        return number if number >= 0 else None  # -1: the whole unit, not one link
    match = _LINK.search(message) if code in (74, 155) or 144 <= code <= 150 else None
    return int(match[1]) if match else None
