"""Names of files as text that can be stored and sent. Whoever makes a file chooses its bytes."""

import os


def printable(path: str) -> str:
    r"""A path that the system gave, in which bytes that are no UTF-8 are written as `\\xff`.

    Python keeps such bytes as lone surrogates, which no JSON and no database takes.
    """
    return os.fsencode(path).decode(errors="backslashreplace")
