"""Renews the certificate of a cell's NATS and console before it ends, and pages when that cannot be done."""

import asyncio
import time
from collections.abc import Callable

from agent.contract.errors import ConfigError
from agent.shared.tasks import abandonable
from brain.cell.authority import Authority, ended
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.notes import BrainNotes

CHECK_S = 3600.0
LOOK_S = 5.0  # whether somebody has exchanged it
SERVERS_DAYS = (
    14.0  # before that of a site's own NATS servers ends people are told, or when a fifth of its life is left
)
CERTIFICATE_ENDS = "certificate_ends"


class CertificateKeeper:
    """The certificate of this brain's machine, which the console shows too; and that of a site's own NATS servers, which only the
    site can renew. While the disk of its files hangs it waits, and nobody for it.
    """

    def __init__(
        self,
        authority: Authority,
        *,
        notes: BrainNotes,
        alerts: BrainAlerts,
        clock: Callable[[], float] = time.time,
        shown: Callable[[], tuple[float, float] | None] = lambda: None,
    ) -> None:
        """`shown`: from when and until when the certificate holds that a site's own server shows; None: there is none."""
        self._authority = authority
        self._notes = notes
        self._alerts = alerts
        self._clock = clock
        self._shown = shown
        self._due = 0.0
        self._seen: object = None

    async def serve(self) -> None:
        """Until cancelled."""
        while True:
            seen = await abandonable(self._stamp, "certificate"), self._shown()
            if seen != self._seen or self._clock() >= self._due:
                self._seen, self._due = seen, self._clock() + CHECK_S
                await abandonable(self.renew, "certificate")
                self._tell(await abandonable(self._of_own, "certificate"))
            await asyncio.sleep(LOOK_S)

    def renew(self) -> None:
        """A certificate that ends soon is made anew. Why it cannot be, `_tell` says."""
        if not self._authority.exists():
            return
        self._authority.warn_of_open_keys()
        try:
            self._authority.settle()
            if self._authority.renew_if_due(self._clock()):
                self._notes.write(
                    "cell.renewed", "the certificate of this cell was made anew, as it ends soon"
                )
        except (ConfigError, OSError) as error:
            self._notes.write("cell.failed", f"the certificate ends soon and is not renewed: {error}")

    def _of_own(self) -> str:
        try:
            return self._authority.trouble(self._clock()) if self._authority.exists() else ""
        except ConfigError as error:
            return str(error)

    def _tell(self, own: str) -> None:
        if trouble := "; ".join(filter(None, (own, self._of_servers()))):
            self._alerts.open(CERTIFICATE_ENDS, trouble)
        else:
            self._alerts.clear(CERTIFICATE_ENDS)

    def _of_servers(self) -> str:
        """What ends soon at the NATS servers of a site's own; empty: nothing, or there are none."""
        found = self._shown()
        if found is None:
            return ""
        since, until = found
        if until - self._clock() > min(SERVERS_DAYS * 86400, (until - since) / 5):
            return ""
        return (
            f"the certificate that your NATS servers show {ended(until, self._clock())}: give them another and reload them "
            "(docs/cell.md, NATS of your own), or no node and no brain can connect any more"
        )

    def _stamp(self) -> tuple[int, int] | None:
        try:
            stat = self._authority.certificate_file.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns
