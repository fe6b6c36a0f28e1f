"""The whole brain with its embedded NATS server: what it hears, decides, does, remembers and tells."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner, Result

from agent.contract import subjects
from agent.contract.commands import Answer
from agent.contract.errors import BugError
from brain.adapters.readmodel import ReadModel
from brain.cli.main import group
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, Input
from tests import people
from tests.real.brain_kit import Lab, Node, lab

pytestmark = pytest.mark.component("nats-server")
AUTO = [{"mode": "auto"}]
GPU = "gpu/0000:3b:00"
LINE = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


async def cli(whole: Lab, *args: str) -> Result:
    """The command line, as a person types it."""
    assert whole.running is not None
    environment = {
        "GPUWARD_URL": whole.running.console_url,
        "GPUWARD_TOKEN_FILE": str(whole.ann),
        "COLUMNS": "100",
    }
    return await asyncio.to_thread(
        CliRunner().invoke, group({}), list(args), env=environment, catch_exceptions=False
    )


async def gpu_lost(whole: Lab, node: Node) -> dict[str, Any]:
    """An XID 79 that became an incident."""
    await node.event(
        "gpu.xid", GPU, LINE, code=79, name="GPU_HAS_FALLEN_OFF_THE_BUS", action="RESTART_BM", message="x"
    )
    found = await whole.until(  # in its hold-off it has no run yet
        lambda answer: answer["incidents"] and answer["incidents"][0]["state"] != "settling",
        "an incident",
        "/api/v1/incidents",
    )
    incident: dict[str, Any] = found["incidents"][0]
    return incident


async def test_a_fault_is_explained_back_to_the_kernel_line(tmp_path: Path) -> None:
    """By the API and by the command line, in a width that a person can read at night."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        incident = await gpu_lost(whole, node)
        assert {"id", "state", "severity", "scope", "cause", "symptoms", "runs", "opened_at"} <= set(incident)
        chain = await whole.get(f"/api/v1/explain/{incident['id']}")
        assert chain["evidence"][0]["text"] == LINE
        assert chain["rule"]["version"] == (await whole.get("/api/v1/status"))["pack"]
        (symptom,) = chain["symptoms"]
        assert symptom["events"] == [chain["evidence"][0]["id"]]
        assert chain["runs"][0]["plan"]
        assert chain["runs"][0]["state"] == "observed", "nobody allowed anything"
        assert (await whole.get(f"/api/v1/runs/{incident['runs'][0]}"))["id"] == incident["runs"][0]
        told = await cli(whole, "explain", incident["id"][:8])
        assert told.exit_code == 0
        assert LINE in told.output
        assert incident["because"][:30] in told.output
        assert all(len(line) <= 100 for line in told.output.splitlines())
        assert (
            json.loads((await cli(whole, "explain", incident["id"], "--json")).output)["incident"]["id"]
            == incident["id"]
        )
        runs = await cli(whole, "runs", "--incident", incident["id"])
        assert all(word in runs.output for word in (incident["runs"][0], "observed", "gpu/n1")), runs.output
        (as_data,) = json.loads((await cli(whole, "runs", "--node", "n*", "--json")).output)
        assert as_data["id"] == incident["runs"][0]
        assert (await cli(whole, "runs", "--state", "approval")).output == "no runs\n"
        listed = await cli(whole, "incidents")
        assert incident["id"] in listed.output
        missing = await cli(whole, "explain", "inc-nonsense")
        assert missing.exit_code == 1
        assert "no incident" in missing.output
        assert "an operator's command (s:…)" in missing.output


