"""What `gpuward top` asks before anything is said to the brain: which word, and then exactly what is said."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import click
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from brain.cli.answers import HoldJson, MeJson, NeedJson, WantedApprovalJson
from brain.cli.operator_commands import Duration
from brain.cli.top.heard import Answered
from brain.cli.top.rows import Entry, RowKind, word
from brain.console.words import Words

Args = dict[str, str | float]
_OPERATORS = ("operator", "approver", "administrator")
_FIELDS = {"why": "why", "for_s": "top-lasts", "scope": "scope"}
_NEEDED = {("hold", "why"), ("hold", "scope")}
_LASTS = "4h"
_JOBS = 8
_AROUND = 7  # lines of a question beside what is said and its fields: frame, title, answer, buttons


@dataclass(frozen=True, slots=True, kw_only=True)
class Sayable:
    """Something that a person may say; the brain judges it again when it is said."""

    verb: str
    args: Mapping[str, str | float]
    # arguments that are asked for
    fields: tuple[str, ...] = ()
    two_persons: bool = False
    # what would be done, where it is an approval
    approval: WantedApprovalJson | None = None
    # which thing it is about, in a line
    about: str = ""


def offers(
    entry: Entry, needs: Mapping[str, NeedJson], me: MeJson | None, holds: Sequence[HoldJson]
) -> list[Sayable]:
    """What may be said about a row, what is most likely meant first: as the brain says of what needs a person or heals; of a
    node, of its holds and of an incident that it does not list as our role says, and the brain judges.
    """
    found: list[Sayable] = []
    need = needs.get(entry.key) or needs.get(entry.incident)
    about = f"{entry.key}: {entry.text}" if entry.text else entry.key
    if need is not None:
        for one in need["verbs"]:
            fields = _fields(one["verb"], one["asks"])
            approval = need["approval"] if one["verb"] == "approve" else None
            found.append(
                Sayable(
                    verb=one["verb"],
                    args=dict(one["args"]),
                    fields=fields,
                    two_persons=one["two_persons"],
                    approval=approval,
                    about=f"{need['id']}: {need['text']}",
                )
            )
    may = me is not None and me["how"] and me["role"] in _OPERATORS
    if may and need is None and entry.incident:
        found += [
            Sayable(verb="ack", args={"id": entry.incident}, about=about),
            Sayable(verb="close", args={"id": entry.incident}, fields=("why",), about=about),
        ]
    if may and entry.kind is RowKind.NODE:
        scope = f"node/{entry.key}"
        found = [one for one in found if one.verb != "hold"]
        found.append(Sayable(verb="hold", args={"scope": scope}, fields=("why", "for_s"), about=scope))
        found += [
            Sayable(
                verb="release", args={"scope": one["id"]}, about=f"{one['scope']}: {one['who']}: {one['why']}"
            )
            for one in holds
            if one["scope"] == scope
        ]
    return found


def _fields(verb: str, asks: Sequence[str]) -> tuple[str, ...]:
    """What the brain wants, and what people tell each other: why, and how long."""
    more = {"hold": ("why", "for_s"), "deny": ("why",), "close": ("why",)}.get(verb, ())
    return tuple(dict.fromkeys((*(one for one in asks if one in _FIELDS), *more)))


def exactly(words: Words, offer: Sayable) -> Text:
    """Exactly what is said, as the console has it: of an approval the step, what it disrupts, which jobs, how long it counts."""
    verb, text = offer.verb, Text()
    wanted = offer.approval
    if wanted is None:
        what = {
            "deny": "deny-what",
            "hold": "hold-what",
            "close": "close-what",
            "return": "return-what",
            "reset": "reset-what",
            "ack": "top-ack-what",
        }.get(verb, "")
        text.append(f"{offer.about}\n", "bold")
        said = " ".join(f"{name}={value}" for name, value in offer.args.items())
        text.append(f"{verb} {said}".rstrip())
        text.append(f"\n\n{words(what)}" if what else "")
    else:
        text.append(f"{words('approve-what')}\n")
        text.append(f"{wanted['what']}\n", "bold")
        never = f" · {words('never-twice')}" if wanted["repeat"] == "never" else ""
        text.append(f"{words('disrupts')}: ")
        text.append(word(words, "disrupts", wanted["disrupts"]), "bold")
        text.append(f"{never}\n{_jobs(words, wanted['jobs'])}\n")
        text.append(f"{wanted['why']}\n{words('approve-ends', span=words.span(wanted['valid_s']))}")
    if offer.two_persons:
        text.append(f"\n{words('top-two')}", "bold")
    return text


def _jobs(words: Words, jobs: Sequence[str] | None) -> str:
    if jobs is None:
        return words("jobs-unknown")
    more = f" +{len(jobs) - _JOBS}" if len(jobs) > _JOBS else ""
    return f"{words('jobs-there')} {', '.join(jobs[:_JOBS])}{more}" if jobs else words("jobs-none")


class Choice(ModalScreen[Sayable | None]):
    """Which of the words that may be said."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", show=False)]

    def __init__(self, words: Words, about: str, offered: Sequence[Sayable]) -> None:
        super().__init__()
        self._words, self._about, self._offered = words, about, offered

    def compose(self) -> ComposeResult:
        """The words, one below the other."""
        with Vertical(classes="box"):
            yield Static(Text(self._words("top-which"), "bold"))
            yield Static(Text(self._about, no_wrap=True, overflow="ellipsis"))
            names = [word(self._words, "verb", one.verb) for one in self._offered]
            yield OptionList(*(Option(Text(name)) for name in names), compact=True)

    def on_mount(self) -> None:
        """The arrows and Enter work at once."""
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """One is chosen."""
        self.dismiss(self._offered[event.option_index])

    def action_leave(self) -> None:
        """None."""
        self.dismiss(None)


