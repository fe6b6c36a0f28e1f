"""An agent with the rights that its unit gives it, and no others: it sees what it must, and has no hands."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.commands.rights import lacking, rights
from agent.contract.actions import ACTIONS
from agent.contract.actions.spec import Right
from agent.contract.commands import Answer
from agent.host import Host
from tests.real.kernel_log import write_kernel_line
from tests.real.nats import NatsServer
from tests.real.test_agent_process import agent, ask, bus, events, first_position, signed
from tests.security.units import AGENT, settings

USER = 64_123  # nobody's
HANDS: list[tuple[str, dict[str, Any], str]] = [
    ("link.bounce", {"link": "link/lo"}, "CAP_NET_ADMIN"),
    ("service.restart", {"unit": "dbus.service"}, "user 0"),
    ("process.signal", {"job": "4711"}, "CAP_KILL"),
    ("module.load", {"module": "dummy"}, "user 0 and CAP_SYS_MODULE"),
    ("gpu.reset", {}, "user 0 and CAP_SYS_ADMIN"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Host):
    """A machine whose /proc/self/status is `status`."""

    status: str = ""

    def read(self, absolute: str, default: str = "") -> str:
        return self.status if absolute == "/proc/self/status" else default


@pytest.mark.parametrize(
    ("status", "held"),
    [
        ("Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff", set(Right)),
        ("Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000", {Right.ROOT}),
        ("Uid:\t990\t990\t990\t990\nCapEff:\t0000000400080004", set()),  # as the unit gives
        ("Uid:\t990\t990\t990\t990\nCapEff:\t0000000000001020", {Right.KILL, Right.NET_ADMIN}),
        ("Uid:\t0\t990\t0\t990\nCapEff:\t0000000000010000", {Right.SYS_MODULE}),  # the effective user counts
        ("CapEff:\t000001ffffffffff", set()),
        ("Uid:\t0\t0\t0\t0\nCapEff:\tmany", set()),
        ("", set()),
    ],
)
def test_rights_are_read_as_the_kernel_tells_them(status: str, held: set[Right]) -> None:
    """What cannot be read grants nothing."""
    assert rights(Recorded(status=status)) == held


def test_what_is_missing_is_named_with_its_cure() -> None:
    """The text names the action, each right that is missing, and the file that grants it."""
    text = lacking("driver.reload", frozenset({Right.ROOT}))
    assert text == (
        "driver.reload needs CAP_SYS_MODULE, which this agent does not have: "
        "deploy/systemd/gpuward-agent.service.d/hands.conf grants it"
    )
    assert [name for name in ACTIONS if lacking(name, frozenset(Right))] == []


def confined() -> list[str]:
    """setpriv, which becomes the agent with the rights of its unit."""
    unit = settings(AGENT)
    kept = [f"+{name.removeprefix('CAP_').lower()}" for name in unit["CapabilityBoundingSet"].split()]
    only = ",".join(["-all", *kept])
    return [
        *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"),
        *(f"--bounding-set={only}", f"--inh-caps={only}", f"--ambient-caps={only}"),
    ]


async def blind_sources(folder: Path, server: NatsServer, under: Sequence[str], *options: str) -> set[str]:
    """Those that could not look when they were asked to."""
    with agent(folder, server, *options, under=under):
        hello = await ask(server, b'{"hello": true}')
        await first_position(folder / "agent" / "spool.db")
        look = signed(hello, action="agent.look", params={})
        assert (await ask(server, look)).answer is Answer.ACCEPTED
        (result,) = await events(server, "command.result", 1)
    return set(filter(None, str(result["data"].get("blind", "")).split(", ")))


@pytest.mark.root
@pytest.mark.component("nats-server")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs apt-get install util-linux")
@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="needs root: /dev/kmsg")
async def test_every_source_works_with_the_rights_of_the_unit(tmp_path: Path) -> None:
    """What root's agent sees on this machine, the confined one sees too: the kernel's log, and a job's log that is not its own;
    each command for hands is refused with the right that is missing.
    """
    log = tmp_path / "jobs/4711.log"
    for who in ("root", "confined"):
        (tmp_path / who).mkdir()
    log.parent.mkdir()
    log.write_text("")
    log.chmod(0o600)
    jobs = f"job_logs={log.parent}/*.log"
    with bus(tmp_path / "root") as server:
        everything = await blind_sources(tmp_path / "root", server, (), jobs)
    with bus(tmp_path / "confined") as server:
        folder = tmp_path / "confined"
        (folder / "agent").mkdir()
        os.chown(folder / "agent", USER, USER)
        assert await blind_sources(folder, server, confined(), jobs) == everything
        allow = ",".join(("agent.look", *(name for name, _, _ in HANDS)))
        with agent(folder, server, jobs, f"allow={allow}", under=confined()) as process:
            hello = await ask(server, b'{"hello": true}')
            for name, params, missing in HANDS:
                reply = await ask(server, signed(hello, action=name, params=params))
                assert reply.answer is Answer.REFUSED
                assert reply.why.startswith(f"{name} needs {missing}, which this agent does not have"), reply
            write_kernel_line("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
            with log.open("a") as job:
                job.write("CUDA error: an illegal memory access was encountered\n")
            assert await events(server, "gpu.xid", 1, of="gpu/0000:3b:00")
            assert await events(server, "job.cuda_error", 1)
            process.terminate()
            assert process.wait(60) == 0
            assert process.stderr is not None
            said = process.stderr.read()
    assert all(f"allow: {name} needs {missing}" in said for name, _, missing in HANDS), said
