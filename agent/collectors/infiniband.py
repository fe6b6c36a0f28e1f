"""Facts about InfiniBand and RoCE ports: growing errors, saturated counters, states, subnet manager."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.congestion import CongestionOptions, CongestionWindow
from agent.collectors.ib_speed import ib_speed
from agent.collectors.samples import IbDevices, IbPort, Sample
from agent.contract.messages import Scalar, Severity, UnsentEvent

# Legacy counters stick at their maximum instead of wrapping: they show nothing more there, which is a state of its own.
LIMITS = {
    "symbol_error": 0xFFFF,
    "link_error_recovery": 0xFF,
    "link_downed": 0xFF,
    "port_rcv_errors": 0xFFFF,
    "port_rcv_remote_physical_errors": 0xFFFF,
    "port_rcv_switch_relay_errors": 0xFFFF,
    "port_xmit_discards": 0xFFFF,
    "port_xmit_constraint_errors": 0xFF,
    "port_rcv_constraint_errors": 0xFF,
    "local_link_integrity_errors": 0xF,
    "excessive_buffer_overrun_errors": 0xF,
    "VL15_dropped": 0xFFFF,
}
# Of four bits: they are full after weeks on any port, so one that is full when the agent starts says nothing.
_SMALL = 0xF
# From HDR on (50 Gb/s a lane) every link corrects errors, and counts those that are left.
_CORRECTING = ("HDR", "NDR", "XDR")
# The bit error rate that the InfiniBand specification allows and ibdiagnet takes by default; and the rate at which it gives
# the 120 errors an hour of many guides (QDR's data), for a port whose rate is not known.
_SPEC_BER = 1e-12
_UNKNOWN_GBPS = 100 / 3
# Counters under hw_counters/ that show loss (rdma-core and the drivers' documentation).
LOSS_COUNTERS = (
    *(
        "out_of_sequence",
        "packet_seq_err",
        "implied_nak_seq_err",
        "local_ack_timeout_err",
        "rnr_nak_retry_err",
    ),
    *("out_of_buffer", "duplicate_request", "roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart"),
    *("rx_icrc_encapsulated", "req_transport_retries_exceeded", "req_rnr_retries_exceeded"),
    *("roce_slow_restart_trans", "roce_slow_restart_cnps", "req_remote_access_errors"),
    *("req_remote_invalid_request", "resp_remote_access_errors", "resp_local_length_error"),
    # bnxt_re, irdma, efa, erdma: the same facts under other names
    *("to_retransmits", "seq_err_naks_rcvd", "max_retry_exceeded", "missing_resp"),
    *("unrecoverable_err", "bad_resp_err", "remote_access_err", "remote_op_err", "local_protection_err"),
    *("res_oos_drop_count", "rx_roce_error_pkts", "rx_roce_discard_pkts", "tx_roce_error_pkts"),
    *("tx_roce_discard_pkts", "oos_drop_count", "retransSegs"),
    *("rx_drops", "rdma_read_wr_err", "rdma_write_wr_err", "retrans_timeout_events"),
)
# Congestion: not an error, and reported only when it grows fast.
CONGESTION_COUNTERS = frozenset(
    (
        *("port_xmit_wait", "np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored"),
        *("rx_cnp_pkts", "tx_cnp_pkts", "rx_ecn_marked_pkts", "cnpHandled", "cnpIgnored", "cnpSent"),
    )
)
# port_xmit_wait counts ticks in which data had to wait for credits: thousands of times more than packets.
_FACTORS = {"port_xmit_wait": 10_000.0}
ERROR_COUNTERS = frozenset((*LIMITS, *LOSS_COUNTERS))
MISSING_SAMPLES = 3  # a device is gone when it is missing from so many in a row: a driver reload is shorter
_HERE, _MOVED, _GONE = "here", "in another network namespace", "gone"
_PORT_UP, _ACTIVE = "LinkUp", "ACTIVE"


class InfinibandCollector(Collector):
    """Compares each sample of a port with the one before. The first sample of a port is only a baseline."""

    name: ClassVar[str] = "infiniband"
    wants: ClassVar[tuple[type, ...]] = (IbPort, IbDevices)
    kinds: ClassVar[tuple[str, ...]] = (
        *("ib.errors", "ib.saturated", "ib.counter_reset", "ib.port_state", "ib.sm_lid", "ib.device"),
        *("ib.sm_sl", "ib.congestion"),
    )
    options: ClassVar[tuple[type[Any], ...]] = (CongestionOptions,)
    remembers: ClassVar[str] = "full counters"

    def __init__(self, options: CongestionOptions, *, before: Mapping[str, Any] | None = None) -> None:
        """`before`: what an earlier run `remembered`."""
        self._per_s = options.congestion_per_s
        self._windows: dict[tuple[str, int], CongestionWindow] = {}
        self._ports: dict[tuple[str, int], IbPort] = {}
        # Port → counter → what it was when it was read last, and when that was: it may not be there for a while.
        self._read: dict[tuple[str, int], dict[str, tuple[int, float]]] = {}
        self._saturated: set[tuple[str, int, str]] = set()
        # Those that were when their port was last seen: before the agent's start, or before the device went away.
        self._saturated_before = _keys(before or {})
        # The last LID that was not 0.
        self._sm_lids: dict[tuple[str, int], int] = {}
        self._was_up: set[tuple[str, int]] = set()
        # Device → samples in a row in which it was missing.
        self._missing: dict[str, int] = {}
        # Device → where it was told to be.
        self._told: dict[str, str] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(CongestionOptions), before=setup.remembered.get(cls.remembers))

    def remembered(self) -> Mapping[str, Any]:
        """The counters that are at their maximum: that one was cleared while no agent ran ends what it began."""
        full: dict[str, list[str]] = {}
        for device, port, counter in sorted(self._saturated | self._saturated_before):
            full.setdefault(f"{device}.{port}", []).append(counter)
        return full

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, IbPort):
            yield from self._port(sample)
        elif isinstance(sample, IbDevices):
            yield from self._devices(sample)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: states of ports that are active or had a link, and devices. What counters show happened."""
        if isinstance(sample, IbDevices):
            yield from (_device(device, present=True) for device in sample.names)
            for device, where in self._told.items():
                if where == _GONE and device not in sample.moved:
                    yield _device(device, present=False)
        elif isinstance(sample, IbPort):
            key = (sample.device, sample.port)
            if self._ports.get(key) == sample and (sample.state == _ACTIVE or key in self._was_up):
                yield _port_state(sample, sample)

    def _port(self, now: IbPort) -> Iterator[UnsentEvent]:
        key = (now.device, now.port)
        before = self._ports.get(key)
        self._ports[key] = now
        if before is not None:
            yield from self._state(before, now)
        if before is None or before.link_layer != now.link_layer:  # another link layer counts anew
            self._forget_counters(key)
        yield from self._counters(now)
        if now.phys_state == _PORT_UP:
            self._was_up.add(key)
        if now.sm_lid and now.link_layer != "Ethernet":
            known = self._sm_lids.get(key)
            self._sm_lids[key] = now.sm_lid
            if known is not None and known != now.sm_lid:
                yield UnsentEvent(
                    kind="ib.sm_lid",
                    component=_component(now),
                    severity=Severity.WARNING,
                    data={"sm_lid": now.sm_lid, "before": known},
                    evidence=f"{now.device} port {now.port} sm_lid {known} -> {now.sm_lid}",
                )
        # A service level means something only while a subnet manager is known.
        if before is not None and now.sm_sl != before.sm_sl and now.sm_lid and before.sm_lid:
            yield UnsentEvent(
                kind="ib.sm_sl",
                component=_component(now),
                severity=Severity.INFO,
                data={"sm_sl": now.sm_sl, "before": before.sm_sl},
                evidence=f"{now.device} port {now.port} sm_sl {before.sm_sl} -> {now.sm_sl}",
            )
        if now.congestion and (before is None or before.congestion_s != now.congestion_s):
            yield from self._congestion(now)

    def _congestion(self, now: IbPort) -> Iterator[UnsentEvent]:
        key = (now.device, now.port)
        window = self._windows.setdefault(key, CongestionWindow(per_s=self._per_s, factors=_FACTORS))
        for grown in window.take(now.congestion, now.congestion_s):
            yield UnsentEvent(
                kind="ib.congestion",
                component=_component(now),
                severity=Severity.INFO,
                data={
                    "counter": grown.counter,
                    "delta": grown.delta,
                    "per_s": grown.per_s,
                    "interval_s": grown.interval_s,
                },
                evidence=f"{now.device} port {now.port} {grown.counter} +{grown.delta}"
                f" in {grown.interval_s:.0f} s",
            )

    def _state(self, before: IbPort, now: IbPort) -> Iterator[UnsentEvent]:
        changed = now.state != before.state
        # A port without a cable may change between Polling and Sleep for ever: only one that was up is of interest.
        moved = now.phys_state != before.phys_state and (now.device, now.port) in self._was_up
        if changed or moved:
            yield _port_state(before, now)

    def _counters(self, now: IbPort) -> Iterator[UnsentEvent]:
        known = self._read.setdefault((now.device, now.port), {})
        for counter, value in now.counters.items():
            old, read_s = known.get(counter, (None, now.mono_s))
            known[counter] = value, now.mono_s
            if old is None:
                yield from self._first(now, counter, value)
            if old is None or old == value:
                continue
            interval_s = round(max(0.0, now.mono_s - read_s), 3)
            # One that was full and has grown is wider than others of its name, and was never full.
            if value < old or (now.device, now.port, counter) in self._saturated:
                yield self._reset(now, counter, old, value)
            delta = value - old if value > old else value  # after a reset all that it shows is new
            if delta:
                yield UnsentEvent(
                    kind="ib.errors",
                    component=_component(now),
                    severity=Severity.WARNING,
                    data={
                        "counter": counter,
                        "delta": delta,
                        "value": value,
                        "interval_s": interval_s,
                        **_weight(now, counter, delta),
                    },
                    evidence=f"{now.device} port {now.port} {counter} {old} -> {value}",
                )
            yield from self._limit(now, counter, value)

    def _first(self, now: IbPort, counter: str, value: int) -> Iterator[UnsentEvent]:
        """A counter that was not seen for a while. Of one that was full, and told to be, the end is told too."""
        key = (now.device, now.port, counter)
        told = key in self._saturated or key in self._saturated_before
        self._saturated_before.discard(key)
        if told and not _full(now, counter, value):
            yield self._reset(now, counter, LIMITS.get(counter, 0), value)
        if told or LIMITS.get(counter) != _SMALL:
            yield from self._limit(now, counter, value)

    def _reset(self, now: IbPort, counter: str, old: int, value: int) -> UnsentEvent:
        return UnsentEvent(
            kind="ib.counter_reset",
            component=_component(now),
            severity=Severity.INFO,
            data={"counter": counter, "before": old, "value": value, "blind": self._blind(now, but=counter)},
            evidence=f"{now.device} port {now.port} {counter} {old} -> {value}",
        )

    def _blind(self, port: IbPort, *, but: str) -> int:
        """How many other counters of the port are at their maximum, or were when they were last seen."""
        return sum(
            1
            for device, number, counter in self._saturated | self._saturated_before
            if (device, number) == (port.device, port.port) and counter != but
        )

    def _limit(self, now: IbPort, counter: str, value: int) -> Iterator[UnsentEvent]:
        key = (now.device, now.port, counter)
        if not _full(now, counter, value):
            self._saturated.discard(key)
        elif key not in self._saturated:
            self._saturated.add(key)
            yield UnsentEvent(
                kind="ib.saturated",
                component=_component(now),
                severity=Severity.WARNING,
                data={"counter": counter, "value": value},
                evidence=f"{now.device} port {now.port} {counter} {value}",
            )

    def _devices(self, now: IbDevices) -> Iterator[UnsentEvent]:
        for device in now.names:
            self._missing[device] = 0
            if self._told.setdefault(device, _HERE) != _HERE:
                yield self._tell(device, _HERE)
        for device in now.moved:
            self._missing[device] = 0
            if self._told.get(device) != _MOVED:
                self._forget(device)
                yield self._tell(device, _MOVED)
        for device in self._missing:
            if device in now.names or device in now.moved:
                continue
            self._missing[device] += 1
            if self._missing[device] == MISSING_SAMPLES and self._told.get(device) != _GONE:
                self._forget(device)
                yield self._tell(device, _GONE)

    def _tell(self, device: str, where: str) -> UnsentEvent:
        self._told[device] = where
        return _device(device, present=where == _HERE, moved=where == _MOVED)

    def _forget(self, device: str) -> None:
        """When it comes back, its counters start again: of a reset only what was full is told. Its subnet manager stays known."""
        for key in [key for key in self._ports if key[0] == device]:
            self._forget_counters(key)
        self._ports = {key: port for key, port in self._ports.items() if key[0] != device}
        self._windows = {key: window for key, window in self._windows.items() if key[0] != device}

    def _forget_counters(self, port: tuple[str, int]) -> None:
        """Its counters are those of before: whether they are full now is seen, and told, with its next sample."""
        full = {key for key in self._saturated if key[:2] == port}
        self._saturated_before |= full
        self._saturated -= full
        self._read.pop(port, None)


