"""Secrets (seeds, tokens, passwords) are files, never values in a configuration."""

from pathlib import Path

import nkeys

from agent.contract.errors import ConfigError


def secret(path: Path | None, key: str) -> str:
    """The first line of a file with a secret; empty for None. The ConfigError names the configuration key and the file."""
    if path is None:
        return ""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{key}: {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key}: {path} is not text") from error
    if not text:
        raise ConfigError(f"{key}: {path} is empty")
    return text.splitlines()[0].strip()


def nkey_seed(path: Path | None, key: str) -> str:
    """The NKEY seed in a file, as `secret`; the ConfigError also says when it is none."""
    seed = secret(path, key)
    if seed:
        try:
            nkeys.from_seed(bytearray(seed.encode())).wipe()
        except (nkeys.NkeysError, ValueError) as error:
            raise ConfigError(f"{key}: {path} has no NKEY seed (one line that begins with SU)") from error
    return seed
