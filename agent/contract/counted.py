"""Numbers with what they count: `1 run`, `2 runs`, `90 seconds`."""


def counted(number: int, one: str, many: str = "") -> str:
    """`number` of a thing, in English: `many` is the plural where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def span(seconds: float) -> str:
    """A length of time in the largest unit of which it has at least two, in English: `90 seconds`, `47 hours`, `28 days`."""
    for unit_s, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * unit_s:
            return counted(round(seconds / unit_s), unit)
    return counted(round(seconds), "second")