async def test_why_a_rule_does_not_match_is_answered_by_a_running_brain(tmp_path: Path) -> None:
    """By the command line, in words and as JSON; a mistake names what could be meant, and nothing is changed by asking."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        incident = await gpu_lost(whole, node)
        lost = f"gpu/n1/{GPU[4:]}"
        matches = json.loads((await cli(whole, "explain", "--why-not", "gpu-lost", lost, "--json")).output)
        assert (matches["matches"], matches["incident"], matches["mode"]) == (True, incident["id"], "observe")
        other = await cli(whole, "explain", "--why-not", "gpu-lost", "gpu/n1/0000:5d:00")
        assert other.exit_code == 0, other.output
        assert "gpu-lost does not match at gpu/n1/0000:5d:00" in other.output
        assert "gpu_off_bus is not active at gpu/n1/0000:5d:00" in other.output
        assert "never active since" in other.output
        shared = json.loads(
            (await cli(whole, "explain", "cell", "--why-not", "shared-gpu-off-bus-cell", "--json")).output
        )
        (counted,) = shared["conditions"]
        assert (counted["nodes"], counted["takes"]) == (["n1"], 3)
        chain = await cli(whole, "explain", incident["id"])
        assert "HOW SURE" in chain.output
        assert "WHAT WOULD CHANGE IT" in chain.output
        await node.event("gpu.returned", GPU)
        await whole.until(
            lambda found: not found["rule"]["matching_rules"],
            "it is over",
            f"/api/v1/explain/{incident['id']}",
        )
        after = await cli(whole, "explain", "--why-not", "gpu-lost", lost)
        assert "gpu.returned on gpu/0000:3b:00" in after.output, after.output
        for rule, scope, hint in (
            ("gpu-lots", lost, "did you mean gpu-lost"),
            ("gpu-lost", "gpu/n2/x", "no node 'n2'"),
            ("gpu-lost", "n1", "did you mean node/n1?"),
        ):
            wrong = await cli(whole, "explain", "--why-not", rule, scope)
            assert (wrong.exit_code, hint in wrong.output) == (1, True), wrong.output


async def test_operator_commands_are_on_the_log_and_answered(tmp_path: Path) -> None:
    """Hold, release, mode, ack: with the operator's name; a command that cannot be carried out fails, and says why."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        incident = await gpu_lost(whole, node)
        held = await cli(whole, "hold", "node/n1", "--why", "firmware", "--for", "2h")
        assert (held.exit_code, "ann holds node/n1: firmware" in held.output) == (0, True)
        (hold,) = (await whole.get("/api/v1/status"))["holds"]
        assert (hold["scope"], hold["who"]) == ("node/n1", "ann")
        assert "firmware" in (await cli(whole, "status")).output
        for named in (
            hold["id"],
            (await whole.get("/api/v1/notes?kind=operator.hold"))["notes"][0]["caused_by"],
        ):
            assert "ann holds node/n1: firmware" in (await cli(whole, "explain", named)).output
        assert (await cli(whole, "release", "node/n1")).exit_code == 0
        again = await cli(whole, "release", "node/n1")
        assert again.exit_code == 1
        assert "no hold" in again.output
        assert (await cli(whole, "ack", incident["id"])).exit_code == 0
        assert (await whole.get(f"/api/v1/incidents/{incident['id']}"))["pages"]["acked_by"] == "ann"
        second = await cli(whole, "ack", incident["id"])
        assert "nothing to do: ann has acknowledged it already, since " in second.output
        assert "ann" in (await cli(whole, "incidents")).output
        assert (await cli(whole, "mode", "link-*", "approve", "--nodes", "n1")).exit_code == 0
        assert {"runbook": "link-*", "nodes": "n1", "mode": "approve", "who": "ann", "why": ""} in (
            await whole.get("/api/v1/status")
        )["modes"]
        assert (await cli(whole, "hold", "all", "--why", "x", "--for", "soon")).exit_code == 2
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("dance", {}), ("hold", {"scope": "all"}), ("mode", {"runbook": "a", "mode": "yolo"}),
            ("ack", {"id": "x", "extra": "y"}), ("hold", {"scope": "all", "why": "x", "for_s": -1}),
            ("hold", {"scope": "nod/n1", "why": "x"}), ("hold", {"scope": "node/n2", "why": "x"}),
            ("mode", {"runbook": "nothing-at-all", "mode": "auto"}),
        ]  # fmt: skip
        for verb, args in wrong:
            status, answer = await whole.say(verb, **args)
            assert status == 400, (verb, args)
            assert answer["detail"]


async def test_the_api_takes_json_from_people_and_nothing_else(tmp_path: Path) -> None:
    """No form of another web page, no half JSON, no lone surrogate; unknown paths are JSON errors too."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        url = whole.running.console_url
        async with aiohttp.ClientSession() as session:
            cases = [
                (b"verb=ack", "application/x-www-form-urlencoded", 415),
                (b'{"verb"', "application/json", 400),
                (
                    b'{"verb":"ack","args":{"id":"\\ud800"}}',
                    "application/json",
                    400,
                ),
                (b"[" * 100_000, "application/json", 413),
            ]
            for body, kind, want in cases:
                headers = {"Content-Type": kind} | people.bearer(whole.ann)
                async with session.post(url + "/api/v1/command", headers=headers, data=body) as answer:
                    assert answer.status == want
                    assert (await answer.json())["detail"]
            async with session.get(url + "/api/v1/nothing") as answer:
                assert answer.status == 404
                assert (await answer.json())["detail"]


async def test_a_forged_event_is_counted_and_believed_by_nobody(tmp_path: Path) -> None:
    """Whoever gets past the server's permissions still cannot speak for another node; rubbish does not end the brain."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        event = await node.event("agent.started", version="1")
        client = await whole.brain_client()
        body = (
            await client.jsm().get_msg(subjects.stream("default"), (await whole.get("/api/v1/status"))["seq"])
        ).data
        assert body is not None
        assert event.id.encode() in body
        for wrong in (body, b"\xff" * 1000, b"x" * 1_000_000):
            await client.jetstream().publish(subjects.event("default", "n2"), wrong)
        status = await whole.until(lambda found: found["malformed"] == 3, "they are counted")
        assert status["leads"]


