"""Backtests a recorded log of gpuward (`gpuward log export`).

With the rules that the log carries, everything that was told, answered and said by people is given again, and the same comes of
it. With others only what does not depend on them is: facts, silence, the scheduler's and the fabric manager's words, and what
people said about scopes; each runbook is in observe mode, since nobody knows what its steps would have led to.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain.adapters import log_file
from brain.adapters.codec import PACK, Codec, handled_at
from brain.adapters.log_file import Damaged, Gap, Head, Part
from brain.adapters.log_record import Record
from brain.cli.backtest.judge import Judge, OnLog
from brain.cli.backtest.kernel_logs import Progress
from brain.cli.backtest.outcome import Backtest, Input, wall
from brain.cli.backtest.rule_sets import RuleSet
from brain.core import inputs
from brain.core.inputs import EventSeen, Malformed, OperatorCommand, PackLoaded
from brain.core.pack.spec import Pack
from brain.core.state import State

_PIECE = 1024**2
_ANSWERED = (".input.timer", ".input.intent", ".input.delivery")
_PACKS = f".input.{PACK}"  # how the subjects of rules end
# What answers the engine, or is a person's word about a run or an incident: with other rules there may be another.
_ANSWERS = (
    inputs.TimerFired,
    inputs.Delivery,
    inputs.Intent,
    inputs.StepResult,
    inputs.StepProgress,
    inputs.StepPlan,
    inputs.Leader,
)
_OF_SCOPES = ("hold", "release", "mode", "return", "forget", "admit", "reset")


@dataclass(slots=True, kw_only=True)
class _Clock:
    """The log's time, which never runs backwards (decision 45)."""

    _state: State = field(default_factory=State)

    def at(self, given: inputs.Input, stamp: float) -> float:
        """When the engine handles an input that the server stored then."""
        self._state.heard(handled_at(given, stamp, self._state))
        return self._state.now


def backtest(
    path: Path, rules: RuleSet, site: Pack | None, *, observe: bool, progress: Progress | None = None
) -> Backtest:
    """One result. `site`: see `site_of`. `observe`: only facts are given (see above). ConfigError: it is no log of ours."""
    counts = Input(kind="log", files=1)
    judge = Judge(observe=observe, when=wall, on_log=None if observe else _answered(path))
    try:
        version = _fed(judge, counts, path, rules, site, observe=observe, progress=progress)
        return Backtest(input=counts, rules=rules.source, version=version, outcome=judge.outcome())
    finally:
        judge.close()


def _fed(
    judge: Judge,
    counts: Input,
    path: Path,
    rules: RuleSet,
    site: Pack | None,
    *,
    observe: bool,
    progress: Progress | None,
) -> str:
    """Gives the log to the engine; returns the version of the rules that judged last."""
    codec, clock = Codec(""), _Clock()
    nodes: dict[str, None] = {}
    version, first_at, at = rules.version, 0.0, 0.0
    begun = False
    for part in parts(path, counts, progress):
        match part:
            case Head():
                codec = Codec(part.name.cell)
            case Gap():
                counts.missing += part.last - part.first + 1
            case Record():
                counts.lines += 1
                given = codec.decode(part.subject, part.body, part.seq)
                at = clock.at(given, part.at)
                first_at = first_at or at
                if isinstance(given, Malformed):
                    counts.unread += 1
                if isinstance(given, EventSeen):
                    nodes[given.event.node] = None
                    counts.meaningful += 1
                if isinstance(given, PackLoaded):
                    given = replace(given, pack=_pack(given.pack, rules, observe=observe))
                    version = rules.version or given.pack.version
                    begun = True
                elif not begun and isinstance(given, EventSeen):
                    begun = True
                    if (
                        rules.read is not None
                    ):  # those of the site were told before the log begins, or come later
                        places, settings = (site.places, site.settings) if site else ({}, None)
                        first = rules.pack(places=places, settings=settings)
                        judge.feed(PackLoaded(id="backtest:pack", pack=first), at)
                if not (observe and _depends(given)):
                    judge.feed(given, at)
    judge.run(at)
    counts.nodes = len(nodes)
    counts.since, counts.until = (wall(first_at), wall(at)) if counts.lines else ("", "")
    if not version:
        counts.remarks.append(t("the log carries no rules: name a folder with --rules"))
    return version


def _answered(path: Path) -> OnLog:
    """What the log answers itself: it is read twice."""
    found, codec = OnLog(), Codec("")
    for part in parts(path, Input()):
        if isinstance(part, Head):
            codec = Codec(part.name.cell)
        elif isinstance(part, Record) and part.subject.endswith(_ANSWERED):
            found.take(codec.decode(part.subject, part.body, part.seq))
    return found


def _pack(pack: Pack, rules: RuleSet, *, observe: bool) -> Pack:
    """The rules that are judged, for the site that the log was of."""
    if rules.read is not None:
        return rules.pack(places=pack.places, settings=pack.settings)
    return RuleSet(source="", read=pack).pack(places=pack.places) if observe else pack


def _depends(given: inputs.Input) -> bool:
    """Whether an input answers what another set of rules may not have asked."""
    if isinstance(given, EventSeen):
        return given.event.kind.startswith("command.")
    if isinstance(given, OperatorCommand):
        return given.verb not in _OF_SCOPES
    return isinstance(given, _ANSWERS)


def parts(path: Path, counts: Input, progress: Progress | None = None) -> Iterator[Part]:
    """The parts of a file. One that was cut off gives what is there, and is named; Damaged: nothing of it can be used."""
    begun = False
    try:
        for part in log_file.read(_pieces(path, progress), str(path)):
            begun = True
            yield part
    except Damaged as error:
        if not begun:
            raise
        counts.unreadable[path.name] = str(error).removeprefix(f"{path}: ")


def _pieces(path: Path, progress: Progress | None) -> Iterator[bytes]:
    try:
        with path.open("rb") as source:
            while piece := source.read(_PIECE):
                if progress is not None:
                    progress(len(piece))
                yield piece
    except OSError as error:
        raise ConfigError(
            t("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error


def is_log(path: Path) -> bool:
    """Whether a file is a log of gpuward, and no kernel log."""
    counts = Input()
    try:
        return isinstance(next(parts(path, counts), None), Head)
    except Damaged:
        return False


def site_of(path: Path) -> Pack | None:
    """The first rules that a log carries, with the site's settings and places; None: it carries none."""
    counts, codec = Input(), Codec("")
    for part in parts(path, counts):
        if isinstance(part, Head):
            codec = Codec(part.name.cell)
        elif isinstance(part, Record) and part.subject.endswith(_PACKS):
            given = codec.decode(part.subject, part.body, part.seq)
            if isinstance(given, PackLoaded):
                return given.pack
    return None
