"""Sessions of browsers: a cookie for each, in this brain's memory only. After a restart people log in again. Pure."""

import hashlib
import secrets
from dataclasses import dataclass

from brain.console.access.people import Person

MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    person: Person
    until: float


class Sessions:
    """Who has logged in. Times are seconds of any clock that does not run backwards."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._by_hash: dict[str, _Session] = {}

    def open(self, person: Person, now: float) -> str:
        """Opens a session; returns its cookie."""
        cookie = secrets.token_urlsafe(32)
        for key, session in list(self._by_hash.items()):
            if now >= session.until or len(self._by_hash) >= MOST:
                del self._by_hash[key]
        self._by_hash[_hashed(cookie)] = _Session(person=person, until=now + self._lasts_s)
        return cookie

    def person(self, cookie: str, now: float) -> Person | None:
        """Returns whose session this is; None: nobody's, any more."""
        session = self._by_hash.get(_hashed(cookie))
        return session.person if session is not None and now < session.until else None

    def close(self, cookie: str) -> None:
        """Ends a session."""
        self._by_hash.pop(_hashed(cookie), None)


def _hashed(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).hexdigest()
