"""Diagnoses a log that somebody pastes, by `gpuward diagnose` in a process of its own: a log that takes long, or that brings it
down, is no matter of the brain's. It is given this brain's rules as they are on its disk, and nothing of what it says is kept.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from aiohttp import web
from pydantic import ValidationError

from agent.contract.errors import Refused
from agent.shared import tool
from brain.config import BrainConfig
from brain.console.access.door import Door
from brain.console.access.people import OWN_AFFAIR
from brain.console.access.route import Route, person
from brain.console.api import table
from brain.console.api.base import Nothing
from brain.console.api.diagnosis_shapes import DiagnosisShape, WantedDiagnosis
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView
from brain.console.speech import told, told_plan
from brain.console_config import Role

DEADLINE_S = 60.0
WAIT_S = 10.0  # for one's turn
MOST_WAITING = 8  # logs in memory
_MOST_BYTES = 16 * 1024**2  # of a verdict
_NAME = "log"  # of the node that the log stands for
_AGAIN = "try again in a minute"


def routes(brain: BrainView, door: Door) -> list[Route]:
    """Returns the route: one log at a time, and one of each person."""
    turn = asyncio.Lock()
    waiting: Counter[str] = Counter()

    async def diagnose(asked: Checked[Nothing, WantedDiagnosis]) -> DiagnosisShape:
        who = person(asked.http)
        door.demand(asked.http, who, Role.VIEWER, OWN_AFFAIR)  # it changes nothing
        payer = door.payer(asked.http)
        if waiting[payer] or waiting.total() >= MOST_WAITING:
            raise web.HTTPServiceUnavailable(text=f"other logs are being diagnosed: {_AGAIN}")
        waiting[payer] += 1
        try:
            async with asyncio.timeout(WAIT_S):
                await turn.acquire()
        except TimeoutError as error:
            raise web.HTTPServiceUnavailable(text=f"other logs are being diagnosed: {_AGAIN}") from error
        else:
            try:
                return await _verdict(brain.config, asked.body)
            finally:
                turn.release()
        finally:
            del waiting[payer]

    return [serve(table.DIAGNOSE, diagnose)]


async def _verdict(config: BrainConfig, wanted: WantedDiagnosis) -> DiagnosisShape:
    with tempfile.TemporaryDirectory(prefix="gpuward-diagnose-") as folder:
        file = Path(folder) / f"{_NAME}.log"
        await asyncio.to_thread(file.write_text, wanted.log, "utf-8", "replace")
        argv = [
            sys.executable, "-m", "brain", "diagnose", "--json",
            "--rules", str(config.rules_dir.absolute()), "--runbooks", str(config.runbooks_dir.absolute()),
        ]  # fmt: skip
        driver = ["--driver", wanted.driver] if wanted.driver else []
        try:
            done = await tool.run(
                [*argv, *driver, "--", str(file)], deadline_s=DEADLINE_S, max_bytes=_MOST_BYTES
            )
        except tool.Late as error:
            raise web.HTTPServiceUnavailable(
                text=f"it took longer than {DEADLINE_S:g} s: send a part of the log, or use `gpuward diagnose`"
            ) from error
        except Refused as error:
            raise web.HTTPServiceUnavailable(text=f"`gpuward diagnose` cannot be run: {error}") from error
    try:
        return _told(DiagnosisShape.model_validate_json(done.out))
    except ValidationError as error:
        raise web.HTTPServiceUnavailable(
            text=f"`gpuward diagnose` gave no verdict: {done.last_line}"
        ) from error


def _told(found: DiagnosisShape) -> DiagnosisShape:
    """The same for whoever asks: what is told in English by the command line, which answers scripts."""
    incidents = [
        one.model_copy(update={"plan": [told_plan(line) for line in one.plan], "sure": told(one.sure)})
        for one in found.incidents
    ]
    return found.model_copy(
        update={
            "incidents": incidents,
            "blind": {name: told(text) for name, text in found.blind.items()},
            "aside": {name: told(text) for name, text in found.aside.items()},
        }
    )
