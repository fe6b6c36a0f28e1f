"""How text is laid out for a terminal, and for a pipe."""

import shutil
import textwrap
from collections.abc import Iterator

WIDTH = 100  # columns: the most that is comfortable to read, and what a pipe gets


def page_width() -> int:
    """Returns the columns of a line: those of the terminal, at most WIDTH."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 40)).columns)


def hanging(head: str, text: str, width: int) -> Iterator[str]:
    """Yields the text behind its head, wrapped with a hanging indent; long words (ids, paths) are not broken."""
    lines = textwrap.wrap(
        " ".join(text.split()), max(20, width - len(head)), break_long_words=False, break_on_hyphens=False
    ) or [""]
    yield head + lines[0]
    for line in lines[1:]:
        yield " " * len(head) + line
