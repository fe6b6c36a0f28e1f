"""Numbers with what they count: `1 run`, `2 runs`, `90 seconds`."""


def counted(number: int, one: str, many: str = "") -> str:
    """`number` of a thing, in English: `many` is the plural where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def lasting(seconds: float) -> str:
    """A length of time in words: seconds below two minutes, else minutes."""
    return counted(round(seconds), "second") if seconds < 120 else counted(round(seconds / 60), "minute")
