"""Pages people when NATS has been unreachable for long: no fault is seen then, and nothing else would report that."""

import asyncio
import time

from agent.shared.nats_connection import NatsConnection
from brain.leader.brain_alerts import BrainAlerts

CHECK_S = 1.0
ALERT_AFTER_S = 60.0
CAUSE = "brain_disconnected"


class ConnectionWatch:
    """Opens an alert while NATS is unreachable for long, and clears it afterwards."""

    def __init__(self, connection: NatsConnection, alerts: BrainAlerts) -> None:
        self._connection = connection
        self._alerts = alerts

    async def serve(self) -> None:
        """Watches, until cancelled."""
        since_s = time.monotonic()
        while True:
            await asyncio.sleep(CHECK_S)
            if self._connection.connected:
                since_s = time.monotonic()
                self._alerts.clear(CAUSE)
            elif time.monotonic() - since_s > ALERT_AFTER_S:
                self._alerts.open(
                    CAUSE, f"no connection to NATS for {ALERT_AFTER_S:.0f} s: no events of nodes arrive"
                )
