"""The commands that this node has accepted, on disk, so that none runs twice, not even over the reboot that it asked for.

JSON lines, each fsynced before anything follows from it:

    {"accepted": {...}}                 a command is about to run
    {"id": id}                          of that command: always the next line
    {"done": id, "result": {...}}       it has ended
    {"told": id}                        its result is in the spool, on its way to the brain
    {"sent": id}                        its evidence is in the bus' object store
    {"epoch": n, "of": keys}            a newer leader was seen

Each has a number and a checksum (journal_lines.py). The keys stay as they are: an older agent must be able to read
them. A torn last line (power cut) is passed over: what it says was never answered. What is damaged is passed over, too, told,
and kept beside the file (`.damaged`). A command whose own line is damaged is still known by another of its lines, so that it
does not run twice, and what became of it is unknown; where that may not be, nothing new is begun for a while
(`doubtful`). The file is rewritten with the latest MAX_IDS commands: at start, and when there are twice as many.

An epoch counts among those who sign with the keys of one configuration (`of`): whoever had a stolen key could name one that no
leader ever reaches, and the node would refuse its cell also after it has joined again, with new keys.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.commands.journal_lines import NUMBER, opened, sealed, within
from agent.contract.commands import Command, Outcome
from agent.contract.counted import counted
from agent.contract.messages import Scalar
from agent.shared import files

_log = logging.getLogger(__name__)
MAX_IDS = 10_000  # more than a week of a node that is repaired every minute
_MOST_LINE = 256 * 1024  # bytes: longer than any line that is written
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


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

    def __init__(self, path: Path, of: str = "") -> None:
        """`of`: which keys are configured (`Trusted.configured`); empty: the same as before."""
        self._path = path
        self._of = ""  # of which the epoch is
        self._entries: dict[str, JournalEntry] = {}
        self._epoch = 0
        self._torn = False
        self._next = 0  # number of the next line
        self._unreadable = ""
        # What people must know of the file; empty: it is well.
        self.trouble = ""
        # It may lack a command that this node has accepted.
        self.doubtful = False
        try:
            self._read()
        except OSError as error:
            # What it holds must not be done again, and it is unknown what that is: report facts, do nothing.
            self.trouble = self._unreadable = f"{path} cannot be read: {error}"
            return
        if of and self._of and of != self._of:
            _log.warning(
                "this node was given other keys: epoch %d of those before counts no more", self._epoch
            )
            self._entries = {id_: replace(entry, epoch=0) for id_, entry in self._entries.items()}
            self._epoch = 0
        self._of = of or self._of
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
        if len(self._entries) >= 2 * MAX_IDS:
            for ended in [one.id for one in self._entries.values() if one.result is not None][:MAX_IDS]:
                del self._entries[ended]
            with contextlib.suppress(OSError):
                self._compact()
        self._write({"accepted": _raw(entry)}, {"id": entry.id})

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
        self._write(self._epoch_line(epoch))

    def _read(self) -> None:
        """Takes the file into memory. OSError: it cannot be read."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        found = _Found()
        *whole, torn = content.split(b"\n")
        for line in filter(None, map(bytes.strip, whole)):
            found.take(line, self._apply)
        found.take_torn(torn, self._apply)
        if not content or not _may_be_torn(torn):
            found.damage()
        self._next = found.next
        lost = {id_: told for id_, told in found.named.items() if id_ not in self._entries}
        for id_, told in lost.items():
            self._entries[id_] = _of_unknown_outcome(id_, told=told)
        if not (found.damaged or found.hidden or lost):
            return
        self.doubtful = found.may_hide_a_command(len(lost))
        aside = self._path.with_name(f"{self._path.name}.damaged")
        passed_over = f"{counted(found.damaged, 'line')} damaged and passed over; " if found.damaged else ""
        passed_over += "lines are missing; " if found.hidden else ""
        unknown = f"what became of {counted(len(lost), 'command')} is not known; " if lost else ""
        self.trouble = f"{self._path}: {passed_over}{unknown}{aside} has the file as it was"
        _log.error("%s", self.trouble)
        with contextlib.suppress(OSError):
            files.write(aside, content, mode=0o640)

    def _apply(self, line: Mapping[str, Any]) -> None:
        """Takes one line into memory; KeyError, TypeError or ValueError when it does not fit. A line that stands there twice
        changes nothing.
        """
        if "accepted" in line:
            entry = _entry(line["accepted"])
            known = self._entries.get(entry.id)
            if known is None or known.result is None:
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
            self._of = str(line.get("of", self._of))

    def _write(self, *lines: Mapping[str, Any], sync: bool = True) -> None:
        with self._path.open("ab") as sink:
            # After a failed write the file may end in half a line, to which the next one must not be joined.
            text = (b"\n" if self._torn else b"") + _text(lines, self._next)
            self._torn = True
            sink.write(text)
            sink.flush()
            if sync:
                os.fsync(sink.fileno())
        self._torn = False
        self._next += len(lines)
        for line in lines:
            self._apply(line)

    def _epoch_line(self, epoch: int) -> Mapping[str, Any]:
        return {"epoch": epoch} | ({"of": self._of} if self._of else {})

    def _compact(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        epoch = self._epoch_line(self._epoch)
        lines = [
            epoch,
            *_lines(self._entries.values()),
            epoch,
        ]  # twice: an older leader must never count again
        files.write(self._path, _text(lines, 0), sync=True)
        self._next = len(lines)


def _text(lines: Iterable[Mapping[str, Any]], first: int) -> bytes:
    return b"".join(sealed(line, number) for number, line in enumerate(lines, first))


class _Found:
    """What was found in the file so far."""

    def __init__(self) -> None:
        # Id of each command of which a line speaks -> has its result been told?
        self.named: dict[str, bool] = {}
        self.damaged = 0  # lines
        self.next = 0  # number of the line that comes next
        self.hidden = False  # two lines that follow each other are missing
        self._at_the_end = False  # damage, and no whole line behind it
        self._plain = False  # a line of an older agent is among them, which has no number, and writes no ids

    def take(self, line: bytes, apply: Callable[[Mapping[str, Any]], None]) -> None:
        """The next line."""
        try:
            self._take(line, apply)
        except _UNREADABLE:
            self.damage()
            self._take_within(line, apply)

    def take_torn(self, line: bytes, apply: Callable[[Mapping[str, Any]], None]) -> None:
        """What stands behind the last end of a line: nothing, or a line whose write was cut short."""
        try:
            self._take(line, apply)
        except _UNREADABLE:
            self._take_within(line, apply)

    def damage(self) -> None:
        """A line is damaged."""
        self.damaged += 1
        self._at_the_end = True

    def may_hide_a_command(self, lost: int) -> bool:
        """May there be a command of which no line is left? `lost`: those of which the own line is damaged, and another is left.

        A command has two lines, one behind the other: where one alone is damaged, the other one names it.
        """
        return self.hidden or self._at_the_end or (self._plain and self.damaged > lost)

    def _take_within(self, line: bytes, apply: Callable[[Mapping[str, Any]], None]) -> None:
        """Two lines are joined where the end of the first is damaged."""
        for part in within(line):
            with contextlib.suppress(*_UNREADABLE):
                self._take(part, apply)

    def _take(self, line: bytes, apply: Callable[[Mapping[str, Any]], None]) -> None:
        raw = opened(line)
        apply(raw)
        self._at_the_end = False
        if NUMBER in raw:
            self.hidden |= raw[NUMBER] > self.next + 1
            self.next = max(self.next, raw[NUMBER] + 1)
        else:
            self._plain = True
        for key in ("id", "done", "told", "sent"):
            if key in raw:
                id_ = str(raw[key])
                self.named[id_] = self.named.get(id_, False) or key in ("told", "sent")


def _lines(entries: Iterable[JournalEntry]) -> Iterable[Mapping[str, Any]]:
    for entry in entries:
        yield {"accepted": _raw(entry)}
        yield {"id": entry.id}


def _may_be_torn(line: bytes) -> bool:
    """Can this be the beginning of a line, as a write leaves it that was cut short? Zeros are none."""
    return len(line) <= _MOST_LINE and line.isascii() and b"\0" not in line and b'{"'.startswith(line[:2])


def _of_unknown_outcome(command: str, *, told: bool) -> JournalEntry:
    """A command of which only the id is left. `told`: its result was in the spool."""
    why = "the line of this command in the node's journal is damaged: whether it was done is not known"
    return JournalEntry(
        id=command,
        action="",
        epoch=0,
        boot="",
        session="",
        result=Result(outcome=Outcome.UNKNOWN, why=why),
        reported=told,
        uploaded=True,
    )


def _raw(entry: JournalEntry) -> dict[str, Any]:
    raw = asdict(entry)
    raw["told"], raw["sent"] = raw.pop("reported"), raw.pop("uploaded")
    return raw


def _entry(line: Mapping[str, Any]) -> JournalEntry:
    """KeyError, TypeError, ValueError: it is none."""
    raw = dict(line)
    result, told, sent = raw.pop("result", None), raw.pop("told", False), raw.pop("sent", False)
    entry = JournalEntry(**raw, result=_result(result) if result else None, reported=told, uploaded=sent)
    texts = (entry.id, entry.action, entry.boot, entry.session)
    if not all(isinstance(text, str) for text in texts) or not entry.id or not isinstance(entry.params, dict):
        raise TypeError("not the fields of a command")
    if type(entry.epoch) is not int or type(entry.until_s) not in (int, float):
        raise TypeError("not the numbers of a command")
    return entry


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
