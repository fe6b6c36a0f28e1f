"""The log on stderr, as text or as JSON. Nobody but us decides where a line begins and what it does to a terminal."""

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from agent.contract.inert import inert, inert_json
from agent.shared.log_fields import fields


class LogFormat(StrEnum):
    """How a line of the log is written."""

    TEXT = "text"  # for people: one line, and the lines of a traceback below it
    JSON = "json"  # for collectors of logs: an object on one line


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


class JsonFormatter(logging.Formatter):
    """One record is one object on one line, with what it is about (agent/shared/log_fields.py) as keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats the line. Its texts are exact; what would act on a terminal is escaped."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, Any] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
            **fields(),
        }
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return inert_json(json.dumps(found, ensure_ascii=False, default=str))


def handler(layout: str, form: LogFormat = LogFormat.TEXT) -> logging.Handler:
    """Returns the handler that writes to stderr. `layout`: of a line of text (as of logging.Formatter)."""
    found = logging.StreamHandler()
    found.setFormatter(JsonFormatter() if form is LogFormat.JSON else InertFormatter(layout))
    return found


def _marked(text: str) -> str:
    return "\n".join(f"  | {inert(line)}" for line in text.split("\n"))
