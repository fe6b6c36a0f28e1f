"""The tokens that people have: a file with their hashes, which is read again when it changes.

A token is `gw_<id>_<secret>` with 256 random bits, so one round of SHA-256 is enough: nobody can guess through them. The
file holds no token, only hashes, ids, names, limits and times; a token whose line is gone is worth nothing from the
next request on.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agent.contract.errors import ConfigError
from agent.shared import files
from brain.console_config import Role

PREFIX = "gw_"
MOST = 10_000  # tokens in one file


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
    expires_at: float


_FILE = TypeAdapter(tuple[Token, ...])


class Tokens:
    """One file of tokens. Several brains may share it: each change takes its lock and replaces it whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._by_id: dict[str, Token] = {}

    def all(self) -> list[Token]:
        """Returns every token, the oldest first. ConfigError: the file cannot be read."""
        self._refresh()
        return sorted(self._by_id.values(), key=lambda one: (one.made_at, one.id))

    def find(self, given: str, now: float) -> Token | None:
        """Returns the token that somebody has shown, if it is one and has not expired."""
        id_, secret = taken_apart(given)
        self._refresh()
        token = self._by_id.get(id_)
        known = token.hash if token else _hashed("")  # an unknown id takes as long as a wrong secret
        right = hmac.compare_digest(_hashed(secret), known)
        return token if token and right and now < token.expires_at else None

    def known(self, given: str) -> bool:
        """Is there a token with the id of this one?"""
        return taken_apart(given)[0] in self._by_id

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
    ) -> tuple[Token, str]:
        """Makes a token; returns its line and the text that only its user gets, once. ConfigError: it cannot be kept."""
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
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
            expires_at=now + lasts_s,
        )

        def add(found: list[Token]) -> list[Token]:
            kept = [one for one in found if now < one.expires_at]
            if len(kept) >= MOST:
                raise ConfigError(f"{self._path} holds {MOST} tokens: revoke some")
            return [*kept, token]

        self._change(add)
        return token, f"{PREFIX}{id_}_{secret}"

    def revoke(self, ids: set[str]) -> list[Token]:
        """Takes tokens away at once; returns those that there were. ConfigError: the file cannot be written."""
        gone: list[Token] = []

        def drop(found: list[Token]) -> list[Token]:
            gone.extend(one for one in found if one.id in ids)
            return [one for one in found if one.id not in ids]

        self._change(drop)
        return gone

    def _refresh(self) -> None:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            self._seen, self._by_id = None, {}
            return
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}") from error
        seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if seen != self._seen:
            # What cannot be read lets nobody in; the error says so once for each change of the file.
            self._seen, self._by_id = seen, {}
            self._by_id = {one.id: one for one in self._read()}

    def _read(self) -> list[Token]:
        try:
            return list(_FILE.validate_json(self._path.read_bytes()))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}") from error
        except ValidationError as error:
            raise ConfigError(
                f"{self._path} is not a file of tokens ({error.error_count()} errors): restore it"
            ) from error

    def _change(self, change: Callable[[list[Token]], list[Token]]) -> None:
        with self._locked():
            body = _FILE.dump_json(tuple(change(self._read())), indent=1)
            try:
                files.write(self._path, body, sync=True, mode=0o600)
            except OSError as error:
                raise ConfigError(f"{self._path}: {error.strerror}") from error
        self._refresh()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self._path.with_name(self._path.name + ".lock")
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"{lock}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def taken_apart(given: str) -> tuple[str, str]:
    """Returns (id, secret) of the text of a token; empty texts for anything else."""
    id_, _, secret = given.removeprefix(PREFIX).partition("_")
    return (id_, secret) if given.startswith(PREFIX) and id_ and secret else ("", "")


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
