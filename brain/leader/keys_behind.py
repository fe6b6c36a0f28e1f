"""Pages when the keys of this brain are older than those that nodes trust: after a restore, or on a second brain that was not
given the new ones. Such nodes refuse every command, so nothing is healed.

One node may lie (law 15): it is named in a note, and two of them, or the only one of a cell, are a page.
"""

import asyncio
import time
from collections.abc import Callable

from agent.contract.counted import counted
from agent.contract.errors import ConfigError
from brain.adapters.liveness import FRESH_S, Beats
from brain.adapters.rotation import KeyRotation
from brain.cell.confirmations import Confirmed, ahead, is_behind
from brain.cell.trust import TrustFile, TrustState
from brain.config import BrainConfig
from brain.glance import Latest
from brain.leader.brain_alerts import BrainAlerts
from brain.leader.notes import BrainNotes

CHECK_S = 2.0
KEYS_BEHIND = "keys_behind"


class KeysBehind:
    """Looks at what nodes say in their beats, and at the brain's own files, while this brain leads."""

    def __init__(
        self,
        config: BrainConfig,
        *,
        leads: Callable[[], bool],
        beats: Beats,
        alerts: BrainAlerts,
        notes: BrainNotes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trust = TrustFile(config.cell_dir)
        self._in_force = Latest(KeyRotation(config).in_force, config.signing_key)
        self._leads = leads
        self._beats = beats
        self._alerts = alerts
        self._notes = notes
        self._clock = clock
        self._suspected = False
        self._told: set[tuple[str, int]] = set()

    async def serve(self) -> None:
        """Until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(CHECK_S)

    def look(self) -> None:
        """Two looks in a row decide: a command of an operator's changes two files, one after the other."""
        if not self._leads():
            return
        try:
            state = self._trust.state()
            why = self._own_files(state) or self._nodes(state)
        except (ConfigError, OSError):
            return  # brain/leader/own_files.py says so
        if why and self._suspected:
            self._alerts.open(KEYS_BEHIND, why)
        elif not why:
            self._alerts.clear(KEYS_BEHIND)
        self._suspected = bool(why)

    def _own_files(self, state: TrustState) -> str:
        """Is the signing key another one than was announced last?"""
        in_use, newest = next(iter(self._in_force()), ""), state.newest
        if newest is None or in_use in newest.keys:
            return ""
        announced = ", ".join(newest.keys) or "none"
        return f"signing.key is {in_use}, and nodes were told to trust {announced}: they refuse every command of this brain"

    def _nodes(self, state: TrustState) -> str:
        now = self._clock()
        heard = {
            name: Confirmed(serial=last.beat.trust, live=True)
            for name, last in self._beats.newest.items()
            if now - last.at < FRESH_S
        }
        newer = ahead(heard, state.serial)
        if is_behind(len(newer), len(heard)):
            some = ", ".join(list(newer)[:5])
            return (
                f"{len(newer)} of {counted(len(heard), 'node')} trust newer keys than this brain has (their announcement "
                f"{max(newer.values())}, ours {state.serial}), and refuse its commands: {some}"
            )
        for name, serial in newer.items():
            if (name, state.serial) not in self._told:
                self._told.add((name, state.serial))
                self._notes.write(
                    "cell.failed",
                    f"node {name} says that it trusts announcement {serial} of keys, ours is {state.serial}, and no other node "
                    "says so: if it refuses commands, join it again (`gpuward cell token`, `gpuward-agent join`)",
                )
        return ""
