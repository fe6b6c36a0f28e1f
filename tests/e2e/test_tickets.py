"""Tickets of a whole gpuward in Jira: the leader is killed while the issue is being made, and the other brain goes on with it."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.brain.notify.jira_server import TOKEN, USER, JiraServer, text_of
from tests.brain.notify.receivers import Answer, receiving
from tests.e2e.stack import Stack
from tests.e2e.test_crash_points import RULES

pytestmark = [pytest.mark.slow, pytest.mark.component("nats-server"), pytest.mark.timeout(300)]
BRAIN = """[settings.tickets]
to = "tickets"
[[modes]]
mode = "auto"
[channels.jira]
type = "jira"
url = "{url}/jira"
user = "{user}"
token_file = "{folder}/jira.token"
project = "OPS"
settle_s = 5
"""
LADDER = "summary: It tells people.\nrungs:\n  - name: tell\n    do: page\n    params: {text: the card must be replaced}\n"


class HeldJira(JiraServer):
    """Once, its answer to a new issue does not come before somebody lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.made_one, self.go_on = threading.Event(), threading.Event()

    def api(self, request: web.Request, body: Any) -> Answer:
        """As Jira."""
        answer = super().api(request, body)
        if answer[0] == 201 and not self.made_one.is_set():
            self.made_one.set()
            self.go_on.wait(120)
        return answer


@contextmanager
def serving(server: JiraServer) -> Iterator[str]:
    """The server, in a thread of its own; its URL."""
    ready, over, url = threading.Event(), threading.Event(), ""

    async def serve() -> None:
        nonlocal url
        async with receiving(server.api) as it:
            url = it.url
            ready.set()
            while not over.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield url
    finally:
        over.set()
        thread.join(60)


def faults(whole: Stack, jobs: Path, seen: threading.Event) -> None:
    """A job tells of its lost GPU until that is seen: before the agent's first start nobody has followed its log."""

    def again() -> bool:
        with jobs.open("a") as log:
            log.write("[rank0] CUDA_ERROR_DEVICE_REMOVED on GPU 0000:0a:00.0\n")
        return seen.wait(1.0)

    whole.wait_for(again, "an issue is made")


def test_one_issue_though_the_leader_dies_while_it_is_made(tmp_path: Path) -> None:
    """The other brain finds it by its label, comments it, and closes it with the incident; people read its key."""
    whole, server = Stack(tmp_path / "stack"), HeldJira()
    with serving(server) as url:
        try:
            for path in (*whole.folder.glob("rules/*.yaml"), *whole.folder.glob("runbooks/*.yaml")):
                path.unlink()
            (whole.folder / "rules/ladder.yaml").write_text(RULES)
            (whole.folder / "runbooks/ladder.yaml").write_text(LADDER)
            (whole.folder / "jira.token").write_text(TOKEN)
            (whole.folder / "jira.token").chmod(0o600)
            whole.nats.start()
            whole.start_receiver()
            more = BRAIN.format(url=url, user=USER, folder=whole.folder)
            config = whole.write_brain_config(more)
            config.write_text(config.read_text().replace("[groups]\n", '[groups]\ntickets = ["jira"]\n'))
            whole.start_brain()
            whole.start_standby()
            jobs = whole.folder / "job-1.log"
            jobs.write_text("")
            whole.write_agent_config(f'job_logs = ["{jobs}"]')
            whole.start_agent()
            faults(whole, jobs, server.made_one)
            whole.kill("brain")
            server.go_on.set()
            whole.url = whole.url_of("standby")
            (incident,) = whole.wait_for(
                lambda: [one for one in whole.incidents("gpu-gone") if one["pages"]["tickets"]],
                "the other brain knows the ticket",
            )
            assert incident["pages"]["tickets"] == {"jira": "OPS-1"}
            assert re.search(
                r"^  ticket +OPS-1 \(jira\)$", whole.gpuward("explain", incident["id"]), re.MULTILINE
            )
            whole.gpuward("ack", incident["id"])
            whole.wait_for(lambda: server.only().comments, "the issue says who has it")
            whole.gpuward("close", incident["id"], "--why", "it was replaced")
            whole.wait_for(lambda: server.only().status == "Done", "the issue is closed")
        finally:
            server.go_on.set()
            whole.end()
    issue = server.only()
    assert "CUDA_ERROR_DEVICE_REMOVED" in text_of(issue.fields["description"])
    assert [text_of(one["body"]).splitlines()[0] for one in issue.comments] == [
        f"[P1] ACKNOWLEDGED: gpu-gone on {incident['scope']}",
        f"[P1] RESOLVED: gpu-gone on {incident['scope']}",
    ]
