"""Who may read asks for what costs most, over and over: others read more slowly, and the fleet is healed as ever."""

import asyncio
from pathlib import Path

import pytest

from brain.console_config import Role
from tests import people
from tests.real.brain_kit import lab
from tests.security.asker import ask_without_end, gaps, many_incidents
from tests.security.figures import Record, attacked

FOR_S = 5.0
USERS = {"users": {"ann": {"role": "administrator"}, "vic": {"role": "viewer"}}}


@pytest.mark.component("nats-server")
@pytest.mark.parametrize("path", ["/api/v1/incidents?all=1", "/api/v1/watch?last=1000"])
async def test_a_viewer_who_reads_without_end_costs_no_lease(
    tmp_path: Path, path: str, record_property: Record
) -> None:
    """With 1,000 incidents and 1,000 notes: the loop is in time, the epoch stays, others read."""
    async with lab(tmp_path, console={"port": 0} | USERS) as whole:
        assert whole.running is not None
        token = people.token_file(whole.config.data_dir, "vic", Role.VIEWER).read_text().strip()
        port = int(whole.running.console_url.rpartition(":")[2])
        node = await whole.node("n1")
        await node.event("gpu.lost", "gpu/0000:3b:00", reason="lost")
        await whole.until(lambda found: found["incidents"], "an incident", "/api/v1/incidents")
        await asyncio.to_thread(many_incidents, whole.config.data_dir / "history.sqlite", 1000)
        epoch = (await whole.get("/api/v1/status"))["epoch"]
        async with gaps() as idle:
            for _ in range(int(FOR_S)):
                await node.event("agent.started", version="1")
                await asyncio.sleep(0.5)
        async with gaps() as attacked_:
            attack = asyncio.create_task(ask_without_end(port, path, 20, FOR_S, token=token))
            while not attack.done():
                await asyncio.wait_for(node.event("agent.started", version="1"), 10)
                assert (await whole.get("/api/v1/status"))["epoch"] == epoch, "the leader has lost its lease"
                await asyncio.sleep(0.1)
        answers = attack.result()
        assert answers["200"], "a reader is served, within a share"
        assert attacked_.longest_s < idle.longest_s + 1.0, (answers, idle.longest_s, attacked_.longest_s)
        assert (await whole.get("/api/v1/incidents?all=1"))["incidents"], "and another person meanwhile"
        attacked(record_property, sum(answers.values()), refused=sum(answers.values()) - answers["200"])
