"""Notes on who was refused: few enough that they push nothing else out of the notes, with the number of those left out."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from agent.contract.inert import inert
from brain.console.access.limits import Limits

NOTE_EVERY_S = 60.0  # one note for each kind of refusal and whom it is about in this time
NOTES_PER_S, NOTES_AT_ONCE = 0.2, 20  # of all together: whoever has many addresses writes no more
_KEPT = 1000


@dataclass(slots=True, kw_only=True)
class _Told:
    at: float
    left_out: int = 0


class Refusals:
    """The notes of one door. `note(kind, text)` writes one."""

    def __init__(self, note: Callable[[str, str], None], clock: Callable[[], float]) -> None:
        """`clock`: seconds that do not run backwards."""
        self._note = note
        self._clock = clock
        self._told: OrderedDict[tuple[str, str], _Told] = OrderedDict()
        self._all = Limits(NOTES_PER_S, NOTES_AT_ONCE)
        self._left_out = 0

    def tell(self, kind: str, about: str, text: str) -> None:
        """Notes it, or counts it for the next note. `text` may have what a stranger sent: also bytes that are no text."""
        now, told = self._clock(), self._told.get((kind, about))
        if told is not None and now - told.at < NOTE_EVERY_S:
            told.left_out += 1
            return
        if self._all.too_many("", now):
            self._left_out += 1
            return
        same = f" (and {told.left_out} times more since the last note)" if told and told.left_out else ""
        others = f"; {self._left_out} refusals of others were not noted" if self._left_out else ""
        self._left_out = 0
        self._told[kind, about] = _Told(at=now)
        self._told.move_to_end((kind, about))
        while len(self._told) > _KEPT:
            self._left_out += self._told.popitem(last=False)[1].left_out
        self._note(kind, inert(f"{text}{same}{others}"))
