"""A brain that performs one step, in a process of its own, to be stopped in the middle of it.

    python -m tests.security.deposed_brain NATS-URL TARGET WAY FOLDER [unfenced]

It takes the lease, begins the step, which looks, writes FOLDER/looked, waits for FOLDER/go, and then changes something at TARGET
by the WAY. FOLDER/ended has how the step ended. `unfenced`: as it would be without brain/fence.py.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import ClassVar

import aiohttp
import nats

from agent.contract.actions.spec import Disrupts, Repeat
from brain import fence
from brain.actions import tools
from brain.actions.base import Done, Order
from brain.actions.redfish_connector import BoundedConnector
from brain.adapters.lease import Lease
from brain.core.effects import Step
from brain.leader.performer import Performer
from tests.fences import Open

TTL_S = 2.0


class Slow:
    """Looks, waits, and changes something."""

    name: ClassVar[str] = "bmc.power_cycle"

    def __init__(self, target: str, way: str, folder: Path) -> None:
        self._target = target
        self._way = way
        self._folder = folder

    async def plan(self, _: Order) -> list[str]:
        """As in Action."""
        return []

    async def run(self, _: Order) -> Done:
        """As in Action."""
        if self._way == "redfish":
            connector = BoundedConnector(self._target, verify=False, connect_s=10, answer_s=10)
            connector.job, connector.fence = 1, fence.current()
            connector.loop = asyncio.get_running_loop()
            await asyncio.to_thread(connector.get, "/look")

            def change() -> None:
                self._wait()
                connector.post("/change")

            await asyncio.to_thread(change)
        elif self._way == "program":
            self._wait()
            await tools.change(["/usr/bin/touch", str(self._folder / "changed")], deadline_s=10)
        else:
            async with aiohttp.ClientSession(request_class=fence.Request) as session:
                async with session.get(f"{self._target}/look"):
                    pass
                self._wait()
                async with session.post(f"{self._target}/change"):
                    pass
        return Done(text="done")

    def _wait(self) -> None:
        (self._folder / "looked").touch()
        while not (self._folder / "go").exists():
            time.sleep(0.005)


async def main() -> None:
    """See above."""
    url, target, way, folder = sys.argv[1:5]
    client = await nats.connect(url)
    lease = Lease("default", "the stopped one", TTL_S)
    serving = asyncio.create_task(lease.serve(client, lambda _: None, lambda: 0))
    while not lease.held:
        await asyncio.sleep(0.01)

    async def confirm(epoch: int) -> bool:
        return await lease.confirm() and lease.held and lease.epoch == epoch

    if "unfenced" in sys.argv:
        fence.around = lambda fence: _around(Open())  # noqa: ARG005  its name there
    performer = Performer(
        {"bmc.power_cycle": Slow(target, way, Path(folder))},
        may_act=lambda epoch: lease.held and lease.epoch == epoch,
        confirm=confirm,
        report=lambda _: None,
    )
    step = Step(
        id="inc-a.r1.s1.a1", run="inc-a.r1", incident="inc-a", node="n1", action="bmc.power_cycle", where="brain", params={},
        timeout_s=120.0, disrupts=Disrupts.NODE, repeat=Repeat.SAFE, why="a test",
    )  # fmt: skip
    result = await performer.perform(step, lease.epoch)
    (Path(folder) / "ended").write_text(str(result))
    serving.cancel()


_around = fence.around

if __name__ == "__main__":
    asyncio.run(main())
