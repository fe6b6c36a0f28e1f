"""Links by which a browser comes in once: whoever has a token asks for one, and opens it within a minute. Pure.

A token in a browser's address would stay in its history; the code in such a link is worth nothing when it has been used.
"""

import hashlib
import secrets
from dataclasses import dataclass

LASTS_S = 60.0
MOST = 100  # that wait at once; a further one takes the place of the oldest
MOST_OF_ONE = 5  # of one token; the same


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    token: str
    until: float


class Links:
    """The links that have not been opened. Times are seconds of any clock that does not run backwards."""

    def __init__(self) -> None:
        self._by_hash: dict[str, _Link] = {}

    def make(self, token: str, now: float) -> str:
        """Returns the code of a link for the owner of this token."""
        for key, link in list(self._by_hash.items()):
            if now >= link.until or len(self._by_hash) >= MOST:
                del self._by_hash[key]
        own = [key for key, link in self._by_hash.items() if link.token == token]
        for key in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            del self._by_hash[key]
        code = secrets.token_urlsafe(32)
        self._by_hash[_hashed(code)] = _Link(token=token, until=now + LASTS_S)
        return code

    def token(self, code: str, now: float) -> str:
        """Returns the token behind a code, which is used up by that; empty: there is none, any more."""
        link = self._by_hash.pop(_hashed(code), None)
        return link.token if link is not None and now < link.until else ""


def _hashed(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).hexdigest()
