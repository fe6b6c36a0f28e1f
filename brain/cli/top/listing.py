"""A list in the terminal that draws only the rows that are seen: ten thousand cost no more than twenty. Text stays text."""

import time
from collections.abc import Sequence
from itertools import chain
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from brain.cli.top import rows
from brain.cli.top.ground import Ground, style
from brain.cli.top.rows import Entry, RowField, RowKind, Sheet
from brain.console.words import Words

GAP = "  "
_HEAD = Style(underline=True)
_REVERSE = Style(reverse=True)


class RowView(ScrollView, can_focus=True):
    """One list, with a selected row. The selection stays with its row when the list changes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "end(-1)", show=False),
        Binding("end,G", "end(1)", show=False),
        Binding("left,h", "sideways(-1)", show=False),
        Binding("right,l", "sideways(1)", show=False),
    ]

    class Moved(Message):
        """Another row is selected, or the selected one has changed."""

        def __init__(self, view: "RowView") -> None:
            super().__init__()
            self.view = view

    def __init__(self, words: Words, ground: Ground, *, id: str, newest: bool = False) -> None:  # noqa: A002 - Textual's
        """`newest`: the first row stays selected while it is: what comes above it is seen."""
        super().__init__(id=id)
        self._words, self._ground = words, ground
        self._newest = newest
        self.sheet = rows.sheet((), ())
        self.filter = ""
        self.shown: Sequence[Entry] = ()
        self._cursor = 0

    @property
    def selected(self) -> Entry | None:
        """The row that is selected; None: there is none."""
        if 0 <= self._cursor < len(self.shown) and self.shown[self._cursor].kind is not RowKind.TITLE:
            return self.shown[self._cursor]
        return None

    def show(self, sheet: Sheet) -> None:
        """Shows a list instead of the one before."""
        self.sheet = sheet
        self._choose()

    def find(self, text: str) -> None:
        """Shows only rows in which all words of the text stand; empty: all rows."""
        self.filter = text
        self._choose()

    def _choose(self) -> None:
        before = self.selected
        wanted = self.filter.lower().split()
        if wanted:
            self.shown = [
                one
                for one in self.sheet.entries
                if one.kind is not RowKind.TITLE and all(part in one.found for part in wanted)
            ]
        else:
            self.shown = self.sheet.entries
        at = self._cursor
        if self._newest and at == 0:
            pass
        elif before is not None and not (at < len(self.shown) and self.shown[at].key == before.key):
            at = next((n for n, one in enumerate(self.shown) if one.key == before.key), at)
        self._cursor = self._near(min(at, len(self.shown) - 1))
        wide = sum(self.sheet.widths) + len(GAP) * max(0, len(self.sheet.widths) - 1)
        self.virtual_size = Size(wide, len(self.shown) + 1)
        self._into_view()
        self.refresh()
        if before is not self.selected:
            self.post_message(self.Moved(self))

    def _near(self, at: int) -> int:
        """The nearest row that can be selected, rather below."""
        for n in chain(range(max(at, 0), len(self.shown)), range(at - 1, -1, -1)):
            if self.shown[n].kind is not RowKind.TITLE:
                return n
        return 0

    def _go(self, at: int, step: int) -> None:
        at = max(0, min(at, len(self.shown) - 1))
        while 0 <= at < len(self.shown) and self.shown[at].kind is RowKind.TITLE:
            at += step
        if 0 <= at < len(self.shown) and at != self._cursor:
            self._cursor = at
            self._into_view()
            self.refresh()
            self.post_message(self.Moved(self))
        elif step < 0:
            self.scroll_to(y=0, animate=False)  # the title above the first row is seen, too

    def _into_view(self) -> None:
        height = max(1, self.size.height - 1)
        top = self.scroll_offset.y
        if self._cursor < top or top > max(0, len(self.shown) - height):
            self.scroll_to(y=min(self._cursor, max(0, len(self.shown) - height)), animate=False)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False)

    def on_resize(self) -> None:
        """The selected row stays in view."""
        self._into_view()

    def action_move(self, step: int) -> None:
        """To a row beside."""
        self._go(self._cursor + step, step)

    def action_page(self, step: int) -> None:
        """By a screen."""
        self._go(self._cursor + step * max(1, self.size.height - 2), step)

    def action_end(self, step: int) -> None:
        """To the first or last row."""
        self._go(len(self.shown) - 1 if step > 0 else 0, -step)

    def action_sideways(self, step: int) -> None:
        """The rest of long lines."""
        wide = self.scrollable_content_region.width
        most = max(0, self.virtual_size.width - wide)
        self.scroll_to(x=max(0, min(most, self.scroll_offset.x + step * (wide // 3))), animate=False)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        wide, x = self.scrollable_content_region.width, self.scroll_offset.x
        base = self.rich_style
        if y == 0:
            heads = [RowField(head) for head in self.sheet.heads]
            return self._strip(heads, base + _HEAD).crop_extend(x, x + wide, base)
        at = self.scroll_offset.y + y - 1
        if not self.shown and y == 1:
            empty = self._words("top-not-found") if self.filter else self.sheet.empty
            return Strip([Segment(empty, base)]).crop_extend(0, wide, base)
        if not 0 <= at < len(self.shown):
            return Strip.blank(wide, base)
        one = self.shown[at]
        if one.kind is RowKind.TITLE:
            (title,) = one.fields
            return Strip([Segment(title.text, base + self._style(title.style))]).crop_extend(0, wide, base)
        if at == self._cursor:  # one bar, without colours within it
            base += _REVERSE
            return self._strip([field._replace(style="") for field in one.fields], base).crop_extend(
                x, x + wide, base
            )
        return self._strip(one.fields, base).crop_extend(x, x + wide, base)

    def _style(self, wanted: str) -> Style:
        return Style.parse(style(self._ground, wanted))

    def _strip(self, fields: Sequence[RowField], base: Style) -> Strip:
        segments, now = [], time.time()
        for one, width in zip(fields, self.sheet.widths, strict=True):
            text = rows.age(self._words, one.at, now) if one.at else one.text
            shown = text if cell_len(text) == width else set_cell_size(_cut(text, width), width)
            segments.append(Segment(shown, base + self._style(one.style) if one.style else base))
            segments.append(Segment(GAP, base))
        return Strip(segments[:-1])


def _cut(text: str, width: int) -> str:
    """A text that has no room ends in a mark that says so."""
    return f"{set_cell_size(text, width - 1)}…" if cell_len(text) > width else text
