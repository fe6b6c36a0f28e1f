"""The console's words, for what the brain itself writes to people: the same catalogue that its pages read (web/words)."""

import re
from functools import cache
from pathlib import Path

from agent.contract.errors import BugError

FOLDER = Path(__file__).resolve().parent / "web" / "words"
SUFFIX = ".ftl"  # Project Fluent; a language's files are one catalogue
LANGUAGES = ("en", "zh")
_MESSAGE = re.compile(r"^([a-zA-Z][\w-]*) = (.*)$", re.MULTILINE)
_PLACEABLE = re.compile(r"\{ \$(\w+) \}")


class Words:
    """The texts of one language. Of Project Fluent's syntax it reads texts of one line with values, `{ $name }`."""

    def __init__(self, language: str) -> None:
        """`language`: one of LANGUAGES."""
        self.language = language
        self._texts = _texts(language)

    def __call__(self, key: str, **values: object) -> str:
        """Returns a text. BugError: the catalogue has none of this name, or it wants other values."""
        text = self._texts.get(key)
        if text is None or set(_PLACEABLE.findall(text)) != set(values) or "{" in _PLACEABLE.sub("", text):
            raise BugError(
                f"words/{self.language}: {key} is not a text with the values {sorted(values)}: {text!r}"
            )
        return _PLACEABLE.sub(lambda found: str(values[found[1]]), text)

    def known(self, key: str) -> str:
        """Returns a text without values; empty: the catalogue has none of this name."""
        return self(key) if key in self._texts else ""

    def span(self, seconds: float) -> str:
        """A span in words: the two largest units are enough."""
        s = max(0, round(seconds))
        if s < 60:
            return self("span-s", s=s)
        if s < 3600:
            return self("span-m", m=s // 60, s=s % 60)
        if s < 86_400:
            return self("span-h", h=s // 3600, m=s % 3600 // 60)
        return self("span-d", d=s // 86_400, h=s % 86_400 // 3600)


@cache
def _texts(language: str) -> dict[str, str]:
    files = sorted((FOLDER / language).glob(f"*{SUFFIX}"))
    return {key: text for file in files for key, text in _MESSAGE.findall(file.read_text(encoding="utf-8"))}
