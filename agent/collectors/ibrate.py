"""Ports that are slower, narrower or further down than expected, or than the node's cards of the same model."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.ib_speed import ib_speed
from agent.collectors.samples import IbDevices, IbPort, Sample, Tick
from agent.contract.messages import Severity, UnsentEvent
from agent.options import option

_ACTIVE = "ACTIVE"
_PEERS = 2  # so many ports of the same kind must agree before another is compared with them

_Key = tuple[str, int]
_Shape = dict[str, str]  # what (rate, width or state) → value


@dataclass(frozen=True, slots=True, kw_only=True)
class IbRateOptions:
    """What an operator can set."""

    ib_expected_gbps: float = option(
        0.0,
        "rate that every active port must have; 0: each is compared with its peers",
        unit="Gb/s",
        least=0,
        example=400.0,
    )
    ib_exempt: tuple[str, ...] = option(
        (),
        "devices or ports whose rate and state are compared with nothing: management and storage cards",
        example=("mlx5_2", "mlx5_3.1"),
    )


class IbRateCollector(Collector):
    """Reports ib.degraded when it begins and ends.

    Peers are ports with the same number on cards of the same model (hca_type) and link layer: where no other card has a
    cable in port 2, a port 2 without one is not reported. A port that has had a higher rate is compared with that too.
    """

    name: ClassVar[str] = "ibrate"
    wants: ClassVar[tuple[type, ...]] = (IbPort, IbDevices, Tick)
    kinds: ClassVar[tuple[str, ...]] = ("ib.degraded",)
    options: ClassVar[tuple[type[Any], ...]] = (IbRateOptions,)

    def __init__(self, options: IbRateOptions) -> None:
        self._expected_gbps = options.ib_expected_gbps
        self._exempt = frozenset(options.ib_exempt)
        self._ports: dict[_Key, IbPort] = {}
        # The highest rate that a port has had, Gb/s.
        self._best: dict[_Key, float] = {}
        # What was reported as degraded → what it was compared with: the value, and whose it is.
        self._degraded: dict[tuple[_Key, str], tuple[str, str]] = {}
        self._changed = False

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(IbRateOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, IbPort):
            self._take(sample)
        elif isinstance(sample, IbDevices):
            gone = [key for key in self._ports if key[0] not in sample.names]
            for key in gone:  # ib.device reports it
                del self._ports[key]
                self._changed = True
        elif self._changed:  # all ports of a poll are compared together
            self._changed = False
            yield from self._judge()

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: what was judged with the last tick."""
        key = (sample.device, sample.port) if isinstance(sample, IbPort) else ("", 0)
        if key not in self._ports:
            return
        shape, peers = _shape(self._ports[key]), self._peers(key)
        for what, value in shape.items():
            expected, by = self._expected(key, what, peers)
            degraded = (key, what) in self._degraded
            if degraded and by != "peers":
                expected, by = self._degraded[key, what]
            if degraded or expected:  # else it was compared with nothing
                yield self._told(key, what, value, expected, by, degraded=degraded)

    def _peers(self, key: _Key) -> list[_Shape]:
        """Shapes of the other ports that are compared with this one; a card whose model is not known has none."""
        one = self._ports[key]
        kind = (one.model, one.link_layer, one.port)
        return [
            _shape(port)
            for other, port in self._ports.items()
            if one.model and other != key and (port.model, port.link_layer, port.port) == kind
        ]

    def _take(self, port: IbPort) -> None:
        key = (port.device, port.port)
        if port.device in self._exempt or f"{port.device}.{port.port}" in self._exempt:
            return
        before = self._ports.get(key)
        if before is None or (before.state, before.rate) != (port.state, port.rate):
            self._changed = True
        if before is not None and before.link_layer != port.link_layer:
            self._changed = True
            self._forget(key)
        self._ports[key] = port

    def _forget(self, key: _Key) -> None:
        """Another link layer makes it another port: what it was compared with holds no more, and is not missed."""
        self._best.pop(key, None)
        for (one, what), (expected, _) in list(self._degraded.items()):
            if one == key:
                self._degraded[key, what] = expected, "before"

    def _judge(self) -> Iterator[UnsentEvent]:
        groups: dict[tuple[str, str, int], list[_Key]] = {}
        for key, port in self._ports.items():
            groups.setdefault((port.model, port.link_layer, port.port), []).append(key)
        for (model, _, _), keys in groups.items():
            shapes = {key: _shape(self._ports[key]) for key in keys}
            for key in keys:
                # A card whose model is not known has no peers.
                peers = [shapes[other] for other in keys if other != key] if model else []
                for what in ("state", "rate", "width"):
                    yield from self._compare(key, what, shapes[key], peers)

    def _compare(self, key: _Key, what: str, shape: _Shape, peers: list[_Shape]) -> Iterator[UnsentEvent]:
        value = shape.get(what)
        if value is None:  # the rate of a port that is down
            return
        expected, by = self._expected(key, what, peers)
        degraded = bool(expected) and _less(what, value, expected)
        told, whose = self._degraded.get((key, what), ("", ""))
        if whose == "peers" and by != "peers":  # nobody is left to compare with: that proves nothing
            expected, by, degraded = told, whose, _less(what, value, told)
        if what == "rate":
            self._best[key] = max(self._best.get(key, 0.0), float(value))
        if degraded == ((key, what) in self._degraded):
            return
        if degraded:
            self._degraded[key, what] = expected, by
        else:
            _, by = self._degraded.pop((key, what))
        yield self._told(key, what, value, expected, by, degraded=degraded)

    def _told(
        self, key: _Key, what: str, value: str, expected: str, by: str, *, degraded: bool
    ) -> UnsentEvent:
        port = self._ports[key]
        return UnsentEvent(
            kind="ib.degraded",
            component=f"port/{key[0]}.{key[1]}",
            severity=Severity.WARNING if degraded else Severity.INFO,
            data={
                "what": what,
                "degraded": degraded,
                "value": value,
                "expected": expected or value,
                "by": by,
            },
            evidence=f"{key[0]} port {key[1]} {port.state}/{port.phys_state} {port.rate};"
            f" expected {what} {expected or value} by {by}",
        )

    def _expected(self, key: _Key, what: str, peers: list[_Shape]) -> tuple[str, str]:
        if what == "rate" and self._expected_gbps:
            return f"{self._expected_gbps:g}", "config"
        values = Counter(shape[what] for shape in peers if what in shape)
        if values:
            value, number = values.most_common(1)[0]
            # More than half of all peers, so that two kinds of use of one model are not mixed up.
            if number >= _PEERS and number * 2 > len(peers) and not (what == "state" and value != _ACTIVE):
                return value, "peers"
        if what == "rate" and (best := self._best.get(key)):
            return f"{best:g}", "before"
        return "", ""


def _shape(port: IbPort) -> _Shape:
    shape = {"state": port.state}
    if port.state == _ACTIVE and (speed := ib_speed(port.rate)):
        shape["rate"] = f"{speed.gbps:g}"
        if speed.lanes:
            shape["width"] = f"{speed.lanes}X"
    return shape


def _less(what: str, value: str, expected: str) -> bool:
    if what == "state":
        return value == "DOWN"  # INIT and ARMED are on the way to ACTIVE, and ib.port_state reports them
    return float(value.rstrip("X")) < float(expected.rstrip("X"))
