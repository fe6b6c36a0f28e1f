"""What is broken, forged, huge or torn: each is a clear error or a counted fact, never a crash, and healing goes on."""

import asyncio
import json
import subprocess
import uuid
from functools import partial
from pathlib import Path

import pytest

from agent.contract import subjects
from agent.contract.messages import encode_event
from tests.brain.world import Story
from tests.e2e.stack import BIN, Stack, stack
from tests.e2e.test_spine import address
from tests.real.kernel_log import HEARD, write_kernel_line
from tests.real.nats import client

pytestmark = [pytest.mark.root, pytest.mark.slow]


def publish(whole: Stack, subject: str, body: bytes) -> None:
    """Publishes anything to the log, with the brain's credentials."""

    async def send() -> None:
        async with client(whole.nats.url) as connection:
            await connection.jetstream().publish(
                subject, body, headers={subjects.HEADER_ID: uuid.uuid4().hex}
            )

    asyncio.run(send())


def offer(whole: Stack, body: bytes) -> None:
    """Offers anything as an event, with the node's credentials."""

    async def send() -> None:
        async with client(whole.nats.node_url(whole.node)) as connection:
            await connection.publish(subjects.offer("default", whole.node, subjects.EVENT), body)
            await connection.flush()

    asyncio.run(send())


def still_heals(whole: Stack) -> None:
    """A fault that comes now is judged as if nothing had happened."""
    where = address()
    write_kernel_line(f"NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus.")
    whole.wait_for(
        lambda: [i for i in whole.incidents("gpu-lost") if where in i["scope"]], "the next fault is judged"
    )


def test_broken_and_forged_messages_on_the_log_are_counted_and_shown(tmp_path: Path) -> None:
    """Not JSON, not an event, another version, another node's name, an unknown input: counted, told once, skipped."""
    with stack(tmp_path, agent=HEARD) as whole:
        forged = encode_event(Story().event(0, "gpu.xid", "gpu/0000:3b:00", "lab-2", code=79))
        bodies = [
            (subjects.event("default", "lab-1"), b"\xff\xfe not json"),
            (subjects.event("default", "lab-1"), b"[" * 100_000),
            (subjects.event("default", "lab-1"), b'{"v": 99}'),
            (subjects.event("default", "lab-1"), json.dumps(forged).encode()),
            (
                subjects.event("default", "lab-1"),
                json.dumps(forged | {"node": "lab-1", "data": {"a": [1]}}).encode(),
            ),
            (subjects.brain_input("default", "nonsense"), b"{}"),
            (subjects.brain_input("default", "timer"), b'{"name": 7}'),
            (subjects.brain_input("default", "pack"), b"{}"),
        ]
        for subject, body in bodies:
            publish(whole, subject, body)
        for body in (b"\xff", b"[" * 60_000, b'{"v": 99}', json.dumps(forged).encode()):
            offer(whole, body)  # told once: the brain reads it before the log does
        whole.wait_for(
            lambda: whole.get("/api/v1/status")["malformed"] > len(bodies), "all of them are counted"
        )
        incident = whole.wait_for(lambda: whole.incidents("agent-trouble"), "people see it")[0]
        assert incident["node"] == "lab-1"
        told = whole.gpuward("explain", incident["id"])
        assert "lab-2" in told or "not JSON" in told or "version" in told
        assert not [i for i in whole.incidents(over=True) if i["node"] == "lab-2"], (
            "the forged event accuses nobody"
        )
        still_heals(whole)


def test_huge_lines_and_broken_text_in_a_jobs_log_do_no_harm(tmp_path: Path) -> None:
    """A line of one MiB, bytes that are no UTF-8, a file that is cut while it is read: the next error is still seen."""
    logs = tmp_path / "jobs"
    logs.mkdir()
    with stack(tmp_path, agent=f'{HEARD}\njob_logs = ["{logs}/*.log"]') as whole:
        log = logs / "4711.log"
        with log.open("wb") as out:
            out.write(b"x" * 1_048_576 + b" CUDA_ERROR_DEVICE_REMOVED\n")
            out.write(b"\xff\xfe\x00 CUDA error: \xc3\x28\n")
        log.write_bytes(b"")
        with log.open("ab") as out:
            out.write(b"RuntimeError: CUDA error: CUDA_ERROR_DEVICE_REMOVED \xff\n")
        incident = whole.wait_for(lambda: whole.incidents("gpu-lost"), "the job's error is seen")[0]
        assert incident["node"] == "lab-1"
        assert all(len(fact["text"]) <= 500 for fact in incident["evidence"])
        still_heals(whole)


def test_kernel_lines_with_control_and_foreign_bytes(tmp_path: Path) -> None:
    """What the kernel escapes, and what it lets through."""
    with stack(tmp_path, agent=HEARD) as whole:
        where = address()
        write_kernel_line(
            f"NVRM: Xid (PCI:{where}): 79, pid=1, name=\u706b\t\x07, GPU has fallen off the bus."
        )
        whole.wait_for(
            lambda: [i for i in whole.incidents("gpu-lost") if where in i["scope"]], "it is understood"
        )


def test_decode_takes_anything(tmp_path: Path) -> None:
    """A megabyte on one line, no UTF-8, no line break at the end: the one good line is decoded, and what begins like a fault and
    cannot be read is no all-clear.
    """
    file = tmp_path / "log"
    good = b"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    file.write_bytes(b"NVRM: Xid (PCI:" + b"0" * 1_048_576 + b"\n\xff\xff\n" + good)
    done = subprocess.run(
        [str(BIN / "gpuward-agent"), "decode", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert [json.loads(line)["line"] for line in done.stdout.splitlines()] == [3]
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


WRONG_RULES = [  # file · text · what must be said
    ("rules/gpu.yaml", "symptoms:\n  a: {scope: gpu, summary: x, colour: red}\n", ["gpu.yaml:2", "colour"]),
    ("rules/gpu.yaml", "rules: [", ["gpu.yaml", "YAML"]),
    ("runbooks/x.yaml", "summary: x\nrungs: [{name: a, do: rm -rf}]\n", ["x.yaml", "rm -rf"]),
]


def refused(whole: Stack, word: str) -> bool:
    """The brain's log says so, with this word."""
    return any("pack.refused" in line and word in line for line in whole.log("brain").splitlines())


def test_a_wrong_rule_says_file_line_and_key_and_the_old_rules_stay(tmp_path: Path) -> None:
    """Hot reload refuses it: `check` says what is wrong, the brain goes on with what it has."""
    folders = [word for name in ("rules", "runbooks") for word in (f"--{name}", str(tmp_path / name))]
    with stack(tmp_path, agent=HEARD) as whole:
        before = whole.get("/api/v1/status")["pack"]
        for file, text, wanted in WRONG_RULES:
            path = tmp_path / file
            good = path.read_text() if path.exists() else None
            path.write_text(text)
            done = subprocess.run(
                [str(BIN / "gpuward"), "check", *folders], capture_output=True, text=True, check=False
            )
            assert done.returncode == 1
            assert not [word for word in wanted if word not in done.stdout + done.stderr]
            whole.wait_for(partial(refused, whole, wanted[-1]), "the brain has looked at it")
            assert whole.get("/api/v1/status")["pack"] == before
            path.unlink() if good is None else path.write_text(good)
        still_heals(whole)
