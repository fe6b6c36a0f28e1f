"""The whole agent as a process: real kernel log, real broker, signed commands, kills."""

import asyncio
import base64
import contextlib
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from nacl.signing import SigningKey

from agent.contract.commands import Answer, Command, Reply, decode_reply
from brain.adapters.node_requests import NodeRequests
from tests.real.kernel_log import FACILITY, write_kernel_line
from tests.real.nats import NatsServer, client, nats_server, whole_log

pytestmark = [pytest.mark.root, pytest.mark.component("nats-server")]
ROOT = Path(__file__).parents[2]
KEY = SigningKey(b"\x07" * 32)
NODE = "gpu-1"


@contextlib.contextmanager
def agent(
    folder: Path, server: NatsServer, *more: str, under: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A running agent; killed at the end. `under`: the program that becomes the agent, with its arguments."""
    key = base64.b64encode(bytes(KEY.verify_key)).decode()
    options = [
        f"node={NODE}",
        f"data_dir={folder}/agent",
        f"nats_url={server.node_url(NODE)}",
        f"kmsg_facilities={FACILITY}",
        "beat_interval_s=0.2",
        f"trusted_keys=brain-1={key}",
        *more,
    ]
    command = [
        *under,
        sys.executable,
        "-m",
        "agent",
        "run",
        *(word for option in options for word in ("--set", option)),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)
        if process.stderr is not None:
            process.stderr.close()


@contextlib.contextmanager
def bus(folder: Path) -> Iterator[NatsServer]:
    """A broker, and the brain's part that takes in what nodes offer, as a process of its own."""
    with nats_server(folder, nodes=[NODE]) as server:
        command = [sys.executable, "-m", "tests.real.intake_kit", server.url]
        taking = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        try:
            assert taking.stdout is not None
            assert taking.stdout.readline() == b"ready\n"
            yield server
        finally:
            taking.kill()
            taking.wait(60)
            if taking.stdout is not None:
                taking.stdout.close()


async def ask(server: NatsServer, request: bytes, within_s: float = 60.0) -> Reply:
    """The node's answer, as soon as it is there to give one."""
    async with client(server.url) as connection:
        deadline = time.monotonic() + within_s
        requests = NodeRequests("default")
        listening = asyncio.create_task(requests.serve(connection))
        while True:
            with contextlib.suppress(Exception):
                answer = await requests.request(NODE, request, 5)
                listening.cancel()
                return decode_reply(orjson.loads(answer))
            assert time.monotonic() < deadline, "the node does not answer"
            await asyncio.sleep(0.02)


def signed(hello: Reply, **changes: Any) -> bytes:
    """An order to collect evidence, fit for the agent that said hello."""
    fields: dict[str, Any] = {
        "id": f"inc-{secrets.token_hex(4)}.r1.s1.a1",
        "node": NODE,
        "action": "evidence.collect",
        "params": {"component": "node", "window_s": 60},
        "epoch": 1,
        "session": hello.session,
        "not_after_s": hello.mono_s + 60,
        "timeout_s": 60.0,
        "why": "a test",
    }
    payload = Command(**(fields | changes)).payload()
    signature = base64.b64encode(KEY.sign(payload).signature).decode()
    return json.dumps({"payload": payload.decode(), "key": "brain-1", "sig": signature}).encode()


async def events(
    server: NatsServer, kind: str, count: int, within_s: float = 60.0, *, of: str = ""
) -> list[dict[str, Any]]:
    """Events of this kind on the log, waiting until there are `count`. `of`: how their component begins; the kernel
    log is one for all tests of a machine.
    """
    deadline = time.monotonic() + within_s
    while True:
        bodies = [orjson.loads(body) for body in await whole_log(server.url)]
        found = [body for body in bodies if body["kind"] == kind and body["component"].startswith(of)]
        if len(found) >= count or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.02)


async def first_position(spool: Path, within_s: float = 60.0, key: str = "line") -> None:
    """Until the agent has remembered where it began to read the kernel log (`line`), or another file."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(spool)) as database:
            if database.execute("SELECT 1 FROM meta WHERE key = ?", (key,)).fetchone():
                return
        await asyncio.sleep(0.01)
    raise AssertionError("the agent does not say where it began")


async def test_a_signed_command_is_done_and_its_bundle_is_there(tmp_path: Path) -> None:
    """hello → command → accepted → result with the name of a bundle that exists and holds the kernel's
    line.
    """
    with bus(tmp_path) as server, agent(tmp_path, server) as process:
        hello = await ask(server, b'{"hello": true}')
        assert hello.why == "hello"
        assert hello.mono_s <= time.monotonic()
        assert (await ask(server, signed(hello))).answer is Answer.ACCEPTED
        (result,) = await events(server, "command.result", 1)
        assert result["data"]["outcome"] == "ok"
        assert result["data"]["evidence"] == f"{NODE}/{result['data']['command']}"
        (bundle,) = (tmp_path / "agent" / "evidence").iterdir()
        assert bundle.stat().st_size == result["data"]["evidence_bytes"] > 500
        refused = await ask(server, signed(hello, action="link.bounce", params={"link": "link/lo"}))
        assert refused.answer is Answer.REFUSED
        assert len(await events(server, "agent.bad_command", 1)) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


async def test_sigkill_while_a_job_writes(tmp_path: Path) -> None:
    """Killed and started again amid a job's lines, and lines while no agent runs: each is an event once, none is missing."""
    (tmp_path / "jobs").mkdir()
    log = tmp_path / "jobs/4711.log"
    log.write_text("CUDA error: history\n")
    number = 0

    def lines(count: int) -> None:
        nonlocal number
        with log.open("a") as sink:
            for _ in range(count):
                number += 1
                sink.write(f"step {number}\n[rank0] cudaErrorLab{number:03}: failed\n")
                sink.flush()

    with bus(tmp_path) as server:
        for round_ in range(3):
            with agent(tmp_path, server, f"job_logs={tmp_path}/jobs/*.log") as process:
                if round_ == 0:
                    await first_position(tmp_path / "agent" / "spool.db", key=f"joblog {log}")
                lines(10)
                await events(server, "job.cuda_error", number - 5 * round_)  # some of them, or all
                lines(10)
                os.kill(process.pid, signal.SIGKILL)
                process.wait(60)
            lines(5)
        with agent(tmp_path, server, f"job_logs={tmp_path}/jobs/*.log"):
            found = await events(server, "job.cuda_error", number)
        wanted = [f"cudaErrorLab{n:03}" for n in range(1, number + 1)]
        assert [event["data"]["name"] for event in found] == wanted
        assert len(await events(server, "job.cuda_error", number)) == number


