"""Which commands this node was told, on disk, so that none runs twice, not even over the reboot that it
asked for.

JSON lines, each fsynced before anything follows from it: `{"accepted": ...}`, `{"done": ...}`, `{"told":
id}`, `{"sent": id}`, `{"epoch": n}`. A torn last line (power cut) is passed over. Rewritten at start with the latest
MAX_IDS commands.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.contract.commands import Command, Outcome
from agent.contract.messages import Scalar

MAX_IDS = 10_000  # more than a week of a node that is repaired every minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended."""

    outcome: Outcome
    why: str
    took_s: float = 0.0
    evidence: str = ""  # file name of the bundle
    evidence_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One accepted command."""

    id: str
    action: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    epoch: int
    boot: str  # boot id when it was accepted
    session: str
    until_s: float = 0.0  # when its time is over, by the monotonic clock of that boot
    result: Result | None = None  # None: it runs, or nobody knows how it ended
    told: bool = False  # the result is in the spool
    sent: bool = False  # its evidence is in the bus' object store, or nowhere any more


class Journal:
    """The node's journal. Writing raises OSError when the disk fails: what is not written must not be
    done.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, Entry] = {}
        self._epoch = 0
        self._torn = False
        self._unreadable = ""
        try:
            for line in _lines(path):
                with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
                    self._take(line)
        except OSError as error:
            # What it holds may not be done again, and we cannot know what that is: report facts, do nothing.
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

    def __getitem__(self, command: str) -> Entry:
        return self._entries[command]

    def unfinished(self) -> list[Entry]:
        """Accepted, and nothing known of the end, in order of acceptance."""
        return [entry for entry in self._entries.values() if entry.result is None]

    def untold(self) -> list[Entry]:
        """Ended, and perhaps nobody was told."""
        return [entry for entry in self._entries.values() if entry.result is not None and not entry.told]

    def unsent(self) -> list[Entry]:
        """Ended with a bundle that is not in the bus' object store yet, in order of acceptance."""
        ended = [(entry, entry.result) for entry in self._entries.values() if not entry.sent]
        return [entry for entry, result in ended if result is not None and result.evidence]

    def accept(self, command: Command, boot: str, session: str, now_mono_s: float = 0.0) -> None:
        """On disk before the answer "accepted" is given; its time runs from `now_mono_s`."""
        if self._unreadable:
            raise OSError(self._unreadable)
        entry = Entry(
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

    def tell(self, command: str) -> None:
        """The result is on its way (in the spool)."""
        self._write({"told": command}, sync=False)

    def send(self, command: str) -> None:
        """Its bundle is where others can fetch it."""
        self._write({"sent": command}, sync=False)

    def raise_epoch(self, epoch: int) -> None:
        """A newer leader spoke."""
        self._write({"epoch": epoch})

    def _take(self, line: Mapping[str, Any]) -> None:
        """One line into memory; KeyError, TypeError or ValueError when it does not fit."""
        if "accepted" in line:
            raw = dict(line["accepted"])
            result = raw.pop("result", None)
            entry = Entry(**raw, result=_result(result) if result else None)
            self._entries[entry.id] = entry
            self._epoch = max(self._epoch, entry.epoch)
        elif "done" in line and line["done"] in self._entries:
            self._entries[line["done"]] = replace(self._entries[line["done"]], result=_result(line["result"]))
        elif "told" in line and line["told"] in self._entries:
            self._entries[line["told"]] = replace(self._entries[line["told"]], told=True)
        elif "sent" in line and line["sent"] in self._entries:
            self._entries[line["sent"]] = replace(self._entries[line["sent"]], sent=True)
        elif "epoch" in line:
            self._epoch = max(self._epoch, int(line["epoch"]))

    def _write(self, line: Mapping[str, Any], *, sync: bool = True) -> None:
        with self._path.open("ab") as sink:
            # After a failed write the file may end in half a line: the next one must not be joined to it.
            text = ("\n" if self._torn else "") + json.dumps(line, separators=(",", ":")) + "\n"
            self._torn = True
            sink.write(text.encode())
            sink.flush()
            if sync:
                os.fsync(sink.fileno())
        self._torn = False
        self._take(line)

    def _compact(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_name(self._path.name + ".new")
        with fresh.open("wb") as sink:
            for line in (
                {"epoch": self._epoch},
                *({"accepted": _raw(entry)} for entry in self._entries.values()),
            ):
                sink.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            sink.flush()
            os.fsync(sink.fileno())
        fresh.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _raw(entry: Entry) -> dict[str, Any]:
    return asdict(entry)


def _result(raw: Mapping[str, Any]) -> Result:
    return Result(
        outcome=Outcome(raw["outcome"]),
        why=raw["why"],
        took_s=raw["took_s"],
        evidence=raw["evidence"],
        evidence_bytes=raw.get("evidence_bytes", 0),
    )


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """The lines that can be read; torn or foreign ones are passed over."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            raw = json.loads(line)
            if isinstance(raw, dict):
                yield raw
