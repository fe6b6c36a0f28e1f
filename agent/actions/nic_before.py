"""How a card's interfaces were before it was reset, on disk until they are so again: what an agent that died half-way
must put right.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from agent.actions import rtnetlink
from agent.actions.cards import Cards
from agent.contract.errors import Unreachable
from agent.host import Host

PATIENCE_S = (
    10.0  # by then udev has given an interface its name, and the node's network configuration its addresses
)
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface as it was."""

    name: str
    bdf: str  # PCI function
    dev_port: str  # its number there
    up: bool
    carrier: bool
    mtu: int
    master: str
    addresses: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """All that a reset may take away."""

    boot: str
    bdf: str
    modules: list[str]  # in the order in which they are loaded
    interfaces: list[Interface]


class Keeper:
    """Keeps it in `folder`, one file a card, and restores it. `patience_s`: how long an interface may take to have its
    name again, and then its addresses.
    """

    def __init__(self, host: Host, cards: Cards, folder: Path, *, patience_s: float = PATIENCE_S) -> None:
        self._host = host
        self._cards = cards
        self._folder = folder
        self._patience_s = patience_s

    def take(self, bdf: str, functions: Iterable[str], modules: list[str]) -> Before:
        """Looks and writes it down. Unreachable when that cannot be done: then nothing may be touched. Blocks."""
        before = Before(boot=self._host.boot_id(), bdf=bdf, modules=modules, interfaces=self._now(functions))
        path = self._path(bdf)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = path.with_suffix(".part")
            with draft.open("wb") as file:
                file.write(orjson.dumps(asdict(before)))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            raise Unreachable(
                f"nothing was done: what must be put back cannot be written to {path}: {error.strerror}"
            ) from error
        return before

    def left(self) -> list[Before]:
        """What a dead agent has left behind in this boot. A reboot has put everything right itself."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.glob("*.json")):
                try:
                    raw = orjson.loads(path.read_bytes())
                    interfaces = [Interface(**one) for one in raw.pop("interfaces")]
                    before = Before(interfaces=interfaces, **raw)
                except (ValueError, TypeError, KeyError):  # a power cut: not of this boot
                    path.unlink(missing_ok=True)
                    continue
                if before.boot == self._host.boot_id():
                    found.append(before)
                else:
                    path.unlink(missing_ok=True)
        return found

    def forget(self, bdf: str) -> None:
        """It is all right again, or nothing more can be done."""
        with contextlib.suppress(OSError):
            self._path(bdf).unlink(missing_ok=True)

    async def restore(self, before: Before) -> list[str]:
        """Puts back MTU, bond and what was up; what could not be put back, for people. Waits for interfaces that are
        not there yet, and for udev to name them: an interface that is up cannot be renamed on older kernels.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._patience_s
        while not all(one.name in self._cards.interfaces(one.bdf) for one in before.interfaces):
            if loop.time() > end_s:
                break
            await asyncio.sleep(_LOOK_S)
        trouble: list[str] = []
        for one in before.interfaces:
            if name := self._name(one):
                trouble += await asyncio.to_thread(_put_back, one, name)
            else:
                trouble.append(f"{one.name} is not there")
        return trouble

    async def addresses_lost(self, before: Before) -> list[str]:
        """Addresses that the node's network configuration has not given back after a while: `ib0 10.0.0.1/24`."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._patience_s
        while True:
            now = await asyncio.to_thread(rtnetlink.addresses)
            lost = [
                f"{one.name} {address}"
                for one in before.interfaces
                for address in one.addresses
                if address not in now.get(one.name, ())
            ]
            if not lost or loop.time() > end_s:
                return lost
            await asyncio.sleep(_LOOK_S)

    def _now(self, functions: Iterable[str]) -> list[Interface]:
        addresses = rtnetlink.addresses()
        found = []
        for bdf in functions:
            for name in self._cards.interfaces(bdf):
                with contextlib.suppress(OSError):  # in another namespace: it belongs to somebody else
                    link = rtnetlink.link(name)
                    found.append(
                        Interface(
                            name=name,
                            bdf=bdf,
                            dev_port=self._dev_port(name),
                            up=link.up,
                            carrier=link.carrier,
                            mtu=link.mtu,
                            master=link.master,
                            addresses=addresses.get(name, []),
                        )
                    )
        return found

    def _name(self, one: Interface) -> str:
        """Its name now; empty when it is not there."""
        names = self._cards.interfaces(one.bdf)
        same = [name for name in names if self._dev_port(name) == one.dev_port]
        return one.name if one.name in names else same[0] if len(same) == 1 else ""

    def _dev_port(self, name: str) -> str:
        return self._host.read(f"/sys/class/net/{name}/dev_port")

    def _path(self, bdf: str) -> Path:
        return self._folder / f"{bdf}.json"


def _put_back(one: Interface, name: str) -> list[str]:
    trouble = []
    try:
        now = rtnetlink.link(name)
        if now.mtu != one.mtu:
            rtnetlink.set_mtu(name, one.mtu)
        if one.master and not now.master:
            if now.up:
                rtnetlink.set_up(name, False)  # a bond takes only what is down
            rtnetlink.set_master(name, one.master)
    except OSError as error:
        trouble.append(f"{name} is not as it was: {error}")
    if one.up:
        try:
            rtnetlink.set_up(name, True)
        except OSError as error:
            trouble.append(f"{name} could not be set up again: {error}")
    return trouble
