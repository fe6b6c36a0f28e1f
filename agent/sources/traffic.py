"""How much the ports and interfaces of the node carry: their counters of bytes beside their rate. A port that is down has none.

RDMA is counted by the port alone, everything else by the interface, also where both are of one card.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.ib_speed import ib_speed
from agent.collectors.samples import Sample
from agent.collectors.samples_node import Traffic
from agent.config import IB_ROOT
from agent.host import Host
from agent.options import at_most, option
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

_NET = "/sys/class/net"
_ETHERNET = "1"  # ARPHRD_ETHER
_WORDS = (
    4  # port_rcv_data and port_xmit_data count words of four bytes (InfiniBand specification, PortCounters)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSourceOptions:
    """What an operator can set."""

    traffic_interval_s: float = option(
        0.0,
        "pause between readings of how much ports and interfaces carry, e.g. 30: those that are nearly full for five minutes "
        "are told; 0: it is not read",
        unit="s",
        least=0,
        check=at_most(100),  # at least three readings in five minutes
        example=30.0,
    )


class TrafficSource(Source):
    """Emits Traffic of each port and interface that is up, after each pause."""

    name: ClassVar[str] = "traffic"
    needs: ClassVar[str] = "/sys/class/infiniband, /sys/class/net; only with `traffic_interval_s`"
    options: ClassVar[tuple[type[Any], ...]] = (TrafficSourceOptions,)

    def __init__(
        self, host: Host, options: TrafficSourceOptions, *, ib_root: str = IB_ROOT, hang_s: float = 30.0
    ) -> None:
        self._host = host
        self._ib_root = ib_root
        self._poller = Poller(self._poll, what=self.name, period_s=options.traffic_interval_s, hang_s=hang_s)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no interval is set."""
        options = setup.options(TrafficSourceOptions)
        if not options.traffic_interval_s:
            return None
        return cls(setup.host, options, ib_root=setup.config.ib_root)

    async def run(self, emit: Emit) -> None:
        """Follow the counters until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The counters now."""
        for sample in self._poll():
            emit(sample)

    def _poll(self) -> list[Sample]:
        return [*self._ports(), *self._interfaces()]

    def _ports(self) -> Iterator[Traffic]:
        host = self._host
        for device in host.listdir(self._ib_root):
            for port in host.listdir(f"{self._ib_root}/{device}/ports"):
                base = f"{self._ib_root}/{device}/ports/{port}"
                speed = ib_speed(host.read(f"{base}/rate"))
                received = _number(host.read(f"{base}/counters/port_rcv_data"))
                sent = _number(host.read(f"{base}/counters/port_xmit_data"))
                if (
                    speed is None
                    or received is None
                    or sent is None
                    or "ACTIVE" not in host.read(f"{base}/state")
                ):
                    continue
                yield Traffic(
                    component=f"port/{device}.{port}",
                    rate_gbps=speed.gbps,
                    received_bytes=received * _WORDS,
                    sent_bytes=sent * _WORDS,
                    mono_s=host.mono_s(),
                )

    def _interfaces(self) -> Iterator[Traffic]:
        """Those of cards: what is virtual carries what they carry."""
        host = self._host
        for link in host.listdir(_NET):
            base = f"{_NET}/{link}"
            if not host.path(f"{base}/device").exists() or host.read(f"{base}/type") != _ETHERNET:
                continue
            mbps = _number(host.read(f"{base}/speed"))  # -1, or an error, where there is no link
            received = _number(host.read(f"{base}/statistics/rx_bytes"))
            sent = _number(host.read(f"{base}/statistics/tx_bytes"))
            if mbps and received is not None and sent is not None:
                yield Traffic(
                    component=f"link/{link}",
                    rate_gbps=mbps / 1000,
                    received_bytes=received,
                    sent_bytes=sent,
                    mono_s=host.mono_s(),
                )


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 21 else None