async def test_a_beat_that_asks_is_answered(tmp_path: Path) -> None:
    """And no other one; by that an agent with nothing to tell knows that its server is not cut off from the brain."""
    async with lab(tmp_path) as whole:
        node, other = await whole.node("n1"), await whole.node("n2")
        for _ in range(5):
            await node.beat()
        await node.beat(asks=True)
        await whole.until(lambda _: node.answered, "it is answered")
        await node.event("agent.started", version="1")
        assert (node.answered, other.answered) == (1, 0)


async def test_a_step_goes_to_the_node_signed_and_once(tmp_path: Path) -> None:
    """Event → intent on the log → signed command; the answer closes the run; a restarted agent is asked by its new session."""
    async with lab(tmp_path, modes=AUTO, settings={"hold_off_s": 0}) as whole:
        node = await whole.node("n1")
        await node.beat()
        await whole.until(lambda found: found["nodes"], "the beat is heard", "/api/v1/nodes")
        node.session = "s2"  # restarted since its beat
        await node.event("link.state", "link/eth1", up=False, admin_up=True, carrier=False, operstate="down")
        await whole.until(lambda _: node.commands, "the command came")
        (command,) = node.commands
        assert (command.action, command.node, command.session) == ("link.bounce", "n1", "s2")
        await node.event("link.state", "link/eth1", up=True, admin_up=True, carrier=True, operstate="up")
        await node.event("command.result", command=command.id, outcome="ok", why="bounced", took_s=0.5)
        found = await whole.until(
            lambda answer: answer["incidents"][0]["state"] == "closed",
            "it is healed",
            "/api/v1/incidents?all=1",
        )
        run = await whole.get(f"/api/v1/runs/{found['incidents'][0]['runs'][0]}")
        assert [(step["outcome"], step["verified"]) for step in run["steps"]] == [("ok", True)]
        assert len(node.commands) == 1


@pytest.mark.parametrize(
    ("listens", "answer", "outcome"),
    [(False, Answer.ACCEPTED, "unreachable"), (True, Answer.REFUSED, "refused")],
)
async def test_a_node_that_cannot_or_will_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listens: bool, answer: Answer, outcome: str
) -> None:
    """Nothing is lost: the step ends with what is known of it."""
    monkeypatch.setattr("brain.adapters.nodes.RETRY_FOR_S", 1.0)
    async with lab(tmp_path, modes=AUTO, settings={"hold_off_s": 0}) as whole:
        node = await whole.node("n1", listens=listens)
        node.answer = answer
        await node.event("link.state", "link/eth1", up=False, admin_up=True, carrier=False, operstate="down")

        async def outcomes() -> list[str]:
            steps: list[str] = []
            for incident in await whole.incidents("link-down"):
                for run in incident["runs"]:
                    steps += [step["outcome"] for step in (await whole.get(f"/api/v1/runs/{run}"))["steps"]]
            return steps

        for _ in range(3000):
            if outcome in (seen := await outcomes()):
                break
            await asyncio.sleep(0.02)
        else:
            raise AssertionError(seen)


