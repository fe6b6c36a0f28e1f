"""What people are told of an incident, and how it reads. Pure.

A page must be enough to decide in bed: what, where, since when, on what evidence, what was tried, what is
proposed, and the commands to type. Where a channel has little room, what is least needed then goes first.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from agent.contract.messages import clip

Language = Literal["both", "en", "zh"]
LABELS = {
    "open": "",
    "repeat": "STILL OPEN: ",
    "update": "UPDATE: ",
    "ack": "ACKNOWLEDGED: ",
    "resolve": "RESOLVED: ",
}
_STATUS = {"ack": "acknowledge", "resolve": "resolve"}
_ZH = {
    "why now": "缘由", "where": "位置", "since": "开始时间", "because": "判断依据", "incidents": "事件", "evidence": "证据",
    "tried": "已尝试", "proposed": "建议", "cause": "原因", "what to do": "处理办法", "see": "参考", "type": "命令",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to type, and what it does."""

    line: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of a page. `needed`: 0 is never left out; of the others the highest goes first."""

    label: str
    lines: tuple[str, ...]
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMessage:
    """One page. `dedup_key` is the same for all pages of one incident, so that a receiver shows one alert."""

    id: str
    dedup_key: str
    what: str  # open | repeat | update | ack | resolve
    group: str  # channel group that it is for
    title: str
    subject: str  # the title without what is new: the same for all pages of an alert
    severity: str  # P0 .. P3
    cause: str
    scope: str
    node: str  # empty for a scope wider than a node
    nodes: int  # how many show it
    state: str
    why_now: str
    because: str
    since: str  # when the fact came about, by the log's clock; ISO 8601 UTC
    evidence: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    tried: tuple[str, ...]
    proposed: tuple[str, ...]
    commands: tuple[Command, ...]
    knowledge: dict[str, dict[str, str]]  # cause, todo -> en, zh; empty when the rule is not known
    links: tuple[str, ...]
    acked_by: str = ""  # who looks at it; empty: nobody
    severities: tuple[str, ...] = ()  # those that it was told with before
    incidents: tuple[str, ...] = field(default=())  # a bundle's page: a line for each that it tells

    @property
    def status(self) -> str:
        """What alert receivers want: trigger, acknowledge or resolve."""
        return _STATUS.get(self.what, "trigger")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        return {"status": self.status} | asdict(self)

    def to_json(self) -> bytes:
        """The body that a webhook gets: UTF-8, keys in a fixed order."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":")).encode()

    def known(self, key: str, language: Language = "both") -> tuple[str, ...]:
        """The rule's knowledge (`cause` or `todo`) in a language, else in the one that there is."""
        texts = {tag: text for tag, text in self.knowledge.get(key, {}).items() if text}
        wanted = [texts[language]] if language in texts else list(texts.values())
        return tuple(wanted)

    def sections(self, language: Language = "both") -> tuple[Section, ...]:
        """The parts below the title that are not empty, in the order in which they are read."""
        where = self.scope + (f" ({self.nodes} nodes)" if self.nodes > 1 else "")
        quiet = self.status != "trigger"
        parts = [
            ("why now", (self.why_now,), 1),
            ("where", (where,), 2),
            ("since", (self.since,), 2),
            ("because", () if quiet or self.incidents else (self.because,), 6),
            ("incidents", self.incidents, 3),
            ("evidence", () if quiet else self.evidence, 4),
            ("tried", self.tried, 5),
            ("proposed", () if quiet else self.proposed, 4),
            ("cause", () if quiet else self.known("cause", language), 7),
            ("what to do", () if quiet else self.known("todo", language), 5),
            ("see", () if quiet else self.links, 8),
            ("type", tuple(f"{command.line}    # {command.does}" for command in self.commands), 3),
        ]
        return tuple(
            Section(label=_label(name, language), lines=lines, needed=n) for name, lines, n in parts if lines
        )

    def to_text(self, language: Language = "both", limit: int = 0) -> str:
        """For people, without markup; ends with a line break. `limit`: at most so many characters; 0: all."""
        text = "\n".join([self.title, *_blocks(self.sections(language))]) + "\n"
        return (
            text if not limit or len(text) <= limit else f"{self.title}\n{self.body(language, limit)}"[:limit]
        )

    def body(self, language: Language = "both", limit: int = 0) -> str:
        """The same without its title. Longer than `limit`: the least needed parts go, then the longest lines."""
        sections = list(self.sections(language))
        text = "\n".join(_blocks(sections)) + "\n"
        if not limit or len(text) <= limit:
            return text
        for width in (100, 0):
            sections = [_narrow(section, width) for section in self.sections(language)]
            while len(sections) > 1 and len("\n".join(_blocks(sections))) > limit:
                sections.remove(max(sections, key=lambda section: section.needed))
                if width and max(section.needed for section in sections) < 4:
                    break
            text = "\n".join(_blocks(sections))
            if len(text) <= limit:
                return text
        # Hardly any room (a text message): why, and the one command that matters.
        first = next(
            (command.line for command in self.commands if " ack " in command.line), self.commands[0].line
        )
        return f"{clip(self.why_now, max(0, limit - len(first) - 1))}\n{first}"[:limit]


def _narrow(section: Section, width: int) -> Section:
    """Fewer and shorter lines; 0: one short line."""
    lines = section.lines[:3] if width else section.lines[:1]
    short = tuple(clip(line.partition("    # ")[0], width or 60) for line in lines)
    return Section(label=section.label, lines=short, needed=section.needed)


def _blocks(sections: Sequence[Section]) -> Iterable[str]:
    for section in sections:
        for index, line in enumerate(section.lines):
            yield f"  {section.label if index == 0 else '':<10} {line}"


def _label(name: str, language: Language) -> str:
    return _ZH[name] if language == "zh" else name
