"""The events that the broker has not acknowledged yet: stamped, numbered, bounded, on disk.

An event gets its number here and keeps it until the broker has it. When the spool is full, the mildest events are dropped,
the oldest of them first, and counted. Neither a full disk nor a broken file stops the agent: the spool continues in
memory, reports it (`take_problems`), and tries the disk again.
"""

import contextlib
import json
import logging
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import orjson

from agent.contract.counted import counted
from agent.contract.messages import MAX_EVIDENCE, Event, Severity, UnsentEvent, clip, fitting
from agent.host import Host
from agent.uplink.store import MEMORY, Row, Store, move_away

# Bounds without a disk: low, since the agent's memory is a promise.
MEMORY_MAX_EVENTS = 10_000
MEMORY_MAX_BYTES = 8 * 1024 * 1024
LINE = "line"  # key of the kernel log's checkpoint: boot id and sequence number
_T = TypeVar("_T")
# SQLITE_ERROR: the tables in it are not ours
_log = logging.getLogger(__name__)
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


class Spool:
    """One node's spool. Used from one thread (the event loop's); a `put` takes about 0.1 ms."""

    def __init__(
        self,
        path: Path,
        host: Host,
        node: str,
        *,
        max_events: int = 100_000,
        max_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._path = path
        self._host = host
        self._node = node
        self._limits = (max_events, max_bytes)
        self._boot = host.boot_id()
        self._problems: list[str] = []
        self._in_memory = False
        self._dropped = 0
        # False: the store is known to have none that are not reported.
        self._unreported = True
        self._spool, self._next, self._count, self._bytes = "", 1, 0, 0
        # Events since the start, by kind; for the metrics.
        self.kinds: dict[str, int] = {}
        # Called after each put; set by the publisher.
        self.on_put: Callable[[], None] = _nothing
        self._store = self._open()
        try:
            self._resume()
        except sqlite3.Error as error:
            self._store.close()
            self._store = self._fresh(error)
            self._resume()

    # --- in ---

    def put(self, unsent: UnsentEvent, mono_s: float) -> None:
        """Keeps one fact that was seen at `mono_s` on the node's monotonic clock."""
        self.put_all((unsent,), mono_s)

    def put_all(
        self,
        unsent_events: Iterable[UnsentEvent],
        mono_s: float,
        checkpoints: Mapping[str, str] | None = None,
    ) -> None:
        """Keeps all of them, or none if the process is killed meanwhile. `checkpoints`: how far their sources were read;
        kept in the same transaction, so that nothing is lost or read again.
        """
        unsent_events = tuple(unsent_events)
        stamped = [self._stamp(unsent, mono_s) for unsent in unsent_events]
        self._guarded(lambda: self._add(stamped, checkpoints or {}))
        for unsent in unsent_events:
            self.kinds[unsent.kind] = self.kinds.get(unsent.kind, 0) + 1
        if stamped:
            self.on_put()

    def save_position(self, boot: str, line: int) -> None:
        """Keeps that the kernel log of `boot` was read through record `line`, without any event."""
        self._guarded(lambda: self._store.set(LINE, f"{boot} {line}"))

    def save_checkpoints(self, checkpoints: Mapping[str, str]) -> None:
        """Keeps how far sources have read, without any event."""
        self._guarded(lambda: self._add([], checkpoints))

    def checkpoints(self, prefix: str) -> dict[str, str]:
        """The checkpoints whose keys have this prefix."""
        return self._guarded(lambda: self._store.texts(prefix))

    @property
    def position(self) -> tuple[str, int] | None:
        """(boot id, sequence number) of the last kernel log record that was processed; None before the first."""
        boot, _, seq = self._guarded(lambda: self._store.get(LINE)).partition(" ")
        return (boot, int(seq)) if boot and seq.isascii() and seq.isdecimal() else None

    # --- out ---

    def pending(self, after: int, limit: int) -> list[Row]:
        """Up to `limit` events numbered above `after`, in order. Those that the disk gives back damaged are dropped, and told:
        one of them would stand in the way of all others for ever.
        """

        def work() -> list[Row]:
            dropped: set[int] = set()
            while True:
                rows = self._store.after(after, limit)
                damaged = [row for row in rows if not row.is_whole()]
                if not damaged:
                    return rows
                if dropped.intersection(row.seq for row in damaged):
                    raise sqlite3.DatabaseError("rows cannot be removed")
                dropped.update(row.seq for row in damaged)
                self._drop(damaged)

        return self._guarded(work)

    def _drop(self, damaged: list[Row]) -> None:
        with self._store.transaction():
            for row in damaged:
                self._store.remove(row.seq)
            self._store.set("unreported", str(_number(self._store.get("unreported")) + len(damaged)))
        self._count, self._bytes = self._store.size()
        self._dropped += len(damaged)
        self._unreported = True
        self._problems.append(f"{self._path}: {counted(len(damaged), 'event')} damaged and dropped")

    def message(self, row: Row) -> tuple[str, bytes]:
        """(event id, JSON body) of a row, with its age as of now."""
        raw: dict[str, Any] = orjson.loads(row.body)
        raw["node"] = self._node
        raw["id"] = f"{self._node}:{row.spool}:{row.seq}"
        raw["age_s"] = round(self._age_s(row), 3)
        return str(raw["id"]), orjson.dumps(raw)

    def acknowledged(self, through: int) -> None:
        """The broker has all events up to this number."""

        def work() -> None:
            with self._store.transaction():
                count, size = self._store.remove_through(through)
            self._count, self._bytes = self._count - count, self._bytes - size

        self._guarded(work)

    def renumber(self, seq: int) -> None:
        """Moves an event to the end, under a new number: the log has stored a later one first, and its readers skip what
        follows a higher number of the same spool.
        """

        def work() -> None:
            found = self._store.after(seq - 1, 1)
            if not found or found[0].seq != seq:
                return
            with self._store.transaction():
                self._store.remove(seq)
                self._store.add(replace(found[0], seq=self._next, spool=self._spool))
            self._next += 1

        self._guarded(work)
        self.on_put()

    # --- state ---

    @property
    def spooled(self) -> int:
        """Events that are waiting."""
        return self._count

    @property
    def dropped(self) -> int:
        """Events dropped since this process started."""
        return self._dropped

    def take_problems(self) -> list[str]:
        """What went wrong with the disk since the last call, one sentence each."""
        problems, self._problems = self._problems, []
        return problems

    def report_dropped(self) -> None:
        """Puts `agent.dropped` once events were dropped and there is room again, so that it displaces none."""
        if not self._unreported:
            return
        count = _number(self._guarded(lambda: self._store.get("unreported")))
        self._unreported = count > 0
        if count == 0 or self._count > self._bounds()[0] * 3 // 4 or self._bytes > self._bounds()[1] * 3 // 4:
            return
        unsent = UnsentEvent(
            kind="agent.dropped", component="node", severity=Severity.WARNING, data={"dropped": count}
        )
        stamped = [self._stamp(unsent, self._host.mono_s())]
        self._guarded(lambda: self._add(stamped, {}, reported=True))
        self.on_put()

    def retry_disk(self) -> None:
        """Returns to the disk if the spool had to leave it and it works again."""
        if not self._in_memory:
            return
        with contextlib.suppress(sqlite3.Error, OSError):
            fresh = Store(str(self._path))
            try:
                with fresh.transaction():
                    # The file's rows were copied to memory when the spool left the disk, and may have been sent since.
                    fresh.remove_through(2**62)
                    self._copy(self._store, fresh)
            except BaseException:
                fresh.close()
                raise
            self._store.close()
            self._store, self._in_memory, self._unreported = fresh, False, True
            self._measure()
            _log.info("%s is written again: what waited in memory is in it", self._path)

    def close(self) -> None:
        """Closes the file."""
        self._store.close()

    # --- internal ---

    def _stamp(self, unsent: UnsentEvent, mono_s: float) -> Row:
        now_s = self._host.mono_s()
        fact_s = mono_s - max(0.0, unsent.age_s)
        event = Event(
            id="",
            node=self._node,
            kind=unsent.kind,
            component=unsent.component,
            severity=unsent.severity,
            at=self._host.wall().isoformat(timespec="milliseconds"),
            age_s=0.0,
            boot=self._boot,
            count=unsent.count,
            data={
                key: clip(value) if isinstance(value, str) else value for key, value in unsent.data.items()
            },
            evidence=clip(unsent.evidence, MAX_EVIDENCE),
        )
        return Row(
            seq=0,
            spool="",
            rank=unsent.severity.rank,
            boot=self._boot,
            mono_s=fact_s,
            age_s=max(0.0, now_s - fact_s),
            kind=unsent.kind,
            severity=unsent.severity.value,
            body=fitting(event, _json),
        )

    def _age_s(self, row: Row) -> float:
        now_s = self._host.mono_s()
        if row.boot == self._boot:
            return max(0.0, now_s - row.mono_s)
        # Spooled before a reboot: the monotonic clock restarted at zero, and the wall clock may be wrong. Certain is the
        # age at spooling plus the time since this boot: a lower bound, since it is unknown how long the event had waited
        # before the reboot and how long the node was down.
        return row.age_s + now_s

    def _add(self, stamped: list[Row], checkpoints: Mapping[str, str], *, reported: bool = False) -> None:
        seq, count, size, dropped = self._next, self._count, self._bytes, 0
        max_events, max_bytes = self._bounds()
        with self._store.transaction():
            for row in stamped:
                self._store.add(replace(row, seq=seq, spool=self._spool))
                seq, count, size = seq + 1, count + 1, size + len(row.body)
            while (count > max_events or size > max_bytes) and (mildest := self._store.mildest()):
                self._store.remove(mildest[0])
                count, size, dropped = count - 1, size - mildest[1], dropped + 1
            if dropped or reported:
                before = 0 if reported else _number(self._store.get("unreported"))
                self._store.set("unreported", str(before + dropped))
            for key, value in checkpoints.items():
                self._store.set(key, value)
        self._next, self._count, self._bytes = seq, count, size
        self._dropped += dropped
        self._unreported = self._unreported or dropped > 0

    def _bounds(self) -> tuple[int, int]:
        if not self._in_memory:
            return self._limits
        return min(self._limits[0], MEMORY_MAX_EVENTS), min(self._limits[1], MEMORY_MAX_BYTES)

    def _open(self) -> Store:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return Store(str(self._path))
        except (sqlite3.Error, OSError) as error:
            return self._fresh(error)

    def _fresh(self, error: Exception) -> Store:
        """An empty store that replaces one that failed: a new file if the old one is broken, else memory."""
        if (
            isinstance(error, sqlite3.DatabaseError)
            and getattr(error, "sqlite_errorcode", _BROKEN[0]) in _BROKEN
        ):
            with contextlib.suppress(sqlite3.Error, OSError):
                aside = move_away(self._path)
                store = Store(str(self._path))
                self._problems.append(f"{self._path} is broken ({error}) and was renamed to {aside.name}")
                return store
        self._problems.append(
            f"{self._path} cannot be written ({error}): until it can, events are kept in memory only. Make room, or mend what "
            "this says"
        )
        self._in_memory = True
        return Store(MEMORY)

    def _resume(self) -> None:
        """Continues the numbering; a new boot or a new file gets a new spool id (see store.py)."""
        self._spool = self._store.get("spool")
        if not self._spool or self._store.get("boot") != self._boot:
            self._spool = secrets.token_hex(4)
            with self._store.transaction():
                self._store.set("spool", self._spool)
                self._store.set("boot", self._boot)
        self._next = self._store.last_seq() + 1
        self._measure()

    def _measure(self) -> None:
        self._count, self._bytes = self._guarded(self._store.size)

    def _guarded(self, work: Callable[[], _T]) -> _T:
        """Runs `work`; if the disk fails, copies what can be read to a fresh store and runs it there."""
        try:
            return work()
        except sqlite3.Error as error:
            if self._in_memory:
                raise
            broken, following = self._store, self._next
            self._store = self._fresh(error)
            with self._store.transaction():
                self._copy(broken, self._store)
            broken.close()
            self._spool = secrets.token_hex(4)  # the old file must not assign these numbers again
            self._store.set("spool", self._spool)
            self._store.set("boot", self._boot)
            self._next = max(following, self._store.last_seq() + 1)
            self._count, self._bytes = self._store.size()
            self._unreported = True
            return work()

    def _copy(self, source: Store, target: Store) -> None:
        """Copies everything that can be read from `source`, within the present bounds."""
        at, room = 0, self._bounds()[0]
        with contextlib.suppress(_UnreadableError):
            for key, value in _read(source.texts).items():
                target.set(key, value)
            while room > 0 and (rows := _read(lambda: source.after(at, min(500, room)))):  # noqa: B023 - called at once
                for row in rows:
                    target.add(row)
                at, room = rows[-1].seq, room - len(rows)


class _UnreadableError(Exception):
    """The old store cannot be read further."""


def _number(text: str) -> int:
    """A kept count; 0: it is none."""
    return int(text) if text.isascii() and text.isdecimal() else 0


def _read(work: Callable[[], _T]) -> _T:
    try:
        return work()
    except sqlite3.Error as error:
        raise _UnreadableError from error


def _json(raw: dict[str, Any]) -> bytes:
    """JSON of an event; odd characters and numbers beyond 64 bits become text instead of an error."""
    try:
        return orjson.dumps(raw)
    except TypeError:
        data = {key: str(value) if isinstance(value, int) else value for key, value in raw["data"].items()}
        text = json.dumps(raw | {"data": data}, ensure_ascii=False, default=str)
        return text.encode("utf-8", "replace")


def _nothing() -> None:
    return
