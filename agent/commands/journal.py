"""The commands that this node has accepted, on disk, so that none runs twice, not even over the reboot that it asked for.

JSON lines, each fsynced before anything follows from it:

    {"accepted": {...}}                 a command is about to run
    {"done": id, "result": {...}}       it has ended
    {"told": id}                        its result is in the spool, on its way to the brain
    {"sent": id}                        its evidence is in the bus' object store
    {"epoch": n}                        a newer leader was seen

These keys stay as they are: an older agent that is installed again must be able to read them. A torn last line (power cut)
is passed over, and so is what is damaged, which is kept beside the file (`.damaged`). The file is rewritten at start with the
latest MAX_IDS commands.
"""

import contextlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.contract.commands import Command, Outcome
from agent.contract.messages import Scalar
from agent.shared import files

_log = logging.getLogger(__name__)
MAX_IDS = 10_000  # more than a week of a node that is repaired every minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended."""

    outcome: Outcome
    why: str
    took_s: float = 0.0
    # File name of the evidence bundle; empty: none.
    evidence: str = ""
    evidence_bytes: int = 0
    # Sources of kinds that could not look, comma separated; see Done.
    blind: str = ""
    # Further fields of its event: figures, alike, untested.
    data: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One accepted command."""

    id: str
    action: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    epoch: int
    # Boot id when it was accepted.
    boot: str
    session: str
    # When its time is over, by the monotonic clock of that boot.
    until_s: float = 0.0
    # None: it runs, or its outcome is unknown.
    result: Result | None = None
    # The result is in the spool.
    reported: bool = False
    # Its evidence is in the bus' object store, or exists nowhere any more.
    uploaded: bool = False


class Journal:
    """The node's journal. Methods that write raise OSError when the disk fails: what is not written must not be done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, JournalEntry] = {}
        self._epoch = 0
        self._torn = False
        self._unreadable = ""
        try:
            self._read()
        except OSError as error:
            # What it holds must not be done again, and it is unknown what that is: report facts, do nothing.
            self._unreadable = f"{path} cannot be read: {error}"
            return
        for command in list(self._entries)[:-MAX_IDS]:
            del self._entries[command]
        with contextlib.suppress(OSError):  # the disk may be full or read-only: then the old file serves
            self._compact()

    @property
    def epoch(self) -> int:
        """The highest leader epoch that was seen."""
        return self._epoch

    def __contains__(self, command: object) -> bool:
        return command in self._entries

    def __getitem__(self, command: str) -> JournalEntry:
        return self._entries[command]

    def unfinished(self) -> list[JournalEntry]:
        """Accepted, with no result yet, in order of acceptance."""
        return [entry for entry in self._entries.values() if entry.result is None]

    def unreported(self) -> list[JournalEntry]:
        """Ended, with a result that may not be in the spool."""
        return [entry for entry in self._entries.values() if entry.result is not None and not entry.reported]

    def to_upload(self) -> list[JournalEntry]:
        """Ended, with a bundle that is not in the bus' object store yet, in order of acceptance."""
        ended = [(entry, entry.result) for entry in self._entries.values() if not entry.uploaded]
        return [entry for entry, result in ended if result is not None and result.evidence]

    def accept(self, command: Command, boot: str, session: str, now_mono_s: float = 0.0) -> None:
        """To be written before the answer "accepted" is given; the command's time runs from `now_mono_s`."""
        if self._unreadable:
            raise OSError(self._unreadable)
        entry = JournalEntry(
            id=command.id,
            action=command.action,
            params=dict(command.params),
            epoch=command.epoch,
            boot=boot,
            session=session,
            until_s=now_mono_s + command.timeout_s,
        )
        self._write({"accepted": _raw(entry)})

    def finish(self, command: str, result: Result) -> None:
        """How it ended; known in memory even when the disk fails."""
        self._entries[command] = replace(self._entries[command], result=result)
        self._write({"done": command, "result": asdict(result)})

    def mark_reported(self, command: str) -> None:
        """Its result is in the spool."""
        self._write({"told": command}, sync=False)

    def mark_uploaded(self, command: str) -> None:
        """Its bundle is in the object store, or lost."""
        self._write({"sent": command}, sync=False)

    def raise_epoch(self, epoch: int) -> None:
        """A newer leader was seen."""
        self._write({"epoch": epoch})

    def _read(self) -> None:
        """Takes the file into memory. OSError: it cannot be read."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        *whole, torn = content.split(b"\n")
        bad = 0
        for number, line in enumerate([*whole, torn]):
            try:
                self._apply(_object(line))
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                bad += bool(line.strip()) and number < len(whole)
        if bad:
            damaged = self._path.with_name(f"{self._path.name}.damaged")
            _log.error(
                "%s: %d lines cannot be read and are passed over; %s has them", self._path, bad, damaged
            )
            with contextlib.suppress(OSError):
                files.write(damaged, content, mode=0o640)

    def _apply(self, line: Mapping[str, Any]) -> None:
        """Takes one line into memory; KeyError, TypeError or ValueError when it does not fit."""
        if "accepted" in line:
            raw = dict(line["accepted"])
            result, reported, uploaded = (
                raw.pop("result", None),
                raw.pop("told", False),
                raw.pop("sent", False),
            )
            entry = JournalEntry(
                **raw, result=_result(result) if result else None, reported=reported, uploaded=uploaded
            )
            self._entries[entry.id] = entry
            self._epoch = max(self._epoch, entry.epoch)
        elif "done" in line and line["done"] in self._entries:
            self._entries[line["done"]] = replace(self._entries[line["done"]], result=_result(line["result"]))
        elif "told" in line and line["told"] in self._entries:
            self._entries[line["told"]] = replace(self._entries[line["told"]], reported=True)
        elif "sent" in line and line["sent"] in self._entries:
            self._entries[line["sent"]] = replace(self._entries[line["sent"]], uploaded=True)
        elif "epoch" in line:
            self._epoch = max(self._epoch, int(line["epoch"]))

    def _write(self, line: Mapping[str, Any], *, sync: bool = True) -> None:
        with self._path.open("ab") as sink:
            # After a failed write the file may end in half a line, to which the next one must not be joined.
            text = ("\n" if self._torn else "") + json.dumps(line, separators=(",", ":")) + "\n"
            self._torn = True
            sink.write(text.encode())
            sink.flush()
            if sync:
                os.fsync(sink.fileno())
        self._torn = False
        self._apply(line)

    def _compact(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = [{"epoch": self._epoch}, *({"accepted": _raw(entry)} for entry in self._entries.values())]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        files.write(self._path, text.encode(), sync=True)


def _raw(entry: JournalEntry) -> dict[str, Any]:
    raw = asdict(entry)
    raw["told"], raw["sent"] = raw.pop("reported"), raw.pop("uploaded")
    return raw


def _result(raw: Mapping[str, Any]) -> Result:
    return Result(
        outcome=Outcome(raw["outcome"]),
        why=raw["why"],
        took_s=raw["took_s"],
        evidence=raw["evidence"],
        evidence_bytes=raw.get("evidence_bytes", 0),
        blind=raw.get("blind", ""),
        data=raw.get("data", {}),
    )


def _object(line: bytes) -> Mapping[str, Any]:
    """A line's object. ValueError, TypeError: it is none; a list in lists without end too."""
    try:
        raw = json.loads(line)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(raw, dict):
        raise TypeError("not an object")
    return raw
