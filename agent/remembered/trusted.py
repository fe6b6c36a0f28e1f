"""Whom this node trusts: as it is configured, and then as the brain has announced. Kept over restarts.

What was announced counts for the configuration that it was announced to. When somebody changes that (`gpuward-agent join`, or a
person), the configuration counts again.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.contract.errors import ConfigError
from agent.contract.trust import Trust
from agent.shared import files

MOST_ENDED = 50  # of the keys that have ended only the newest are remembered, for a refusal's text


class Trusted:
    """The keys and authorities in force."""

    def __init__(self, file: Path, *, cell: str, serial: int, keys: Mapping[str, bytes], ca: str) -> None:
        """`serial`, `keys`, `ca`: as configured."""
        self._file = file
        self.cell = cell
        texts = {key_id: base64.b64encode(key).decode() for key_id, key in keys.items()}
        basis = json.dumps([cell, serial, sorted(texts.items()), ca]).encode()
        self._basis = hashlib.sha256(basis).hexdigest()
        # Which keys are configured: another text for others
        self.configured = hashlib.sha256(json.dumps([cell, sorted(texts.values())]).encode()).hexdigest()[:16]
        self.serial = serial
        self.keys = dict(keys)
        self.ca = ca
        self.ended: tuple[str, ...] = ()
        found = files.read_json(file)
        # A file of an agent before 0.2.1 has no check.
        whole = isinstance(found, dict) and found.get("check") in (None, _check(found))
        if whole and found.get("basis") == self._basis:
            with suppress(
                KeyError, TypeError, ValueError, AttributeError
            ):  # damaged: the brain announces it again
                self._remember(found)

    def take(self, trust: Trust) -> None:
        """What was announced is on the disk, and in force. OSError: nothing has changed."""
        ended = tuple(dict.fromkeys([*self.ended, *self.keys]))
        state: dict[str, Any] = {
            "basis": self._basis,
            "serial": trust.serial,
            "keys": dict(trust.keys),
            "ca": trust.ca or self.ca,
            "ended": [one for one in ended if one not in trust.keys][-MOST_ENDED:],
        }
        body = json.dumps(state | {"check": _check(state)}).encode()
        files.write(self._file, body, sync=True, mode=0o640)
        self._remember(state)

    def _remember(self, state: Mapping[str, Any]) -> None:
        serial, ca, ended = int(state["serial"]), str(state["ca"]), tuple(map(str, state["ended"]))
        keys = {key_id: base64.b64decode(text) for key_id, text in state["keys"].items()}
        self.serial, self.keys, self.ca, self.ended = serial, keys, ca, ended


def _check(state: Mapping[str, Any]) -> str:
    """Another one for whatever the disk changes: a key with another bit would be trusted, for ever, and no brain has it."""
    rest = {key: value for key, value in state.items() if key != "check"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def of_config(data_dir: Path, *, cell: str, serial: int, keys: Mapping[str, bytes], ca_file: str) -> Trusted:
    """What the node of this configuration trusts. ConfigError: `ca_file` cannot be read."""
    ca = authorities(ca_file)
    return Trusted(data_dir / "trusted.json", cell=cell, serial=serial, keys=keys, ca=ca)


def authorities(ca_file: str) -> str:
    """PEM of the authorities that are configured; empty: the system's. ConfigError: the file cannot be read."""
    try:
        return Path(ca_file).read_text(encoding="ascii") if ca_file else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        text = f"nats_ca_file: {ca_file} cannot be read: {why}: `gpuward-agent join` with a token writes it (docs/cell.md)"
        raise ConfigError(text) from error
