"""Text in the columns of a terminal, where a Chinese character takes two."""

import re
import unicodedata
from collections.abc import Iterator

_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]")
_STOPS = "\u3001\u3002\uff0c\uff1b\uff1a\uff1f\uff01\uff09\u300b\u201d"  # begin no line
_OPENINGS = "\uff08\u300a\u201c"  # end no line
# What stands together in a line, and whether a blank stands before it: a wide character with the stops behind it, or a word.
_PIECES = re.compile(
    rf"(\s*)([{_OPENINGS}]*(?:{_WIDE.pattern}[{_STOPS}]*|(?:(?!{_WIDE.pattern})\S)+[{_STOPS}]*))"
)


def columns_of(text: str) -> int:
    """How many columns text takes: none for what combines with the letter before it, two for what is wide."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def wrapped(text: str, columns: int, *, first: int | None = None) -> Iterator[str]:
    """Yields lines of so many columns; the first one may have others. Chinese takes two for a character, breaks between any
    two, and has no blanks within.
    """
    line, room = "", columns if first is None else first
    for blank, piece in _PIECES.findall(text):
        within = bool(line) and (line[-1] in _STOPS or (_WIDE.match(line[-1]) and _WIDE.match(piece)))
        gap = "" if not line or within else blank if blank.strip(" ") == "" else " "
        if line and columns_of(line + gap + piece) > room:
            yield line
            line, room = piece, columns
        else:
            line += gap + piece
    if line:
        yield line
