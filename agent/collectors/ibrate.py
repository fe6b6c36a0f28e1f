"""Ports that are slower, narrower or further down than expected, or than the node's like cards."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import IbDevices, IbPort, Reading, Tick
from agent.contract.messages import Draft, Severity

_RATE = re.compile(r"([0-9.]+) Gb/sec(?: \(([0-9]+)X)?")  # `400 Gb/sec (4X NDR)`
_ACTIVE = "ACTIVE"
_PEERS = 2  # so many like ports must agree before a third is measured by them

_Key = tuple[str, int]
_Shape = dict[str, str]  # what -> value, of rate, width, state


class IbRateCollector:
    """Says ib.degraded when it begins and ends.

    Like cards have the same model (hca_type) and link layer and are compared port number by port number: where
    no like card has a cable in port 2, a port 2 without one is quiet. A port that carried traffic at a higher
    rate before is measured by that too. `exempt` names devices or ports (`mlx5_2`, `mlx5_2.1`) that are not
    compared: management and storage cards. `expected_gbps` 0: not configured.
    """

    name: ClassVar[str] = "ibrate"
    wants: ClassVar[tuple[type, ...]] = (IbPort, IbDevices, Tick)
    kinds: ClassVar[tuple[str, ...]] = ("ib.degraded",)

    def __init__(self, *, expected_gbps: float = 0.0, exempt: tuple[str, ...] = ()) -> None:
        self._expected_gbps = expected_gbps
        self._exempt = frozenset(exempt)
        self._ports: dict[_Key, IbPort] = {}
        self._best: dict[_Key, float] = {}  # highest rate that a port has had, Gb/s
        self._said: dict[tuple[_Key, str], str] = {}  # what is degraded -> what it was measured by
        self._changed = False

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if isinstance(reading, IbPort):
            self._take(reading)
        elif isinstance(reading, IbDevices):
            gone = [key for key in self._ports if key[0] not in reading.names]
            for key in gone:  # ib.device tells it
                del self._ports[key]
                self._changed = True
        elif self._changed:  # all ports of a poll are compared together
            self._changed = False
            yield from self._judge()

    def _take(self, port: IbPort) -> None:
        key = (port.device, port.port)
        if port.device in self._exempt or f"{port.device}.{port.port}" in self._exempt:
            return
        before = self._ports.get(key)
        if before is None or (before.state, before.rate) != (port.state, port.rate):
            self._changed = True
        self._ports[key] = port

    def _judge(self) -> Iterator[Draft]:
        groups: dict[tuple[str, str, int], list[_Key]] = {}
        for key, port in self._ports.items():
            groups.setdefault((port.model, port.link_layer, port.port), []).append(key)
        for (model, _, _), keys in groups.items():
            shapes = {key: _shape(self._ports[key]) for key in keys}
            for key in keys:
                # A card whose model is not known is like no other.
                peers = [shapes[other] for other in keys if other != key] if model else []
                for what in ("state", "rate", "width"):
                    yield from self._compare(key, what, shapes[key], peers)

    def _compare(self, key: _Key, what: str, shape: _Shape, peers: list[_Shape]) -> Iterator[Draft]:
        value = shape.get(what)
        if value is None:  # the rate of a port that is down
            return
        expected, by = self._expected(key, what, peers)
        degraded = bool(expected) and _less(what, value, expected)
        if what == "rate":
            self._best[key] = max(self._best.get(key, 0.0), float(value))
        said = self._said.get((key, what))
        if degraded == (said is not None):
            return
        if degraded:
            self._said[key, what] = by
        else:
            by = self._said.pop((key, what))
        port = self._ports[key]
        yield Draft(
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
            # More than half of all like cards, so that two kinds of use of one model are not mixed up.
            if number >= _PEERS and number * 2 > len(peers) and not (what == "state" and value != _ACTIVE):
                return value, "peers"
        if what == "rate" and (best := self._best.get(key)):
            return f"{best:g}", "before"
        return "", ""


def _shape(port: IbPort) -> _Shape:
    shape = {"state": port.state}
    if port.state == _ACTIVE and (match := _RATE.match(port.rate)):
        shape["rate"] = f"{float(match[1]):g}"
        if match[2]:
            shape["width"] = f"{match[2]}X"
    return shape


def _less(what: str, value: str, expected: str) -> bool:
    if what == "state":
        return value == "DOWN"  # INIT and ARMED are on the way, and ib.port_state says them
    return float(value.rstrip("X")) < float(expected.rstrip("X"))
