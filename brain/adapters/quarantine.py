"""Remembers which input is being handled, so that one that crashes the brain twice is quarantined.

The marker is a memory-mapped file: writing it costs next to nothing, and it survives any death of the process. It may
be lost in a power failure, which no input caused. On a disk that hangs even this would wait for ever: it lies in memory
(the runtime directory that systemd or Kubernetes gives) where there is such a place.
"""

import mmap
import struct
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared import files

MAX_CRASHES = 2  # an input is quarantined after so many crashes while it was handled
_SEQ = struct.Struct("<Q")
_MARKER, _LEDGER = "handling.mark", "quarantine.json"
_OLD_LEDGER, _OLD_KEY = "deaths.json", "deaths"  # their names in version 0.1, read until 0.3


class Quarantine:
    """Call `begin` and `end` around each input. The inputs in `quarantined` must not be handled."""

    def __init__(self, folder: Path, identity: str, *, runtime: Path | None = None) -> None:
        """`identity` is that of the log: positions on another log are other inputs. `runtime`: a folder in memory that outlives
        this process; None: there is none. ConfigError: not writable.
        """
        self._path = (runtime or folder) / _MARKER
        self._ledger = folder / _LEDGER
        self._identity = identity
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if not self._path.exists() or self._path.stat().st_size != _SEQ.size:
                self._path.write_bytes(bytes(_SEQ.size))
            with self._path.open("r+b") as file:
                self._marker = mmap.mmap(file.fileno(), _SEQ.size)
            left = 0 if runtime is None else _left_in(folder / _MARKER)
        except OSError as error:
            where = "data_dir" if runtime is None else "RUNTIME_DIRECTORY"
            raise ConfigError(f"{self._path}: {error.strerror}: {where} must be writable") from error
        self._crashes = _read(self._ledger, identity)
        self.quarantined = self._quarantined()  # positions on the log
        (seq,) = _SEQ.unpack_from(self._marker)
        for crashed in filter(None, (seq, left)):
            self.count_crash(crashed)
        self.end()

    def begin(self, seq: int) -> None:
        """Marks this input as being handled."""
        _SEQ.pack_into(self._marker, 0, seq)

    def end(self) -> None:
        """Clears the mark: the input was handled."""
        _SEQ.pack_into(self._marker, 0, 0)

    def count_crash(self, seq: int) -> int:
        """Counts a crash; returns how many this input has caused so far."""
        self._crashes[seq] = self._crashes.get(seq, 0) + 1
        crashes = {str(seq): times for seq, times in self._crashes.items()}
        files.write_json(self._ledger, {"log": self._identity, "crashes": crashes}, sync=True)
        self.quarantined = self._quarantined()
        return self._crashes[seq]

    def close(self) -> None:
        """Releases the mapping."""
        self._marker.close()

    def _quarantined(self) -> frozenset[int]:
        return frozenset(seq for seq, times in self._crashes.items() if times >= MAX_CRASHES)


def _left_in(path: Path) -> int:
    """The mark that a run without a runtime directory has left, which is taken away; 0: none."""
    if not path.exists():
        return 0
    body = path.read_bytes()
    path.unlink()
    return int(_SEQ.unpack(body)[0]) if len(body) == _SEQ.size else 0


def _read(ledger: Path, identity: str) -> dict[int, int]:
    """Crashes by position; empty when there is no ledger of this log, or it is damaged."""
    raw = files.read_json(ledger) or files.read_json(ledger.with_name(_OLD_LEDGER))
    try:
        crashes = raw["crashes"] if "crashes" in raw else raw[_OLD_KEY]
        return {int(seq): int(times) for seq, times in crashes.items()} if raw["log"] == identity else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
