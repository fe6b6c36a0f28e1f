"""Reads a log that was written down: a file of `gpuward log export`, or an archive. Who replays one, reads it here.

Whatever it is made of, it comes as one file would (brain.adapters.log_file): its head, its messages in order and each once, gaps
where messages are missing, and its end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.contract.errors import ConfigError
from brain.adapters import archive_store, log_file
from brain.adapters.archive_store import ArchiveStore, Segment
from brain.adapters.log import Record
from brain.adapters.log_file import Damaged, End, Gap, Head, Part

_PIECE = 1024**2
CLOCKS_S = 86_400.0  # the store's clock, which dates the files, may be so far behind that of NATS


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFile:
    """The last file of a log in an archive, which was read to its end."""

    end: End
    # The last message of it; None: it has none
    record: Record | None
    # What it says is missing
    gaps: tuple[Gap, ...]


def file_parts(path: Path) -> Iterator[Part]:
    """Yields what a file has. Damaged, ContractError: see log_file.read. ConfigError: it cannot be read."""
    return log_file.read(_pieces(path), str(path))


def archive_parts(
    store: ArchiveStore, cell: str, log: str, *, first: int = 0, since: float = 0.0
) -> Iterator[Part]:
    """Yields what an archive has of one log, from a position and a time on (seconds since 1970), or a little before them.

    Files that overlap, as two brains with different settings may have written them, give each message once; where one is
    missing there is a gap. Damaged: one of them is; Unreachable: the archive is.
    """
    last: int | None = None
    end = End(last=0, at=0.0, messages=0)
    messages = 0
    for segment in _wanted(store.segments(cell, log), first, since):
        for part in log_file.read(store.pieces(segment.path), f"{store.url}/{segment.path}"):
            match part:
                case Head():
                    if part.first != segment.first:
                        raise Damaged(f"{store.url}/{segment.path}: begins with message {part.first}")
                    made = archive_store.folder_name(part.name, archive_store.branch_of(log))
                    if (part.name.cell, made) != (cell, log):
                        raise Damaged(f"{store.url}/{segment.path}: is of {part.name.cell}/{made}")
                    if last is None:
                        last = part.first - 1
                        yield part
                    elif part.first > last + 1:
                        yield Gap(first=last + 1, last=part.first - 1)
                        last = part.first - 1
                case Gap() if last is not None and part.last > last:
                    yield Gap(first=last + 1, last=part.last)
                    last = part.last
                case Record() if last is not None and part.seq > last:
                    yield part
                    last, messages = part.seq, messages + 1
                case End():
                    end = part
    if last is None:
        raise Damaged(f"{store.url}: there is nothing of {cell}/{log} in it")
    yield End(last=last, at=end.at, messages=messages)


def tail(store: ArchiveStore, segment: Segment) -> LastFile:
    """Reads the last file of a log. Damaged: it is."""
    record: Record | None = None
    end = End(last=0, at=0.0, messages=0)
    gaps: list[Gap] = []
    for part in log_file.read(store.pieces(segment.path), f"{store.url}/{segment.path}"):
        if isinstance(part, Record):
            record = part
        elif isinstance(part, Gap):
            gaps.append(part)
        elif isinstance(part, End):
            end = part
    return LastFile(end=end, record=record, gaps=tuple(gaps))


def between(parts: Iterable[Part], since: float, until: float) -> Iterator[Part]:
    """Passes on what is from `since` on and before `until`, by the server's time (seconds since 1970)."""
    begun = since <= 0
    last, at, messages = 0, 0.0, 0
    for part in parts:
        match part:
            case Head() if begun:
                last = part.first - 1
                yield part
            case Head():
                head = part
            case Gap() if begun:
                last = part.last
                yield part
            case Record():
                if part.at >= until:
                    break
                if not begun and part.at >= since:
                    begun = True
                    yield Head(name=head.name, first=part.seq)
                if begun:
                    last, at, messages = part.seq, part.at, messages + 1
                    yield part
    if not begun:
        raise ConfigError("nothing of it is as new as that (--since)")
    yield End(last=last, at=at, messages=messages)


def _wanted(segments: Sequence[Segment], first: int, since: float) -> Iterator[Segment]:
    """Leaves out files whose messages are all before a position or a time."""
    for number, segment in enumerate(segments):
        behind = segments[number + 1].first if number + 1 < len(segments) else None
        if behind is not None and (behind <= first or segment.written_at.timestamp() + CLOCKS_S < since):
            continue
        yield segment


def _pieces(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as source:
            while piece := source.read(_PIECE):
                yield piece
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
