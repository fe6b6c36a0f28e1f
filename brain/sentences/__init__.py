"""What brain and nodes have written onto the log, told in another language. Pure but for its files.

The log has English sentences, and so have states, histories and recordings of every version. Each of them was made by the code of
one sentence (`english.json`, from the code: docs/sentences.py), which has its Chinese beside it (`zh/`). So a text is read back:
which sentence it is, and what stands in its slots, which may be sentences again. What is none of ours stays as it is: names,
what people, devices and programs have said (decision 86).
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from agent.shared.words import id_of, read

FOLDER = Path(__file__).resolve().parent
MOST = 2000  # characters of a text that is told
MOST_TRIED = 1000  # parts of one text: what nodes say can be like many sentences at once
DEPTH = 40  # of sentences within sentences: each is shorter than the one around it
SURE = 10  # signs of its own by which a sentence is known, whatever is quoted in it
WEAK = 5  # fewer letters than that may stand anywhere
MOST_FRAGMENTS = 4  # of one text that are tried
MOST_OF_LABEL = 5  # words of a rung's name
_SLOT = re.compile(r"\{(\w+)\}")
_PLACEABLE = re.compile(r"\{ \$(\w+) \}")
_WORD = re.compile(r"[A-Za-z]+")
_COUNTED = re.compile(r"(\d+) ([a-zA-Z]+(?: [a-zA-Z]+)?)")
_UNITS = ("second", "minute", "hour", "day")
# What the name of a program's own error ends with: it is quoted
_ERROR = re.compile(r"error$", re.IGNORECASE)
# Where a part of a sentence begins that is told now and then
_PART = re.compile(r" \(|; |, |: | — |(?<=\d) (?=of )")
_PROSE = re.compile(r"(?<![\w./:@=-])[a-z]{2,},? [a-z]{2,}(?![\w/@=-]|[.:]\w)")
_ENGLISH = re.compile(r"(?<![\w./:@=-])[a-z]{3,}(?![\w/@=-]|[.:]\w)")
_SIGNS = re.compile(r"[.;:]")
_SENTENCES = re.compile(r"(?<=[.?!]) (?=[A-Za-z0-9`])")
_CLOSING = frozenset(":;,)")  # no text begins with these
_CLAUSES = re.compile(r"(?=; )")
_FRAGMENT = re.compile(r"(?<=\w), (?=[a-z])")
# Slots of names: what stands there has no blank, so a sentence that would need one is another one
_NAMES = frozenset(
    [
        "node", "node2", "scope", "scope2", "incident", "id", "run", "unit", "gate", "bdf", "place", "rule", "runbook", "symptom",
        "severity", "to", "spec", "name", "of", "bond", "interface", "path", "kind", "machine", "component", "action", "module",
        "field", "seq", "epoch", "mode", "key", "count",
    ]
)  # fmt: skip
# Slots of what a site has named: a few words
_LABELS = frozenset(
    ["rung", "named", "after", "names", "active", "have", "program", "title", "who", "acked_by", "right"]
)
# Slots in which somebody else is quoted
_QUOTED = frozenset(
    [
        "why", "text", "error", "because", "last_line", "says", "message", "args", "causes", "out", "strerror", "trouble",
        "stays", "drained", "theirs", "data", "reason", "hit", "seen", "example", "shortened", "summary", "what", "doing",
        "output", "detail", "reported", "states", "listed", "unseen", "given", "events", "newest", "line", "lines", "query",
    ]
)  # fmt: skip


class SentenceForm:
    """One way to say a sentence: literal texts, with slots between them."""

    __slots__ = ("id", "letters", "literals", "slots", "weight", "words")

    def __init__(self, form: str, english: str) -> None:
        """`form`: with `{name}` for each slot. `english`: the sentence by which the catalogue knows it."""
        parts = _SLOT.split(form)
        self.id = id_of(english)
        self.literals: Sequence[str] = parts[::2]
        self.slots: Sequence[str] = parts[1::2]
        self.weight = sum(map(len, self.literals))  # the more of its own, the surer
        self.words = frozenset(self._own_words())
        self.letters = sum(map(str.isalpha, "".join(self.literals)))

    def read(self, text: str) -> dict[str, str] | None:
        """What stands in the slots; None: the text is another sentence. Each literal is taken where it comes first."""
        first, last = self.literals[0], self.literals[-1]
        if not self.slots:
            return {} if text == first else None
        end = len(text) - len(last)
        if end < len(first) or not text.startswith(first) or not text.endswith(last):
            return None
        found: dict[str, str] = {}
        at = len(first)
        between = zip(self.slots, self.literals[1:-1], [*self.literals[2:-1], ""], strict=False)
        for slot, literal, following in between:
            there = text.find(literal, at, end) if literal else _goes_on(text, at, end, following)
            if there < 0:
                return None
            found[slot] = text[at:there]
            at = there + len(literal)
        if at > end:
            return None
        found[self.slots[-1]] = text[at:end]
        if any(" " in value for slot, value in found.items() if slot in _NAMES):
            return None
        began = found[self.slots[0]]
        if first == "" and (began[:1] in _CLOSING or (not began and self.literals[1] != "")):
            return None  # a part of a sentence, and no sentence
        return found

    def fits(self, values: Mapping[str, str], told: Mapping[str, str], whole: Collection[str]) -> bool:
        """Can these stand in its slots? What people, devices and programs say may stand where somebody is quoted; everywhere else
        a name, a number, or a sentence of ours. A word or two (`… of …`) make no sentence of what they stand between.

        `told`: the same as they are told. `whole`: sentences without slots.
        """
        quoted = 0
        named = any(value and name.rstrip("0123456789") in _NAMES for name, value in values.items())
        for name, value in values.items():
            slot = name.rstrip("0123456789")
            if " " in value and self.letters < WEAK and slot not in _QUOTED | _LABELS and value not in whole:
                return False
            if told[name] != value or not _ENGLISH.search(value):
                continue
            if " " in value and self.letters < WEAK and not named:
                return False
            if not _PROSE.search(value):
                continue
            if slot in _LABELS and len(value.split()) <= MOST_OF_LABEL and not _SIGNS.search(value):
                continue
            if slot not in _QUOTED:
                return False
            quoted += 1
        return self.weight >= SURE or quoted <= 1

    def _own_words(self) -> Iterator[str]:
        """The words that every text of this form has, whole: at a slot a word may go on."""
        for number, literal in enumerate(self.literals):
            for word in _WORD.finditer(literal):
                begins = word.start() > 0 or number == 0
                ends = word.end() < len(literal) or number == len(self.literals) - 1
                if begins and ends:
                    yield word[0]


class SentenceBook:
    """The sentences, and their texts in one language."""

    def __init__(
        self,
        sentences: Iterable[Sequence[str]],
        counted: Mapping[str, str],
        texts: Mapping[str, str],
        written: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`sentences`: each in its forms, the catalogue's first. `counted`: one -> many. `texts`: by id, `{ $name }` is a slot.
        `written`: whole texts, with theirs.
        """
        self.texts = texts
        self.written = written
        self._one = {many: one for one, many in counted.items()} | {one: one for one in counted}
        forms = [SentenceForm(form, each[0]) for each in sentences for form in each]
        self.whole = frozenset(form.literals[0] for form in forms if not form.slots)
        number: dict[str, int] = {}
        for form in forms:
            for word in form.words:
                number[word] = number.get(word, 0) + 1
        self._by_word: dict[str, list[SentenceForm]] = {}
        for form in forms:
            rarest = min(form.words, key=lambda word: (number[word], word), default="")
            self._by_word.setdefault(rarest, []).append(form)
        self.told = lru_cache(4096)(self._told)

    def readings(self, text: str) -> Iterator[tuple[SentenceForm, dict[str, str]]]:
        """The sentences that a text may be, each with what stands in its slots; the one with the most words of its own first."""
        words = frozenset(_WORD.findall(text))
        found = [form for word in (*words, "") for form in self._by_word.get(word, ()) if form.words <= words]
        for form in sorted(found, key=lambda one: (-one.weight, one.id)):
            values = form.read(text)
            if values is not None:
                yield form, values

    def _told(self, text: str) -> str:
        """The text in this book's language."""
        return self.word("alone", text) or (_Telling(self).told(text, DEPTH) if len(text) <= MOST else text)

    def word(self, slot: str, value: str) -> str:
        """A state, a role or what a page is for, which stands as it is called in the log; empty: it is none of ours."""
        return self.texts.get(f"word-{slot.rstrip('0123456789')}-{value.replace(' ', '-')}", "")

    def counted(self, text: str) -> str:
        """`3 nodes`, `90 seconds`; empty: it is no number of something."""
        found = _COUNTED.fullmatch(text)
        if found is None:
            return ""
        one = self._one.get(found[2]) or next((unit for unit in _UNITS if found[2] in (unit, f"{unit}s")), "")
        text_of = self.texts.get(f"count-{id_of(one)}") if one else None
        return _filled(text_of, {"n": found[1]}) if text_of else ""


