"""JSON objects that are printed over several lines, one line each (`journalctl -o json-pretty`, `dmesg -J`). Pure."""

import re
from collections.abc import Iterable, Iterator

_BEGIN = re.compile(r"\s{0,40}(?:\}, ?)?\{\s{0,9}")
_END = re.compile(r"\s{0,40}\},?\s{0,9}")
_LIST = re.compile(r'\s{0,40}"[\w-]{1,40}" ?: ?\[\s{0,9}')  # of records, as `dmesg -J` begins
_PART = re.compile(
    r'\s{1,40}(?:"[^"]{0,100}" ?: ?.{1,9000}|-?[0-9]{1,5},?|"[^"]{0,9000}",?|\],?)\s{0,9}', re.DOTALL
)
_LIST_END = re.compile(r"\s{0,40}\]\s{0,9}")
_MOST_LINES = 20_000  # bytes that are not UTF-8 are printed as numbers, one a line


def unwrapped(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """(1-based number of its first line, text) of each line, or of each object in one line. Nothing else is changed."""
    begun: list[str] = []  # lines of an object that has not ended
    start = 0
    listed = False  # within a list of objects: what is around them says nothing
    for number, text in enumerate(lines, 1):
        if _BEGIN.fullmatch(text) or (begun and _END.fullmatch(text)):
            if len(begun) > 1:
                yield start, f"{{{' '.join(part.strip() for part in begun[1:])}}}"
            start, begun = number, [text] if _BEGIN.fullmatch(text) else []
        elif len(begun) == 1 and _LIST.fullmatch(text):
            begun, listed = [], True
        elif begun and len(begun) < _MOST_LINES and _PART.fullmatch(text):
            begun.append(text)
        elif listed and (_LIST_END.fullmatch(text) or _END.fullmatch(text)):
            listed = not _END.fullmatch(text)
        else:
            yield from enumerate(begun, start)
            begun = []
            yield number, text
    yield from enumerate(begun, start)
