"""Keeps the brain running. The only place in the brain that catches unexpected exceptions."""

import asyncio
import logging
import time

from agent.contract.errors import BugError, ConfigError
from agent.shared.nats_connection import NatsConnection
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.history import HistoryLost
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.notes import BrainNotes
from brain.leader.replica import Replica
from brain.leader.session import Session

_log = logging.getLogger(__name__)

RESTART_S = (1.0, 5.0, 30.0)  # pauses before the replica is restored after a failure


class Supervisor:
    """Runs sessions. After a failure it restores the replica; after a broken invariant this brain stops acting."""

    def __init__(
        self,
        *,
        connection: NatsConnection,
        session: Session,
        replica: Replica,
        leadership: Leadership,
        writer: LogWriter,
        notes: BrainNotes,
        alerts: BrainAlerts,
    ) -> None:
        self._connection = connection
        self._session = session
        self._replica = replica
        self._leadership = leadership
        self._writer = writer
        self._notes = notes
        self._alerts = alerts

    async def serve(self) -> None:
        """Runs until cancelled. ConfigError: the operator must act first."""
        failures = 0
        while True:
            began_s = time.monotonic()
            try:
                await self._connection.serve(self._session.run)
            except ConfigError:
                raise
            except BugError as error:
                await self._stop_acting(error)
            except HistoryLost as error:
                _log.warning("%s", error)
                self._replica.close()
            except Exception:  # noqa: BLE001 - the supervisor: no bug may end the brain
                _log.exception(
                    "input after %d failed: the brain is restored from its snapshot", self._replica.seq
                )
                self._replica.close()
            failures = 0 if time.monotonic() - began_s > 10 * RESTART_S[-1] else failures + 1
            if failures == len(RESTART_S):
                self._alerts.open("brain_failing", "the brain fails again and again: see its log")
            await asyncio.sleep(RESTART_S[min(failures, len(RESTART_S)) - 1])

    async def _stop_acting(self, error: BugError) -> None:
        """Stops acting until a person has looked, as an invariant is broken. The nodes keep their events meanwhile."""
        why = f"stopped acting at input {self._replica.seq + 1}: {error}"
        self._leadership.stop(why)
        _log.error(why, exc_info=error)
        self._notes.write("brain.stopped", why)
        self._alerts.open("brain_bug", f"{why}. Restart gpuward when you have looked.")
        # Operator commands and the results of steps under way are still recorded.
        await self._connection.serve(self._writer.serve)
