"""What dcgmi prints: `health -c -j` and `discovery -l` of DCGM 3 and 4. Pure; no text breaks it.

The JSON is a tree: entity group ("GPU", "Switch", ...) → entity id → "Errors" → system ("Memory system", ...), each with a
`value`, and with the messages of the system in `overflow`, broken into lines of 54 characters. Where such a line ends before a
comma, a full stop or a slash, DCGM loses that character. A system that it has no name for is "Internal error".
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from agent.contract import components
from agent.contract.dcgm_errors import DcgmError, errors, unknown
from agent.contract.errors import ContractError

_MOST = 64  # entities of a group, and systems of an entity
_MOST_FINDINGS = 256
_WORD = re.compile(r"[A-Za-z0-9 _.:-]{1,40}")
_VERDICTS = {"healthy": False, "warning": False, "failure": True}
_SYSTEMS = ("pcie", "nvlink", "memory", "sm", "inforom", "thermal", "power", "driver")
OTHER = "other"
SYSTEMS = (*_SYSTEMS, OTHER)
_GPU_ROW = re.compile(r"\|\s*([0-9]{1,4})\s*\|\s*Name:")
_BUS_ROW = re.compile(r"\|\s*\|\s*PCI Bus ID:\s*([0-9A-Fa-f:.]{7,20})\s")
_VERSION = re.compile(r"[Vv]ersion\s*:?\s*([0-9]{1,3})\.[0-9]")


class DcgmState(StrEnum):
    """Whether DCGM could be asked."""

    READ = "read"
    NO_WATCHES = "no_watches"
    NO_ENGINE = "no_engine"
    NO_GROUP = "no_group"
    REFUSED = "another_error"  # of DCGM's own
    UNREADABLE = "unreadable"  # no answer that gpuward knows


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmIncident:
    """One error of one entity."""

    # `GPU 3`, `Switch 0`; empty: of the whole group.
    entity: str
    # Number of a GPU in DCGM; None: another entity.
    gpu: int | None
    # One of SYSTEMS.
    system: str
    # DCGM's verdict on the system: a failure; else a warning.
    failed: bool
    error: DcgmError
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmAnswer:
    """What one `dcgmi health -c -j` says."""

    state: DcgmState
    incidents: tuple[DcgmIncident, ...] = ()
    # Of a state other than READ, for people.
    why: str = ""


def health(text: str) -> DcgmAnswer:
    """The answer to `dcgmi health -c -j`."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return _refusal(text)
    try:
        body = json.loads(text[start : end + 1])["body"]
        verdict = str(body["Overall Health"]["value"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return _refusal(text)
    if verdict.lower() not in _VERDICTS:
        return DcgmAnswer(state=DcgmState.UNREADABLE, why=f"overall health {verdict[:60]!r}")
    found = tuple(
        incident for _, incident in zip(range(_MOST_FINDINGS), _incidents(body), strict=False)
    )  # the first ones
    if verdict.lower() != "healthy" and not found:
        failed = _VERDICTS[verdict.lower()]
        found = (
            DcgmIncident(
                entity="",
                gpu=None,
                system=OTHER,
                failed=failed,
                error=unknown(failed=failed),
                message=f"overall health: {verdict}",
            ),
        )
    return DcgmAnswer(state=DcgmState.READ, incidents=found)


def gpus(text: str) -> dict[int, str]:
    """Number in DCGM → PCI address, of `dcgmi discovery -l`."""
    found: dict[int, str] = {}
    number: int | None = None
    for line in text.splitlines():
        if row := _GPU_ROW.match(line):
            number = int(row[1])
        elif number is not None and (row := _BUS_ROW.match(line)):
            with suppress(ContractError):  # foreign text; the GPU has no address then
                found[number] = components.bdf(row[1])
            number = None
    return found


def major(text: str) -> int:
    """The first number of the version that `dcgmi -v` prints, the older one of its own and its engine's; 0: it prints none."""
    return min((int(one) for one in _VERSION.findall(text[:4096])), default=0)


def _refusal(text: str) -> DcgmAnswer:
    lines = [line.strip() for line in text[:4096].splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("Error:")), lines[0] if lines else "nothing")[:200]
    lower = text[:4096].lower()
    if "watches not enabled" in lower:
        state = DcgmState.NO_WATCHES
    elif "group is not found" in lower:
        state = DcgmState.NO_GROUP
    elif "unable to establish a connection" in lower or "unable to connect to host engine" in lower:
        state = DcgmState.NO_ENGINE
    elif said.startswith("Error:"):
        state = DcgmState.REFUSED
    else:
        state = DcgmState.UNREADABLE
    return DcgmAnswer(state=state, why=said)


def _incidents(body: Mapping[str, Any]) -> Iterator[DcgmIncident]:
    for group, part in body.items():
        if group == "Overall Health" or not _WORD.fullmatch(group):
            continue
        for number, entity in _children(part):
            base = DcgmIncident(
                entity=f"{group} {number}",
                gpu=int(number) if group == "GPU" and number.isascii() and number.isdigit() else None,
                system=OTHER,
                failed=False,
                error=unknown(failed=False),
                message="",
            )
            for _, listed in _children(entity):
                for system, judged in _children(listed):
                    yield from _of_system(base, system, judged)


def _of_system(base: DcgmIncident, system: str, judged: Mapping[str, Any]) -> Iterator[DcgmIncident]:
    word = system.partition(" ")[0].lower()
    failed = str(judged.get("value", "")).lower() == "failure"
    lines = judged.get("overflow")
    text = " ".join(
        str(line).strip() for line in (lines if isinstance(lines, list) else [lines or ""])[:_MOST]
    )
    for error in errors(text, failed=failed):
        yield replace(
            base, system=word if word in _SYSTEMS else OTHER, failed=failed, error=error, message=text[:1000]
        )


def _children(part: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The named parts of a part, the first ones; none of anything that has no such form."""
    children = part.get("children") if isinstance(part, dict) else None
    if isinstance(children, dict):
        for name in list(children)[:_MOST]:
            if _WORD.fullmatch(name) and isinstance(children[name], dict):
                yield name, children[name]
