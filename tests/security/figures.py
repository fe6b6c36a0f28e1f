"""How many attacks a test made: it records them, and `python -m tests.security` writes the table of docs/security.md."""

from collections.abc import Callable

Record = Callable[[str, object], None]  # pytest's fixture record_property


def attacked(record: Record, tried: int, *, refused: int | None = None, through: int = 0) -> None:
    """A test's figures. `refused`: how many were refused by name; the others came to nothing. None: all of them."""
    record("tried", tried)
    record("refused", tried if refused is None else refused)
    record("through", through)
