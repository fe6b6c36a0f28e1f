"""Secrets (seeds, tokens, passwords) are files, never values in a configuration.

One that every user of the machine can read is used, with a warning: containers are given their secrets so, and a brain that does
not start heals nothing.
"""

import functools
import logging
import os
import pwd
from pathlib import Path

import nkeys

from agent.contract.errors import ConfigError

_log = logging.getLogger(__name__)


def warn_if_open(path: Path) -> None:
    """Warns, once for each file, when every user of this machine can read or change it."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        return
    if mode & 0o007:
        _warn(path, mode)


@functools.lru_cache(maxsize=1000)
def _warn(path: Path, mode: int) -> None:
    _log.warning(
        "%s has mode %04o, and it is a secret: every user of this machine can use it. `chmod 600 %s`",
        path,
        mode,
        path,
    )


def secret(path: Path | None, key: str) -> str:
    """The first line of a file with a secret; empty for None. The ConfigError names the configuration key and the file."""
    line = first_line(path, key)
    if path is not None:
        warn_if_open(path)
    return line


def first_line(path: Path | None, key: str) -> str:
    """As `secret`, of a file that everybody may read."""
    if path is None:
        return ""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except PermissionError as error:
        raise ConfigError(
            f"{key}: {path} cannot be read: {error.strerror}: this runs as {_name(os.geteuid())}, {_whose(path)}"
        ) from error
    except OSError as error:
        raise ConfigError(f"{key}: {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key}: {path} is not text") from error
    if not text:
        raise ConfigError(f"{key}: {path} is empty")
    return text.splitlines()[0].strip()


def _whose(path: Path) -> str:
    """Whose file it is, and what to do about it."""
    try:
        found = path.stat()
    except OSError:
        return "who may not enter its folder: start it as the user to whom that belongs"
    owner = _name(found.st_uid)
    return f"and the file is {owner}'s (mode {found.st_mode & 0o777:04o}): start it as {owner}, or `chown` the file"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def nkey_seed(path: Path | None, key: str) -> str:
    """The NKEY seed in a file, as `secret`; the ConfigError also says when it is none."""
    seed = secret(path, key)
    if seed:
        try:
            check_seed(seed.encode())
        except (nkeys.NkeysError, ValueError) as error:
            raise ConfigError(f"{key}: {path} has no NKEY seed (one line that begins with SU)") from error
    return seed


def check_seed(seed: bytes) -> None:
    """NkeysError, ValueError: it is no NKEY seed, or not the one that was made. It ends with a sum, which the library does not
    look at: a seed with another bit is a key that no server knows.
    """
    prefix, raw = nkeys.decode_seed(seed)
    if nkeys.encode_seed(bytes(raw), prefix) != seed.rstrip(b"="):
        raise ValueError("its sum is wrong: it was damaged")
