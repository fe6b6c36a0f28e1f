"""What a line of the log is about: the ids of the work within which it is logged, in tasks and threads that it starts too."""

import asyncio
import io
import json
import logging
from typing import Any

import pytest

from agent import config_file
from agent.contract.errors import ConfigError
from agent.shared import inert_log
from agent.shared.inert_log import LogFormat
from agent.shared.log_fields import about, fields


class Sink:
    """A log of its own, as JSON."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        handler = inert_log.handler("", LogFormat.JSON)
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(self._text)
        self.log = logging.Logger("part")
        self.log.addHandler(handler)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What was logged."""
        return [json.loads(line) for line in self._text.getvalue().splitlines()]


def test_a_line_carries_the_ids_of_its_work() -> None:
    """Of the block, and of the block around it; behind it no more."""
    sink = Sink()
    with about(incident="inc-1", run="run-1"):
        with about(step="run-1.s1.1"):
            sink.log.info("inside")
        sink.log.info("between")
    sink.log.info("outside")
    inside, between, outside = sink.lines
    assert (inside["incident"], inside["run"], inside["step"]) == ("inc-1", "run-1", "run-1.s1.1")
    assert "step" not in between
    assert set(outside) == {"at", "level", "logger", "text"}


async def test_what_the_work_starts_carries_them_too() -> None:
    """A task and a thread; a task that was there before does not."""
    sink, begun = Sink(), asyncio.Event()

    async def earlier() -> None:
        await begun.wait()
        sink.log.info("earlier")

    before = asyncio.create_task(earlier())
    with about(step="s1"):
        task = asyncio.create_task(asyncio.to_thread(sink.log.info, "thread"))
        begun.set()
    await asyncio.gather(before, task)
    assert {one["text"]: one.get("step") for one in sink.lines} == {"earlier": None, "thread": "s1"}
    assert fields() == {}


def test_an_exception_is_one_line_of_json() -> None:
    """With its traceback as a text."""
    sink = Sink()
    try:
        raise ValueError("no\nsuch thing")  # noqa: TRY301  its traceback is what is looked at
    except ValueError:
        sink.log.exception("it failed")
    (line,) = sink.lines
    assert (line["level"], line["text"]) == ("error", "it failed")
    assert line["traceback"].startswith("Traceback")
    assert line["traceback"].endswith("ValueError: no\nsuch thing")


@pytest.mark.parametrize(("text", "format_"), [("text", LogFormat.TEXT), ("json", LogFormat.JSON)])
def test_the_agents_setting(text: str, format_: LogFormat) -> None:
    """Two words are known."""
    assert LogFormat(config_file.load(None, {"log_format": text}).log_format) is format_


def test_a_format_that_nobody_writes_is_refused() -> None:
    """With the two that there are."""
    with pytest.raises(ConfigError, match="log_format must be text or json, not 'xml'"):
        config_file.load(None, {"log_format": "xml"})
