"""What a console's pages ask of a real brain, each in one request."""

import asyncio
import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from brain.cli.diagnose import diagnose
from brain.console.api.diagnosis_shapes import MOST_CHARACTERS
from brain.console_config import Role
from tests import people
from tests.real.brain_kit import lab

pytestmark = pytest.mark.component("nats-server")


async def test_a_fault_is_on_the_map_and_in_the_figures_of_its_rule(tmp_path: Path) -> None:
    """Now, and of a past time as far as there is history; its rule has a source and its runbook a ladder."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        await node.event("gpu.xid", "gpu/0000:3b:00", code=79)
        (incident,) = (
            await whole.until(lambda found: found["incidents"], "an incident", "/api/v1/incidents")
        )["incidents"]
        found = await whole.until(lambda found: found["incidents"]["id"], "it is on the map", "/api/v1/fleet")
        assert (found["names"], found["incidents"]["id"], found["cards"]["card"]) == (
            ["n1"],
            [incident["id"]],
            ["0000:3b:00"],
        )
        assert found["words"][found["state"][0]] in ("suspect", "healing", "needs_human")
        early = await whole.get(f"/api/v1/fleet?at={found['since'] - 5}")
        assert (early["status"], "before the history" in early["detail"]) == (400, True)
        first = await whole.get(f"/api/v1/fleet?at={found['since']}")
        assert (first["incidents"]["id"], first["words"][first["state"][0]]) == ([], "well")
        assert (await whole.get("/api/v1/fleet?at=99999999999"))["at"] is None
        rule = await whole.get(f"/api/v1/rules/{incident['rule']}")
        assert rule["source"].startswith("rules/")
        listed = (await whole.get("/api/v1/rules?limit=3"))["rules"]
        assert [one["name"] for one in listed] == sorted(
            one["name"] for one in (await whole.get("/api/v1/rules"))["rules"]
        )[:3]
        assert (await whole.get(f"/api/v1/rules?name={rule['name']}"))["rules"][0]["cause"] == rule["cause"]
        assert incident["rule"] in (await whole.get(f"/api/v1/runbooks/{rule['runbook']}"))["rules"]
        await whole.say("mode", runbook=rule["runbook"], mode="approve")
        book = await whole.get(f"/api/v1/runbooks/{rule['runbook']}")
        assert (book["modes"][-1]["who"], book["modes"][-1]["mode"]) == ("ann", "approve")
        assert book["modes"][-1]["at"]
        assert book["source"].startswith(f"runbooks/{rule['runbook']}.yaml:")
        assert {
            (await whole.get(path))["status"] for path in ("/api/v1/rules/none", "/api/v1/runbooks/none")
        } == {404}


async def test_a_node_tells_its_cards(tmp_path: Path) -> None:
    """From its events, through the log; over a restart of the brain, too."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        await node.event(
            "node.inventory", driver="580.82.07", gpus=1, gpu_models="1 NVIDIA H100", changed=False
        )
        await node.event(
            "node.inventory.gpu", "gpu/0000:3b:00", serial="165", model="NVIDIA H100", uuid="GPU-1"
        )
        path = "/api/v1/nodes/n1"
        for again in (True, False):
            found = await whole.until(lambda found: found.get("cards"), "its card", path)
            assert (found["cards"][0]["serial"], found["inventory"]["told"]["driver"]) == ("165", "580.82.07")
            assert (found["word"], found["cards"][0]["places"][0]["node"]) == ("well", "n1")
            if again:
                await whole.stop()
                await whole.start()
        assert (await whole.get("/api/v1/nodes/none"))["status"] == 404


