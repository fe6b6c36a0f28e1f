"""Whether this brain may act. Every part that acts checks it here, each time."""

from brain.adapters.lease import Lease
from brain.fence import EpochFence, Fence
from brain.leader.replica import Replica


class Leadership:
    """Answers from the lease and from the log: both must name the same epoch (docs/decisions/0004)."""

    def __init__(self, lease: Lease, replica: Replica) -> None:
        self._lease = lease
        self._replica = replica
        self._stopped = ""

    @property
    def epoch(self) -> int:
        """Of the lease that this brain holds, or held last."""
        return self._lease.epoch

    @property
    def stopped(self) -> str:
        """Why this brain acts no more; empty: it does."""
        return self._stopped

    def leads(self) -> bool:
        """Does this brain hold the lease, with the epoch that is the newest one on the log?"""
        epoch = self._replica.state.epoch
        return bool(epoch) and self.may_act(epoch) and not self._stopped

    def may_act(self, epoch: int) -> bool:
        """Does this brain still hold the lease with that epoch?"""
        return self._lease.held and self._lease.epoch == epoch

    async def confirm(self, epoch: int) -> bool:
        """The same, asked of the server: directly before what cannot be undone."""
        return (
            not self._stopped and self.may_act(epoch) and await self._lease.confirm() and self.may_act(epoch)
        )

    def fence(self) -> Fence:
        """For what begins now, with the present epoch."""
        return EpochFence(self.may_act, self.confirm, self.epoch)

    def stop(self, why: str) -> None:
        """Ends the leadership of this brain until it is restarted."""
        self._stopped = why
