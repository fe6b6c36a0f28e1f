"""The message of a page, and its layout as text. Pure.

A page must be enough to decide on in bed: what, where, on what evidence with its figures, why now, since when, what was tried,
what is proposed, and the commands to type. Where a channel has little room, the least needed parts are left out first.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from agent.contract.inert import inert, inert_data
from agent.contract.messages import clip
from brain import sentences
from brain.chat_words import Button
from brain.core import ids
from brain.core.state import AlertFace

Language = Literal["both", "en", "zh"]
LABELS = {
    "open": "",
    "repeat": "STILL OPEN: ",
    "update": "UPDATE: ",
    "ack": "ACKNOWLEDGED: ",
    "resolve": "RESOLVED: ",
}
TAKEN_OVER = "TAKEN OVER: "  # a resolution of what another incident explains
UNTOLD = "CAME AND WENT: "  # a resolution of what nobody was told of
_LABEL_WIDTH = 10  # columns; a Chinese character takes two
_COMMANDS = 0
# Tried in turn when there is little room: (the least needed part that is kept, its lines, characters of a line).
_NARROWER = (
    (7, 6, 300),
    (6, 4, 200),
    (5, 3, 160),
    (5, 2, 100),
    (4, 2, 100),
    (4, 1, 80),
    (3, 1, 80),
    (2, 1, 70),
    (1, 1, 60),
)
_STATUS = {"ack": "acknowledge", "resolve": "resolve"}
_ZH = {
    "why now": "缘由", "where": "位置", "since": "开始时间", "because": "判断依据", "incidents": "故障", "evidence": "证据",
    "tried": "已尝试", "proposed": "建议", "cause": "原因", "what to do": "处理办法", "see": "参考", "type": "命令",
    "trace": "追踪", "stopped": "暂停", "hit": "受影响", "ticket": "工单",
    "old ticket": "原工单",
}  # fmt: skip


# Behind a letter or a digit an address may go on; but some services look for these within a word, too
_MENTION = re.compile(
    r"(?<![A-Za-z0-9])@(?=[\w*])|@(?=[*_]|\d{15}|everyone|here|channel|all\b|room\b|\u6240\u6709\u4eba)",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(?=[!@#/\uff20]|https?:|mailto:|[^>|\s]+\||(?:a|at|users)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """A command to type, and what it does."""

    line: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of a page. `needed`: 0 is never left out; of the others the highest number is left out first."""

    label: str
    lines: tuple[str, ...]
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMessage:
    """One page. `dedup_key` is the same for all pages of one alert, so that a receiver shows one."""

    id: str
    dedup_key: str
    # id of the incident, alert group or problem that it is about now
    about: str
    # open | repeat | update | ack | resolve
    what: str
    # the channel group it is sent to
    group: str
    title: str
    # the title without the kind of page: the same for all pages of an alert, until another incident explains its own
    subject: str
    # P0 .. P3
    severity: str
    cause: str
    scope: str
    # empty for a scope wider than a node
    node: str
    # how many nodes show it
    nodes: int
    state: str
    why_now: str
    because: str
    # when the oldest fact occurred, by the log's clock; ISO 8601 UTC
    since: str
    evidence: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    tried: tuple[str, ...]
    proposed: tuple[str, ...]
    commands: tuple[ShellCommand, ...]
    # cause, todo -> en, zh; empty when the rule is unknown
    knowledge: dict[str, dict[str, str]]
    links: tuple[str, ...]
    # `because` in Chinese; empty: there is only the English
    because_zh: str = ""
    # who acknowledged it; empty: nobody
    acked_by: str = ""
    # those of earlier pages, before it was raised
    severities: tuple[str, ...] = ()
    # what the alert was before it passed to the incident that it is about now
    before: tuple[AlertFace, ...] = ()
    # of an alert group: one line for each incident
    incidents: tuple[str, ...] = field(default=())
    # it is over, and this is the first that anybody hears of it: the page says all of it
    untold: bool = False
    # places narrower than `scope` in which all nodes stand that show it
    common: tuple[str, ...] = ()
    # holds and maintenance windows that keep gpuward from acting on it, as sentences
    stops: tuple[str, ...] = ()
    # whose jobs ran on its nodes, in a line; empty: that is not known
    hit: str = ""
    # of the OpenTelemetry trace; empty: none is told
    trace_id: str = ""
    # channel -> by what its receiver knows the alert, such as the key of a ticket
    tickets: Mapping[str, str] = field(default_factory=dict)
    # the same of the times that it was open before
    tickets_before: Mapping[str, str] = field(default_factory=dict)
    # which time that it is open, counted by those whose tickets are told apart
    time: int = 1
    # it was sent before, and may have been delivered although nobody said so
    again: bool = False
    # what may be answered by a button, where the channel has them
    buttons: tuple[Button, ...] = ()

    def in_console(self, url: str) -> str:
        """Where the console at `url` shows what it is about: an incident's page, or, for a group of them, the first page."""
        shown = url.rstrip("/")
        return f"{shown}/incidents/{self.about}" if self.about.startswith(f"{ids.INCIDENT}-") else shown

    def inert(self) -> "PageMessage":
        """The same page, in which no text acts on what shows it or begins a line of its own."""
        parts = {one.name: getattr(self, one.name) for one in fields(self)}
        commands = tuple(ShellCommand(line=inert(one.line), does=inert(one.does)) for one in self.commands)
        before = tuple(
            replace(one, cause=inert(one.cause), scope=inert(one.scope), node=inert(one.node))
            for one in self.before
        )
        return PageMessage(
            **inert_data(parts | {"commands": (), "buttons": (), "before": ()})
            | {"commands": commands, "buttons": self.buttons, "before": before}
        )

    @property
    def ticket_key(self) -> str:
        """By which its ticket is found again: each time that the incident is open may have one of its own."""
        return self.dedup_key if self.time < 2 else f"{self.dedup_key}.{self.time}"

    @property
    def status(self) -> str:
        """In the terms of alert receivers: trigger, acknowledge or resolve."""
        return _STATUS.get(self.what, "trigger")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        return {"status": self.status} | asdict(self)

    def to_json(self) -> bytes:
        """The body that a webhook gets: UTF-8, keys in a fixed order."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":")).encode()

    def known(self, key: str, language: Language = "both") -> tuple[str, ...]:
        """Returns the rule's knowledge (`cause` or `todo`) in a language, or in the one that exists."""
        texts = {tag: text for tag, text in self.knowledge.get(key, {}).items() if text}
        wanted = [texts[language]] if language in texts else list(texts.values())
        return tuple(wanted)

    def _why(self, language: Language) -> tuple[str, ...]:
        """`because` in a language, or in the one that exists."""
        texts = {"en": self.because, "zh": self.because_zh or self.because}
        return (texts[language],) if language != "both" else tuple(dict.fromkeys(texts.values()))

    def sections(self, language: Language = "both") -> tuple[Section, ...]:
        """Returns the parts below the title that are not empty, in reading order."""
        among = f", all of them of {' and '.join(self.common)}" if self.common else ""
        where = self.scope + (f" ({self.nodes} nodes{among})" if self.nodes > 1 else "")
        quiet = self.status != "trigger"
        tongue = "zh" if language == "zh" else "en"

        def told(*lines: str) -> tuple[str, ...]:
            """What gpuward and the nodes have said, in the reader's language."""
            return tuple(sentences.told(line, tongue) for line in lines)

        brief = quiet and not self.untold
        parts = [
            ("where", (where,), 3),
            ("hit", told(self.hit) if self.hit and not brief else (), 3),
            ("evidence", () if brief else self.evidence, 4),
            ("why now", told(self.why_now), 1),
            ("stopped", () if quiet else told(*self.stops), 2),
            ("since", (self.since,), 2),
            ("because", () if brief or self.incidents else self._why(language), 6),
            ("incidents", told(*self.incidents), 3),
            ("tried", told(*self.tried), 5),
            ("proposed", () if quiet else told(*self.proposed), 4),
            ("cause", () if brief else self.known("cause", language), 7),
            ("what to do", () if quiet else self.known("todo", language), 5),
            ("see", () if quiet else self.links, 8),
            ("trace", (self.trace_id,) if self.trace_id else (), 8),
            ("ticket", _keys(self.tickets.items()), 3),
            ("old ticket", _keys(self.tickets_before.items() - self.tickets.items()), 3),
            ("type", tuple(f"{one.line}    # {told(one.does)[0]}" for one in self.commands), _COMMANDS),
        ]
        return tuple(
            Section(label=_label(name, language), lines=lines, needed=n) for name, lines, n in parts if lines
        )

    def to_text(self, language: Language = "both", limit: int = 0) -> str:
        """Returns plain text that ends with a line break, of at most `limit` characters; 0: no limit."""
        text = "\n".join([self.title, *_blocks(self.sections(language))]) + "\n"
        return (
            text if not limit or len(text) <= limit else f"{self.title}\n{self.body(language, limit)}"[:limit]
        )

    def body(self, language: Language = "both", limit: int = 0) -> str:
        """The same without the title. A text longer than `limit` loses long lines and the least needed parts."""
        sections = self.sections(language)
        text = "\n".join(_blocks(sections)) + "\n"
        if not limit or len(text) <= limit:
            return text
        for needed, lines, width in _NARROWER:
            text = "\n".join(
                _blocks([_narrow(one, lines, width) for one in sections if one.needed <= needed])
            )
            if len(text) <= limit:
                return text
        # Hardly any room (a text message): the reason and the most important command.
        first = self.commands[0].line
        return f"{clip(self.why_now, max(0, limit - len(first) - 1))}\n{first}"[:limit]