async def test_the_page_of_whoever_is_on_call(tmp_path: Path) -> None:
    """What needs a person, with what this person may say; whoever shows no credential is offered nothing."""
    async with lab(tmp_path, console={"port": 0, "open_reading": True} | people.ANN) as whole:
        assert whole.running is not None
        await (await whole.node("n1")).event("gpu.xid", "gpu/0000:3b:00", code=79)
        found = await whole.until(lambda found: found["people"], "it needs a person", "/api/v1/needs")
        item = found["people"][0]
        assert (item["node"], found["people_count"]) == ("n1", len(found["people"]))
        assert {"ack", "hold", "close"} <= {one["verb"] for one in item["verbs"]}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{whole.running.console_url}/api/v1/needs") as answer,
        ):
            assert [one["verbs"] for one in (await answer.json())["people"]] == [[]]
        (close,) = [one for one in item["verbs"] if one["verb"] == "close"]
        await whole.say("close", **close["args"])
        over = await whole.until(lambda found: found["healed"], "it is over", "/api/v1/needs?hours=1")
        assert (over["healed"][0]["id"], over["people"]) == (item["id"], [])


async def test_a_report_of_the_last_week_and_its_table(tmp_path: Path) -> None:
    """A fault that somebody closed is in both; a time that ends before it begins is refused."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        await (await whole.node("n1")).event("gpu.xid", "gpu/0000:3b:00", code=79)
        found = await whole.until(lambda found: found["people"], "it needs a person", "/api/v1/needs")
        id_ = found["people"][0]["id"]
        await whole.say("close", id=id_)
        await whole.until(lambda found: found["healed"], "it is over", "/api/v1/needs")
        report = await whole.get("/api/v1/reports")
        assert (report["total"]["incidents"], report["total"]["open"], report["whole"]) == (1, 0, True)
        assert report["total"]["without_people"] == 0
        assert [one["node"] for one in report["nodes"]] == ["n1"]
        headers = people.bearer(whole.ann)
        async with (
            aiohttp.ClientSession(whole.running.console_url, headers=headers) as session,
            session.get("/api/v1/reports?format=csv") as answer,
        ):
            assert answer.content_type == "text/csv"
            rows = list(csv.DictReader(io.StringIO(await answer.text())))
        assert [one["id"] for one in rows] == [id_]
        assert (await whole.get("/api/v1/reports?from=99&to=9"))["status"] == 400
        assert (await whole.get("/api/v1/reports?from=0&to=9"))["total"]["incidents"] == 0


async def test_a_pasted_log_has_the_verdict_of_the_command(tmp_path: Path) -> None:
    """The same, also of text that acts on terminals; what is too long is refused before it is in memory, and nothing is kept."""
    text = (
        "[  100.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.\n"
        "[  101.000000] \x1b[2J\u202e evil\n"
        "[  102.000000] NVRM: Xid (PCI:0000:5d:00): 48, pid=77, name=<script>, An uncorrectable double bit error\n"
    )
    file = tmp_path / "log.log"
    file.write_text(text)
    same = json.loads(CliRunner().invoke(diagnose, ["--json", str(file)]).output)
    assert same["incidents"]
    console = {"port": 0, "users": people.ANN["users"] | {"vic": {"role": "viewer"}}}
    async with lab(tmp_path, console=console) as whole:
        assert whole.running is not None
        vic = people.bearer(people.token_file(whole.config.data_dir, "vic", Role.VIEWER))
        before = set(Path(tempfile.gettempdir()).glob("gpuward-diagnose-*"))
        async with aiohttp.ClientSession(whole.running.console_url) as session:

            async def ask(body: dict[str, str], **headers: str) -> tuple[int, Any]:
                async with session.post("/api/v1/diagnose", json=body, headers=vic | headers) as answer:
                    return answer.status, await answer.json()

            assert await ask({"log": text}) == (200, same)
            assert (await ask({"log": "x\n" * 20_000}))[1]["ok"] is False
            assert (await ask({"log": "a" * (MOST_CHARACTERS + 1)}))[0] == 400
            assert (await ask({"log": "\x01" * MOST_CHARACTERS}))[0] == 413
            assert (await ask({"log": text, "driver": "--rules=/etc"}))[0] == 400
            assert (await ask({"log": text}, Authorization="Bearer none"))[0] == 401
            both = await asyncio.gather(ask({"log": text}), ask({"log": text}))
            assert sorted(status for status, _ in both) == [200, 503], "one of each person at a time"
        assert (await whole.get("/api/v1/incidents?all=1"))["incidents"] == []
        assert set(Path(tempfile.gettempdir()).glob("gpuward-diagnose-*")) <= before
