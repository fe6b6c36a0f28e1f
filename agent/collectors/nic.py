"""Facts in the drivers' own counters of Ethernet interfaces (ethtool -S): loss, pause storms, PFC and ECN.

Names of mlx5 (Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst); other drivers
that use the same names are read as well.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.congestion import CongestionOptions, CongestionWindow
from agent.collectors.samples import Sample
from agent.collectors.samples_node import NicCounters
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent

# Lost or damaged packets, and the device's own watch for pause storms.
ERRORS = re.compile(
    r"rx_discards_phy|tx_discards_phy|tx_errors_phy|rx_prio[0-7]_discards|rx_crc_errors_phy|rx_symbol_err_phy"
    r"|rx_pcs_symbol_err_phy|rx_in_range_len_errors_phy|rx_fifo_errors|rx_out_of_buffer|rx_buffer_full_discard"
    r"|rx_prio[0-7]_buf_discard|tx_pause_storm_error_events|tx_pause_storm_warning_events|link_down_events_phy"
    r"|outbound_pci_buffer_overflow|module_high_temp|module_bad_shorted"
)
# Flow control at work: normal in a lossless network, of interest only at a high rate. Durations are in microseconds.
CONGESTION = re.compile(
    r"[rt]x_pause_ctrl_phy|[rt]x_global_pause|[rt]x_prio[0-7]_pause|[rt]x_prio[0-7]_pause_duration"
    r"|[rt]x_global_pause_duration|rx_ecn_mark|rx_ecn_mark_phy|rx_prio[0-7]_cong_discard"
    r"|rx_discards_phy_ecn"
)
_PRIORITY = re.compile(r"[rt]x_prio([0-7])_")
_MOST = 100  # counters of one interface whose errors are reported in one sample


def wanted(counter: str) -> bool:
    """Is this driver counter read at all?"""
    return ERRORS.fullmatch(counter) is not None or CONGESTION.fullmatch(counter) is not None


class NicCollector(Collector):
    """Compares each sample of an interface with the one before. The first is only a baseline."""

    name: ClassVar[str] = "nic"
    wants: ClassVar[tuple[type, ...]] = (NicCounters,)
    kinds: ClassVar[tuple[str, ...]] = ("link.errors", "link.congestion", "link.pfc")
    one_off: ClassVar[str] = "counters that have grown, settings that have changed"
    options: ClassVar[tuple[type[Any], ...]] = (CongestionOptions,)

    def __init__(self, options: CongestionOptions) -> None:
        self._per_s = options.congestion_per_s
        self._before: dict[str, NicCounters] = {}
        self._congestion: dict[str, CongestionWindow] = {}
        # Interface → the lossless priorities that it has had, and those that it had last.
        self._lossless: dict[str, tuple[frozenset[int], frozenset[int]]] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(CongestionOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, NicCounters):
            return
        try:
            component = components.check(f"link/{sample.name}")
        except ContractError:
            return
        before = self._before.get(sample.name)
        self._before[sample.name] = sample
        if before is not None:
            yield from _errors(component, before, sample)
        yield from self._pfc(component, sample)
        window = self._congestion.setdefault(sample.name, CongestionWindow(per_s=self._per_s))
        counters = {name: value for name, value in sample.counters.items() if CONGESTION.fullmatch(name)}
        for grown in window.take(counters, sample.mono_s):
            yield UnsentEvent(
                kind="link.congestion",
                component=component,
                severity=Severity.INFO,
                data={
                    "counter": grown.counter,
                    "delta": grown.delta,
                    "per_s": grown.per_s,
                    "interval_s": grown.interval_s,
                },
                evidence=f"{sample.name} {grown.counter} +{grown.delta} in {grown.interval_s:.0f} s",
            )

    def _pfc(self, component: str, now: NicCounters) -> Iterator[UnsentEvent]:
        """Priorities that became lossless, or are it no more. A driver that does not tell for a moment has lost nothing."""
        if now.lossless is None:
            return
        had, last = self._lossless.get(now.name, (now.lossless, now.lossless))
        self._lossless[now.name] = had | now.lossless, now.lossless
        if now.lossless == last:
            return
        lost = bool(had - now.lossless)
        yield UnsentEvent(
            kind="link.pfc",
            component=component,
            severity=Severity.WARNING if lost else Severity.INFO,
            data={"priorities": _listed(now.lossless), "before": _listed(last), "lost": lost},
            evidence=f"{now.name}: priorities with flow control {_listed(last) or 'none'} -> {_listed(now.lossless) or 'none'}",
        )


def _listed(priorities: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(priorities)))


def _errors(component: str, before: NicCounters, now: NicCounters) -> Iterator[UnsentEvent]:
    interval_s = round(max(0.0, now.mono_s - before.mono_s), 3)
    for counter, value in list(now.counters.items())[:_MOST]:
        old = before.counters.get(counter)
        # A lower value: the driver was loaded again or the ring was rebuilt, and all that it shows is new.
        delta = 0 if old is None else value - old if value >= old else value
        if delta and ERRORS.fullmatch(counter):
            yield UnsentEvent(
                kind="link.errors",
                component=component,
                severity=Severity.WARNING,
                data={
                    "counter": counter,
                    "delta": delta,
                    "value": value,
                    "interval_s": interval_s,
                    **_priority(counter, now),
                },
                evidence=f"{now.name} {counter} {old} -> {value}",
            )


def _priority(counter: str, now: NicCounters) -> dict[str, Scalar]:
    """The priority that a counter is about, and whether it is lossless: as the driver tells, or, where it does not, if
    pause frames were ever sent or received for it.
    """
    match = _PRIORITY.match(counter)
    if match is None:
        return {}
    priority = int(match[1])
    paused = any(now.counters.get(f"{way}x_prio{priority}_pause") for way in "rt")
    return {"priority": priority, "lossless": paused if now.lossless is None else priority in now.lossless}