class Question(ModalScreen[str]):
    """Shows exactly what will be said, asks for what is missing, and says it; stays with the brain's words where it refuses.
    Ends with what became of it; empty: nothing was said.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("left,right", "other", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("pageup", "scroll(-5)", show=False),
        Binding("pagedown", "scroll(5)", show=False),
    ]

    def __init__(self, words: Words, offer: Sayable, say: Callable[[str, Args], int]) -> None:
        super().__init__()
        self._words, self._offer, self._say = words, offer, say
        self._number = 0
        self._answered = False

    @property
    def offer(self) -> Sayable:
        """What it asks about."""
        return self._offer

    def compose(self) -> ComposeResult:
        """What is said, the fields, and the two buttons: the one that says nothing is the first."""
        words, offer = self._words, self._offer
        if offer.verb == "return":
            title = words("return-title", node=offer.args["node"])
        else:
            title = words.known(f"{offer.verb}-title") or words.known(f"top-{offer.verb}-title")
        with Vertical(classes="box"):
            yield Static(Text(title or word(words, "verb", offer.verb), "bold"))
            with VerticalScroll(can_focus=False, id="exactly"):
                yield Static(exactly(words, offer))
            for name in offer.fields:
                yield Static(Text(words(_FIELDS[name])))
                yield Input(value=_LASTS if name == "for_s" else "", id=f"field-{name}", compact=True)
            yield Static(id="answer")
            with Horizontal():
                yield Button(Text(words("cancel")), id="cancel", compact=True)
                yield Button(Text(word(words, "verb", offer.verb)), id="agree", compact=True)

    def on_mount(self) -> None:
        """Enter alone agrees to nothing: a field, or the way out, has the keys."""
        (self.query(Input).first() if self._offer.fields else self.query_one("#cancel")).focus()

    def on_resize(self) -> None:
        """Whatever the terminal: the fields and the buttons are seen, and what is said can be scrolled."""
        room = self.size.height - _AROUND - 2 * len(self._offer.fields)
        self.query_one("#exactly").styles.max_height = max(2, room)

    def action_scroll(self, lines: int) -> None:
        """More of what is said."""
        self.query_one("#exactly").scroll_relative(y=lines, animate=False)

    def on_input_submitted(self) -> None:
        """Enter leads on to the next field, and to the button."""
        self.focus_next()
        if getattr(self.focused, "id", "") == "cancel":
            self.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Says it, or leaves."""
        if event.button.id == "cancel":
            self.dismiss("")
        elif not self._number:
            self._agree()

    def answered(self, answer: Answered) -> None:
        """What became of it."""
        if answer.number != self._number:
            return
        if answer.refused:
            self._number, self._answered = 0, True
            self._tell(answer.refused, bad=True)
        else:
            self.dismiss(answer.text)

    def outdated(self) -> None:
        """What it asks about is not so any more; the brain would refuse it."""
        if not self._number and not self._answered:
            self._tell(self._words("top-changed"), bad=True)

    def action_leave(self) -> None:
        """Says nothing; what is under way is answered below the list."""
        self.dismiss("")

    def action_other(self) -> None:
        """From one button to the other."""
        if isinstance(self.focused, Button):
            self.query_one("#agree" if self.focused.id == "cancel" else "#cancel").focus()

    def _agree(self) -> None:
        args: Args = dict(self._offer.args)
        for name in self._offer.fields:
            given = self.query_one(f"#field-{name}", Input).value.strip()
            if not given and (self._offer.verb, name) in _NEEDED:
                self._tell(self._words("top-needed", field=self._words(_FIELDS[name])), bad=True)
                return
            if given and name == "for_s":
                try:
                    args[name] = Duration().convert(given, None, None)
                except click.UsageError:
                    self._tell(self._words("top-bad-span"), bad=True)
                    return
            elif given:
                args[name] = given
        self._tell(self._words("top-sending"))
        self._number = self._say(self._offer.verb, args)

    def _tell(self, text: str, *, bad: bool = False) -> None:
        self.query_one("#answer", Static).update(Text(text, "bold reverse" if bad else ""))


class Keys(ModalScreen[None]):
    """What the keys do."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,question_mark", "leave", show=False)]

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """A line for each."""
        words = self._words
        with Vertical(classes="box"):
            yield Static(Text(words("top-help-title"), "bold"))
            for name in ("move", "lists", "read", "act", "more"):
                yield Static(Text(words(f"top-help-{name}")))

    def action_leave(self) -> None:
        """Back."""
        self.dismiss(None)
