"""A brain that dies while a BMC has its request: nobody knows what became of it, and nobody does it again."""

import asyncio
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from brain.core.effects import Effect, Perform
from brain.core.inputs import Input, Leader
from brain.core.pack.spec import Pack, Paging, Priority, Runbook, Rung, Verify
from tests.brain.world import Story, pack, rule
from tests.real.bmc_kit import QUICK, certificate, password_file, server_tls
from tests.real.redfish_fake import RedfishFake


def cycling() -> Pack:
    """A silent node is power cycled, then people are told."""
    rungs = (
        Rung(name="cycle", do="bmc.power_cycle", retries=3, verify=Verify(within_s=20, for_s=3)),
        Rung(name="tell", do="page"),
    )
    when = {"symptom": "silent"}
    return replace(
        pack(),
        rules=(
            rule("node-unreachable", "node", when, runbook="cycle", severity=Priority.P1, page=Paging.OPEN),
        ),
        runbooks=(Runbook(name="cycle", summary="cut the power", rungs=rungs),),
    )


class Unanswered(Story):
    """A world in which the brain dies with its steps."""

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if isinstance(effect, Perform):
            self.performed.append(effect)
            return ()
        return super()._answer(effect, now)


@pytest.mark.component("openssl")
async def test_a_power_cycle_is_not_repeated_after_the_brain_died_in_it(tmp_path: Path) -> None:
    """The engine decides, a real performer asks the BMC and is killed, the next leader verifies and calls a person."""
    story = Unanswered(cycling())
    story.event(1, "node.unreachable", node="gpu01")
    story.run(20)
    (begun,) = story.performed
    assert begun.step.action == "bmc.power_cycle"

    cert, key = certificate(tmp_path)
    async with RedfishFake(server_tls(cert, key)) as bmc:
        bmc.answers_reset.clear()
        racks = {
            "type": "redfish",
            "address": bmc.url,
            "nodes": "gpu01",
            "user": "admin",
            "password_file": str(password_file(tmp_path)),
            "ca_file": str(cert),
            **QUICK,
            "answer_s": 60.0,
        }
        given = json.dumps({"tables": {"racks": racks}, "step": asdict(begun.step)})
        brain = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.real.bmc_performer", given),
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[2],
        )
        async with asyncio.timeout(60):
            while not bmc.asked:
                assert brain.returncode is None
                await asyncio.sleep(0.02)
        brain.kill()
        said, _ = await brain.communicate()
        assert b"result" not in said, "it died before it could tell"
        bmc.answers_reset.set()

        story.time.feed(Leader(id="leader-2", epoch=2, brain="b2"), 25)
        story.run(300)
        assert len(story.performed) == 1, "no second power cycle, whatever its retries allow"
        assert bmc.asked == ["PowerCycle"]
    (incident,) = story.incidents("node-unreachable")
    (run,) = story.time.runs.values()
    assert next(step.outcome for step in run.steps) == "unknown"
    assert incident.state == "needs_human"
