"""Bonds, from /proc/net/bonding: rtnetlink shows a slave's carrier, but not which slave carries the traffic.

Where that folder is not there (a container that sees the host's /sys only, a kernel without the file) they are read from
/sys/class/net/<bond>/bonding, which has the same in a file for each value (Linux drivers/net/bonding/bond_sysfs.c and
bond_sysfs_slave.c).
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from agent.collectors.samples import Sample
from agent.collectors.samples_node import Bond, BondSlave
from agent.host import Host
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

FOLDER = "/proc/net/bonding"
NET = "/sys/class/net"
# File below `bonding` → the line of /proc/net/bonding with the same value; then those of a slave's `bonding_slave`.
_OF_BOND = {
    "mode": "Bonding Mode",
    "active_slave": "Currently Active Slave",
    "mii_status": "MII Status",
    "ad_aggregator": "Aggregator ID",
    "ad_partner_mac": "Partner Mac Address",
}
_OF_SLAVE = {
    "mii_status": "MII Status",
    "link_failure_count": "Link Failure Count",
    "ad_aggregator_id": "Aggregator ID",
}


class BondSource(Source):
    """Emits Bond for every bond that has changed, every `period_s` seconds; one that vanished with `removed`."""

    name: ClassVar[str] = "bond"
    needs: ClassVar[str] = "/proc/net/bonding, or /sys/class/net (emits nothing where there are no bonds)"

    def __init__(self, host: Host, *, period_s: float = 1.0, hang_s: float = 30.0) -> None:
        self._host = host
        # Name → text at the last poll.
        self._known: dict[str, str] = {}
        self._poller = Poller(
            self._poll,
            what=self.name,
            period_s=period_s,
            hang_s=hang_s,
            forget=self._forget,
            watching=lambda: bool(self._known),
        )

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host)

    async def run(self, emit: Emit) -> None:
        """Follow the bonds until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The bonds as they are now."""
        for sample in self._poll():
            emit(sample)

    def _forget(self) -> None:
        self._known = dict.fromkeys(self._known, "")

    def _poll(self) -> list[Sample]:
        now_s = self._host.mono_s()
        names = self._host.listdir(FOLDER)
        from_proc = bool(names)
        if not from_proc:
            names = self._host.read(f"{NET}/bonding_masters").split()
        samples: list[Sample] = []
        for name in [name for name in self._known if name not in names]:
            del self._known[name]
            samples.append(Bond(name=name, mode="", removed=True, mono_s=now_s))
        for name in names:
            text = self._host.read(f"{FOLDER}/{name}") if from_proc else self._from_sys(name)
            if text and text != self._known.get(name):  # what has not changed need not be parsed again
                self._known[name] = text
                samples.append(bond(name, text, now_s))
        return samples

    def _from_sys(self, name: str) -> str:
        """The lines that /proc/net/bonding would have; the mode in the words of sysfs."""
        folder = f"{NET}/{name}/bonding"
        lines = self._lines(folder, _OF_BOND)
        for slave in self._host.read(f"{folder}/slaves").split():
            lines.append(f"Slave Interface: {slave}")
            lines += self._lines(f"{NET}/{slave}/bonding_slave", _OF_SLAVE)
        return "\n".join(lines)

    def _lines(self, folder: str, files: Mapping[str, str]) -> list[str]:
        values = {line: self._host.read(f"{folder}/{file}").strip() for file, line in files.items()}
        return [f"{line}: {value}" for line, value in values.items() if value]


def bond(name: str, text: str, mono_s: float) -> Bond:
    """The bond that `text` describes (Linux drivers/net/bonding/bond_procfs.c). Unknown lines are ignored."""
    head, *members = list(_sections(text)) or [{}]
    slaves = tuple(
        BondSlave(
            name=fields["Slave Interface"],
            up=fields.get("MII Status") == "up",
            failures=_number(fields.get("Link Failure Count", "")),
            aggregator=fields.get("Aggregator ID", ""),
        )
        for fields in members
    )
    active = head.get("Currently Active Slave", "")
    return Bond(
        name=name,
        mode=head.get("Bonding Mode", ""),
        up=head.get("MII Status") == "up",
        active="" if active == "None" else active,
        partner=head.get("Partner Mac Address", ""),
        aggregator=head.get("Aggregator ID", ""),
        slaves=slaves,
        mono_s=mono_s,
    )


def _sections(text: str) -> Iterator[dict[str, str]]:
    """The bond's own lines, then those of each slave; of a repeated key the first (later ones are details of LACP)."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        if key.strip() == "Slave Interface":
            yield fields
            fields = {}
        fields.setdefault(key.strip(), value.strip())
    yield fields


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
