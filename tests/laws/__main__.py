"""Command line: `python -m tests.laws --stories 10000 --first 1 --workers 2`; in CI as many of them as fit."""

import argparse
import functools
import gc
import itertools
import math
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Mode
from tests.laws import fleet
from tests.laws.play import MOVES, Tally, play

BATCH = 25  # stories in one job: the workers end at nearly the same time
LEAST = 2_000  # stories, however slow the machine is
SHOWN = 10  # violations of one law that are printed


@functools.cache
def compiled() -> CompiledCache:
    """The packs of this process, each compiled once. They stay: the collector need not look at them again."""
    cache = CompiledCache()
    for size, mode, careful in itertools.product(fleet.SIZES, Mode, (False, True)):
        cache(fleet.pack(size, mode, careful=careful))
    gc.collect()
    gc.freeze()
    return cache


def batch(first: int, count: int, moves: int, until: float) -> Tally:
    """So many stories in one process; none when `until`, of the machine's monotonic clock, is over. A story makes no reference
    cycles, so what it leaves behind is freed at once.
    """
    if time.monotonic() > until:
        return Tally()
    tally, cache = Tally(), compiled()
    gc.disable()
    for seed in range(first, first + count):
        play(seed, cache, tally, moves)
    gc.enable()
    tally.violations = dict(tally.violations)
    return tally


def main() -> int:
    """Entry point; 1 when a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=__doc__)
    parser.add_argument("--stories", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1, help="seed of the first story")
    parser.add_argument("--moves", type=int, default=MOVES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--within",
        type=float,
        default=0.0,
        help=f"begin none after so many seconds but the first {LEAST:,}; 0: all",
    )
    given = parser.parse_args()
    until = time.monotonic() + given.within if given.within else math.inf
    size = max(1, min(BATCH, given.stories // given.workers))
    starts = range(given.first, given.first + given.stories, size)
    last = given.first + given.stories
    whole = Tally()
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = [
            pool.submit(
                batch,
                start,
                min(size, last - start),
                given.moves,
                math.inf if start < given.first + LEAST else until,
            )
            for start in starts
        ]
        for job in jobs:
            part = job.result()
            whole.stories += part.stories
            whole.inputs += part.inputs
            whole.seconds += part.seconds
            for law, found in part.violations.items():
                whole.violations[law].extend(found)
    print(f"{whole.stories} stories, {whole.inputs} inputs, {whole.seconds:.0f} s of work")
    if whole.stories < given.stories:
        print(f"of {given.stories}: the time was over")
    for law, found in sorted(whole.violations.items()):
        print(f"law {law}: {len(found)} violations")
        for text in found[:SHOWN]:
            print(f"  {text}")
    print("no law was broken" if not whole.violations else "laws were broken")
    return 1 if whole.violations else 0


if __name__ == "__main__":
    sys.exit(main())
