"""Remembers which input was being handled, so that one which kills the brain twice is set aside.

The marker lies in a memory-mapped file: writing it costs next to nothing, and it outlives any death of the
process (not a power cut, which is nobody's poison).
"""

import mmap
import struct
from pathlib import Path

import orjson

from agent.contract.errors import ConfigError
from brain.adapters.files import write_atomically

DEATHS = 2  # an input that was being handled at so many deaths is set aside
_SEQ = struct.Struct("<Q")


class Poison:
    """`begin` and `end` around each input; `set_aside` says which ones must not be handled any more."""

    def __init__(self, folder: Path, identity: str) -> None:
        """`identity` is that of the log: numbers of another log mean nothing here."""
        self._path = folder / "handling.mark"
        self._ledger = folder / "deaths.json"
        self._identity = identity
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if not self._path.exists() or self._path.stat().st_size != _SEQ.size:
                self._path.write_bytes(bytes(_SEQ.size))
            with self._path.open("r+b") as file:
                self._mark = mmap.mmap(file.fileno(), _SEQ.size)
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}: data_dir must be writable") from error
        self._deaths = self._read()
        self.set_aside = self._fatal()  # places on the log whose input killed the brain too often
        (seq,) = _SEQ.unpack_from(self._mark)
        if seq:
            self.died(seq)
            self.end()

    def _fatal(self) -> frozenset[int]:
        return frozenset(seq for seq, times in self._deaths.items() if times >= DEATHS)

    def begin(self, seq: int) -> None:
        """This input is being handled."""
        _SEQ.pack_into(self._mark, 0, seq)

    def end(self) -> None:
        """It did not kill us."""
        _SEQ.pack_into(self._mark, 0, 0)

    def died(self, seq: int) -> int:
        """Counts a death; how often this input has killed so far."""
        self._deaths[seq] = self._deaths.get(seq, 0) + 1
        body = {"log": self._identity, "deaths": {str(key): times for key, times in self._deaths.items()}}
        write_atomically(self._ledger, orjson.dumps(body))
        self.set_aside = self._fatal()
        return self._deaths[seq]

    def close(self) -> None:
        """Frees the mapping."""
        self._mark.close()

    def _read(self) -> dict[int, int]:
        try:
            raw = orjson.loads(self._ledger.read_bytes())
            if raw["log"] != self._identity:
                return {}
            return {int(seq): int(times) for seq, times in raw["deaths"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # none yet, or unreadable: then counting begins again