def spec_s(errors: int, rate_gbps: float = _UNKNOWN_GBPS) -> float:
    """In what time the specification's bit error rate gives so many symbol errors."""
    return round(errors / (rate_gbps * 1e9 * _SPEC_BER), 3)


def _weight(port: IbPort, counter: str, delta: int) -> dict[str, Scalar]:
    """What the growth of a counter is worth on this port."""
    data: dict[str, Scalar] = {}
    speed = ib_speed(port.rate)
    if speed is not None:
        data |= {"rate_gbps": speed.gbps, "corrects": speed.generation in _CORRECTING}
    if counter == "symbol_error":
        data["spec_s"] = spec_s(delta, speed.gbps if speed else _UNKNOWN_GBPS)
    if port.link_layer == "Ethernet" and counter in LIMITS:
        data["ethernet"] = True
    return data


def _full(port: IbPort, counter: str, value: int) -> bool:
    """Cards serve these counters for Ethernet ports too, and nothing counts there. Equal, not greater: some adapters serve wider
    counters under the same names, and those go on.
    """
    return port.link_layer != "Ethernet" and value == LIMITS.get(counter)


def _keys(raw: Mapping[str, Any]) -> set[tuple[str, int, str]]:
    """What a file holds of `remembered`; whatever does not look like it is left out."""
    found = set()
    for name, counters in raw.items():
        device, _, port = name.rpartition(".")
        if port.isascii() and port.isdigit() and isinstance(counters, list):
            found |= {(device, int(port), counter) for counter in counters if counter in LIMITS}
    return found


def _component(port: IbPort) -> str:
    return f"port/{port.device}.{port.port}"


def _port_state(before: IbPort, now: IbPort) -> UnsentEvent:
    data: dict[str, Scalar] = {"state": now.state, "before": before.state, "phys_state": now.phys_state}
    # The drivers of Ethernet cards call every port without a carrier so.
    if now.phys_state == "Disabled" and now.link_layer != "Ethernet":
        data["disabled"] = True
    return UnsentEvent(
        kind="ib.port_state",
        component=_component(now),
        severity=Severity.INFO if now.state == _ACTIVE else Severity.WARNING,
        data=data,
        evidence=f"{now.device} port {now.port} {before.state}/{before.phys_state}"
        f" -> {now.state}/{now.phys_state}",
    )


def _device(device: str, *, present: bool, moved: bool = False) -> UnsentEvent:
    how = "is back" if present else "is in another network namespace" if moved else "is gone"
    return UnsentEvent(
        kind="ib.device",
        component=f"nic/{device}",
        severity=Severity.INFO if present or moved else Severity.ERROR,
        data={"present": present, "moved": True} if moved else {"present": present},
        evidence=f"/sys/class/infiniband/{device} {how}",
    )
