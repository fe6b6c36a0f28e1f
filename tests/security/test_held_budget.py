"""A stolen node that only talks of its reboot keeps its leaf's budget no longer than that can be true (decision 37).

The attacker's process accepts the reboot over a real broker, beats, and reports progress without end. What an honest node may
need is shortened here from minutes to seconds.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from brain.core.faults import growing
from brain.core.healing import unanswered
from tests.real.brain_kit import Node
from tests.security.attacker import VICTIM
from tests.security.figures import Record, attacked
from tests.security.test_stolen_node import GPU, ROOT, THIEF, Site, site

pytestmark = pytest.mark.component("nats-server")
LOST: dict[str, Any] = {"code": 79, "name": "x", "known": True, "what": "", "action": ""}
SECONDS = 45.0


def without_scheduler(folder: Path) -> Path:
    """The shipped runbooks for a site that has no scheduler: a refused drain ends no remedy."""
    made = folder / "runbooks"
    shutil.copytree(ROOT / "runbooks", made)
    book = made / "gpu-lost.yaml"
    text = book.read_text().replace("retries: 2\n    on_failure: stop", "on_refusal: next")
    book.write_text(text)
    return made


@pytest.mark.slow
async def test_a_thief_that_talks_of_its_reboot_gives_its_neighbours_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    """Its neighbour of one leaf is rebooted while it talks on; people are told of it; and it is asked for nothing more."""
    monkeypatch.setattr(unanswered, "GONE_BY_S", 6.0)
    monkeypatch.setattr(unanswered, "NO_ANSWER_S", 4.0)
    monkeypatch.setattr(unanswered, "NO_PROGRESS_S", 2.0)
    monkeypatch.setattr(growing, "HELD_BACK_S", 2.0)
    topology = tmp_path / "topology.yaml"
    topology.write_text(f"{THIEF}: {{leaf: l1}}\n{VICTIM}: {{leaf: l1}}\n")
    modes = [{"mode": "auto", "nodes": ""}, {"mode": "auto", "nodes": "*"}]
    more: dict[str, Any] = {
        "topology": str(topology),
        "runbooks": str(without_scheduler(tmp_path)),
        "modes": modes,
    }
    async with site(tmp_path, settings={"hold_off_s": 0}, unreachable_after_s=3, **more) as found:
        living = asyncio.create_task(lives(found.honest))
        attack = asyncio.create_task(found.attack("hold", str(SECONDS)))
        async with asyncio.timeout(SECONDS):
            while (await run_of(found, THIEF)).get("state") != "performing":
                await asyncio.sleep(0.1)
        async with asyncio.timeout(SECONDS):
            while not [one for one in found.honest.commands if one.action == "node.reboot"]:
                await found.honest.event("gpu.xid", GPU, **LOST)
                await asyncio.sleep(0.5)
        assert not attack.done(), "while the thief talks on"
        run = await run_of(found, THIEF)
        assert run["state"] == "exhausted"
        assert f"{THIEF} is heard, and gives no sign of life of reboot" in run["why"]
        done = await attack
        living.cancel()
        attacked(record_property, done["tried"])


async def run_of(found: Site, node: str) -> dict[str, Any]:
    """The newest run for a lost GPU of the node; empty: there is none yet."""
    runs = [one["runs"] for one in await found.whole.incidents("gpu-lost") if one["node"] == node]
    run: dict[str, Any] = await found.whole.get(f"/api/v1/runs/{runs[0][-1]}") if runs and runs[0] else {}
    return run


async def lives(node: Node) -> None:
    """The honest node beats, and does at once what it is told to do besides the reboot."""
    done: set[str] = set()
    while True:
        await node.beat()
        for command in node.commands:
            if command.id not in done and command.action != "node.reboot":
                await node.event("command.result", command=command.id, outcome="ok", why="done", took_s=0.1)
                done.add(command.id)
        await asyncio.sleep(0.5)
