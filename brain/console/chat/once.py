"""Each signed request counts once, and only while it is new. Pure: the time is an argument."""

from collections import OrderedDict

REMEMBERED = 100_000  # only requests with a right signature are remembered


class Once:
    """The requests of one platform that were taken. Times are seconds since 1970, of one clock."""

    def __init__(self, within_s: float) -> None:
        """`within_s`: how old a request may be, and so far may the platform's clock be ahead."""
        self._within_s = within_s
        self._taken: OrderedDict[str, float] = OrderedDict()

    def too_old(self, stamp_s: float, now: float) -> bool:
        """Is it older than what is remembered, or from a clock that is wrong? NaN is, too."""
        return not abs(now - stamp_s) <= self._within_s

    def again(self, key: str, now: float) -> bool:
        """Remembers one; was it here before? Asked only for what is not too old, so what is forgotten could not come again."""
        while self._taken and next(iter(self._taken.values())) < now - 2 * self._within_s:
            self._taken.popitem(last=False)
        if key in self._taken:
            return True
        if len(self._taken) >= REMEMBERED:
            return True  # nobody presses so many buttons: rather none counts than one twice
        self._taken[key] = now
        return False

    def knows(self, key: str) -> bool:
        """Was it here before? Nothing is remembered by asking."""
        return key in self._taken

    def forget(self, key: str) -> None:
        """Nothing was done by it: it may come again."""
        self._taken.pop(key, None)


def seconds(text: object, per_s: float = 1.0) -> float:
    """A time stamp as text or number (`per_s`: 1000 for milliseconds); NaN: it is none."""
    try:
        return float(text) / per_s if isinstance(text, str | int | float) else float("nan")
    except (ValueError, OverflowError):
        return float("nan")
