"""The state of a card's interfaces before a reset, kept on disk until it is restored: an agent that dies in between
restores it after its next start.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.actions.network_cards import NetworkCards
from agent.contract.errors import Unreachable
from agent.host import Host
from agent.shared import files, rtnetlink

# Within this time udev has renamed an interface, and the node's network configuration has set its addresses.
PATIENCE_S = 10.0
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedInterface:
    """One interface as it was."""

    name: str
    # PCI function, and the interface's number there.
    bdf: str
    dev_port: str
    up: bool
    carrier: bool
    mtu: int
    master: str
    addresses: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """All that a reset may take away. Its keys are those of the file."""

    boot: str
    bdf: str
    # In the order in which they are loaded.
    modules: list[str]
    interfaces: list[SavedInterface]


class SavedInterfaces:
    """Keeps the state in `folder`, one file per card, and restores it. `patience_s`: how long an interface may take to
    have its name again, and then its addresses.
    """

    def __init__(
        self, host: Host, cards: NetworkCards, folder: Path, *, patience_s: float = PATIENCE_S
    ) -> None:
        self._host = host
        self._cards = cards
        self._folder = folder
        self._patience_s = patience_s

    def save(self, bdf: str, functions: Iterable[str], modules: list[str]) -> Saved:
        """The state now, on disk. Unreachable when it cannot be written: then nothing may be touched. Blocks."""
        saved = Saved(boot=self._host.boot_id(), bdf=bdf, modules=modules, interfaces=self._now(functions))
        path = self._path(bdf)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write_json(path, asdict(saved), sync=True)
        except OSError as error:
            raise Unreachable(
                f"nothing was done: what must be restored cannot be written to {path}: {error.strerror}"
            ) from error
        return saved

    def unrestored(self) -> list[Saved]:
        """What a dead agent has left behind in this boot. After a reboot nothing is left to restore."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.glob("*.json")):
                try:
                    raw = files.read_json(path)
                    interfaces = [SavedInterface(**one) for one in raw.pop("interfaces")]
                    saved = Saved(interfaces=interfaces, **raw)
                except (TypeError, KeyError, AttributeError):  # torn by a power cut: not of this boot
                    path.unlink(missing_ok=True)
                    continue
                if saved.boot == self._host.boot_id():
                    found.append(saved)
                else:
                    path.unlink(missing_ok=True)
        return found

    def forget(self, bdf: str) -> None:
        """It was restored, or nothing more can be done."""
        with contextlib.suppress(OSError):
            self._path(bdf).unlink(missing_ok=True)

    async def restore(self, saved: Saved) -> list[str]:
        """Restores MTU and bond, and sets up what was up; returns what could not be restored, for people. Waits for
        interfaces that are missing, and for udev to name them: older kernels cannot rename an interface that is up.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._patience_s
        while not all(one.name in self._cards.interfaces(one.bdf) for one in saved.interfaces):
            if loop.time() > end_s:
                break
            await asyncio.sleep(_LOOK_S)
        problems: list[str] = []
        for one in saved.interfaces:
            if name := self._name(one):
                problems += await asyncio.to_thread(_restore, one, name)
            else:
                problems.append(f"{one.name} is missing")
        return problems

    async def missing_addresses(self, saved: Saved) -> list[str]:
        """Addresses that the node's network configuration has not set again in time: `ib0 10.0.0.1/24`."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._patience_s
        while True:
            now = await asyncio.to_thread(rtnetlink.addresses)
            missing = [
                f"{one.name} {address}"
                for one in saved.interfaces
                for address in one.addresses
                if address not in now.get(one.name, ())
            ]
            if not missing or loop.time() > end_s:
                return missing
            await asyncio.sleep(_LOOK_S)

    def _now(self, functions: Iterable[str]) -> list[SavedInterface]:
        addresses = rtnetlink.addresses()
        found = []
        for bdf in functions:
            for name in self._cards.interfaces(bdf):
                with contextlib.suppress(OSError):  # it is in another network namespace
                    now = rtnetlink.interface(name)
                    found.append(
                        SavedInterface(
                            name=name,
                            bdf=bdf,
                            dev_port=self._dev_port(name),
                            up=now.up,
                            carrier=now.carrier,
                            mtu=now.mtu,
                            master=now.master,
                            addresses=addresses.get(name, []),
                        )
                    )
        return found

    def _name(self, one: SavedInterface) -> str:
        """Its name now; empty when it is missing."""
        names = self._cards.interfaces(one.bdf)
        same = [name for name in names if self._dev_port(name) == one.dev_port]
        return one.name if one.name in names else same[0] if len(same) == 1 else ""

    def _dev_port(self, name: str) -> str:
        return self._host.read(f"/sys/class/net/{name}/dev_port")

    def _path(self, bdf: str) -> Path:
        return self._folder / f"{bdf}.json"


def _restore(one: SavedInterface, name: str) -> list[str]:
    problems = []
    try:
        now = rtnetlink.interface(name)
        if now.mtu != one.mtu:
            rtnetlink.set_mtu(name, one.mtu)
        if one.master and not now.master:
            if now.up:
                rtnetlink.set_up(name, False)  # a bond accepts only an interface that is down
            rtnetlink.set_master(name, one.master)
    except OSError as error:
        problems.append(f"{name} is not as it was: {error}")
    if one.up:
        try:
            rtnetlink.set_up(name, True)
        except OSError as error:
            problems.append(f"{name} could not be set up again: {error}")
    return problems
