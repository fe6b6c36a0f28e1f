"""A brain's performer in a process of its own, to be killed: performs one step of `sys.argv[1]` (JSON) and says so."""

import asyncio
import json
import sys

from brain.core.effects import Step
from brain.core.inputs import StepProgress
from brain.leader.performer import Performer
from tests.fences import confirmed
from tests.real.bmc_kit import built


def _report(given: StepProgress) -> None:
    sys.stdout.write(f"progress {given.id}\n")


async def _main() -> None:
    given = json.loads(sys.argv[1])
    performer = Performer(built(given["tables"]), may_act=lambda _: True, confirm=confirmed, report=_report)
    result = await performer.perform(Step(**given["step"]), 1)
    sys.stdout.write(f"result {result}\n")


asyncio.run(_main())
