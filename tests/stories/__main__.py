"""Command line: `python -m tests.stories` plays all stories, a file on each processor, and prints how each was judged.

`--only WORDS`: those whose names or files have one of these words, with what is not as expected. `--write`: docs/judgement.md,
and takes what is right by now out of open.yaml.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from simulations.scenarios.judge import StoryJudgement, judge
from tests.stories import page
from tests.stories.judged import judged
from tests.stories.load import close, files, load, still_open


def main() -> int:
    """Entry point; 1 when a story is right that should not be, or the other way round."""
    parser = argparse.ArgumentParser(prog="python -m tests.stories", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--write", action="store_true", help="write docs/judgement.md")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="files at a time")
    given = parser.parse_args()
    began = time.perf_counter()
    wrong = 0
    print(f"  {'story':<44} cause place  all needless pages")
    if given.only:
        tales = [(path, tale) for path in files() for tale in load(path).stories]
        chosen = [
            tale for path, tale in tales if any(word in f"{path.stem}/{tale.name}" for word in given.only)
        ]
        wrong = sum(_print(judge(tale), reasons=True) for tale in chosen)
    else:
        with ProcessPoolExecutor(max_workers=given.jobs) as pool:
            played = dict(zip(files(), pool.map(_played, files()), strict=True))
        for path, stories in played.items():
            print(load(path).title)
            wrong += sum(_print(one, reasons=False) for one in stories)
        everything = [one for stories in played.values() for one in stories]
        print(page.line(everything))
        if given.write:
            close([one.tale.name for one in everything if one.right])
            page.write(played)
    print(f"{time.perf_counter() - began:.1f} s")
    return 1 if wrong else 0


def _played(path: Path) -> tuple[StoryJudgement, ...]:
    return judged(path)


def _print(one: StoryJudgement, *, reasons: bool) -> bool:
    surprising = one.right is (one.tale.name in still_open())
    signs = [page.sign(good) for good in (one.cause_right, one.place_right, one.right)]
    print(
        f"{'!' if surprising else ' '} {one.tale.name:<44} {signs[0]:^5} {signs[1]:^5} {signs[2]:^4}"
        f" {one.needless:>8} {one.pages:>5}"
    )
    if reasons:
        print(f"      {one.line}")
    if reasons or (surprising and not one.right):
        for text in one.unmet:
            print(f"      - {text}")
    return surprising


if __name__ == "__main__":
    sys.exit(main())
