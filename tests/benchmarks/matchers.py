"""Each matcher that there is here, with the whole rule pack: alone, and in the engine."""

import statistics
import time
from functools import partial

from brain.core.pack.compiled import Compiled
from brain.core.pack.rulebook import Matcher
from brain.core.pack.spec import Pack
from tests.benchmarks.engine import FAULTS, ORDINARY, RUNS, event_of, leading_engine, mixed, pack
from tests.benchmarks.figures import Figure
from tests.matchers import MATCHERS

EVENTS = 100_000
NODES = 1000
LOOPS = 5  # over all situations, in each run
TARGET = 20_000

Asked = list[tuple[str, dict[str, str | int | float | bool]]]  # scope, situation


class _Recorder(Compiled):
    """Keeps what the engine asks the matcher."""

    def __init__(self, asked: Asked, pack: Pack) -> None:
        super().__init__(pack)
        self._asked = asked

    def match(self, scope: str, situation: dict[str, str | int | float | bool]) -> list[str]:
        self._asked.append((scope, dict(situation)))
        return super().match(scope, situation)


def situations(rules: Pack) -> Asked:
    """What the matcher is asked when each of a thousand nodes shows every ordinary event and every fault."""
    asked: Asked = []
    engine = leading_engine(rules, NODES, partial(_Recorder, asked))
    for number in range(NODES):
        for at, event in enumerate([*ORDINARY, *FAULTS]):
            engine.handle(event_of(number, at + 2, event), 60.0 * number + at)
    engine.close()
    return asked


def alone(rules: Pack, matcher: Matcher, asked: Asked) -> float:
    """Situations a second."""
    compiled = Compiled(rules, matcher=matcher)
    began = time.process_time()
    for _ in range(LOOPS):
        for scope, situation in asked:
            compiled.match(scope, situation)
    spent = time.process_time() - began
    compiled.close()
    return LOOPS * len(asked) / spent


def in_the_engine(rules: Pack, matcher: Matcher, seed: int) -> float:
    """Events a second, of the stream of tests/benchmarks/engine.py."""
    engine = leading_engine(rules, NODES, partial(Compiled, matcher=matcher))
    stream = mixed(EVENTS, NODES, seed)
    began = time.process_time()
    for given, at in stream:
        engine.handle(given, at)
    spent = time.process_time() - began
    engine.close()
    return len(stream) / spent


def run() -> list[Figure]:
    """All figures of this file: seconds are those of the processor, and the matchers take turns."""
    rules = pack()
    asked = situations(rules)
    rates: dict[tuple[str, str], list[float]] = {}
    for seed in range(RUNS):
        for name, matcher in sorted(MATCHERS.items(), reverse=seed % 2 == 1):  # who comes second finds memory
            rates.setdefault(("situations", name), []).append(alone(rules, matcher, asked))
            rates.setdefault(("events", name), []).append(in_the_engine(rules, matcher, seed))
    return [_figure(unit, name, found) for (unit, name), found in sorted(rates.items(), reverse=True)]


def _figure(unit: str, name: str, rates: list[float]) -> Figure:
    rate = statistics.median(rates)
    return Figure(
        what=f"{'matcher alone' if unit == 'situations' else 'engine in backtest'}, whole rule pack: {name}",
        value=f"{rate:,.0f} {unit}/s",
        beside=f"{min(rates):,.0f} to {max(rates):,.0f}",
        target=f"≥ {TARGET:,} {unit}/s",
        met=rate >= TARGET,
    )
