"""`python -m tests.months --months 100`: random months; a law that is broken ends with status 1, its seed and its story."""

import argparse
import sys
import time

from simulations.month.draw import Month
from tests.months.drawn import Chance, chance_of
from tests.months.judge import broken_laws
from tests.months.shrink import shrunk, told
from tests.shipped import shipped_pack


def story(chance: Chance, found: str) -> str:
    """What is told of a month in which a law was broken: the fewest faults with which the same law still is."""
    law = found.partition(":")[0]

    def found_in(month: Month) -> list[str]:
        return [one for one in broken_laws(month, shipped_pack(), chance.terms) if one.startswith(law)]

    small = shrunk(chance.month, lambda month: bool(found_in(month)))
    again = (found_in(small) or [found])[0]
    return "\n".join([f"seed {chance.seed} ({chance.says}):", *told(small), again])


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m tests.months", description=__doc__.partition(": ")[2])
    parser.add_argument("--months", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument(
        "--within", type=float, default=0.0, help="begin none after so many seconds of its processor; 0: all"
    )
    given = parser.parse_args(argv)
    played = faults = 0
    for seed in range(given.first, given.first + given.months):
        if given.within and time.process_time() > given.within:
            break
        chance = chance_of(seed)
        found = broken_laws(chance.month, shipped_pack(), chance.terms)
        played, faults = played + 1, faults + len(chance.month.cases)
        if found:
            sys.stdout.write(f"{story(chance, found[0])}\n")
            return 1
    sys.stdout.write(
        f"{played} months, {faults:,} faults and look-alikes: every law held ({time.process_time():.0f} s)\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