async def test_two_agents_on_one_folder(tmp_path: Path) -> None:
    """The second one says what to do and does not start."""
    with bus(tmp_path) as server, agent(tmp_path, server):
        await ask(server, b'{"hello": true}')
        with agent(tmp_path, server) as second:
            assert second.wait(60) == 2
            assert second.stderr is not None
            assert "another agent uses data_dir" in second.stderr.read()


async def test_sigkill_while_kernel_lines_come(tmp_path: Path) -> None:
    """Killed and started again between and amid lines: each line is reported once, none is missing."""
    token = secrets.randbelow(0xFF) + 1
    with bus(tmp_path) as server:
        number = 0

        def lines(count: int) -> None:
            nonlocal number
            for _ in range(count):
                number += 1
                # Each on a GPU of its own, so that no two are the same fact.
                write_kernel_line(
                    f"NVRM: Xid (PCI:00{token:02x}:{number:02x}:00): 79, GPU has fallen off the bus."
                )

        for round_ in range(3):
            with agent(tmp_path, server) as process:
                if round_ == 0:
                    await first_position(tmp_path / "agent" / "spool.db")
                lines(15)
                await asyncio.sleep(0.002 * round_)
                os.kill(process.pid, signal.SIGKILL)
                process.wait(60)
            lines(5)
        with agent(tmp_path, server):
            found = await events(server, "gpu.xid", number, of=f"gpu/00{token:02x}:")
        seen = [event["component"] for event in found]
        assert seen == [f"gpu/00{token:02x}:{n:02x}:00" for n in range(1, number + 1)]
        again = await events(server, "gpu.xid", number, of=f"gpu/00{token:02x}:")
        assert [len(again), len(set(seen))] == [number, number]
        started = await events(server, "agent.started", 2)
        assert len(started) >= 2


async def test_a_look_tells_what_lasts_before_its_result(tmp_path: Path) -> None:
    """A port goes down between two polls that are an hour apart. On the log: the port and what is well, then the result,
    which names the source that cannot run here.
    """
    folder = tmp_path / "ib/mlx5_0/ports/1"
    folder.mkdir(parents=True)

    def port(state: str, phys_state: str) -> None:
        for name, text in {"state": state, "phys_state": phys_state, "link_layer": "InfiniBand"}.items():
            (folder / name).write_text(f"{text}\n")

    async def look(server: NatsServer, hello: Reply, number: int) -> list[dict[str, Any]]:
        assert (await ask(server, signed(hello, action="agent.look", params={}))).answer is Answer.ACCEPTED
        result = (await events(server, "command.result", number))[-1]
        log = [orjson.loads(body) for body in await whole_log(server.url)]
        return log[: log.index(result) + 1]

    port("4: ACTIVE", "5: LinkUp")
    options = (
        f"ib_root={tmp_path}/ib",
        "ib_interval_s=3600",
        "services=slurmd",
        f"dbus_address=unix:path={tmp_path}/none",
    )
    with bus(tmp_path) as server, agent(tmp_path, server, *options):
        await events(server, "agent.source_failed", 1)
        hello = await ask(server, b'{"hello": true}')
        *facts, result = await look(server, hello, 1)
        assert result["data"]["outcome"] == "ok", result
        assert "systemd" in result["data"]["blind"].split(",")
        ports = [fact for fact in facts if fact["kind"] == "ib.port_state"]
        assert [fact["data"]["state"] for fact in ports] == ["ACTIVE"]
        assert {"node.memory", "node.inventory"} <= {fact["kind"] for fact in facts}
        port("1: DOWN", "2: Polling")
        *facts, result = await look(server, hello, 2)
        ports = [fact for fact in facts if fact["kind"] == "ib.port_state"]
        assert [fact["data"]["state"] for fact in ports] == ["ACTIVE", "DOWN", "DOWN"], (
            "as a change, and told again"
        )
        assert ports[-1]["age_s"] < 5
        assert "ib.port_state port/mlx5_0.1" in result["data"]["why"]
