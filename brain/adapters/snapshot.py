"""The engine's state on disk, so that a restart reads only what came after it.

A snapshot belongs to one log, one position on it, and one version of the engine's code, since other code could have
decided differently. One that does not fit is moved away, and the log is read again from its beginning.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

import agent.contract
import brain.core
from agent.shared import files
from brain.adapters.files import move_away
from brain.core.state import State

FORMAT = 1
_ADAPTER: TypeAdapter[State] = TypeAdapter(State)


class Snapshots:
    """The one snapshot file of a brain."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.of_another_log = False  # the one that `load` found

    def load(self, identity: str) -> tuple[State | None, int, str]:
        """Returns (state, position on the log, why there is none). `identity` is that of the log to be read."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return None, 0, "there is no snapshot"
        try:
            head, _, body = raw.partition(b"\n")
            meta: dict[str, Any] = orjson.loads(head)
            if meta["format"] != FORMAT or meta["code"] != code_version():
                return self._rejected("of another version of gpuward", "version")
            if meta["log"] != identity:
                self.of_another_log = True
                return self._rejected("of another log", "log")
            if meta["sha256"] != hashlib.sha256(body).hexdigest():
                return self._rejected("damaged", "damaged")
            return _ADAPTER.validate_json(body), int(meta["seq"]), ""
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            return self._rejected(f"damaged ({type(error).__name__})", "damaged")

    def _rejected(self, why: str, suffix: str) -> tuple[None, int, str]:
        away = move_away(self._path, suffix)
        return (
            None,
            0,
            f"the snapshot was {why}: moved to {away.name}, the log is read from its beginning",
        )

    def write(self, body: bytes, seq: int, identity: str) -> None:
        """Writes the result of `dump`. OSError: it could not be written, and the old snapshot remains."""
        meta = {
            "format": FORMAT,
            "code": code_version(),
            "log": identity,
            "seq": seq,
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        files.write(self._path, orjson.dumps(meta) + b"\n" + body, sync=True)


def dump(state: State) -> bytes:
    """Serializes the state as it is at this moment."""
    return _ADAPTER.dump_json(state)


def parse(body: bytes) -> State:
    """Returns the state that `dump` serialized."""
    return _ADAPTER.validate_json(body)


@cache
def code_version() -> str:
    """Returns a digest of the code that decides."""
    digest = hashlib.sha256()
    for package in (agent.contract, brain.core):
        for folder in package.__path__:
            for file in sorted(Path(folder).rglob("*.py")):
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