async def test_a_restarted_brain_knows_what_it_knew(tmp_path: Path) -> None:
    """From its snapshot; and without it, from the log: the same incidents, and nobody is paged again."""
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        incident = await gpu_lost(whole, node)
        await whole.until(
            lambda found: not found["pages"]["undelivered"],
            "people were told",
            f"/api/v1/incidents/{incident['id']}",
        )
        before = await whole.until(
            lambda found: (
                sum(note["kind"] == "step.plan" for note in found["notes"])
                == sum(
                    not line.startswith("back") and ": page(" not in line and ": left out" not in line
                    for line in found["runs"][0]["plan"]
                )
            ),
            "the plan of every rung that would run is told",
            f"/api/v1/explain/{incident['id']}",
        )
        told = (tmp_path / "brain/pages.log").read_text()
        for lost in ([], ["state.snapshot"], ["history.sqlite", "history.sqlite-wal", "history.sqlite-shm"]):
            await whole.stop()
            for name in lost:
                (tmp_path / "brain" / name).unlink(missing_ok=True)
            await whole.start()
            assert await whole.get(f"/api/v1/explain/{incident['id']}") == before, lost
        assert (tmp_path / "brain/pages.log").read_text() == told


async def test_an_input_that_crashes_the_brain_twice_is_quarantined_and_paged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brain is restored from its snapshot, fails once more, then goes on without the input."""
    handle = Engine.handle

    def stumble(self: Engine, given: Input, now: float) -> Any:
        if isinstance(given, EventSeen) and given.event.node == "cursed":
            raise ZeroDivisionError("a bug of ours")
        return handle(self, given, now)

    monkeypatch.setattr(Engine, "handle", stumble)
    monkeypatch.setattr("brain.leader.supervisor.RESTART_S", (0.05, 0.05, 0.05))
    async with lab(tmp_path) as whole:
        node, cursed = await whole.node("n1"), await whole.node("cursed")
        await cursed.event("gpu.off_bus", GPU, message="poison")
        await gpu_lost(whole, node)
        status = await whole.get("/api/v1/status")
        assert status["malformed"] == 1
        told = tmp_path / "brain/pages.log"
        async with asyncio.timeout(60):
            while not told.exists() or "crashed the brain 2 times" not in told.read_text():
                await asyncio.sleep(0.02)


async def test_a_full_disk_costs_history_for_a_while_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands go out while the read model cannot be written; afterwards it has everything."""
    put = ReadModel.put
    full = True

    def refuse(self: ReadModel, *args: Any) -> None:
        if full:
            raise sqlite3.OperationalError("database or disk is full")
        put(self, *args)

    monkeypatch.setattr("brain.leader.history.RETRY_S", 0.05)
    async with lab(tmp_path, modes=AUTO, settings={"hold_off_s": 0}) as whole:
        monkeypatch.setattr(ReadModel, "put", refuse)
        node = await whole.node("n1")
        await node.event("link.state", "link/eth1", up=False, admin_up=True, carrier=False, operstate="down")
        await whole.until(lambda _: node.commands, "the command came")
        assert await whole.incidents() == []
        full = False
        await whole.until(lambda found: found["incidents"], "the history is complete", "/api/v1/incidents")
        (incident,) = await whole.incidents("link-down")
        kinds = [note["kind"] for note in (await whole.get(f"/api/v1/explain/{incident['id']}"))["notes"]]
        assert kinds[0] == "incident.opened"
        assert "run.performing" in kinds


async def test_after_a_broken_invariant_nothing_is_done_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops acting, and pages. People's words come onto the log; events wait at their nodes until a brain leads again."""
    handle = Engine.handle

    def break_down(self: Engine, given: Input, now: float) -> Any:
        if isinstance(given, EventSeen) and given.event.node == "cursed":
            raise BugError("an incident without a rule")
        return handle(self, given, now)

    monkeypatch.setattr(Engine, "handle", break_down)
    async with lab(tmp_path) as whole:
        node = await whole.node("cursed")
        # It is on the log, and perhaps nobody is left to say so: its node would offer it again.
        first = asyncio.create_task(node.event("gpu.off_bus", GPU, message="x"))
        status = await whole.until(lambda found: found["stopped"], "it stopped")
        assert not status["leads"]
        assert "an incident without a rule" in status["stopped"]
        later = asyncio.create_task(node.event("gpu.lost", GPU, reason="lost"))
        monkeypatch.setattr("brain.console.operator_commands.HANDLED_S", 0.2)
        code, answer = await whole.say("hold", scope="all", why="wait")
        assert (code, answer["handled"]) == (200, False)
        assert "an incident without a rule" in (tmp_path / "brain/pages.log").read_text()
        assert not later.done()
        for offered in (first, later):
            offered.cancel()
        await whole.stop()
        monkeypatch.setattr(Engine, "handle", handle)
        await whole.start()
        again = await whole.node("cursed")
        again._seq = node._seq - 1
        await again.event("gpu.lost", GPU, reason="lost")
        await whole.until(lambda found: found["incidents"], "both are judged", "/api/v1/incidents?all=1")
