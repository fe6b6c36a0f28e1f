"""Makes foreign text inert: what a node, a job or a person wrote can be shown, and does nothing where it is shown. Pure.

Each border uses this one function: the command line for what the brain tells it, pages for their messages, log files for
their lines. What would act on a terminal or deceive a reader becomes visible: `\\x1b`, `\\u202e`. Harmless is what
Python's `str.isprintable` takes (https://docs.python.org/3/library/stdtypes.html#str.isprintable: neither control nor
format characters, which are bidirectional overrides, zero-width characters and tags, nor surrogates, private or
unassigned ones), without those that are printable but not to be seen, and at most four marks on one letter.
"""

import re
from typing import Any

MARKS = 4  # combining marks on one letter; Vietnamese needs two, Hebrew three
# Printable to Python, but blank or nothing on a screen: fillers, joiners, variation selectors, the Braille blank.
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef"
_MARK = (
    "\u0300-\u034e\u0350-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31"
    "\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_HIDDEN = re.compile(f"[{_UNSEEN}]")
_TOO_MANY = re.compile(f"([{_MARK}]{{{MARKS}}})[{_MARK}]+")
_SPACES = "\t\n\v\f\r\x85\u2028\u2029"  # they end lines or jump; a line is a line


def inert(text: str) -> str:
    """`text` as one line in which nothing acts: spaces are plain, what is not to be seen stands as its number."""
    if text.isascii() and text.isprintable():
        return text
    if not text.isprintable() or _HIDDEN.search(text):
        text = "".join(map(_shown, text))
    return _TOO_MANY.sub(r"\1", text)


def inert_lines(text: str) -> str:
    """The same for text of our own making, which may have several lines."""
    return "\n".join(map(inert, text.split("\n")))


def inert_data(value: Any) -> Any:
    """The same JSON value with every text in it inert, keys too."""
    match value:
        case str():
            return inert(value)
        case dict():
            return {inert(str(key)): inert_data(one) for key, one in value.items()}
        case list() | tuple():
            return type(value)(map(inert_data, value))
    return value


def inert_json(text: str) -> str:
    """JSON text that means the same, with what acts on a terminal written as `\\uXXXX`. Its own layout stays."""
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    if text.isprintable() and not _HIDDEN.search(text):
        return text
    return "".join(
        char if char == "\n" or (char.isprintable() and not _HIDDEN.match(char)) else _number(char)
        for char in text
    )


def _shown(char: str) -> str:
    if char in _SPACES or char.isspace():
        return " "
    if char.isprintable() and not _HIDDEN.match(char):
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _number(char: str) -> str:
    """One character, or its two surrogates, as JSON writes them."""
    raw = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{raw[at]:02x}{raw[at + 1]:02x}" for at in range(0, len(raw), 2))
