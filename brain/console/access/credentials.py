"""From what a request shows to the person who sends it."""

import errno
import hmac
import logging
import os
import pwd
import re
import secrets
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared import files
from brain.console.access import local_token
from brain.console.access.people import STARTER, Grant, Person, grant
from brain.console.access.tokens import Token, Tokens
from brain.console.access.users import Users
from brain.console_config import ConsoleConfig, Role, is_name
from brain.core.state import GPUWARD

OPEN = "anyone on this machine"  # who reads over loopback without a token
ROOT = "root"
UNNAMED = "local-user"  # a user of the machine whose name cannot stand in the log
_log = logging.getLogger(__name__)


class Credentials:
    """The people that this brain knows, by their tokens."""

    def __init__(
        self,
        config: ConsoleConfig,
        data_dir: Path,
        users: Users,
        now: Callable[[], float],
        revoked: Callable[[], Container[str]] = tuple,
    ) -> None:
        """`now`: seconds since 1970, by this machine's clock. `revoked`: the ids of tokens that the log says were taken away;
        the file may still have them, if it was put back from a backup, or is another brain's.
        """
        self._revoked = revoked
        self._config = config
        self.users = users
        self._data_dir = data_dir
        self.now = now
        self.tokens = Tokens(config.tokens_file or data_dir / "tokens.json")
        self._local = secrets.token_urlsafe(32)
        self._written: list[Path] = []

    def look(self) -> None:
        """Reads who the people are: what is known of them counts while the disk hangs."""
        with suppress(ConfigError):
            self.tokens.trouble()
            self.users.trouble()

    def publish_local(self, port: int) -> None:
        """Writes the token of whoever started this brain to its files. ConfigError: the data folder takes none. That it is full
        keeps no brain from leading: its own user needs a token then.
        """
        own = local_token.of_user()
        path = self._data_dir / local_token.name(port)
        try:
            files.write(path, self._local.encode(), mode=0o600)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise ConfigError(
                    f"{path}: {error.strerror}: make data_dir writable for the brain"
                ) from error
            _log.error(
                "%s: %s: the command line finds no token there until the next start", path, error.strerror
            )
        self._written.append(path)
        with suppress(OSError):  # e.g. a service without a home: its user finds the file in the data folder
            if own is not None:
                own.mkdir(mode=0o700, parents=True, exist_ok=True)
                files.write(own / local_token.name(port), self._local.encode(), mode=0o600)
                self._written.append(own / local_token.name(port))

    def withdraw_local(self) -> None:
        """Removes those files, unless another brain has replaced them."""
        for path in self._written:
            with suppress(OSError):
                if path.read_text(encoding="ascii") == self._local:
                    path.unlink()
        self._written.clear()

    def person(self, given: str) -> Person | None:
        """Returns whose token this is; None: nobody's, any more. ConfigError: the tokens were never read, so nobody can tell."""
        if hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._local.encode()):
            return Person(name=_login_name(), grants=(Grant(role=Role.ADMINISTRATOR),), how=STARTER)
        token = self.tokens.find(given, self.now())
        if token is None or token.id in self._revoked():
            return None
        limit = Grant(role=token.role, scopes=token.scopes, runbooks=token.runbooks)
        user = self.users.now().get(token.user)
        if user is not None and not token.login:
            return Person(
                name=token.user, grants=(grant(user),), limit=limit, how=f"token {token.id}", token=token.id
            )
        return (
            Person(name=token.user, grants=(limit,), how=f"token {token.id}", token=token.id)
            if token.login
            else None
        )

    def void(self, token: Token) -> str:
        """Why a token counts no more, though it stands in the file; empty: it counts."""
        if self.now() >= token.expires_at:
            return "its time is over"
        if token.id in self._revoked():
            return "it was revoked, and this file is older, or another brain's"
        if token.login or token.user in self.users.now():
            return ""
        return f"{token.user} is not in brain.toml"

    def open_reader(self) -> Person | None:
        """Returns who reads without a token; None: nobody may."""
        config = self._config
        if not (config.loopback and config.open_reading) or config.trusted_proxies:
            return None
        return Person(name=OPEN, grants=(Grant(role=Role.VIEWER),))


def _login_name() -> str:
    """The name of the user who runs this brain, by the kernel's number and the machine's list of users.

    The user of the packages' unit is the product's own name, by which the log says what no person has done; nobody logs in as it,
    and its token is read by root. So what is done with that is root's.
    """
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"uid-{os.getuid()}"
    if name == GPUWARD:
        return ROOT
    clean = re.sub(r"[^A-Za-z0-9._@-]", "-", name)[:64]
    return clean if is_name(clean) else UNNAMED
