"""The way to the brain of `gpuward top`: threads that ask and listen, so that the terminal never waits for the network.

What they hear goes into a queue that the terminal empties. The notes are followed as `gpuward watch` follows them: over a lost
connection from where they were. A list is read again when notes say that it has changed, and the slower it comes the more rarely.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from brain.cli.answers import (
    FleetJson,
    IncidentListJson,
    MeJson,
    NeedsJson,
    NodeListJson,
    RunListJson,
    SaidJson,
    StatusJson,
)
from brain.cli.client import Client, NotLetIn
from brain.cli.top import proof, rows
from brain.cli.top.heard import (
    Alive,
    Answered,
    BrainState,
    Cut,
    Heard,
    ListRead,
    Noted,
    NotesLost,
    RowKnown,
    Unread,
)
from brain.cli.top.rows import Entry, RowKind, Tab
from brain.console.words import Words

T = TypeVar("T")
FIRST_NOTES = 100
AGAIN_S = 1.0  # between two tries to come again
NOT_LET_IN_AGAIN_S = 5.0  # the same where the brain refuses: its answer is to be read
LOOK_S = 2.0  # the brain's own state: a broker that is lost writes no note
LISTS_S = 30.0  # a list that no note has touched: spans end, holds end
BEATS_S = 10.0  # nodes, while they are shown
SHARE = 5  # after a list that took one second none is read for five: the brain gives each person a fifth of its reads
AT_FIRST_S = 1.0  # of reads without such a rest, when a connection is new
LEAST_S = 0.2  # between two reads of the same list
REFUSED_S = 5.0  # until the next try where the brain says that we ask too much
MOST_NEEDS = 1000
QUIET_KINDS = ("access.", "page.waits", "step.progress")  # they change no list, or only what a run is doing
STATUS = "status"
_BROKEN = (*proof.BROKEN, OSError)


class Wire:
    """One brain's threads; they end with the process, or with `close`."""

    def __init__(self, client: Client, words: Words, status: StatusJson) -> None:
        self.heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._client, self._words, self._status = client, words, status
        self._me: MeJson | None = None
        self._ended = threading.Event()
        self._change = threading.Condition()
        self._wanted: set[str] = set()
        self._due: dict[str, float] = {}
        self._rest_until = 0.0
        self._at_first_s = AT_FIRST_S
        self._connected = False
        self._shown = Tab.NOW
        self._subject: Entry | None = None
        self._subject_wanted = False
        self._commands = 0

    def start(self) -> None:
        """Begins."""
        for work in (self._listen, self._read, self._explain):
            threading.Thread(target=work, name=f"top{work.__name__}", daemon=True).start()

    def close(self) -> None:
        """Ends the threads; those that wait for the network end with the process."""
        self._ended.set()
        with self._change:
            self._change.notify_all()

    def show(self, tab: Tab) -> None:
        """Says which list is looked at: it is read first, and the nodes' beats are read for it."""
        with self._change:
            self._shown = tab
            if tab is Tab.NODES:
                self._wanted.add(tab)
            self._change.notify_all()

    def want(self, what: Iterable[str]) -> None:
        """Reads lists anew, as soon as it is their time."""
        with self._change:
            self._wanted.update(what)
            self._change.notify_all()

    def explain(self, subject: Entry | None) -> None:
        """Asks for what is known of a row; an earlier question that is not answered yet is forgotten."""
        with self._change:
            self._subject, self._subject_wanted = subject, subject is not None
            self._change.notify_all()

    def say(self, verb: str, args: dict[str, str | float]) -> int:
        """Gives a command, in a thread of its own; returns the number under which it is answered."""
        self._commands += 1
        threading.Thread(target=self._say, args=(self._commands, verb, args), daemon=True).start()
        return self._commands

    def _say(self, number: int, verb: str, args: dict[str, str | float]) -> None:
        try:
            said: SaidJson = self._client.submit(verb, **args)
            text = said["waiting"] or "; ".join(one["text"] for one in said["notes"])
            if not text:
                text = self._words(
                    "said-done" if said["handled"] else "top-on-the-log", verb=self._verb(verb)
                )
            self.heard.put(Answered(number=number, text=text))
        except click.ClickException as error:
            self.heard.put(Answered(number=number, refused=error.message))
        except _BROKEN as error:
            self.heard.put(Answered(number=number, refused=self._words("top-odd-answer", why=repr(error))))
        self.want((STATUS, Tab.NOW, Tab.INCIDENTS, Tab.RUNS))

    def _verb(self, verb: str) -> str:
        return self._words.known(f"verb-{verb}") or verb

    def _listen(self) -> None:
        """Follows the notes, over every loss of the connection."""
        at, first = "", FIRST_NOTES
        while not self._ended.is_set():
            begun, why, wait_s = False, self._words("top-ended"), AGAIN_S
            try:
                for event in self._client.follow(first, at):
                    if self._ended.is_set():
                        return
                    at, first = event.where or at, 0 if event.where else first
                    self.heard.put(Alive(at=time.monotonic(), again=not begun))
                    if not begun:
                        begun = True
                        self._on_connection(connected=True)
                    if event.lost:
                        self.heard.put(NotesLost())
                    if event.note is not None:
                        self.heard.put(Noted(note=event.note, entry=rows.note(event.note)))
                        self._concerns(event.note["kind"])
            except NotLetIn as error:
                why, wait_s = error.message, NOT_LET_IN_AGAIN_S
            except click.ClickException as error:
                why = error.message
            except _BROKEN as error:
                why = self._words("top-odd-answer", why=repr(error))
            self._on_connection(connected=False)
            self.heard.put(Cut(why=why))
            self._ended.wait(wait_s)

    def _on_connection(self, *, connected: bool) -> None:
        """What changed while nobody listened is read anew, and at once."""
        with self._change:
            self._connected = connected
            if connected:
                self._due.clear()
                self._rest_until, self._at_first_s = 0.0, AT_FIRST_S
                self._wanted.update((STATUS, *(tab for tab in Tab if tab is not Tab.NOTES)))
                self._subject_wanted = self._subject is not None
            self._change.notify_all()

    def _concerns(self, kind: str) -> None:
        """Reads what a note may have changed."""
        if kind.startswith(QUIET_KINDS):
            return
        wanted: list[str] = [Tab.NOW, Tab.INCIDENTS, Tab.RUNS]
        if kind.startswith(("node.", "incident.", "run.", "operator.", "hold.", "mode.", "topology.")):
            wanted.append(Tab.NODES)
        if kind.startswith(("operator.", "hold.", "mode.", "brain.")):
            wanted.append(STATUS)
        self.want(wanted)

    def _read(self) -> None:
        """Reads the lists, one after the other."""
        while (what := self._next()) is not None:
            began = time.monotonic()
            try:
                heard = self._answer(what)
            except click.ClickException as error:
                heard = Unread(what=what, why=error.message, refused=isinstance(error, NotLetIn))
            except _BROKEN as error:
                heard = Unread(what=what, why=self._words("top-odd-answer", why=repr(error)))
            self.heard.put(heard)
            self._rest(what, time.monotonic() - began, heard)

    def _rest(self, what: str, took_s: float, heard: Heard) -> None:
        """The slower the brain answers the more rarely it is asked."""
        with self._change:
            now = time.monotonic()
            self._due[what] = now + LEAST_S
            if isinstance(heard, Unread):
                self._wanted.add(what)
                self._due[what] = now + (REFUSED_S if heard.refused else AGAIN_S)
            if what == STATUS:
                return
            if self._at_first_s > 0:
                self._at_first_s -= took_s
            else:
                self._rest_until = now + SHARE * took_s

    def _next(self) -> str | None:
        """What is to be read now; None: nothing more, ever."""
        with self._change:
            while not self._ended.is_set():
                now = time.monotonic()
                self._want_by_time(now)
                ready = [
                    one
                    for one in self._order()
                    if one in self._wanted
                    and self._due.get(one, 0.0) <= now
                    and (one == STATUS or self._rest_until <= now)
                ]
                if ready and self._connected:
                    self._wanted.discard(ready[0])
                    return ready[0]
                self._change.wait(LEAST_S)
        return None

    def _order(self) -> list[str]:
        lists = [tab for tab in Tab if tab is not Tab.NOTES]
        return [STATUS, *sorted(lists, key=lambda tab: tab is not self._shown)]

    def _want_by_time(self, now: float) -> None:
        for what in self._order():
            beats = what == Tab.NODES and self._shown is Tab.NODES
            patience_s = LOOK_S if what == STATUS else BEATS_S if beats else LISTS_S
            if now >= self._due.get(what, 0.0) + patience_s:
                self._wanted.add(what)

    def _answer(self, what: str) -> Heard:
        client, words = self._client, self._words
        if what == STATUS:
            state = BrainState(status=client.get("status"), me=client.get("me"))
            proof.state(words, state.status, state.me)
            self._status, self._me = state.status, state.me
            return state
        tab, needs = Tab(what), None
        match tab:
            case Tab.NOW:
                found: NeedsJson = client.get("needs", query=f"hours=1&limit={MOST_NEEDS}")
                made, needs = rows.now(words, found, self._status), dict(rows.needs_by_id(found))
                proof.needs(words, needs, self._me)
            case Tab.INCIDENTS:
                open_: IncidentListJson = client.get("incidents")
                made = rows.incidents(words, open_["incidents"], more=open_["more"])
            case Tab.RUNS:
                under_way: RunListJson = client.get("runs", query="under_way=1&limit=1000")
                made = rows.runs(words, under_way["runs"])
            case _:
                fleet: FleetJson = client.get("fleet")
                known: NodeListJson = client.get("nodes")
                made = rows.nodes(words, known["nodes"], fleet, self._status, time.time())
        return ListRead(tab=tab, sheet=made, at=time.monotonic(), needs=needs)

    def _explain(self) -> None:
        """Asks for what is known of the row that is looked at."""
        while (subject := self._next_subject()) is not None:
            try:
                self.heard.put(self._known(subject))
            except click.ClickException as error:
                self.heard.put(RowKnown(key=subject.key, why=error.message))
            except _BROKEN as error:
                why = self._words("top-odd-answer", why=repr(error))
                self.heard.put(RowKnown(key=subject.key, why=why))
            self._ended.wait(LEAST_S)  # whoever holds an arrow key down asks no hundred questions

    def _next_subject(self) -> Entry | None:
        with self._change:
            self._change.wait_for(
                lambda: self._ended.is_set() or (self._subject_wanted and self._subject is not None)
            )
            self._subject_wanted = False
            return None if self._ended.is_set() else self._subject

    def _known(self, subject: Entry) -> Heard:
        client = self._client
        if subject.kind is RowKind.NODE:
            known = RowKnown(key=subject.key, node=client.get("nodes", subject.key))
        else:
            named = subject.incident if subject.kind is RowKind.NOTE else subject.key
            known = RowKnown(key=subject.key, chain=client.get("explain", named))
        proof.known(self._words, subject, known, self._status)
        return known


def drained(heard: "queue.SimpleQueue[T]", most: int, handle: Callable[[T], None]) -> int:
    """Handles at most so many of what was heard; returns how many."""
    for many in range(most):
        try:
            handle(heard.get_nowait())
        except queue.Empty:
            return many
    return most
