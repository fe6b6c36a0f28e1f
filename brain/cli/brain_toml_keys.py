"""Sets keys in the text of a brain.toml, and leaves every other line as it is."""

import copy
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.contract.errors import ConfigError
from agent.shared import files
from agent.shared.words import t
from brain import config as brain_config
from brain.cell.authority import Authority
from brain.config import BrainConfig
from brain.console_config import is_address

# table, dotted → key → text, or list of texts
Keys = Mapping[str, Mapping[str, str | Sequence[str]]]


def reachable(config: BrainConfig, authority: Authority, names: Sequence[str]) -> Keys:
    """What brain.toml must say so that nodes and people of other machines reach NATS and the console."""
    everywhere = "::" if any(":" in name for name in names) else "0.0.0.0"
    listens: Keys = {"nats.embedded": {"host": everywhere}} if config.embedded else {}
    return {
        **listens,
        "console": {
            "host": everywhere,
            # Anybody may reach it by an address of this machine; only names must be listed.
            "hosts": [name for name in names if not is_address(name)],
            "tls_cert_file": str(authority.certificate_file),
            "tls_key_file": str(authority.key_file),
        },
    }


def shown(keys: Keys) -> str:
    """The keys as people write them."""
    tables = (
        f"[{table}]\n" + "".join(f"{_line(key, value)}\n" for key, value in values.items())
        for table, values in keys.items()
    )
    return "\n".join(tables)


def changed(path: Path, keys: Keys) -> str:
    """The text of this file with these keys. ConfigError: it cannot be had so that nothing else changes, or is not valid."""
    before = brain_config.read_text(path)
    text = before
    for table, values in keys.items():
        text = _with(text, table, values)
    by_hand = t("{path} was not changed: write these keys yourself:\n\n{shown}", path=path, shown=shown(keys))
    try:
        if tomllib.loads(text) != _merged(tomllib.loads(before), keys):
            raise ConfigError(by_hand)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(by_hand) from error
    brain_config.parse(tomllib.loads(text), str(path), path.resolve().parent)
    return text


@contextmanager
def written(path: Path, text: str) -> Iterator[None]:
    """Replaces the file atomically when what is done inside has succeeded; it keeps its owner and its rights. OSError, before
    anything is done: it cannot be written.
    """
    real = path.resolve()
    was = real.stat()
    draft = real.with_name(f"{real.name}.draft")
    files.write(draft, text.encode(), sync=True, mode=stat.S_IMODE(was.st_mode), whatever_umask=True)
    try:
        if os.geteuid() == 0:
            os.chown(draft, was.st_uid, was.st_gid)
        yield
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    draft.replace(real)


def _line(key: str, value: str | Sequence[str]) -> str:
    return f"{key} = {json.dumps(value)}"


def _merged(raw: dict[str, Any], keys: Keys) -> dict[str, Any]:
    merged = copy.deepcopy(raw)
    for table, values in keys.items():
        place = merged
        for name in table.split("."):
            place = place.setdefault(name, {})
        place.update(values)
    return merged


def _with(text: str, table: str, values: Mapping[str, str | Sequence[str]]) -> str:
    """`text` with these keys in place of what the table says of them, of their commented defaults, or as its first lines."""
    header = re.search(rf"(?m)^[ \t]*\[[ \t]*{re.escape(table)}[ \t]*\][ \t]*(#.*)?$\n?", text)
    if header is None:
        lines = "".join(f"{_line(key, value)}\n" for key, value in values.items())
        return f"{text.rstrip()}\n\n[{table}]\n{lines}"
    following = re.compile(r"(?m)^#?[ \t]*\[").search(text, header.end())
    end = following.start() if following else len(text)
    head, body, rest = text[: header.end()], text[header.end() : end], text[end:]
    for key in reversed(tuple(values)):
        line = _line(key, values[key])
        name = rf"[ \t]*{re.escape(key)}[ \t]*=.*$"
        place = re.search(rf"(?m)^{name}", body) or re.search(rf"(?m)^#{name}", body)
        body = f"{body[: place.start()]}{line}{body[place.end() :]}" if place else f"{line}\n{body}"
    return head + body + rest
