"""Puts the rules on disk into force: publishes each usable pack to the log, while this brain leads."""

from collections.abc import Sequence

from brain.adapters.packwatch import PackWatch
from brain.core.inputs import PackLoaded
from brain.core.pack.spec import Pack
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica

MAX_NOTES = 20  # lines about one pack


class PackUpdates:
    """Publishes the usable packs that the file watch finds, and notes what is wrong with the others."""

    def __init__(
        self,
        *,
        watch: PackWatch,
        replica: Replica,
        leadership: Leadership,
        writer: LogWriter,
        notes: BrainNotes,
        alerts: BrainAlerts,
    ) -> None:
        self._watch = watch
        self._replica = replica
        self._leadership = leadership
        self._writer = writer
        self._notes = notes
        self._alerts = alerts
        self._count = 0
        self._sent = (0, "")  # epoch and version of the pack that was published last

    async def serve(self) -> None:
        """Watches the files, until cancelled."""
        await self._watch.serve(self._take, self._refuse, self._warn)

    def _take(self, pack: Pack) -> None:
        self._alerts.clear("brain_rules")
        current = self._replica.state.pack
        epoch = self._leadership.epoch
        # What was published in this epoch may not have come back from the log yet.
        newest = self._sent[1] if self._sent[0] == epoch else current and current.version
        if self._leadership.leads() and newest != pack.version:
            self._count += 1
            self._sent = (epoch, pack.version)
            id_ = f"p:{pack.version}:{epoch}.{self._count}"
            self._writer.append_or_drop(PackLoaded(id=id_, pack=pack))

    def _warn(self, warnings: Sequence[str]) -> None:
        for line in warnings[:MAX_NOTES]:
            self._notes.write("pack.warning", line)
        if len(warnings) > MAX_NOTES:
            rest = len(warnings) - MAX_NOTES
            self._notes.write("pack.warning", f"and {rest} more warnings: `gpuward check` lists all of them")

    def _refuse(self, errors: Sequence[str]) -> None:
        for line in errors[:MAX_NOTES]:
            self._notes.write("pack.refused", line)
        if self._leadership.leads() and self._replica.state.pack is None:
            self._alerts.open("brain_rules", f"no rules are in force: {errors[0]}")
