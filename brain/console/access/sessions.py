"""Sessions of browsers: a cookie for each, in this brain's memory only. After a restart people log in again. Pure."""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brain.console.access.people import Person, grant
from brain.console_config import GrantConfig

MOST = 10_000
MOST_OF_ONE = 20  # browsers of one person; a further one takes the place of that person's oldest


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """Whom the identity provider has named."""

    name: str
    # those of [console.oidc.groups] that they were in when they logged in
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    name: str
    # Who that is, with what they may do now; None: nobody, any more
    person: Callable[[], Person | None]
    until: float


class Sessions:
    """Who has logged in. Times are seconds of any clock that does not run backwards."""

    def __init__(self, lasts_s: float, groups: Callable[[], Mapping[str, GrantConfig]]) -> None:
        """`groups`: what the people of each may do now. Whose groups are all gone from there is in no session any more."""
        self._lasts_s = lasts_s
        self._groups = groups
        self._by_hash: dict[str, _Session] = {}

    def open(self, who: LoggedIn, now: float) -> str:
        """Opens a session for whom the identity provider has named; returns its cookie."""
        return self.open_for(who.name, lambda: self.of(who), now)

    def open_for(self, name: str, person: Callable[[], Person | None], now: float) -> str:
        """Opens a session for whoever `person` says at each request, such as the owner of a token; returns its cookie."""
        cookie = secrets.token_urlsafe(32)
        for key, session in list(self._by_hash.items()):
            if now >= session.until or len(self._by_hash) >= MOST:
                del self._by_hash[key]
        own = [key for key, session in self._by_hash.items() if session.name == name]
        for key in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            del self._by_hash[key]
        self._by_hash[_hashed(cookie)] = _Session(name=name, person=person, until=now + self._lasts_s)
        return cookie

    def person(self, cookie: str, now: float) -> Person | None:
        """Returns whose session this is, with what they may do now; None: nobody's, any more."""
        session = self._by_hash.get(_hashed(cookie))
        return session.person() if session is not None and now < session.until else None

    def of(self, who: LoggedIn) -> Person | None:
        """Returns who that is, with what their groups may do now; None: nothing."""
        grants = tuple(grant(table) for group, table in self._groups().items() if group in who.groups)
        return Person(name=who.name, grants=grants, how="session") if grants else None

    def close(self, cookie: str) -> None:
        """Ends a session."""
        self._by_hash.pop(_hashed(cookie), None)

    def close_all_of(self, name: str) -> int:
        """Ends every session of a person; returns how many there were."""
        theirs = [key for key, session in self._by_hash.items() if session.name == name]
        for key in theirs:
            del self._by_hash[key]
        return len(theirs)


def _hashed(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).hexdigest()
