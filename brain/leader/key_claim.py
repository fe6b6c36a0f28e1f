"""A log names the key of the brain that began it (decisions 89 and 96): one that has a key claims a log that has no message, and
says so where the log names another key than its own.

Whose key nodes obey nobody can read from a log. A brain under whose key no node has joined, and whose key was never rotated, is
taken for the wrong one: it leaves the lead to the other, where that one lives, and lets no node join.
"""

import asyncio
from dataclasses import dataclass

from nats.aio.client import Client

from agent.contract.counted import counted
from agent.contract.errors import ConfigError
from agent.shared.tasks import abandonable
from brain.adapters import keys, log, signing_key_log
from brain.adapters.log import LogInfo
from brain.adapters.signing_key_log import Claim
from brain.cell.registry import CellRegistry
from brain.cell.trust import TrustFile
from brain.config import BrainConfig
from brain.leader.brain_alerts import BrainAlerts

CHECK_S = 2.0
HANGS_S = 5.0  # so long a disk may take to say what is in this brain's files
TWO_KEYS = "two_keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """What this brain's files say."""

    key_id: str
    # nodes were told of another key since
    rotated: bool
    # nodes that have joined
    joined: int


class KeyClaim:
    """Call `settle` for each connection, before this brain competes, and let `serve` run meanwhile."""

    def __init__(self, config: BrainConfig, *, brain: str, alerts: BrainAlerts) -> None:
        """`brain`: its name."""
        self._config = config
        self._brain = brain
        self._alerts = alerts
        self._trust = TrustFile(config.cell_dir)
        self._registry = CellRegistry(config.registry_file)
        self._claim: Claim | None = None
        self._reading: asyncio.Task[_Own] | None = None
        self._hangs = False  # the disk of its files
        self.fits = True  # is this brain's key the one that the log names, as far as is known?

    async def settle(self, client: Client, extent: LogInfo) -> None:
        """Claims a log that has no message, and looks whose key it names. An embedded server is for one brain: nobody asks it."""
        if self._config.embedded:
            return
        cell = self._config.cell
        if extent.empty and (own := await self._own()) is not None:
            mine = Claim(brain=self._brain, key_id=own.key_id)
            await signing_key_log.claim(client, cell, mine, after=extent.last_seq)
            extent = await log.info(client, cell)
        self._claim = await signing_key_log.claim_of(client, cell, extent)
        await self.look()

    async def serve(self) -> None:
        """Until cancelled. What is done about it ends it, while the brain runs."""
        while not self._config.embedded:
            await asyncio.sleep(CHECK_S)
            await self.look()

    async def look(self) -> None:
        """Tells people what is new. Nothing is, while the files cannot be read: others say so."""
        own = await self._own()
        if own is None:
            return
        wrong = self._claim is not None and self._claim.key_id != own.key_id and not own.rotated
        self.fits = not wrong or own.joined > 0
        if wrong and self._claim is not None:
            self._alerts.open(TWO_KEYS, self._text(self._claim, own))
        else:
            self._alerts.clear(TWO_KEYS)

    async def _own(self) -> _Own | None:
        """None: the files cannot be read now. A disk that hangs is waited for once."""
        if self._reading is None:
            self._reading = asyncio.create_task(abandonable(self._read, "own key"))
        done, _ = await asyncio.wait({self._reading}, timeout=0 if self._hangs else HANGS_S)
        self._hangs = not done
        if self._hangs:
            return None
        read, self._reading = self._reading, None
        try:
            return read.result()
        except ConfigError:
            return None

    def _read(self) -> _Own:
        return _Own(
            key_id=keys.read_signer(self._config.signing_key).key_id,
            rotated=self._trust.state().serial > 0,
            joined=self._registry.joined(),
        )

    def _text(self, claim: Claim, own: _Own) -> str:
        key = self._config.signing_key
        what = (
            f"{counted(own.joined, 'node')} joined here, where the other brain's commands are refused"
            if own.joined
            else "No node has joined here, so this brain leaves the lead to the other, and lets no node join"
        )
        return (
            f"the log of cell {self._config.cell} was begun by brain {claim.brain}, whose key is {claim.key_id}, and this "
            f"brain's is {own.key_id}: nodes obey one of them only. {what}. Where nodes obey the other one, say `gpuward cell "
            f"share FILE` on that brain's machine; here, as root, move {key} and {key.name}.pub away, and say `gpuward cell "
            "take FILE`. Where they obey this one, stop the other brain, say `gpuward cell rotate signing` here, and bring it "
            "the keys in the same way when that is over"
        )
