"""`gpuward doctor` against what it looks at: a brain that runs and one that does not, NATS servers with too few rights, BMCs,
a scheduler, and receivers of pages. Nothing is changed there, and nobody is told anything.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import __version__
from agent.contract import subjects
from agent.contract.errors import Unreachable
from agent.shared.words import speaking
from brain import config as brain_config
from brain.actions import kube, rmcp, slurm
from brain.adapters import evidence, log
from brain.cli.checkup import broker, counterparts
from brain.cli.checkup.installation import BrainAnswers, Installation
from brain.cli.checkup.lines import Health, HealthLine
from brain.cli.main import FOLDERS
from docs.generate import _toml
from tests.brain.notify.receivers import receiving
from tests.real import ipmi_host, kube_plane, slurm_cluster
from tests.real.brain_kit import lab
from tests.real.nats import client, nats_server

pytestmark = pytest.mark.component("nats-server")
GPUWARD = Path(sys.executable).with_name("gpuward")
LATER_S = 60.0
BRAIN = BrainAnswers(status={}, nodes=[{"name": "gpu01"}, {"name": "gpu02"}])


def site(folder: Path, *, login: bool = False, **keys: Any) -> Installation:
    """An installation with these keys of brain.toml, whose brain knows two nodes."""
    found = brain_config.parse({"data_dir": str(folder)} | keys, "brain.toml", folder)
    return Installation(
        file=None, config=found, warnings=(), brain=BRAIN, silent_why="", login=login, now=0.0
    )


def of(check: str, found: list[HealthLine]) -> HealthLine:
    """The only line about this."""
    (line,) = (one for one in found if one.check == check)
    return line


def written(folder: Path, config: brain_config.BrainConfig, raw: Mapping[str, Any]) -> Path:
    """The brain.toml that says what a lab's brain was given."""
    file = folder / "brain.toml"
    raw = {"data_dir": str(config.data_dir), **raw}
    file.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in raw.items()))
    return file


