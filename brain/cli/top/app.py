"""The terminal of `gpuward top`: five lists, what is known of the selected row, and the questions before something is said.

It draws what `wire` hears, ten times a second at most; it never waits for the brain.
"""

import time
from collections import deque
from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.events import Resize
from textual.widgets import ContentSwitcher, Input, Static

from brain.cli.answers import MeJson, NeedJson, StatusJson
from brain.cli.client import Client
from brain.cli.terminal import WIDTH
from brain.cli.top import details, ends, frame, keys, rows
from brain.cli.top.ground import Ground, readable
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
from brain.cli.top.listing import RowView
from brain.cli.top.questions import Choice, Keys, Question, Sayable, offers
from brain.cli.top.rows import Entry, Tab
from brain.cli.top.wire import Wire, drained
from brain.console.words import Words

DRAW_S = 0.1
TICK_S = 1.0
AGES = 5  # after so many seconds the ages in the list are drawn anew; over a slow line each costs bytes
MOST_AT_ONCE = 2000  # heard things that one drawing handles
KEPT_NOTES = 1000
# Columns from which the details stand beside the list, lines below which they are left out.
WIDE, LOW = 140, 16


class Top(App[None]):
    """`gpuward top`."""

    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    # With priority: each is done before the next key is read, so that what is typed ahead goes where it is meant to.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        *(Binding(key, action, show=False, priority=True) for key, action in keys.KEYS.items()),
    ]

    def __init__(
        self, client: Client, words: Words, status: StatusJson, ground: Ground = Ground.DARK
    ) -> None:
        super().__init__(ansi_color=True)
        self.theme, self.title = "ansi-dark", "gpuward top"  # the terminal's own text and background
        self.words, self.ground = words, ground
        self.wire = Wire(client, words, status)
        self._status = status
        self._me: MeJson | None = None
        self._needs: Mapping[str, NeedJson] = {}
        self._counts: dict[Tab, int] = {}
        self._read_at: dict[str, float] = {}
        self._late: dict[str, str] = {}
        self._notes, self._fresh_notes = deque[Entry](maxlen=KEPT_NOTES), False
        self._cut: tuple[float, str] | None = None
        self._alive_at = time.monotonic()
        self._explained: dict[str, RowKnown] = {}
        self._said, self._said_at = "", 0.0

    def compose(self) -> ComposeResult:
        """From above: who and how many, what is wrong, the lists, the details, the filter, the keys."""
        yield Static(id="head")
        yield Static(id="banner")
        yield Static(id="tabs")
        with Container(id="body"):
            with ContentSwitcher(id="lists", initial=Tab.NOW.value):
                for tab in Tab:
                    yield RowView(self.words, self.ground, id=tab.value, newest=tab is Tab.NOTES)
            with VerticalScroll(id="details"):
                yield Static(id="text")
        yield Input(id="find", compact=True)
        yield Static(id="hint")

    def on_mount(self) -> None:
        """Begins to listen."""
        self.screen_stack[0].set_focus(self.view)
        self.wire.start()
        ends.by_signals(lambda status: self.exit(return_code=status))
        self.set_interval(DRAW_S, self._draw)
        self.set_interval(TICK_S, self._tick)
        self._show_head()
        self._show_hint()

    def on_unmount(self) -> None:
        """Listens no more."""
        self.wire.close()

    @property
    def tab(self) -> Tab:
        """The list that is shown."""
        return Tab(self._lists.current or Tab.NOW)

    @property
    def view(self) -> RowView:
        """Its rows."""
        return self._view(self.tab)

    @property
    def _lists(self) -> ContentSwitcher:
        return self.screen_stack[0].query_one("#lists", ContentSwitcher)

    def _view(self, tab: Tab) -> RowView:
        return self.screen_stack[0].query_one(f"#{tab.value}", RowView)

    def _static(self, name: str) -> Static:
        return self.screen_stack[0].query_one(f"#{name}", Static)

    @property
    def _body(self) -> Container:
        return self.screen_stack[0].query_one("#body", Container)

    @property
    def _box(self) -> VerticalScroll:
        return self.screen_stack[0].query_one("#details", VerticalScroll)

    @property
    def reading(self) -> bool:
        """Do the details have the whole screen?"""
        return self._body.has_class("reading")

    def _draw(self) -> None:
        """Takes what was heard."""
        if not self._drawn or not drained(self.wire.heard, MOST_AT_ONCE, self._take):
            return
        if self._fresh_notes:
            self._view(Tab.NOTES).show(rows.notes(self.words, self._notes))
        self._fresh_notes = False
        self._show_head()
        self._show_banner()

    def _take(self, heard: Heard) -> None:
        match heard:
            case Alive():
                self._alive_at, self._cut = heard.at, None
                if heard.again:
                    self._late.clear()
            case Cut():
                self._cut = (self._cut[0] if self._cut else time.monotonic(), heard.why)
            case NotesLost():
                self._notes.appendleft(rows.gap(self.words, len(self._notes)))
                self._fresh_notes = True
            case Noted():
                self._notes.appendleft(heard.entry)
                self._fresh_notes = True
                one = self.view.selected
                if one is not None and one.incident and heard.note["incident"] == one.incident:
                    self.wire.explain(one)
            case BrainState():
                self._status, self._me = heard.status, heard.me
                self._came("status")
            case ListRead():
                self._counts[heard.tab] = heard.sheet.count
                if heard.needs is not None:
                    self._needs = heard.needs
                    self._look_at_question()
                self._came(heard.tab)
                self._view(heard.tab).show(heard.sheet)
            case Unread():
                self._late[heard.what] = heard.why
            case RowKnown():
                self._explained = {heard.key: heard}
                self._show_details(keep=True)
            case Answered():
                self._on_answer(heard)

    def _came(self, what: str) -> None:
        self._read_at[what] = time.time()
        self._late.pop(what, None)

    def _on_answer(self, answer: Answered) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, Question):
                screen.answered(answer)
                return
        self._tell(answer.refused or answer.text)

    def _look_at_question(self) -> None:
        """Is what a question asks about still so?"""
        for screen in self.screen_stack:
            if isinstance(screen, Question) and screen.offer.approval is not None:
                need = self._needs.get(str(screen.offer.args["id"]))
                if need is None or need["approval"] != screen.offer.approval:
                    screen.outdated()

    @property
    def _drawn(self) -> bool:
        """Is there still something to draw on? At the end of the program there is not."""
        return bool(self.screen_stack and self.screen_stack[0].query("#head"))

    def _tick(self) -> None:
        if not self._drawn:
            return
        if int(time.monotonic()) % AGES == 0:
            self.view.refresh()
        if self._said and time.monotonic() > self._said_at + 10:
            self._said = ""
            self._show_hint()
        if self._cut or self._late or time.monotonic() - self._alive_at > frame.SILENT_S:
            self._show_banner()

    def _show_head(self) -> None:
        words = self.words
        head = frame.head(words, self._status, self._me, self._counts.get(Tab.NOW, 0))
        self._static("head").update(Text(head, "bold", no_wrap=True, overflow="ellipsis"))
        view, found = self.view, ""
        if view.filter:
            shown = words("top-found", n=len(view.shown), all=view.sheet.count)
            found = f"/{view.filter} ({shown})"
        self._static("tabs").update(frame.tabs(words, self.tab, self._counts, found))

    def _show_banner(self) -> None:
        now = time.monotonic()
        lines = frame.wrong(
            self.words,
            self._status,
            cut=(now - self._cut[0], self._cut[1]) if self._cut else None,
            silent_s=now - self._alive_at,
            late=next(iter(self._late.values()), ""),
            when=self._as_of(self.tab),
        )
        banner = self._static("banner").set_class(bool(lines), "seen")
        banner.update(Text("\n".join(lines)))

    def _as_of(self, tab: Tab) -> str:
        at = self._read_at.get(tab if tab is not Tab.NOTES else "status")
        return time.strftime("%H:%M:%SZ", time.gmtime(at)) if at else "-"

    def _show_hint(self) -> None:
        hint = self._static("hint")
        finding = self._find.has_class("seen")
        name = "top-keys-find" if finding else "top-keys-read" if self.reading else "top-keys"
        hint.update(Text(self._said, "bold") if self._said else Text(self.words(name)))

    def _tell(self, text: str | None) -> None:
        """Says something in place of the keys, for a while."""
        if text:
            self._said, self._said_at = text, time.monotonic()
            self._show_hint()

    def _show_details(self, *, keep: bool = False) -> None:
        """`keep`: the same row, so it stays scrolled where it was."""
        if not self._drawn:
            return
        one, box = self.view.selected, self._box
        if not keep:
            box.scroll_home(animate=False)
        if one is None:
            self._static("text").update(Text())
            return
        wide = min(WIDTH, max(20, box.scrollable_content_region.width or self.size.width))
        found = self._explained.get(one.key)
        shown = details.text(self.words, one, found, self._status["modes"], wide)
        self._static("text").update(readable(self.ground, Text.from_ansi(shown)))

    @property
    def _find(self) -> Input:
        return self.screen_stack[0].query_one("#find", Input)

    def on_row_view_moved(self, event: RowView.Moved) -> None:
        """Another row is selected: what is known of it is asked for."""
        if self._drawn and event.view is self.view:
            self._ask()

    def _ask(self) -> None:
        one = self.view.selected
        self.wire.explain(one if one is not None and details.asked_for(one) else None)
        self._show_details(keep=one is not None and one.key in self._explained)

    def on_resize(self, event: Resize) -> None:
        """Wide terminals have the details beside the list; low ones have them on Enter."""
        if self._drawn:
            self._body.set_class(event.size.width >= WIDE, "wide")
            self._body.set_class(event.size.height < LOW, "low")
            self.call_after_refresh(self._show_details, keep=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A question has the keys to itself, and whoever types a filter types letters."""
        allowed = keys.allowed(
            action, asked=len(self.screen_stack) > 1, typing=isinstance(self.focused, Input)
        )
        return super().check_action(action, parameters) if allowed is None else allowed

    def action_end(self) -> None:
        """Ends the program."""
        self.exit()

    def action_tab(self, step: int) -> None:
        """To the next list."""
        every = list(Tab)
        self.action_open(every[(every.index(self.tab) + step) % len(every)])

    def action_open(self, tab: str) -> None:
        """To a list."""
        self._lists.current = Tab(tab).value
        self._find.value = self.view.filter
        self._leave_find()
        self.wire.show(self.tab)
        self._show_head()
        self._show_banner()
        self._ask()

    def action_read(self) -> None:
        """The details have the whole screen."""
        if self.reading:
            self.action_leave()
        elif self.view.selected is not None:
            self._body.add_class("reading")
            self.screen_stack[0].set_focus(self._box)
            self._show_hint()
            self.call_after_refresh(self._show_details)

    def action_leave(self) -> None:
        """To the list; there: all of its rows."""
        if self.reading:
            self._body.remove_class("reading")
            self.screen_stack[0].set_focus(self.view)
            self._show_hint()
            self.call_after_refresh(self._show_details)
        else:
            self._find.value = ""
            self.view.find("")
            self._leave_find()

    def action_beside(self, step: int) -> None:
        """To the row beside, also while its details are read."""
        self.view.action_move(step)

    def action_find(self) -> None:
        """Begins to filter."""
        if not self.reading:
            self._find.add_class("seen")
            self.screen.set_focus(self._find)  # at once: what is typed ahead belongs to it
            self._show_hint()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters while somebody types."""
        if self._drawn and event.input is self._find:
            self.view.find(event.value)
            self._show_head()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keeps the filter."""
        if self._drawn and event.input is self._find:
            self._leave_find()

    def _leave_find(self) -> None:
        self._find.remove_class("seen")
        if not self.reading:
            self.screen_stack[0].set_focus(self.view)
        self._show_head()
        self._show_hint()

    def action_anew(self) -> None:
        """Reads everything anew."""
        self.wire.want(("status", *(tab for tab in Tab if tab is not Tab.NOTES)))

    def action_keys(self) -> None:
        """Shows the keys."""
        self.push_screen(Keys(self.words))

    def action_act(self) -> None:
        """Asks what is to be said about the selected row."""
        one, words, me = self.view.selected, self.words, self._me
        if one is None:
            return
        offered = offers(one, self._needs, me, self._status["holds"])
        if not offered:
            if me is None or not me["how"]:
                self._tell(words("top-log-in"))
            elif me["role"] == "viewer":
                self._tell(words("top-may-nothing", role=words("role-viewer")))
            else:
                self._tell(words("top-nothing-to-say"))
            return

        def chosen(offer: Sayable | None) -> None:
            if offer is not None:
                self.push_screen(Question(words, offer, self.wire.say), self._tell)

        self.push_screen(Choice(words, f"{one.key}: {one.text}", offered), chosen)
