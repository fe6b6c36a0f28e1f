"""Keeps the embedded NATS server alive: starts one that has died, and one that has run out of space when there is some again.

What it refuses to a node never comes to the brain, which hears of it here.
"""

import asyncio

from agent.contract.errors import ConfigError, Unreachable
from agent.shared.tasks import abandonable
from brain.adapters.disk import try_disk
from brain.adapters.nats_server import NatsServer
from brain.glance import FileHangs, Latest
from brain.leader.node_reports import NodeReports
from brain.leader.notes import BrainNotes

CHECK_S = 0.5
PAUSES_S = (1.0, 5.0, 30.0)  # after a start that failed, or that did not last
LASTED_S = 60.0
NEEDED_BYTES = 32 * 1024**2  # so much must be free before it is started again


class ServerKeeper:
    """One embedded server."""

    def __init__(self, server: NatsServer, notes: BrainNotes, reports: NodeReports) -> None:
        self._server = server
        self._notes = notes
        self._reports = reports
        self._latest = Latest(self._trouble, server.folder)

    def trouble(self) -> str:
        """What is wrong with the server, and who must do what; empty: nothing that is known."""
        try:
            return self._latest()
        except (FileHangs, OSError) as error:
            return f"nobody can read the NATS server's files: {error}"

    def _trouble(self) -> str:
        server = self._server
        if not server.out_of_space():
            return "" if server.running() else f"the NATS server has ended: see {server.folder}/nats.log"
        free_mb, needed_mb = server.free_bytes() // 1024**2, NEEDED_BYTES // 1024**2
        if free_mb >= needed_mb:
            return (
                f"NATS cannot write in {server.folder}, though {free_mb} MiB are free there: inodes (`df -i`) or a quota are "
                "used up. Remove files there, or raise the quota; the server is then started again by itself"
            )
        return (
            f"NATS has no space left in {server.folder} ({free_mb} MiB free): make room for at least {needed_mb} MiB; the server "
            "is then started again by itself"
        )

    async def serve(self) -> None:
        """Watches, until cancelled."""
        failures, started_s = 0, 0.0
        loop = asyncio.get_running_loop()
        self.trouble()  # what is known of it counts while its disk hangs
        while True:
            await asyncio.sleep(CHECK_S)
            for node, count in (await abandonable(self._server.take_refused, "server")).items():
                self._reports.refused(node, count)
            why = await abandonable(self._due, "server")
            if not why:
                continue
            if loop.time() - started_s > LASTED_S:
                failures = 0
            self._notes.write("server.restarted", f"the NATS server is started again: {why}")
            try:
                # A start happens on the event loop: not while the disk hangs.
                await abandonable(lambda: try_disk(self._server.folder), "server")
                started_s = loop.time()
                await self._server.restart()
            except (ConfigError, Unreachable, OSError) as error:
                self._notes.write("server.failed", f"the NATS server does not start: {error}")
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
            failures += 1

    def _due(self) -> str:
        """Why it has to be started again now; empty: it need not."""
        if self._server.out_of_space():
            there_is = self._server.free_bytes() >= NEEDED_BYTES
            return "it had run out of space, and there is some again" if there_is else ""
        return "" if self._server.running() else "it has ended"
