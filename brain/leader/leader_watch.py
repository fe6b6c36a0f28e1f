"""Tells people when nobody leads: no input has come round through the log for some time, or NATS is not there.

Every brain watches, standbys too; it needs neither the log nor the lease. A leader writes a pulse when nothing else moves
(brain/leader/pulse.py), so silence means that there is none, or that the log does not take what it writes.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from agent.contract.counted import counted
from agent.shared.nats_connection import NatsConnection
from brain.adapters.lease import Lease
from brain.adapters.outbox import Outbox
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.leadership import Leadership
from brain.leader.loop import LiveLoop
from brain.leader.replica import Replica

CHECK_S = 0.5
SETTLED_S = 2.0  # a connection that has lasted for so long is one
DISCONNECTED = "brain_disconnected"
NOBODY_LEADS = "nobody_leads"
LOG_REFUSES = "log_refuses"
REFUSED_S = 60.0  # for which it refuses one message: a cluster that elects a leader does so for some seconds
MOST_PATIENT_S = 120.0  # while nobody leads another server is tried at least so often
RESTART = (
    "Is its disk full, or was it? Such a server stores nothing until it is restarted, also when there is space again: make "
    'room, then restart it (docs/operations.md, "Disk")'
)


def never_answered(key: Path, alerts: BrainAlerts) -> Callable[[str], None]:
    """Hears why NATS does not answer a brain that has no signing key yet; empty: it does (brain/adapters/signing_key_log.py)."""

    def tell(why: str) -> None:
        if not why:
            alerts.clear(DISCONNECTED)
            return
        alerts.open(
            DISCONNECTED,
            f"this brain has never reached NATS ({why}), hears of no fault and can do nothing. {key} is not there, and nobody "
            "can say whether the cell has another brain, whose key nodes obey: start the servers, or bring that key here "
            "(`gpuward cell take`) and restart this brain",
        )

    return tell


class LeaderWatch:
    """Opens an alert while nobody leads, as far as this brain can see, and closes it afterwards."""

    def __init__(
        self,
        *,
        connection: NatsConnection,
        loop: LiveLoop,
        lease: Lease,
        leadership: Leadership,
        replica: Replica,
        outbox: Outbox,
        alerts: BrainAlerts,
        trouble: Callable[[], str],
        after_s: float,
    ) -> None:
        """`trouble`: what is wrong with the NATS server, if it is ours. `after_s`: so long nothing has come round before
        people are told.
        """
        self._connection = connection
        self._loop = loop
        self._lease = lease
        self._leadership = leadership
        self._replica = replica
        self._outbox = outbox
        self._alerts = alerts
        self._trouble = trouble
        self._after_s = after_s
        # Since when NATS is connected, or not connected.
        self._turned_s = time.monotonic()
        self._connected = False
        # Nothing has come round for so long when another server is tried; doubled each time.
        self._patience_s = after_s
        self._tried_s = self._turned_s

    def healing_works(self) -> bool:
        """Does this brain lead, and do inputs come round? What a dead man's switch is told."""
        return self._leadership.leads() and time.monotonic() - self._loop.moved_s < self._after_s

    async def serve(self) -> None:
        """Watches, until cancelled."""
        looked_s = time.monotonic()
        while True:
            await asyncio.sleep(CHECK_S)
            now_s = time.monotonic()
            if now_s - looked_s > self._after_s / 2:
                # This process was stopped, or its machine slept: what came meanwhile is not read yet.
                self._turned_s = now_s
            looked_s = now_s
            self._look(now_s)

    def _look(self, now_s: float) -> None:
        # One that ends as soon as it is there, over and over, is none: nothing works on it, and it hides how long that lasts.
        connected = self._connection.connected and now_s - self._connection.since_s >= SETTLED_S
        if connected != self._connected:
            self._connected, self._turned_s = connected, now_s
        if not self._connected:
            if now_s - self._turned_s >= self._after_s:
                said = self._connection.why
                last = (
                    f"The last attempt: {said}{'' if said.endswith(('.', '?', '!')) else '.'} "
                    if said
                    else ""
                )
                why = (
                    self._trouble()
                    or f"{last or 'Is NATS running, and reachable from here? '}Another brain may lead meanwhile."
                )
                self._alerts.open(
                    DISCONNECTED,
                    f"no connection to NATS for {self._after_s:.0f} s: this brain hears of no fault and can do nothing. {why}",
                )
            return
        self._alerts.clear(DISCONNECTED)
        if now_s - max(self._loop.moved_s, self._turned_s) >= self._after_s:
            self._alerts.open(NOBODY_LEADS, f"nothing is healed and no fault is paged: {self._why()}")
            self._try_another(now_s)
        elif self._loop.moved_s > self._turned_s:
            self._alerts.clear(NOBODY_LEADS)
            self._patience_s = self._after_s
            self._tell_refused()

    def _tell_refused(self) -> None:
        """The log takes some of what this brain writes, so that nothing else shows that it refuses the rest."""
        number, lasted_s, words = self._outbox.refusals.lasting(REFUSED_S)
        if number:
            self._alerts.open(
                LOG_REFUSES,
                f"the log refuses {counted(number, 'message')} for {lasted_s:.0f} s: {words}. Nothing comes of what it refuses, "
                "which is tried again. Has somebody set a limit on its stream or on the NATS "
                "server (`nats stream info`: max_msg_size; max_payload)? Take it off",
            )
        else:
            self._alerts.clear(LOG_REFUSES)

    def _try_another(self, now_s: float) -> None:
        """The server of this brain may answer, and be cut off from the others; if it is not, another one knows no better."""
        if now_s - self._tried_s >= self._patience_s and self._connection.elsewhere():
            self._tried_s = now_s
            self._patience_s = min(2 * self._patience_s, MOST_PATIENT_S)

    def _why(self) -> str:
        if trouble := self._trouble():
            return trouble
        silent = f"no input came round through the log for {self._after_s:.0f} s"
        if self._leadership.stopped:
            return f"{silent}; {self._leadership.stopped}, and no other brain leads. Restart gpuward when you have looked."
        if not self._replica.caught_up:
            return f"{silent}, which this brain is still reading: NATS does not deliver it. Look at the NATS server's log."
        if self._lease.held:
            refused = f", which refused {self._outbox.refused} times" if self._outbox.refused else ""
            return f"{silent}; this brain holds the lease, but NATS does not store what it writes{refused}. {RESTART}"
        if self._lease.unstored:
            return f"{silent}, and NATS does not store who leads. {RESTART}"
        leader = self._replica.state.leader or "nobody"
        return f"{silent}, and this brain does not get the lease. The last leader was {leader}: does it run, and answer?"