async def doctor(file: Path, *more: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit status, and check → line of the command as people type it."""
    argv = [str(GPUWARD), *more, "doctor", "--config", str(file), "--json"]
    done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, timeout=LATER_S)
    assert done.stderr == ""
    return done.returncode, {one["check"]: one for one in json.loads(done.stdout)["checks"]}


async def test_a_cell_that_runs_and_then_does_not(tmp_path: Path) -> None:
    """All is well but what a test leaves out; then its brain is stopped, and the same command says so and what it cannot see."""
    async with lab(tmp_path) as whole:
        assert whole.running is not None
        node = await whole.node("n1")
        node.version = __version__
        await node.beat()
        await whole.until(lambda found: found["nodes"], "n1 is heard", "/api/v1/nodes")
        raw = {"nats": {"embedded": {"port": whole.port}}, "log": {"max_bytes": 256 * 1024**2}}
        file = written(tmp_path, whole.config, raw)
        at = ("--url", whole.running.console_url, "--token-file", str(whole.ann))
        status, found = await doctor(file, *at)
        assert status == 0, found
        assert not [name for name, one in found.items() if one["health"] == "unchecked"]
        assert found["clocks of nodes"]["text"] == "1 node within 2 s of the brain's"
        assert found["broker"]["text"].endswith("strict, JetStream")
        assert found["rights on NATS"]["health"] == found["log"]["health"] == "ok"
        assert found["nodes"]["text"] == "all 1 are heard"
        assert "brains" not in found, "it is alone, and runs with what this file says"
        (tmp_path / "changed").mkdir()
        later = written(tmp_path / "changed", whole.config, raw | {"evidence": {"keep_s": 86400}})
        found = (await doctor(later, *at))[1]
        assert found["brains"]["health"] == "warn", "a file that was changed, and no restart since"
        assert (
            "runs with evidence.keep_s = 1209600, and this brain.toml says evidence"
            in found["brains"]["text"]
        )
        node.ahead_s = -90.0
        await node.beat()
        await whole.until(
            lambda found: found["nodes"][0]["clock_ahead_s"] < -80, "its clock is off", "/api/v1/nodes"
        )
        found = (await doctor(file, *at))[1]
        assert found["clocks of nodes"]["text"].startswith("off: n1 -9")
        await whole.stop()
        status, found = await doctor(file, *at)
        assert status == 1
        assert found["brain"]["health"] == "fail"
        assert {one for one in found if found[one]["health"] == "unchecked"} == {
            "agents", "nodes", "clocks of nodes", "modes", "broker",
        }  # fmt: skip
        assert found["rules"]["health"] == found["disk"]["health"] == found["signing key"]["health"] == "ok"


async def test_a_password_that_is_wrong_is_not_repeated(tmp_path: Path) -> None:
    """People paste what the doctor says."""
    with nats_server(tmp_path, config=LIMITED) as server:
        url = server.url.replace("//", "//brain:secret@")
        (line,) = [one async for one in broker.broker(site(tmp_path, nats={"url": url}))]
        assert (line.check, line.health) == ("broker", Health.FAIL)
        assert "it does not let us in" in line.text
        assert "give nats.seed_file the seed of the brain's key" in line.action
        assert "secret" not in line.text


LIMITED = """
authorization { users: [ { user: brain, password: brain, permissions: {
  publish: { allow: ["$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.>", "$JS.API.INFO", "ward.>"] }
  subscribe: { allow: ["_INBOX.>"] } } } ] }
"""


async def test_too_few_rights_on_the_servers_of_a_site(tmp_path: Path) -> None:
    """Each missing right as the server names it; with all of them there is none, and the streams are as they were."""
    with nats_server(tmp_path, config=LIMITED) as server:
        url = server.url.replace("//", "//brain:brain@")
        found = [line async for line in broker.broker(site(tmp_path, nats={"url": url}))]
        rights = of("rights on NATS", found)
        assert rights.health is Health.FAIL
        for denied in ("$JS.API.STREAM.CREATE", "$KV.", "Subscription to"):
            assert denied.lower() in rights.text.lower(), rights.text
        assert of("broker", found).health is Health.OK
        assert of("log", found).health is Health.WARN
        assert "brain:brain" not in str(found), "a password is nobody's to read here"


async def test_all_rights_are_tried_and_nothing_is_changed(tmp_path: Path) -> None:
    """Log, lease and evidence have the limits that they had, and not one message more; there is no stream besides."""
    with nats_server(tmp_path) as server:
        found = site(tmp_path, nats={"url": server.url})
        async with client(server.url) as connection:
            await log.ensure(connection, "default", found.config.log)
            await connection.jetstream().create_key_value(bucket=subjects.LEASE_BUCKET, ttl=5)
            await evidence.ensure(connection, "default", found.config.evidence)

            async def streams() -> list[tuple[Any, ...]]:
                infos = await connection.jsm().streams_info()
                return sorted((one.config.name, str(one.config), one.state.last_seq) for one in infos)

            before = await streams()
            assert [last_seq for _, _, last_seq in before] == [0, 0, 0]
            said = [line async for line in broker.broker(found)]
            assert of("rights on NATS", said).health is Health.OK
            assert await streams() == before


async def test_bundles_that_have_less_room_than_was_meant(tmp_path: Path) -> None:
    """As a first start on a small disk leaves it: the log of the service said so once."""
    with nats_server(tmp_path) as server:
        small = site(tmp_path, nats={"url": server.url}, evidence={"max_bytes": 64 * 1024**2}).config
        wanted = site(tmp_path, nats={"url": server.url})
        async with client(server.url) as connection:
            await evidence.ensure(connection, "default", small.evidence)
        line = of("evidence", [one async for one in broker.broker(wanted)])
        assert line.health is Health.WARN
        assert line.text.startswith("bundles may take 0.06 GiB, and 1.00 GiB are configured")


async def test_a_log_that_another_brain_keeps_longer(tmp_path: Path) -> None:
    """The second brain's doctor says that its brain.toml differs, as the servers keep the larger of both."""
    with nats_server(tmp_path) as server:
        most = site(tmp_path, nats={"url": server.url}, log={"max_bytes": 256 * 1024**2})
        less = site(tmp_path, nats={"url": server.url}, log={"max_bytes": 64 * 1024**2, "max_age_s": 86400})
        async with client(server.url) as connection:
            await log.ensure(connection, "default", most.config.log)
            await log.ensure(connection, "default", less.config.log)
        assert of("log", [one async for one in broker.broker(most)]).health is Health.OK
        line = of("log", [one async for one in broker.broker(less)])
        assert line.health is Health.WARN
        assert "0.25 GiB and 30 days, and this brain.toml says less (0.06 GiB, 1 days)" in line.text
        assert "the same [log] for each brain" in line.action


async def test_a_log_from_which_a_person_has_taken_the_limits(tmp_path: Path) -> None:
    """`nats stream edit` with -1: a brain keeps that, and nobody is told that the server has no room."""
    with nats_server(tmp_path) as server:
        found = site(tmp_path, nats={"url": server.url})
        async with client(server.url) as connection:
            await log.ensure(connection, "default", found.config.log)
            await evidence.ensure(connection, "default", found.config.evidence)
            for stream in (subjects.stream("default"), subjects.evidence_stream("default")):
                there = (await connection.jsm().stream_info(stream)).config
                await connection.jsm().update_stream(there.evolve(max_bytes=-1, max_age=0))
            kept = await log.ensure(connection, "default", found.config.log)
            await evidence.ensure(connection, "default", found.config.evidence)
            assert (kept.max_bytes, kept.max_age_s) == (0, 0)
        said = [line async for line in broker.broker(found)]
        assert of("evidence", said).text.startswith("bundles have no limit of bytes and any age, and this")
        line = of("log", said)
        assert line.health is Health.WARN
        assert "0.00 GiB, without a limit and any age, and this brain.toml says less (" in line.text
        assert "the same [log] for each brain" in line.action


async def test_a_server_that_is_not_strict_or_not_there(tmp_path: Path) -> None:
    """What to write into its configuration; where nobody listens, what to look at."""
    with nats_server(tmp_path, strict=False) as server:
        line = of("broker", [one async for one in broker.broker(site(tmp_path, nats={"url": server.url}))])
        assert line.health is Health.FAIL
        assert "jetstream { strict: true }" in line.text
        url = server.url
    (line,) = [one async for one in broker.broker(site(tmp_path, nats={"url": url}))]
    assert (line.check, line.health) == ("broker", Health.FAIL)
    assert "nothing listens there" in line.text
    assert line.action == "start it there; or correct host and port in nats.url"
    with speaking("zh", FOLDERS):
        (line,) = [one async for one in broker.broker(site(tmp_path, nats={"url": url}))]
    assert "那里没有程序在监听" in line.text
    assert "nothing listens" not in line.text


async def test_a_receiver_of_pages_hears_nothing(tmp_path: Path) -> None:
    """It is connected to; that is all."""
    async with receiving(lambda _request, _body: (202, {})) as receiver:
        hook = {"type": "webhook", "url": f"{receiver.url}/page"}
        outside = {"type": "url", "url": f"{receiver.url}/ping"}
        found = site(tmp_path, channels={"hook": hook}, dead_mans_switches={"outside": outside})
        said = [line async for line in counterparts.channels(found)]
        assert [line.health for line in said] == [Health.OK, Health.OK]
        assert receiver.asked == 0


async def test_pages_that_a_receiver_refuses(tmp_path: Path) -> None:
    """It can be reached, and takes nothing, as its key was revoked: nobody is told of the lost GPU, and that is no installation
    that is well.
    """
    async with receiving(lambda _request, _body: (401, {})) as receiver:
        channels = {"hook": {"type": "webhook", "url": f"{receiver.url}/page"}}
        async with lab(tmp_path, channels=channels, settings={"hold_off_s": 0}) as whole:
            assert whole.running is not None
            node = await whole.node("n1")
            node.version = __version__
            await node.event("gpu.lost", "gpu/0000:3b:00", reason="lost")
            await whole.until(lambda found: found["pages_failing"], "the page is refused")
            raw = {"nats": {"embedded": {"port": whole.port}}, "channels": channels}
            file = written(tmp_path, whole.config, raw | {"log": {"max_bytes": 256 * 1024**2}})
            at = ("--url", whole.running.console_url, "--token-file", str(whole.ann))
            argv = [str(GPUWARD), *at, "doctor", "--config", str(file)]
            done = await asyncio.to_thread(
                subprocess.run, argv, capture_output=True, text=True, timeout=LATER_S
            )
            assert done.returncode == 1
            assert "brain: 1 page that no channel takes: people are told nothing" in done.stdout
            assert "hook: " in done.stdout
            assert receiver.asked > 0


@pytest.fixture(name="bmc")
def _bmc(tmp_path: Path) -> Iterator[ipmi_host.Host]:
    if why := ipmi_host.missing():
        pytest.skip(why)
    with ipmi_host.ipmi_host(tmp_path) as host:
        yield host


@pytest.mark.component("ipmi_sim ipmitool")
async def test_bmcs_answer_without_a_login(tmp_path: Path, bmc: ipmi_host.Host) -> None:
    """By a presence ping; with --login one is logged in to. One that is dead is named; so is a wrong password."""
    table = {
        "type": "ipmi", "address": f"127.0.0.1:{bmc.port}", "nodes": "gpu01", "user": "admin",
        "password_file": str(bmc.password), "cipher_suite": 3, "tries": 2, "connect_s": 2.0, "answer_s": 5.0,
    }  # fmt: skip
    gone = table | {"address": f"127.0.0.1:{ipmi_host.free_udp_port()}", "nodes": "gpu02"}
    tables = {"racks": table, "gone": gone}
    said = [line async for line in counterparts.bmcs(site(tmp_path, bmc=tables))]
    assert [(line.check, line.health) for line in said] == [
        ("bmc racks", Health.OK),
        ("bmc gone", Health.FAIL),
    ]
    assert "1 of 1 do not answer: gpu02" in said[1].text
    said = [line async for line in counterparts.bmcs(site(tmp_path, login=True, bmc={"racks": table}))]
    assert "logged in; gpu01 is " in said[1].text
    bmc.password.write_text("wrong\n")
    said = [line async for line in counterparts.bmcs(site(tmp_path, login=True, bmc={"racks": table}))]
    assert [line.health for line in said] == [Health.OK, Health.FAIL]


async def test_a_presence_ping_ends_in_time() -> None:
    """Whoever does not answer, and whoever answers something else."""
    port = ipmi_host.free_udp_port()
    with pytest.raises(Unreachable):
        await rmcp.ping("127.0.0.1", port, within_s=0.5, tries=2)

    class Parrot(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            self.transport.sendto(data, addr)  # type: ignore[attr-defined]  # a datagram transport

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        Parrot, local_addr=("127.0.0.1", port)
    )
    try:
        with pytest.raises(Unreachable, match="no answer to a presence ping"):
            await rmcp.ping("127.0.0.1", port, within_s=0.5, tries=2)
    finally:
        transport.close()


@pytest.mark.root
@pytest.mark.component("slurm")
@pytest.mark.timeout(300)
async def test_what_slurm_lets_us_do() -> None:
    """Root may set the state of nodes; a user without rights may only look. No node changes, in no case."""
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with slurm_cluster.cluster() as made:
        table = {"type": "slurm", "conf": made.conf}
        before = await slurm.build("slurm", table, "schedulers.slurm").drained("gpu1")
        assert await slurm.build("slurm", table, "schedulers.slurm").lacking() == []
        tool = Path(made.conf).with_name("scontrol-as-nobody")
        tool.write_text('#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups scontrol "$@"\n')
        tool.chmod(0o755)
        limited = slurm.build("slurm", table | {"scontrol": str(tool)}, "schedulers.slurm")
        assert await limited.lacking() == ["update nodes and jobs (AdminLevel operator)"]
        assert await limited.drained("gpu1") == before


async def told_of(folder: Path, *nodes: str, **table: Any) -> HealthLine:
    """What is told of a scheduler of a cell with these nodes."""
    found = site(folder, schedulers={"its": table})
    brain = BrainAnswers(status={}, nodes=[{"name": node} for node in nodes])
    return of("scheduler its", [one async for one in counterparts.schedulers(replace(found, brain=brain))])


@pytest.mark.root
@pytest.mark.component("slurm")
@pytest.mark.timeout(300)
async def test_a_node_that_its_scheduler_has_by_another_name(tmp_path: Path) -> None:
    """It is told before a runbook cannot drain it; what a table leaves out by `nodes` is no concern of its scheduler's."""
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with slurm_cluster.cluster() as made:
        slurm_ = {"type": "slurm", "conf": str(made.conf)}
        line = await told_of(tmp_path, "gpu1", "node1", "node2", **slurm_)
        assert (line.health, line.text[:32]) == (Health.WARN, "2 of 3 nodes are not known there")
        line = await told_of(tmp_path, "1", "2", **slurm_)
        assert (line.health, "not found" in line.text) == (Health.FAIL, True)
        assert (await told_of(tmp_path, "1", "2", **slurm_, node_name="gpu{node}")).health == Health.OK
        assert (await told_of(tmp_path, "gpu1", "node1", **slurm_, nodes="gpu*")).health == Health.OK


@pytest.mark.root
@pytest.mark.component("kubernetes")
@pytest.mark.timeout(300)
async def test_what_kubernetes_lets_us_do(tmp_path: Path) -> None:
    """The role of docs/actions.md allows all five; without the right to evict, that one is named."""
    if why := kube_plane.missing():
        pytest.skip(why)
    with kube_plane.plane() as plane:
        table = {"type": "kubernetes", "kubeconfig": plane.kubeconfig}
        built = kube.build("k8s", table, "schedulers.k8s")
        assert await built.lacking() == []
        await built.close()
        line = await told_of(tmp_path, "gpu1", "renamed", **table)
        assert (line.health, "Kubernetes has no node renamed" in line.text) == (Health.WARN, True)
        rules = json.loads(plane.kubectl("get", "clusterrole", "gpuward", "-o", "json"))
        rules["rules"] = [one for one in rules["rules"] if "pods/eviction" not in one["resources"]]
        (tmp_path / "role.json").write_text(json.dumps(rules))
        plane.kubectl("replace", "-f", str(tmp_path / "role.json"))
        built = kube.build("k8s", table, "schedulers.k8s")
        deadline = asyncio.get_running_loop().time() + LATER_S
        while not (lacking := await built.lacking()):
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.1)
        assert lacking == ["create pods/eviction"]
        await built.close()
