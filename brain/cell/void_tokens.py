"""The tokens taken away, by id, to join by and people's: the brain says them on the log (brain/leader/revoked_nodes.py),
so that a registry or a file of tokens from a backup, in which they still stand, lets nobody in by them.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agent.contract.errors import ConfigError
from brain.locked_file import LockedFile

MOST = 10_000  # beyond it the oldest are dropped; they end by themselves, a day after they were made unless somebody wants more


class VoidToken(BaseModel):
    """One of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    # the operator
    by: str
    # seconds since 1970 by this machine's clock
    at: float


_FILE = TypeAdapter(dict[str, VoidToken])


class VoidTokens:
    """The file of one cell, beside its registry: an earlier version, which does not know it, reads that as ever."""

    def __init__(self, registry: Path) -> None:
        path = registry.with_name("void.json")
        self._file = LockedFile[Mapping[str, VoidToken]](
            path, parse=partial(_parse, path), dump=_dump, empty=dict
        )

    def all(self) -> Mapping[str, VoidToken]:
        """Returns id -> token. ConfigError: the file could never be read."""
        return self._file.value()

    def add(self, id_: str, *, by: str, at: float) -> None:
        """This one counts no more. ConfigError: it cannot be written."""
        one = VoidToken(by=by, at=at)
        self._file.change(lambda found: dict([*found.items(), (id_, one)][-MOST:]))


def _parse(path: Path, body: bytes) -> Mapping[str, VoidToken]:
    try:
        return _FILE.validate_json(body)
    except ValidationError as error:
        raise ConfigError(f"{path} cannot be read: put it back from your backup, or remove it") from error


def _dump(found: Mapping[str, VoidToken]) -> bytes:
    return _FILE.dump_json(dict(found), indent=1)
