"""What people have done to a cell by `gpuward cell`, until the brain has noted it: the command works also while no brain runs."""

from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.contract.errors import ConfigError
from brain.locked_file import LockedFile

MOST = 1000  # beyond it the oldest are dropped: no brain has run for long


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Deed(_Model):
    """What somebody has done."""

    by: str
    # seconds since 1970 by this machine's clock
    at: float
    text: str


class _Journal(_Model):
    deeds: tuple[Deed, ...] = ()


class CellJournal:
    """The file of one cell, which the brain and `gpuward cell` share."""

    def __init__(self, cell_dir: Path) -> None:
        path = cell_dir / "journal.json"
        self._file = LockedFile(path, parse=partial(_parse, path), dump=_dump, empty=_Journal)

    def add(self, deed: Deed) -> None:
        """Writes one down. ConfigError: it cannot be written."""
        self._file.change(lambda found: _Journal(deeds=(*found.deeds, deed)[-MOST:]))

    def deeds(self) -> tuple[Deed, ...]:
        """Those that were not noted yet, the oldest first. ConfigError: the file cannot be read."""
        return self._file.value().deeds

    def drop(self, noted: tuple[Deed, ...]) -> None:
        """These were noted. ConfigError as of `add`."""
        self._file.change(lambda found: _Journal(deeds=tuple(one for one in found.deeds if one not in noted)))


def _parse(path: Path, body: bytes) -> _Journal:
    try:
        return _Journal.model_validate_json(body)
    except ValidationError as error:
        raise ConfigError(
            f"{path} cannot be read: remove it; only notes of the last commands are lost"
        ) from error


def _dump(journal: _Journal) -> bytes:
    return journal.model_dump_json(indent=1).encode()
