"""Makes a month in which something is wrong smaller: the fewest faults and holds with which it still is."""

from collections.abc import Callable
from dataclasses import replace

from simulations.month.draw import Month

Wrong = Callable[[Month], bool]
MOST_TRIES = 60


def shrunk(month: Month, wrong: Wrong, tries: int = MOST_TRIES) -> Month:
    """Leaves out halves, quarters ... of what happens, as long as it stays wrong and there are tries left (ddmin)."""
    left = [tries]

    def still(smaller: Month) -> bool:
        left[0] -= 1
        return left[0] >= 0 and wrong(smaller)

    month = _without(month, "cases", still)
    return _without(month, "holds", still)


def _without(month: Month, what: str, still: Wrong) -> Month:
    """Without as much of one thing as goes."""
    there = list(getattr(month, what))
    piece = max(1, len(there) // 2)
    while there:
        at, gone = 0, False
        while at < len(there):
            rest = there[:at] + there[at + piece :]
            smaller = _with(month, what, rest)
            if still(smaller):
                there, month, gone = rest, smaller, True
            else:
                at += piece
        if piece == 1 and not gone:
            break
        piece = max(1, piece // 2)
    return month


def _with(month: Month, what: str, left: list[object]) -> Month:
    changed: dict[str, tuple[object, ...]] = {what: tuple(left)}
    return replace(month, **changed)  # type: ignore[arg-type]  # which of the two it is decides the name


def told(month: Month) -> list[str]:
    """What happens in it, a line each."""
    lines = [
        f"{case.at_s:12.1f}  {case.kind.name} on {', '.join(case.nodes[:4])}{' ...' if len(case.nodes) > 4 else ''}, "
        f"ended by {', '.join(fix.name.lower() for fix in case.fixes) or 'hands'}"
        for case in month.cases
    ]
    lines += [f"{hold.at_s:12.1f}  a hold on rack {hold.rack} for {hold.for_s:g} s" for hold in month.holds]
    return sorted(lines, key=lambda line: float(line.split()[0]))
