"""What the optical modules of network interfaces say of themselves: conditions that last, and which module is where."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import log10
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Sample
from agent.collectors.samples_node import Optics
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.contract.optics_module import OpticalLane, OpticsModule

_REPEAT_S = 3600.0  # what is still wrong is reported again: the brain forgets what is not repeated
_WELL_READINGS = 2  # in a row without a condition, and it is over: a value at its limit comes and goes
_LEAST_DBM = -40.0  # no light at all, as modules and switches print it
# Condition → how people say it.
_SAID = {
    "receive_low": "it receives too little light",
    "laser_dying": "its laser fails",
    "hot": "it is too hot",
    "other": "another value is beyond its limit",
}
_OF_LASER = frozenset(("transmit_fault", "transmit_low", "bias_high"))


@dataclass(slots=True)
class _Plugged:
    """A module in its interface."""

    # The latest of it that was judged.
    sample: Optics
    # Condition that is present → well readings in a row since it was seen last.
    present: dict[str, int] = field(default_factory=dict)
    # What was told last; empty: nothing wrong.
    told: tuple[str, ...] = ()
    told_s: float = 0.0

    def wrong(self) -> tuple[str, ...]:
        """What is wrong with it now."""
        return tuple(sorted(self.present))


class OpticsCollector(Collector):
    """optics.module when something begins or ends, and each hour while it lasts; node.inventory.module for each module that is
    seen in an interface for the first time.
    """

    name: ClassVar[str] = "optics"
    wants: ClassVar[tuple[type, ...]] = (Optics,)
    kinds: ClassVar[tuple[str, ...]] = ("optics.module", "node.inventory.module")

    def __init__(self) -> None:
        # Interface → what is known of its module.
        self._plugged: dict[str, _Plugged] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, Optics):
            return
        plugged = self._plugged.get(sample.link)
        if plugged is None or _identity(plugged.sample.module) != _identity(sample.module):
            # Of one that took the place of another, what was told of that one is over, or so of this one too.
            told, told_s = (plugged.told, plugged.told_s) if plugged is not None else ((), 0.0)
            plugged = self._plugged[sample.link] = _Plugged(sample, told=told, told_s=told_s)
            yield _inventory(sample)
        plugged.sample = sample
        _judge(plugged.present, sample.module)
        wrong = plugged.wrong()
        if wrong != plugged.told or (wrong and sample.mono_s - plugged.told_s >= _REPEAT_S):
            plugged.told, plugged.told_s = wrong, sample.mono_s
            yield _state(plugged)

    def restate(self, sample: Sample, now_s: float) -> Iterable[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        plugged = self._plugged.get(sample.link) if isinstance(sample, Optics) else None
        if plugged is not None and plugged.sample == sample:
            yield _state(plugged)


def _identity(module: OpticsModule) -> tuple[str, str, str]:
    return module.vendor, module.part, module.serial


def _judge(present: dict[str, int], module: OpticsModule) -> None:
    """Brings `present` up to date with a reading."""
    alarms = {flag.what for flag in module.flags if flag.alarm}
    some_dark = bool(module.dark) and not _all_dark(module)
    seen = {
        # Where no lane has light nobody sends any: the far end is off or the cable is out, which the link tells.
        "receive_low": some_dark or ("receive_low" in alarms and not module.dark),
        "laser_dying": bool(alarms & _OF_LASER),
        "hot": "temperature_high" in alarms,
        "other": bool(alarms - _OF_LASER - {"receive_low", "temperature_high"}),
    }
    for condition, is_so in seen.items():
        if is_so:
            present[condition] = 0
        elif condition in present:
            present[condition] += 1
            if present[condition] >= _WELL_READINGS:
                del present[condition]


def _all_dark(module: OpticsModule) -> bool:
    return set(module.dark) >= (set(module.lanes) or {1})


def _state(plugged: _Plugged) -> UnsentEvent:
    sample, module, wrong = plugged.sample, plugged.sample.module, plugged.wrong()
    alarms, warnings = _flags(module, alarm=True), _flags(module, alarm=False)
    data: dict[str, Scalar] = {condition: condition in plugged.present for condition in _SAID}
    data |= {"alarms": clip(alarms), "warnings": clip(warnings)} | _named(module) | _figures(module)
    data |= {"port": clip(sample.port)}
    said = [words for condition, words in _SAID.items() if condition in wrong]
    said += [f"alarms: {alarms}"] if alarms else []
    said += [f"warnings: {warnings}"] if warnings else []
    said += [f"{name} {value}" for name, value in _figures(module).items()]
    return UnsentEvent(
        kind="optics.module",
        component=f"link/{sample.link}",
        severity=Severity.WARNING if wrong else Severity.INFO,
        data=data,
        evidence=clip(f"{_title(sample)}: {'; '.join(said)}"),
    )


def _inventory(sample: Optics) -> UnsentEvent:
    module = sample.module
    data: dict[str, Scalar] = {
        **_named(module),
        "revision": clip(module.revision),
        "layout": module.layout,
        "copper": module.copper,
        "port": clip(sample.port),
    }
    return UnsentEvent(
        kind="node.inventory.module",
        component=f"link/{sample.link}",
        severity=Severity.INFO,
        data=data,
        evidence=clip(_title(sample)),
    )


def _named(module: OpticsModule) -> dict[str, Scalar]:
    return {
        "vendor": clip(module.vendor),
        "part": clip(module.part),
        "serial": clip(module.serial),
        "cable": module.cable,
    }


def _figures(module: OpticsModule) -> dict[str, Scalar]:
    """The worst of what it measures; left out where it does not."""
    receive = _weakest(module, lambda lane: lane.receive_uw)
    transmit = _weakest(module, lambda lane: lane.transmit_uw)
    bias = max((lane.bias_ma for lane in module.lanes.values() if lane.bias_ma is not None), default=None)
    figures = {
        "temperature_c": None if module.temperature_c is None else round(module.temperature_c, 1),
        "receive_dbm": None if receive is None else dbm(receive),
        "transmit_dbm": None if transmit is None else dbm(transmit),
        "bias_ma": None if bias is None else round(bias, 1),
    }
    return {name: value for name, value in figures.items() if value is not None}


def _flags(module: OpticsModule, *, alarm: bool) -> str:
    """`receive_low on lanes 2, 3; temperature_high`."""
    lanes: dict[str, list[str]] = {}
    for flag in module.flags:
        if flag.alarm == alarm:
            lanes.setdefault(flag.what, []).extend([str(flag.lane)] if flag.lane else [])
    if alarm and module.dark:
        lanes["no light"] = [str(lane) for lane in module.dark]
    return "; ".join(
        f"{what} on lane{'s' if len(on) > 1 else ''} {', '.join(on)}" if on else what
        for what, on in sorted(lanes.items())
    )


def _title(sample: Optics) -> str:
    module = sample.module
    return " ".join(word for word in (sample.link, module.vendor, module.part, module.serial) if word)


def dbm(microwatts: float) -> float:
    """Power as people compare it."""
    return round(max(_LEAST_DBM, 10 * log10(microwatts / 1000)), 1) if microwatts > 0 else _LEAST_DBM


def _weakest(module: OpticsModule, of: Callable[[OpticalLane], float | None]) -> float | None:
    """The least of what its lanes measure."""
    return min((value for lane in module.lanes.values() if (value := of(lane)) is not None), default=None)
