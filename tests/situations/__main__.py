"""Command line: `python -m tests.situations [WORDS]` plays the situations whose names have these words, and says what came
of it.
"""

import argparse
import sys
import time

from tests.situations import page
from tests.situations.table import ALL, judged


def main() -> int:
    """Entry point; 1 when one ends otherwise than its data says."""
    parser = argparse.ArgumentParser(prog="python -m tests.situations", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--write", action="store_true", help="write docs/safety.md")
    given = parser.parse_args()
    if given.write:
        page.write()
        return 0
    wrong = 0
    for what, situation in ALL.items():
        if not all(word.lower() in what.lower() for word in given.words):
            continue
        began = time.perf_counter()
        found = judged(what)
        took_s = time.perf_counter() - began
        same = found.verdict is situation.verdict
        wrong += not same
        print(f"{'  ' if same else '! '}{found.verdict.value:<11} {took_s:5.2f} s  {what}")
        print(f"      {found.line}")
        for text in found.unmet:
            print(f"      - {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
