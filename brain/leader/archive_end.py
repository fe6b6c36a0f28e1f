"""Where the log's archive ends, read from the archive itself: what whoever writes it next begins with."""

from brain.adapters import archive_reader, archive_store
from brain.adapters.archive_store import ArchiveStore
from brain.adapters.log import LogInfo, Record
from brain.adapters.log_file import Damaged, Gap, LogName


class ArchiveEnd:
    """Where an archive ends, and which files come next. Its methods that touch the archive may wait for long."""

    def __init__(self, store: ArchiveStore, cell: str, info: LogInfo) -> None:
        self.store = store
        self.name = LogName(cell=cell, log=info.identity)
        self._cell = cell
        self._info = info
        self._folder = ""
        # It is in the archive up to here
        self.after = 0
        # Since when what is not there is waiting: the time of its last message; None: it has none
        self.at: float | None = None
        # Its newest file, as it was when somebody looked or wrote; "": it has none
        self.newest = ""
        # What was missing before it, or in it, when somebody looked: whoever wrote it may not have come to tell of it
        self.gap: Gap | None = None
        # Its last message, if the log may still have it
        self.last: Record | None = None
        # The file that begins with this position is there and damaged; 0: none is
        self.again = 0
        self.empty = True
        # (kind, text) of notes
        self.news: list[tuple[str, str]] = []

    def look(self) -> None:
        """Reads the end of the archive."""
        self._folder = (self._own() or [archive_store.folder_name(self.name)])[-1]
        segments = self.store.segments(self._cell, self._folder)
        self.empty = not segments
        if not segments:
            return
        newest = segments[-1]
        self.newest = newest.path
        try:
            found = archive_reader.tail(self.store, newest)
        except Damaged as error:
            self._damaged(newest.first, str(error))
            return
        self.after, self.at, self.last = found.end.last, found.end.at, found.record
        if (
            len(segments) > 1 and found.gaps
        ):  # what is missing before its first file is no gap: it began later than the log
            self.gap = found.gaps[0]

    def still_there(self) -> bool:
        """Has the archive still the file that was its newest? False: an older copy was put back, or nothing is mounted."""
        return not self.newest or self.store.has(self.newest)

    def wrote(self, path: str) -> None:
        """This file is its newest now."""
        self.newest, self.empty = path, False

    def compare(self, info: LogInfo) -> bool:
        """Compares with the log as it is now. True: that has lost what the archive has."""
        if self.last is not None and info.first_seq > self.last.seq:
            self.last = None  # as it should be after some time
        return self.after > info.last_seq

    def path(self, first: int) -> str:
        """Of the file that begins with this position."""
        return archive_store.path_of(self._cell, self._folder, first)

    def goes_on_with(self, record: Record) -> bool:
        """The first message that is read should be the archive's last one. False: another one has its position."""
        last, self.last = self.last, None
        if last is None:
            return True
        as_kept = (last.seq, last.at, last.subject, last.body)
        return record.seq != last.seq or (record.seq, record.at, record.subject, record.body) == as_kept

    def begin_anew(self) -> None:
        """NATS has lost its newest messages, and gives their positions again: the log as it is now gets a folder of its own."""
        own = self._own()
        self._folder = archive_store.folder_name(self.name, archive_store.branch_of(own[-1]) + 1)
        self.after, self.at, self.last, self.again, self.empty = 0, None, None, 0, True
        self.newest, self.gap = "", None
        self.news.append(
            (
                "archive.branched",
                f"the log is not the one that {own[-1]} in the archive has: NATS has lost its newest messages, or another brain "
                "of this cell has a log of its own and writes here too, as on the old machine of a cell that was moved: stop "
                f"that one. It is written anew as {self._folder}",
            )
        )

    def _damaged(self, first: int, why: str) -> None:
        if self._info.first_seq <= first:
            self.again, self.after = first, first - 1
            told = "made again from the log"
        else:
            self.after = max(self._info.first_seq - 1, first)
            self.gap = Gap(first=first, last=self.after)
            told = "the log no longer has what was in it: remove it, and the archive has a gap there"
        self.news.append(("archive.damaged", f"{why}: {told}"))

    def _own(self) -> list[str]:
        """The folders of this log, oldest first."""
        first = archive_store.folder_name(self.name)
        return [one for one in self.store.logs(self._cell) if one == first or one.startswith(f"{first}.")]
