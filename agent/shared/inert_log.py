"""Log lines of which nobody but us decides where they begin and what they do to a terminal."""

import logging

from agent.contract.inert import inert


class InertFormatter(logging.Formatter):
    """One record is one line, however its text was made; a traceback follows with each line marked as its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  a method of the library
        """Formats the line."""
        return inert(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802  a method of the library
        """Formats the traceback."""
        return _marked(super().formatException(ei))  # type: ignore[arg-type]  # the library's type is private

    def formatStack(self, stack_info: str) -> str:  # noqa: N802  a method of the library
        """Formats a stack."""
        return _marked(super().formatStack(stack_info))


def handler(layout: str) -> logging.Handler:
    """Returns the handler that writes to stderr in this layout (as of logging.Formatter)."""
    found = logging.StreamHandler()
    found.setFormatter(InertFormatter(layout))
    return found


def _marked(text: str) -> str:
    return "\n".join(f"  | {inert(line)}" for line in text.split("\n"))
