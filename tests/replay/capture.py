"""A pytest plugin that writes down the log of every engine that the tests run: `pytest -p tests.replay.capture`.

`python -m tests.replay capture` uses it to make the recordings again. What hypothesis draws is left out: it is random.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brain.core.engine import Engine
from brain.core.pack.actions import ACTIONS
from tests.replay import recording

LONGEST = 4000  # inputs of one log

_logs: list[dict[str, Any]] = []
_packs: dict[str, Any] = {}
_now: list[str] = [""]


def pytest_configure(config: pytest.Config) -> None:
    """Wraps the engine."""
    begin, handle = Engine.__init__, Engine.handle

    def noted_begin(self: Engine, state: Any = None, **given: Any) -> None:
        begin(self, state, **given)
        fits = state is None and given["actions"] is ACTIONS and _now[0]
        entry = {"name": _now[0], "observe_all": given.get("observe_all", False), "log": []}
        self._replay = entry if fits else None  # type: ignore[attr-defined]
        if fits:
            _logs.append(entry)

    def noted_handle(self: Engine, given: Any, now: float) -> Any:
        entry = getattr(self, "_replay", None)
        if entry is not None and len(entry["log"]) < LONGEST:
            entry["log"].append(recording.message(given, now, _packs))
        return handle(self, given, now)

    Engine.__init__ = noted_begin  # type: ignore[method-assign]
    Engine.handle = noted_handle  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Which test an engine belongs to."""
    _now[0] = "" if getattr(getattr(item, "function", None), "is_hypothesis_test", False) else item.nodeid
    try:
        return (yield)
    finally:
        _now[0] = ""


def pytest_sessionfinish() -> None:
    """Everything into the file that the environment names."""
    Path(os.environ["GPUWARD_CAPTURE"]).write_text(json.dumps({"logs": _logs, "packs": _packs}))
