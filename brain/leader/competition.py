"""Competes for the lease."""

from nats.aio.client import Client

from brain.adapters.lease import Lease
from brain.core.inputs import Leader
from brain.leader.log_writer import LogWriter
from brain.leader.replica import Replica


class LeaseCompetition:
    """Takes and renews the lease. Each new epoch is published to the log, and only what comes back from there counts."""

    def __init__(self, *, brain: str, lease: Lease, replica: Replica, writer: LogWriter) -> None:
        self._brain = brain
        self._lease = lease
        self._replica = replica
        self._writer = writer

    async def serve(self, client: Client) -> None:
        """Competes on this connection, until cancelled: once the whole log is read, as a leader must know the state."""
        await self._replica.until_caught_up()
        await self._lease.serve(client, self._announce, self._newest_epoch)

    def _announce(self, epoch: int) -> None:
        self._writer.append_or_drop(Leader(id=f"l:{epoch}", epoch=epoch, brain=self._brain))

    def _newest_epoch(self) -> int:
        return self._replica.state.epoch
