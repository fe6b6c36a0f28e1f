"""How often somebody may ask, and how often they may be wrong. Pure: the time is an argument.

Wrong credentials are counted for an address together with the id of the token that was shown, so nobody can lock
somebody else's token out from another address; what no token's id fits is counted for the address alone, and its lock
refuses only more of that kind: on loopback all users of the machine have one address.
"""

from collections import OrderedDict
from dataclasses import dataclass

REMEMBERED = 10_000  # addresses; the one that asked longest ago is forgotten first
WRONG, WRONG_WITHIN_S = 10, 60.0  # so many wrong credentials within this time lock
LOCK_S, LONGEST_LOCK_S = 30.0, 3600.0  # each lock lasts twice as long as the one before it


@dataclass(slots=True, kw_only=True)
class _Asked:
    left: float
    at: float


@dataclass(slots=True, kw_only=True)
class _Wrong:
    count: int = 0
    since: float = 0.0
    locks: int = 0
    until: float = 0.0


class Limits:
    """The requests and mistakes of each address. Times are seconds of any clock that does not run backwards."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._asked: OrderedDict[str, _Asked] = OrderedDict()
        self._wrong: OrderedDict[str, _Wrong] = OrderedDict()

    def too_many(self, who: str, now: float) -> bool:
        """Counts one request; is it one too many?"""
        asked = self._of(who, now)
        if asked.left < 1:
            return True
        asked.left -= 1
        return False

    def spent(self, who: str, cost: float, now: float) -> None:
        """Counts what is known afterwards only: it may be more than what was left."""
        self._of(who, now).left -= cost

    def owed_s(self, who: str, now: float) -> float:
        """Returns for how many seconds more nothing is left; 0: something is."""
        return max(0.0, -self._of(who, now).left / self._per_s)

    def _of(self, who: str, now: float) -> _Asked:
        asked = self._asked.setdefault(who, _Asked(left=float(self._burst), at=now))
        _keep(self._asked, who)
        asked.left = min(self._burst, asked.left + (now - asked.at) * self._per_s)
        asked.at = now
        return asked

    def locked_s(self, who: str, now: float) -> float:
        """Returns for how many seconds more no credential is looked at; 0: they are."""
        wrong = self._wrong.get(who)
        return max(0.0, wrong.until - now) if wrong else 0.0

    def was_wrong(self, who: str, now: float) -> bool:
        """Counts a wrong credential; does this one lock?"""
        wrong = self._wrong.setdefault(who, _Wrong())
        _keep(self._wrong, who)
        if now - wrong.since > WRONG_WITHIN_S:
            wrong.count, wrong.since = 0, now
        wrong.count += 1
        if wrong.count < WRONG:
            return False
        wrong.until = now + min(LONGEST_LOCK_S, LOCK_S * 2**wrong.locks)
        wrong.locks = min(wrong.locks + 1, 20)
        wrong.count = 0
        return True

    def was_right(self, who: str) -> None:
        """A right credential ends what was counted."""
        self._wrong.pop(who, None)


def _keep(found: OrderedDict[str, _Asked] | OrderedDict[str, _Wrong], who: str) -> None:
    found.move_to_end(who)
    while len(found) > REMEMBERED:
        found.popitem(last=False)
