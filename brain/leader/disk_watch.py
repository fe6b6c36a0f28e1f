"""Tells people when this brain's own disk takes nothing: what stops, what goes on, and who must do what (decision 62)."""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.shared.tasks import abandonable
from brain.adapters.disk import DiskState, DiskTrial, try_disk
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.history import HistoryWriter

DISK = "brain_disk"
_BEFORE = "history_unwritten"  # its name until 0.2: pages of then are over when this one is
EVERY_S = 10.0  # between trials of a disk that is well
AGAIN_S = 1.0  # of one that is not
HANGS_S = 5.0  # so long a write may take
TELL_AFTER_S = 10.0  # what passes by itself is no page
TODO: Mapping[DiskState, str] = {
    DiskState.FULL: "Make room on it",
    DiskState.READ_ONLY: "See why it can only be read (`dmesg` names errors of the file system), mend it, and mount it for "
    "writing again",
    DiskState.DENIED: "Give the folder and what is in it back to the brain's user (`chown -R`, as root)",
    DiskState.FAILING: "See `dmesg`; replace the disk, or whatever it is behind",
    DiskState.HANGING: "See `dmesg`, and the storage that it is on: a file server, a path to it, a frozen file system",
}


def said_of(found: DiskTrial, since_s: float = HANGS_S) -> str:
    """What is wrong with a disk that is not well, in a few words. `since_s`: so long one that hangs has not answered."""
    match found.state:
        case DiskState.FULL:
            return f"is full ({found.why})"
        case DiskState.READ_ONLY:
            return f"can only be read ({found.why})"
        case DiskState.DENIED:
            return f"is not this brain's to write ({found.why})"
        case DiskState.FAILING:
            return f"{'fails' if found.readable else 'cannot be read'} ({found.why})"
    return f"hangs: no write has returned for {since_s:.0f} s"


class DiskWatch:
    """Tries the data folder every so often, beside the event loop; a trial that does not return is one that hangs."""

    def __init__(
        self,
        folder: Path,
        *,
        history: HistoryWriter,
        alerts: BrainAlerts,
        with_log: bool,
        trial: Callable[[Path], DiskTrial] = try_disk,
    ) -> None:
        """`with_log`: NATS keeps the log on the same disk."""
        self._folder = folder
        self._history = history
        self._alerts = alerts
        self._with_log = with_log
        self._trial = trial
        self._under_way: asyncio.Task[DiskTrial] | None = None
        self._began_s = 0.0
        self._ill_since_s: float | None = None
        self._last = DiskTrial(state=DiskState.WELL)  # that has returned
        self._hangs = False

    @property
    def state(self) -> DiskState:
        """How it is, as far as is known."""
        return DiskState.HANGING if self._hangs else self._last.state

    @property
    def states(self) -> Mapping[str, bool]:
        """Each state, and whether it is in it."""
        now = self.state
        return {one.value: one is now for one in DiskState}

    @property
    def hangs(self) -> bool:
        """Has the trial that is under way not returned in time?"""
        return self._hangs

    @property
    def readable(self) -> bool:
        """Can files on it be read, as far as is known?"""
        return self._last.readable

    @property
    def free_bytes(self) -> int | None:
        """Bytes left when it was tried last; None: not known."""
        return self._last.free_bytes

    @property
    def trouble(self) -> str:
        """What is wrong with it, in a few words; empty: nothing."""
        match self.state:
            case DiskState.HANGING:
                hangs = DiskTrial(state=DiskState.HANGING)
                return said_of(hangs, time.monotonic() - self._began_s)
            case DiskState.WELL:
                return f"does not take the history ({self._history.refused})" if self._history.refused else ""
        return said_of(self._last)

    async def serve(self) -> None:
        """Tries it, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(AGAIN_S if self.trouble else EVERY_S)

    async def look(self) -> None:
        """Tries it once, and waits no longer for it than HANGS_S; tells people what is new."""
        if self._under_way is None:
            self._began_s = time.monotonic()
            self._under_way = asyncio.create_task(abandonable(lambda: self._trial(self._folder), "disk"))
        done, _ = await asyncio.wait({self._under_way}, timeout=AGAIN_S if self._hangs else HANGS_S)
        if done:
            self._last, self._under_way = self._under_way.result(), None
        self._hangs = not done
        self._tell()

    def _tell(self) -> None:
        now_s, trouble = time.monotonic(), self.trouble
        if not trouble:
            self._ill_since_s = None
            self._alerts.clear(DISK)
            self._alerts.clear(_BEFORE)
            return
        if self._ill_since_s is None:
            self._ill_since_s = self._began_s if self._hangs else now_s
        if now_s - self._ill_since_s >= TELL_AFTER_S:
            self._alerts.open(DISK, self._text(trouble))

    def _text(self, trouble: str) -> str:
        state = self.state if self.state is not DiskState.WELL else DiskState.FULL
        lead = "" if self.readable else "If another brain can read its files, it takes the lead. "
        behind = f" ({self._history.behind} inputs behind)" if self._history.behind else ""
        log = (
            "NATS keeps the log on the same disk: what it cannot store there is not healed. "
            if self._with_log
            else "Faults are healed and paged all the same, and the log in NATS keeps everything. "
        )
        return (
            f"the disk of this brain's data folder {self._folder} {trouble}. The history{behind}, snapshots of the state and "
            f"what people say while NATS is away are not written. {log}{lead}{TODO[state]}: the history then catches up by "
            "itself; do not restart this brain before that"
        )
