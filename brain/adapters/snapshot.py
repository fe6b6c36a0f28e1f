"""The engine's state on disk, so that a restart reads only what came after it.

A snapshot belongs to one log and one position on it. It outlives the version of gpuward that wrote it: what was open, held and
drained stays so over an upgrade, also when the log no longer reaches back so far (docs/decisions/0043). One that cannot be used
is moved away, and the next best is taken: the copy that the leader keeps in NATS (brain/adapters/state_copy.py), or what an
earlier version left.
"""

import contextlib
import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from agent import __version__
from agent.shared import files
from brain.adapters.files import move_away
from brain.core.state import State

# Of the state. A field that is added has a default, and leaves it as it is; any other change makes it one more, and reads the
# ones before. tests/fixtures/releases has a snapshot of each version.
FORMAT = 1
EARLIER = 2  # snapshots of earlier versions that are kept, to go back to
_REPLAYED = "replayed"
_HEAD = "head"  # of what else the head says: another position would leave out inputs of the log, or take them twice
_ADAPTER: TypeAdapter[State] = TypeAdapter(State)


class _Unfit(Exception):
    """This snapshot cannot be used. `suffix`: of the name under which it is put away."""

    def __init__(self, why: str, suffix: str) -> None:
        super().__init__(why)
        self.suffix = suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The newest state that could be read, or None; its position on the log; and why it is not the one on disk ("": it is)."""

    state: State | None
    seq: int
    why: str


class Snapshots:
    """The snapshot file of a brain, and what earlier versions left beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.of_another_log = False  # the one that `load` found
        self._replaces_earlier = True  # what is on disk may be of an earlier version

    def load(self, identity: str, copy: bytes = b"", first_seq: int = 0) -> Loaded:
        """Returns the state of the log with this identity from which to go on: on disk, or in `copy`, or left by an earlier
        version. The one on disk, however old, where the log still has all that comes after it (`first_seq`: its first message):
        what a newer copy skips would never be in the history. And where it was replayed: a person has put it there, and a brain
        that had lost its state has made the copy.
        """
        own, why = self._own(identity)
        if own is not None and (own[1] + 1 >= first_seq > 0 or self._replayed()):
            copy = b""
        if copy and (own is None or _seq(copy) > own[1]) and (taken := _read_or_none(copy, identity)):
            why = f"{why or 'the snapshot was older'}: the copy in NATS is used"
            return Loaded(state=taken[0], seq=taken[1], why=why)
        if own is not None:
            return Loaded(state=own[0], seq=own[1], why="")
        for path in self._earlier():
            with contextlib.suppress(OSError):
                if left := _read_or_none(path.read_bytes(), identity):
                    return Loaded(state=left[0], seq=left[1], why=f"{why}: {path.name} is used")
        return Loaded(state=None, seq=0, why=f"{why}: the log is read from its beginning")

    def newer(self, copy: bytes, identity: str, seq: int) -> bool:
        """Whether `load` would find in this copy a state behind a position of the log with this identity."""
        return _seq(copy) > seq and _read_or_none(copy, identity) is not None

    def write(self, body: bytes, seq: int, identity: str, *, replayed: bool = False) -> None:
        """Writes the result of `dump`. `replayed`: out of a log that was written down. OSError: it could not be written, and the
        old snapshot remains.
        """
        if self._replaces_earlier:
            self._keep_earlier()
            self._replaces_earlier = False
        files.write(self._path, packed(body, seq, identity, replayed=replayed), sync=True)

    def _replayed(self) -> bool:
        """Whether the one on disk, which was read already, is out of `gpuward log replay`. The brain's next one is not."""
        with self._path.open("rb") as source:
            return orjson.loads(source.readline()).get(_REPLAYED) is True

    def _own(self, identity: str) -> tuple[tuple[State, int] | None, str]:
        try:
            raw = _content(self._path)
        except FileNotFoundError:
            return None, "there is no snapshot"
        except OSError as error:
            return None, f"the snapshot cannot be read ({error.strerror}){self._put_away()}"
        try:
            return _read(raw, identity), ""
        except _Unfit as unfit:
            self.of_another_log = unfit.suffix == "log"
            away = move_away(self._path, unfit.suffix)
            return None, f"the snapshot was {unfit}, moved to {away.name}"

    def _put_away(self) -> str:
        """What cannot be read would stand in the way of the next one, too, if it is a folder."""
        try:
            return f", moved to {move_away(self._path, 'damaged').name}"
        except OSError as error:
            return f", and not moved away ({error.strerror})"

    def _keep_earlier(self) -> None:
        """Puts away what another version wrote."""
        try:
            with self._path.open("rb") as source:
                version = str(orjson.loads(source.readline())["version"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        if version == __version__ or not version.replace(".", "").isalnum():
            return
        move_away(self._path, f"of-{version}")
        for path in self._earlier()[EARLIER:]:
            path.unlink(missing_ok=True)

    def _earlier(self) -> list[Path]:
        """What earlier versions left, newest first."""
        return sorted(
            self._path.parent.glob(f"{self._path.name}.of-*"),
            key=lambda path: path.lstat().st_mtime,  # also of a link that leads nowhere
            reverse=True,
        )


def _content(path: Path) -> bytes:
    """OSError: it cannot be read, or is no file: a pipe would be waited for."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return source.read()


def packed(body: bytes, seq: int, identity: str, *, replayed: bool = False) -> bytes:
    """A snapshot from the result of `dump`: a line of JSON that says what it is, and the state."""
    meta: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "log": identity,
        "seq": seq,
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    if replayed:
        meta[_REPLAYED] = True
    return orjson.dumps(meta | {_HEAD: _digest_of_head(meta)}) + b"\n" + body


def dump(state: State) -> bytes:
    """Serializes the state as it is at this moment."""
    return _ADAPTER.dump_json(state)


def parse(body: bytes) -> State:
    """Returns the state that `dump` serialized."""
    return _ADAPTER.validate_json(body)


def _read(raw: bytes, identity: str) -> tuple[State, int]:
    try:
        head, _, body = raw.partition(b"\n")
        meta: dict[str, Any] = orjson.loads(head)
        if not isinstance(meta["format"], int) or meta["format"] > FORMAT:
            raise _Unfit(f"of a newer version of gpuward ({str(meta.get('version'))[:20]})", "newer")
        # Those of 0.1 have no check of their head.
        check = meta.pop(_HEAD, None)
        unchecked = check is None and str(meta["version"]).startswith("0.1.")
        if not unchecked and check != _digest_of_head(meta):
            raise _Unfit("damaged", "damaged")
        if meta["log"] != identity:
            raise _Unfit("of another log", "log")
        if meta["sha256"] != hashlib.sha256(body).hexdigest():
            raise _Unfit("damaged", "damaged")
        return parse(body), int(meta["seq"])
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise _Unfit(f"damaged ({type(error).__name__})", "damaged") from error


def _digest_of_head(meta: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(meta)).hexdigest()


def _seq(raw: bytes) -> int:
    try:
        return int(orjson.loads(raw.partition(b"\n")[0])["seq"])
    except (ValueError, KeyError, TypeError):
        return 0


def _read_or_none(raw: bytes, identity: str) -> tuple[State, int] | None:
    try:
        return _read(raw, identity)
    except _Unfit:
        return None