class _Telling:
    """One text that is told: what of it was told already, and how much more may be tried."""

    def __init__(self, book: SentenceBook) -> None:
        self._book = book
        self._done: dict[str, str] = {}
        self._left = MOST_TRIED

    def told(self, text: str, depth: int) -> str:
        """Of the ways to tell it that leave least of it in English, the surest."""
        book = self._book
        if text in book.written:
            return book.written[text]
        if depth < 0 or " " not in text.strip():
            return text
        if text not in self._done:
            self._left -= 1
            if self._left < 0:
                return text
            self._done[text] = min(self._ways(text, depth), key=_foreign)
        return self._done[text]

    def _ways(self, text: str, depth: int) -> Iterator[str]:
        book = self._book
        for form, values in book.readings(text):
            text_of = book.texts.get(form.id)
            told = {
                name: book.word(name, value) or self.told(value, depth - 1) for name, value in values.items()
            }
            if text_of is not None and form.fits(values, told, book.whole):
                yield _filled(text_of, told)
        yield from self._in_parts(text, depth)
        yield book.counted(text) or text

    def _in_parts(self, text: str, depth: int) -> Iterator[str]:
        """What is put together of several: `; clause`, `name: sentence`, `One. Another.`, `one; another`, `sentence (why)`."""

        def told(part: str) -> str:
            return self.told(part, depth - 1)

        clause = text.removeprefix("; ")
        if clause != text and told(clause) != clause:
            yield f"；{told(clause)}"
        name, colon, rest = text.partition(": ")
        if colon and name and len(name.split()) <= MOST_OF_LABEL and not _ERROR.search(name):
            told_rest = self._outcome(name, rest, depth) or told(rest)
            if told_rest != rest:
                yield f"{told(name)}：{told_rest}"
        for split in (_SENTENCES, _CLAUSES):
            parts = split.split(text)
            if len(parts) > 1:
                yield "".join(_joined(parts, [told(part) for part in parts]))
        for found in islice(_FRAGMENT.finditer(text), MOST_FRAGMENTS):
            head, tail = text[: found.start()], text[found.start() :]
            if told(tail) != tail:
                yield f"{told(head)}{told(tail)}"
        before, bracket, within = text.removesuffix(")").partition(" (")
        if bracket and text.endswith(")") and (told(before), told(within)) != (before, within):
            yield f"{told(before)}（{told(within)}）"

    def _outcome(self, rung: str, text: str, depth: int) -> str:
        """What became of a rung: `done` in a page, `failed: why` in a note of its own; empty: it is no outcome."""
        head, colon, why = text.partition(": ")
        word = self._book.word("outcome", head)
        if not word or "/" in rung or (depth < DEPTH and text != "done"):
            return ""
        return f"{word}：{self.told(why, depth - 1)}" if colon else word


def told(text: str, language: str) -> str:
    """A text of the log in a language; in English it stands as it is."""
    return text if language == "en" else book(language).told(text)


@cache
def book(language: str) -> SentenceBook:
    """The book of a language."""
    raw = json.loads((FOLDER / "english.json").read_text(encoding="utf-8"))
    return SentenceBook(raw["sentences"], raw["counted"], read(FOLDER / language), raw["written"])


def _joined(parts: Sequence[str], told_parts: Sequence[str]) -> Iterator[str]:
    """Parts beside each other; what stands as it was keeps the blank before it."""
    for number, (part, told_part) in enumerate(zip(parts, told_parts, strict=True)):
        yield f" {part}" if number and told_part == part and not part.startswith(";") else told_part


def _foreign(told: str) -> int:
    """How many words of it are English."""
    return sum(1 for _ in _ENGLISH.finditer(told))


def _goes_on(text: str, at: int, end: int, following: str) -> int:
    """Where the second of two slots without a word between them begins. It ends before `following`; -1: that is not there."""
    until = text.find(following, at, end) if following else end
    found = _PART.search(text, at, max(at, until))
    return found.start() if found is not None else until


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACEABLE.sub(lambda found: values.get(found[1], found[0]), text)
