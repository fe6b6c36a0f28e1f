"""Numbers with what they count: `1 run`, `2 runs`."""


def counted(number: int, one: str, many: str = "") -> str:
    """`number` of a thing, in English: `many` is the plural where it is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
