"""Paths over the data network that lose packets, are cut, or have become slow, by the probes of this node."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Sample
from agent.collectors.samples_node import PeerProbes, ProbeRound
from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip
from agent.options import at_most, option

LOSS, SLOW = "probe.loss", "probe.slow"
_ROUNDS = 30  # that are judged together: with the default's interval five minutes
_ENOUGH = 15  # of them, answered ones, before anything is said
_SILENT = 6  # rounds without any answer: a minute
_BACK = 5  # of the newest _SILENT answered: it is silent no more
_SPREAD = 3  # rounds that lost something: one burst is none
_WELL = 0.25  # of the limit, below which it is over
_RISE = 1.0002  # of what is usual, in a round: what was slow for days is usual
REPEAT_S = 600.0  # what lasts is told again


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions:
    """What an operator can set."""

    probe_loss_percent: float = option(
        5.0,
        "a path that loses so much over 30 rounds (five minutes) is reported",
        unit="%",
        least=0.5,
        check=at_most(100),
    )
    probe_slow_percent: float = option(
        500.0,
        "a path whose median round trip is so much of what was usual on it is reported",
        unit="%",
        least=150,
    )
    probe_slow_us: float = option(
        1000.0,
        "and which is longer than usual by so much: queues of a busy network are no fault",
        unit="µs",
        least=10,
    )


@dataclass(slots=True, kw_only=True)
class _Path:
    """What is known of the path to one peer."""

    near: bool
    rounds: deque[PeerProbes] = field(default_factory=lambda: deque(maxlen=_ROUNDS))
    # Median round trip; 0: not known yet.
    usual_us: float = 0.0
    silent: bool = False
    lossy: bool = False
    slow: bool = False

    def take(self, probes: PeerProbes, options: ProbeOptions) -> None:
        """One more round. Rounds that nobody answered are silence and no loss: the peer may have been restarted."""
        self.near = probes.near
        self.rounds.append(probes)
        newest = [bool(one.times_us) for one in list(self.rounds)[-_SILENT:]]
        self.silent = len(newest) == _SILENT and sum(newest) < (_BACK if self.silent else 1)
        heard = [one for one in self.rounds if one.times_us]
        if self.silent or len(heard) < _ENOUGH:
            self.lossy = self.lossy and not self.silent
            return
        percent, limit = self.lost_percent(), options.probe_loss_percent
        self.lossy = percent >= limit * _WELL if self.lossy else percent >= limit and self._lost_enough(limit)
        self._judge_time(options)

    def _lost_enough(self, limit: float) -> bool:
        """As many packets as the limit is of all rounds, also where there have not been so many yet, and not in one burst."""
        lost = [one.sent - len(one.times_us) for one in self.rounds if one.times_us]
        sent = max((one.sent for one in self.rounds), default=0)
        return sum(lost) >= limit / 100 * sent * _ROUNDS and sum(map(bool, lost)) >= _SPREAD

    def _judge_time(self, options: ProbeOptions) -> None:
        now_us = self.median_us()
        if not self.usual_us or now_us < self.usual_us:
            self.usual_us = now_us
        share = 0.5 if self.slow else 1.0
        beyond = now_us >= self.usual_us * max(1.0, options.probe_slow_percent / 100 * share)
        self.slow = beyond and now_us - self.usual_us >= options.probe_slow_us * share
        if not self.slow:
            self.usual_us *= _RISE

    def lost_percent(self) -> float:
        """Of the rounds that were answered at all."""
        sent = sum(one.sent for one in self.rounds if one.times_us)
        return 100.0 * (1 - len(self.times_us()) / sent) if sent else 100.0

    def times_us(self) -> list[float]:
        """All round trips that are judged together, the shortest first."""
        return sorted(one for probes in self.rounds for one in probes.times_us)

    def median_us(self) -> float:
        """0: no answer."""
        times = self.times_us()
        return times[len(times) // 2] if times else 0.0

    def p99_us(self) -> float:
        """0: no answer."""
        times = self.times_us()
        return times[min(len(times) - 1, int(len(times) * 0.99))] if times else 0.0

    def text(self) -> str:
        """What was measured."""
        if self.silent:
            return "no answer"
        return f"{self.lost_percent():.1f} % lost, round trip {self.median_us():.0f} µs (99 %: {self.p99_us():.0f} µs)"


@dataclass(slots=True)
class _Told:
    """What was told last of one interface, and when."""

    view: dict[str, Scalar]
    at_s: float


class ProbeCollector(Collector):
    """probe.loss and probe.slow of an interface: which of its peers, when that changes, and every 600 s while there are any."""

    name: ClassVar[str] = "probes"
    wants: ClassVar[tuple[type, ...]] = (ProbeRound,)
    kinds: ClassVar[tuple[str, ...]] = (LOSS, SLOW)
    options: ClassVar[tuple[type[Any], ...]] = (ProbeOptions,)

    def __init__(self, options: ProbeOptions) -> None:
        self._options = options
        # Interface and address → peer → path. Two addresses of one interface are judged as one.
        self._paths: dict[tuple[str, str], dict[str, _Path]] = {}
        self._told: dict[tuple[str, str], _Told] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(ProbeOptions))

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:
        """See Collector."""
        if not isinstance(sample, ProbeRound):
            return
        try:
            component = components.check(f"link/{sample.link}")
        except ContractError:
            return
        before = self._paths.get((sample.link, sample.address), {})
        paths = self._paths[sample.link, sample.address] = {
            one.peer: before.get(one.peer) or _Path(near=one.near) for one in sample.peers
        }
        for one in sample.peers:
            paths[one.peer].take(one, self._options)
        for kind in self.kinds:
            told, view = self._told.get((kind, sample.link)), self._view(kind, sample.link)
            if told is None and not view["active"]:
                continue
            if told is not None and _who(told.view) == _who(view) and now_s - told.at_s < REPEAT_S:
                continue
            if view["active"]:
                self._told[kind, sample.link] = _Told(view, now_s)
            else:
                self._told.pop((kind, sample.link), None)
            yield self._event(kind, component, sample.link, view)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: what is judged of the rounds until now; nothing before there are enough."""
        if not isinstance(sample, ProbeRound):
            return
        if any(len(path.rounds) < _ENOUGH for path in self._of(sample.link).values()):
            return
        for kind in self.kinds:
            yield self._event(kind, f"link/{sample.link}", sample.link, self._view(kind, sample.link))

    def _of(self, link: str) -> dict[str, _Path]:
        """Peer → path, of all addresses of an interface."""
        return {
            peer: path
            for (one, _), paths in self._paths.items()
            if one == link
            for peer, path in paths.items()
        }

    def _view(self, kind: str, link: str) -> dict[str, Scalar]:
        paths = self._of(link)
        ill = {
            peer: path
            for peer, path in paths.items()
            if (path.slow and not path.silent if kind == SLOW else path.lossy or path.silent)
        }
        view: dict[str, Scalar] = {
            "active": bool(ill),
            "near": sum(path.near for path in paths.values()),
            "far": sum(not path.near for path in paths.values()),
            "near_ill": clip(", ".join(peer for peer, path in ill.items() if path.near)),
            "far_ill": clip(", ".join(peer for peer, path in ill.items() if not path.near)),
        }
        worst = max(ill.values(), key=_Path.median_us, default=None)
        if kind == LOSS:
            view["silent"] = clip(", ".join(peer for peer, path in ill.items() if path.silent))
            view["lost_percent"] = round(
                max(
                    (path.lost_percent() for path in ill.values() if not path.silent),
                    default=100.0 if ill else 0.0,
                ),
                1,
            )
        elif worst is not None:
            view["median_us"] = round(worst.median_us(), 1)
            view["usual_us"] = round(worst.usual_us, 1)
            view["p99_us"] = round(worst.p99_us(), 1)
        return view

    def _event(self, kind: str, component: str, link: str, view: dict[str, Scalar]) -> UnsentEvent:
        said = "; ".join(f"{peer}: {path.text()}" for peer, path in self._of(link).items())
        return UnsentEvent(
            kind=kind,
            component=component,
            severity=Severity.WARNING if view["active"] else Severity.INFO,
            data=view,
            evidence=clip(f"{link}: {said}"),
        )


def _who(view: dict[str, Scalar]) -> tuple[Scalar, ...]:
    """What makes a change; figures move all the time."""
    return tuple(view.get(name, "") for name in ("near", "far", "near_ill", "far_ill", "silent"))