def unaddressed(text: str) -> str:
    """`text` in which no chat sees a mention, a link with another text, or markup of its own.

    For services whose rules we do not know one by one: `@here`, `@**all**`, `<!channel>`, `<@U1>`, `<at id=all>`,
    `<a href=...>`, `<users/all>`, `<address|text>`, `[text](address)`, code fences. The letters stay, in a form that no parser
    takes; addresses of mail, `root@n1` and plain links stay as they are.
    """
    text = _MENTION.sub("\uff20", text)
    text = text.replace("](", "] (").replace("```", "'''")
    return _TAG.sub("\u2039", text)


def _keys(tickets: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Channels and the tickets that they keep, for people."""
    return tuple(f"{key} ({channel})" for channel, key in sorted(tickets))


def _narrow(section: Section, most: int, width: int) -> Section:
    """Keeps fewer and shorter lines; commands without their explanation."""
    if section.needed == _COMMANDS:
        count = 3 if most > 2 else 2 if width > 60 else 1
        lines = tuple(line.partition("    # ")[0] for line in section.lines[:count])
    else:
        lines = tuple(clip(line, width) for line in section.lines[:most])
    return Section(label=section.label, lines=lines, needed=section.needed)


def _blocks(sections: Sequence[Section]) -> Iterable[str]:
    for section in sections:
        label = section.label + " " * (_LABEL_WIDTH - sum(1 + (ord(char) > 0x2E80) for char in section.label))
        for index, line in enumerate(section.lines):
            yield f"  {label if index == 0 else ' ' * _LABEL_WIDTH} {line}"


def _label(name: str, language: Language) -> str:
    return _ZH[name] if language == "zh" else name
