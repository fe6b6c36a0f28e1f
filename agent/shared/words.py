"""What the command lines say, in the reader's language.

The English stands in the code, where it is read and changed; a catalogue (Project Fluent, as the console's) has every sentence
of it in another language, under an id that is made of the English words. Who runs no command line (agent, brain) loads none.
"""

import gettext
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from agent.contract.counted import counted
from agent.contract.counted import span as english_span

WORDS = ".ftl"
LANGUAGES = ("en", "zh")
MOST_WORDS = 10  # of an id
_MESSAGE = re.compile(r"^([a-zA-Z][\w-]*) =[ \t]*(.*(?:\n(?:[ \t]*\n)*[ ]+.*)*)", re.MULTILINE)
_PLACEABLE = re.compile(r"\{ \$(\w+) \}")
_LAYOUT = re.compile(r"(\n*(?: {2,})?)(.*?)(\n*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A language, and its texts by id."""

    language: str
    texts: Mapping[str, str]


_ENGLISH = Spoken(language="en", texts={})
_SPOKEN: ContextVar[Spoken] = ContextVar("spoken", default=_ENGLISH)


def language() -> str:
    """The language that is spoken now: one of LANGUAGES."""
    return _SPOKEN.get().language


@contextmanager
def speaking(of: str, folders: Iterable[Path]) -> Iterator[None]:
    """Speaks a language within; each folder has one of catalogues for each language but English."""
    before = gettext.translation
    with answering(spoken(of, folders)):
        if of != "en":
            libraries = _OfLibraries()
            gettext.translation = lambda *_args, **_more: libraries  # type: ignore[assignment]  # for as long as it is spoken
        try:
            yield
        finally:
            gettext.translation = before


def spoken(of: str, folders: Iterable[Path]) -> Spoken:
    """Reads a language; each folder has one of catalogues for each language but English."""
    texts = {} if of == "en" else {key: text for folder in folders for key, text in read(folder / of).items()}
    return Spoken(language=of, texts=texts)


@contextmanager
def answering(language: Spoken) -> Iterator[None]:
    """Speaks a language within, and in this task only, as a server does that many ask; what libraries say is left as it is."""
    token = _SPOKEN.set(language)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


class _OfLibraries(gettext.NullTranslations):
    """What click and argparse say themselves. They ask gettext, which by itself reads compiled catalogues only."""

    def gettext(self, message: str) -> str:
        """As gettext's: with the placeholders as the library writes them."""
        text = _SPOKEN.get().texts.get(id_of(message))
        if text is None:
            return message
        own = {found[1]: found[0] for found in re.finditer(r"\{(\w+)[^}]*\}", message)}
        before, _, after = _LAYOUT.match(message).groups()  # type: ignore[union-attr]  # it matches every text
        return f"{before}{_filled(text, own)}{after}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """As gettext's."""
        return self.gettext(msgid1 if n == 1 else msgid2)


def t(english: str, /, **values: object) -> str:
    """Returns a sentence in the language that is spoken; one that its catalogue lacks in English. `{name}` is a value.

    Line ends and indents around it are kept: they belong to the layout.
    """
    spoken = _SPOKEN.get()
    text = spoken.texts.get(id_of(english)) if spoken.texts else None
    if text is None:
        return english.format(**values) if values else english
    before, _, after = _LAYOUT.match(english).groups()  # type: ignore[union-attr]  # it matches every text
    return f"{before}{_filled(text, values)}{after}"


def later(english: str) -> str:
    """A sentence that `t` is given elsewhere: this tells those who collect them."""
    return english


def many(number: int, one: str, more: str = "") -> str:
    """A number of a thing, as `counted`."""
    spoken = _SPOKEN.get()
    text = spoken.texts.get(f"count-{id_of(one)}")
    return counted(number, one, more) if text is None else _filled(text, {"n": number})


def span(seconds: float) -> str:
    """A length of time, as agent.contract.counted tells it."""
    number, unit = english_span(seconds).split()
    return many(int(number), unit.removesuffix("s"))


def either(en: str, zh: str) -> str:
    """Of a text that somebody has written in both languages the one that is spoken, as far as it is there."""
    return zh if language() == "zh" and zh else en


def id_of(english: str) -> str:
    """Its first words; of a longer one a checksum, too, so that what is changed behind them is another one; and of a part of a
    sentence, which is another text than the whole.

    >>> id_of("no runs")
    'no-runs'
    """
    words = re.findall(r"[a-z0-9]+", english.lower())
    _, core, _ = _LAYOUT.match(english).groups()  # type: ignore[union-attr]  # it matches every text
    part = core[:1] in " ,;:—" or core.endswith((":", ": "))  # of a sentence
    if len(words) > MOST_WORDS or part or not words or not words[0][0].isalpha():
        words = ["s", *words[: MOST_WORDS - 1], f"{zlib.crc32(' '.join(english.split()).encode()):08x}"]
    return "-".join(words)


def read(folder: Path) -> dict[str, str]:
    """The texts of a folder of catalogues, by id. Of Fluent's syntax: texts of one line or more, with values."""
    found: dict[str, str] = {}
    for file in sorted(folder.glob(f"*{WORDS}")):
        for key, text in _MESSAGE.findall(file.read_text(encoding="utf-8")):
            found[key] = "\n".join(line.removeprefix("    ").rstrip() for line in text.splitlines()).lstrip(
                "\n"
            )
    return found


def values_of(text: str) -> set[str]:
    """The names of the values that a text of a catalogue takes."""
    return set(_PLACEABLE.findall(text))


def _filled(text: str, values: Mapping[str, object]) -> str:
    return _PLACEABLE.sub(lambda found: str(values[found[1]]), text)


def wanted(args: Sequence[str], environment: Mapping[str, str]) -> str:
    """The language of a command line: `--lang`, else the locale's. With `--json` English: scripts read it."""
    said = ""
    for number, arg in enumerate(args):
        if arg == "--":
            break
        if arg == "--json":
            return "en"
        if arg == "--lang" and args[number + 1 : number + 2]:
            said = args[number + 1]
        elif arg.startswith("--lang="):
            said = arg.removeprefix("--lang=")
    return said if said in LANGUAGES else by_locale(environment)


def by_locale(environment: Mapping[str, str]) -> str:
    """The language of the locale for messages: the first of these that says anything, as in setlocale(3)."""
    locale = next(filter(None, (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if re.match(r"zh([_.@-]|$)", locale) else "en"


def without_lang(args: Sequence[str]) -> list[str]:
    """The other arguments; a language that there is not comes first, where it is said that it is wrong."""
    left: list[str] = []
    wrong: list[str] = []
    for number, arg in enumerate(args):
        if arg == "--":
            return [*wrong, *left, *args[number:]]
        if left and left[-1] == "--lang":
            said = [left.pop(), arg]
            wrong += said if arg not in LANGUAGES else ()
        elif arg.startswith("--lang="):
            wrong += [arg] if arg.removeprefix("--lang=") not in LANGUAGES else ()
        else:
            left.append(arg)
    return [*wrong, *left]
