"""node.reboot with a real systemd in a container, the real agent in it, and a real broker outside."""

import asyncio
import base64
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from nacl.signing import SigningKey

from agent.actions.node_reboot import NodeReboot
from agent.contract.commands import Answer, Command, Reply, decode_reply
from agent.contract.errors import ActionError, Refused, Unreachable
from brain.adapters.node_requests import NodeRequests
from tests.real import nspawn
from tests.real.intake_kit import intake
from tests.real.nats import make_log, nats_server, whole_log

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing() or "-"),
]

ROOT = Path(__file__).resolve().parents[2]
KEY = SigningKey(b"\x07" * 32)
LOCK = "[Service]\nExecStart=/usr/bin/systemd-inhibit --what={what} --mode={mode} --who=ann --why=flashing /bin/sleep 1d\n"
UNITS = {
    "block.service": LOCK.format(what="shutdown:sleep", mode="block"),
    "delay.service": LOCK.format(what="shutdown", mode="delay"),
}
WITHIN_S = 100.0


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nspawn.Machine]:
    """A container in which somebody holds two locks on shutdowns."""
    with nspawn.machine(tmp_path_factory.mktemp("box"), UNITS) as machine:
        yield machine


async def test_an_administrators_lock_is_respected(box: nspawn.Machine) -> None:
    """`block`: refused, with who and why, in the plan too; `delay` does not forbid."""
    action = NodeReboot(box.bus_address, go_down_s=0.1)
    for ask in (action.plan, action.run):
        with pytest.raises(
            Refused, match=r"ann \(uid 0, pid \d+\) inhibits the shutdown of the node: flashing"
        ):
            await until_locked(ask)
    box.run("systemctl", "stop", "block.service")
    assert await action.plan({}) == [
        "reboot the node (systemd-logind: Reboot)",
        "wait until it is back with another boot id",
    ]
    with pytest.raises(ActionError, match="not rebooted"):
        await action.resume({}, rebooted=False)


async def until_locked(ask: object) -> None:
    """systemd-inhibit needs a moment to get its lock after its service counts as started."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        await ask({})  # type: ignore[operator]  # plan or run
        await asyncio.sleep(0.02)


def test_slurms_reboot_program(tmp_path: Path) -> None:
    """As slurmd runs it for `scontrol reboot`, with no environment: the node goes down for a reboot, and is booted."""
    with nspawn.machine(tmp_path / "box", {}, binds=[f"{ROOT}:ro"]) as box:
        done = box.run("env", "-i", f"{ROOT}/deploy/slurm/reboot.sh")
        assert done.returncode == 0, done.stderr
        box.boot_again()


async def test_no_systemd(tmp_path: Path) -> None:
    """Nothing was done, and it may be asked again."""
    with pytest.raises(Unreachable):
        await NodeReboot(f"unix:path={tmp_path}/nobody").run({})


class Brain:
    """Who signs commands, outside of the container."""

    def __init__(self, requests: NodeRequests, url: str, box: nspawn.Machine) -> None:
        self._requests = requests
        self.url = url
        self.box = box

    async def ask(self, body: bytes, within_s: float = WITHIN_S) -> Reply:
        """The node's answer, as soon as its agent listens."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                return decode_reply(orjson.loads(await self._requests.request("lab", body, 10)))
            except Exception:  # noqa: BLE001 - whatever it is, the deadline decides
                assert time.monotonic() < deadline, "no agent answers"
                await asyncio.sleep(0.05)

    async def reboot(self, heard: Reply) -> Reply:
        """The order, always the same one."""
        payload = Command(
            id="inc-1.r1.s1.a1",
            node="lab",
            action="node.reboot",
            params={},
            epoch=1,
            session=heard.session,
            not_after_s=heard.mono_s + 100,
            timeout_s=60,
            why="test",
        ).payload()
        signature = base64.b64encode(KEY.sign(payload).signature).decode()
        return await self.ask(
            orjson.dumps({"payload": payload.decode(), "key": "brain-1", "sig": signature}), within_s=60
        )


@pytest.fixture(params=["with logind", "without logind"])
async def brain(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Brain]:
    """A container with the agent, which is told that it may reboot, and somebody to tell it."""
    lab = tmp_path / "lab"
    lab.mkdir()
    public = base64.b64encode(bytes(KEY.verify_key)).decode()
    with nats_server(tmp_path, nodes=["lab"]) as server:
        await make_log(server.url)
        url = server.node_url("lab")
        (lab / "agent.toml").write_text(
            f'node = "lab"\nnats_url = "{url}"\ndata_dir = "{lab}/data"\nallow = ["node.reboot"]\n'
            f'watch_services = []\n[trusted_keys]\nbrain-1 = "{public}"\n'
        )
        unit = (
            f"[Service]\nEnvironment=PYTHONDONTWRITEBYTECODE=1\nWorkingDirectory={ROOT}\n"
            f"ExecStart={Path(sys.executable).parent}/gpuward-agent run --config {lab}/agent.toml\n"
        )
        binds = [str(lab), f"{ROOT}:ro"]
        with nspawn.machine(tmp_path / "box", {"agent.service": unit}, binds=binds, host_network=True) as box:
            async with intake(server.url) as taking:
                yield Brain(taking.requests, server.url, box)


async def test_a_node_reboots_once_and_says_that_it_is_back(brain: Brain) -> None:
    """Asked for over the bus: another boot id, the result `ok` from the next boot, and no second reboot when the brain
    asks again, which did not hear the answer."""
    before = await brain.ask(b'{"hello":true}')
    assert (await brain.reboot(before)).answer is Answer.ACCEPTED
    await asyncio.to_thread(brain.box.boot_again)
    after = await brain.ask(b'{"hello":true}')
    assert after.boot != before.boot
    again = await brain.reboot(after)
    assert (again.answer, again.why) == (Answer.KNOWN, "it ended: ok")
    async with asyncio.timeout(WITHIN_S):
        while not (results := await told(brain)):
            await asyncio.sleep(0.05)
    assert {event["boot"] for event in results} == {after.boot}
    assert {(event["data"]["outcome"], event["data"]["why"]) for event in results} == {
        ("ok", "the node is back with another boot id")
    }
    assert (await brain.ask(b'{"hello":true}')).session == after.session, "it did not go down again"


async def told(brain: Brain) -> list[dict[str, Any]]:
    """Results on the log."""
    events = [json.loads(body) for body in await whole_log(brain.url)]
    return [event for event in events if event["kind"] == "command.result"]
