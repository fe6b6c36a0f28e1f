"""The tokens that people have: a file with their hashes, which is read again when it changes.

A token is `gw_<id>_<secret>` with 256 random bits, so one round of SHA-256 is enough: nobody can guess through them. The
file holds no token, only hashes, ids, names, limits and times; a token whose line is gone is worth nothing from the
next request on.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agent.contract.errors import ConfigError, Refused
from brain.console_config import Role
from brain.locked_file import LockedFile

PREFIX = "gw_"
MOST = 10_000  # tokens in one file
FOR_ADMINISTRATORS = 500  # of them; nobody else's take these places
MOST_OF_ONE = 20  # of one person


class Token(BaseModel):
    """One line of the file. Times are seconds since 1970 by this machine's clock."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    id: str
    user: str
    # SHA-256 of the secret, hexadecimal
    hash: str
    # What it may do at most, whatever its user may do
    role: Role
    scopes: tuple[str, ...] = ()
    runbooks: tuple[str, ...] = ()
    # Its user is not in the configuration but was at the identity provider's: then this is all that they may do
    login: bool = False
    made_at: float
    # Who made it
    made_by: str
    # The token with which its user made it for themselves: it ends and is revoked with that one. Empty: it stands alone
    parent: str = ""
    expires_at: float


_FILE = TypeAdapter(tuple[Token, ...])


class Tokens:
    """One file of tokens, which several brains may share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._revoked: set[str] = set()  # here, whether the file took it or not
        self._file = LockedFile(path, parse=partial(_parse, path), dump=_dump, empty=dict)

    def trouble(self) -> str:
        """Why the file cannot be read, so that what was read last counts; empty: it can."""
        return self._file.trouble()

    def all(self) -> list[Token]:
        """Returns every token, the oldest first. ConfigError: the file could never be read."""
        return sorted(self._file.value().values(), key=lambda one: (one.made_at, one.id))

    def find(self, given: str, now: float) -> Token | None:
        """Returns the token that somebody has shown, if it is one and has not expired."""
        id_, secret = taken_apart(given)
        token = self._file.value().get(id_)
        known = token.hash if token else _hashed("")  # an unknown id takes as long as a wrong secret
        if id_ in self._revoked:
            token = None
        right = hmac.compare_digest(_hashed(secret), known)
        return token if token and right and now < token.expires_at else None

    def known(self, given: str) -> bool:
        """Is there a token with the id of this one?"""
        return taken_apart(given)[0] in self._file.last

    def make(
        self,
        user: str,
        role: Role,
        *,
        now: float,
        lasts_s: float,
        by: str,
        scopes: tuple[str, ...] = (),
        runbooks: tuple[str, ...] = (),
        login: bool = False,
        parent: str = "",
    ) -> tuple[Token, str]:
        """Makes a token, which does not outlive its parent; returns its line and the text that only its user gets, once.
        ConfigError: it cannot be kept. Refused: its user has too many, or its parent is gone.
        """
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        elder = self._file.value().get(parent)
        token = Token(
            id=id_,
            user=user,
            hash=_hashed(secret),
            role=role,
            scopes=scopes,
            runbooks=runbooks,
            login=login,
            made_at=now,
            made_by=by,
            parent=parent,
            expires_at=min(now + lasts_s, elder.expires_at if elder else now + lasts_s),
        )

        def add(found: Mapping[str, Token]) -> Mapping[str, Token]:
            if parent and parent not in found:
                raise Refused("the token with which this one was asked for was revoked")
            kept = {id_: one for id_, one in found.items() if now < one.expires_at}
            if sum(one.user == user for one in kept.values()) >= MOST_OF_ONE:
                raise Refused(
                    f"{user} has {MOST_OF_ONE} tokens: revoke those that nobody uses (`gpuward token list`, then "
                    "`gpuward token revoke ID`)"
                )
            if len(kept) >= (MOST if role is Role.ADMINISTRATOR else MOST - FOR_ADMINISTRATORS):
                raise ConfigError(
                    f"{self._file.path} holds {len(kept)} tokens: an administrator must revoke some"
                )
            return kept | {token.id: token}

        self._file.change(add)
        return token, f"{PREFIX}{id_}_{secret}"

    def distrust(self, ids: set[str]) -> None:
        """At this brain they, and those that were made with them, are worth nothing from now on, as long as it runs."""
        self._revoked |= _fallen(self._file.last, ids)

    def revoke(self, ids: set[str]) -> list[Token]:
        """Takes tokens away at once, and those that were made with them; returns those that there were. ConfigError: the
        file cannot be written, or its disk hangs; at this brain they are worth nothing all the same, as long as it runs.
        """
        gone: list[Token] = []
        self.distrust(ids)

        def drop(found: Mapping[str, Token]) -> Mapping[str, Token]:
            fallen = _fallen(found, ids)
            gone.extend(one for id_, one in found.items() if id_ in fallen)
            return {id_: one for id_, one in found.items() if id_ not in fallen}

        self._file.change(drop)
        return gone


def _fallen(found: Mapping[str, Token], ids: set[str]) -> set[str]:
    """These, and those that were made with them."""
    fallen = set(ids)
    while more := {id_ for id_, one in found.items() if one.parent in fallen} - fallen:
        fallen |= more
    return fallen


def _parse(path: Path, body: bytes) -> Mapping[str, Token]:
    try:
        return {one.id: one for one in _FILE.validate_json(body)}
    except ValidationError as error:
        raise ConfigError(
            f"{path} is not a file of tokens ({error.error_count()} errors): restore it"
        ) from error


def _dump(tokens: Mapping[str, Token]) -> bytes:
    return _FILE.dump_json(tuple(tokens.values()), indent=1)


def taken_apart(given: str) -> tuple[str, str]:
    """Returns (id, secret) of the text of a token; empty texts for anything else."""
    id_, _, secret = given.removeprefix(PREFIX).partition("_")
    return (id_, secret) if given.startswith(PREFIX) and id_ and secret else ("", "")


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
