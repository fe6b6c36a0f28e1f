"""The two-person rule: a chosen word counts when a second person has said the same. Pure.

Only this brain remembers what the first one said: after a restart, or at another brain, it is said again.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from brain.core.pack.spec import Scalar

WITHIN_S = 900.0  # how long a word waits for the second person
MOST_OF_ONE = (
    20  # words of one person that wait at once; a further one takes the place of that person's oldest
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A word that waits for a second person."""

    who: str
    text: str
    # by the clock of `agreed`
    until: float
    # Is the credential with which it was said still good?
    still_good: Callable[[], bool]
    # The mark of what they were shown (`seen` of an approval); empty: they have handed back none
    seen: str = ""


def needs_second(verb: str, args: Mapping[str, Scalar], chosen: Collection[str]) -> bool:
    """Is this one of the chosen words (`start`, or `mode auto` for one of a verb's forms)?"""
    return verb in chosen or (verb == "mode" and f"mode {args['mode']}" in chosen)


class Proposals:
    """What one person has said, and nobody else yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, Proposal] = {}

    def agreed(
        self, text: str, who: str, still_good: Callable[[], bool], now: float, seen: str = ""
    ) -> Proposal | None:
        """Returns what somebody else said before, which was the same; None: nobody has, and it waits now. The same person twice
        is one, and two who were shown different things have not said the same.
        """
        self._forget(now)
        first = self._waiting.get(text)
        if first is not None and first.who != who and (not first.seen or not seen or first.seen == seen):
            del self._waiting[text]
            return first
        own = [said for said, one in self._waiting.items() if one.who == who and said != text]
        for said in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            del self._waiting[said]
        self._waiting[text] = Proposal(
            who=who, text=text, until=now + WITHIN_S, still_good=still_good, seen=seen
        )
        return None

    def waiting(self, now: float) -> list[Proposal]:
        """Returns what waits, the oldest first."""
        self._forget(now)
        return list(self._waiting.values())

    def _forget(self, now: float) -> None:
        for text, one in list(self._waiting.items()):
            if now >= one.until or not one.still_good():
                del self._waiting[text]
