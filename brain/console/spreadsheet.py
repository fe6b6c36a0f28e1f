"""Tables that people open in a spreadsheet (RFC 4180): nothing in them is a formula to it. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence

from agent.contract.inert import inert

# What a formula begins with; the wide signs in a Chinese or Japanese spreadsheet
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def cell(text: str) -> str:
    """A foreign text as a cell."""
    text = inert(text)
    # Blanks before it are none to some spreadsheets, and what was a tab or a line's end is a blank here
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The lines, below their heads. Each cell stands in quotes: some spreadsheets part lines at semicolons."""
    text = io.StringIO()
    lines = csv.writer(text, quoting=csv.QUOTE_ALL)
    lines.writerow(columns)
    lines.writerows(rows)
    return text.getvalue().encode()
