"""Both units as they are shipped, under a real systemd: they do their work inside of their walls."""

import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent.contract.fitness import SOCKET
from tests.e2e.stack import ROOT
from tests.real import nspawn
from tests.real.kernel_log import HEARD, write_kernel_line
from tests.real.nats import nats_binary
from tests.security.test_data_folders import node_key, open_to_others
from tests.security.units import AGENT, BRAIN, HANDS

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.component("nats-server"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing()),
]
PACKAGES = ("agent", "brain", "simulations", "rules", "runbooks")
CODE = "/opt/gpuward"
# Not as a virtual environment: the interpreter may lie in a home folder, which the units do not see.
PYTHON, LIBRARIES = Path(sys.base_prefix).resolve(), Path(sysconfig.get_path("purelib")).resolve()
NODE = "lab"
WITHIN_S = 120.0
# Where the code is in this container; nothing of the walls is changed. nspawn has a pipe in the place of /dev/kmsg.
_VERSION = sysconfig.get_python_version()
PLACE = f"""[Service]
ExecStart=
ExecStart=/opt/python/bin/python{_VERSION} -m {{package}} run --config /etc/gpuward/{{package}}.toml
Environment=LD_LIBRARY_PATH=/opt/python/lib PYTHONPATH={CODE} PYTHONDONTWRITEBYTECODE=1
WorkingDirectory={CODE}
BindReadOnlyPaths={PYTHON}:/opt/python {LIBRARIES}:/opt/python/lib/python{_VERSION}/site-packages
StandardError=append:/run/{{package}}.log
"""


class Site:
    """A container with both services installed as the units say."""

    def __init__(self, box: nspawn.Machine, scratch: Path) -> None:
        self.box = box
        self.etc = box.root / "etc"
        for package in PACKAGES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, box.root / CODE[1:] / package, ignore=ignored)
        shutil.copy(nats_binary(), box.root / "usr/local/bin/nats-server")
        (self.etc / "gpuward").mkdir()
        seed, public = node_key(scratch)
        shutil.copy(seed, self.etc / "gpuward/node.nk")
        (self.etc / "gpuward/brain.toml").write_text(f'[nats.embedded.nodes]\n{NODE} = "{public}"\n')
        (self.etc / "gpuward/agent.toml").write_text(
            f'node = "{NODE}"\nbeat_interval_s = 0.2\n{HEARD}\nnats_seed_file = "/etc/gpuward/node.nk"\n'
        )
        for unit, package in ((BRAIN, "brain"), (AGENT, "agent")):
            shutil.copy(unit, self.etc / "systemd/system")
            self.drop_in(unit.name, "place.conf", PLACE.format(package=package))
            shutil.copy(unit.with_suffix(".sysusers.conf"), self.etc / f"{unit.stem}.sysusers.conf")
        self.does("mknod", "/opt/kmsg", "c", "1", "11")
        self.drop_in(AGENT.name, "kmsg.conf", "[Service]\nBindPaths=/opt/kmsg:/dev/kmsg\n")
        self.does("systemd-sysusers", *(f"/etc/{unit.stem}.sysusers.conf" for unit in (BRAIN, AGENT)))
        self.does("systemctl", "daemon-reload")

    def drop_in(self, unit: str, name: str, text: str) -> None:
        """Adds to a unit."""
        folder = self.etc / f"systemd/system/{unit}.d"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    def does(self, *argv: str) -> str:
        """What a command in the container prints; it must succeed."""
        done = self.box.run(*argv)
        assert done.returncode == 0, f"{argv}: {done.stderr}{self.said()}"
        return done.stdout.strip()

    def said(self) -> str:
        """The logs of both services."""
        argvs = [
            *(("systemctl", "status", "--no-pager", unit.name) for unit in (BRAIN, AGENT)),
            *(("cat", f"/run/{name}.log") for name in ("brain", "agent")),
        ]
        return "\n".join(self.box.run(*argv).stdout[-3000:] for argv in argvs)

    def api(self, path: str) -> Any:
        """An answer of the brain; None while it gives none."""
        done = self.box.run("curl", "-s", f"http://127.0.0.1:8470{path}")
        return orjson.loads(done.stdout) if done.returncode == 0 else None

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Until it holds."""
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {WITHIN_S:g} s\n{self.said()}"
            time.sleep(0.1)

    def agent_connects(self, times: int) -> None:
        """Until it has done so for this time since its first start."""
        self.wait_for(
            lambda: self.box.run("cat", "/run/agent.log").stdout.count("connected to nats://") == times,
            "the agent connects",
        )

    def agent_answers(self) -> None:
        """`gpuward-agent check` as root gets an answer, by which all is well; to others the socket is not even there."""
        python = (
            "env",
            f"PYTHONPATH={CODE}",
            f"LD_LIBRARY_PATH={PYTHON}/lib",
            f"{PYTHON}/bin/python{_VERSION}",
        )
        said = orjson.loads(self.does(*python, "-m", "agent", "check", "--json", "--timeout", "20s"))
        assert (said["fit"], said["known"], said["blind"]) == (True, True, {})
        other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        assert self.box.run(*other, "test", "-e", SOCKET).returncode == 1
        assert self.box.run("test", "-S", SOCKET).returncode == 0

    def owner(self, unit: Path) -> tuple[str, str]:
        """User of the service, and of the data folder in which it is."""
        pid = self.does("systemctl", "show", "-P", "MainPID", unit.name)
        folder = f"/var/lib/{self.does('systemctl', 'show', '-P', 'StateDirectory', unit.name)}"
        assert (
            self.box.run(
                "test", "-s", f"{folder}/{'spool.db' if unit == AGENT else 'signing.key'}"
            ).returncode
            == 0
        )
        return self.does("stat", "-c", "%U", f"/proc/{pid}"), self.does("stat", "-c", "%U", folder)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    rights = ("CAP_SYSLOG", "CAP_SYS_MODULE")
    with nspawn.machine(tmp_path / "box", {}, binds=[f"{LIBRARIES}:ro"], capabilities=rights) as box:
        yield Site(box, tmp_path)


def test_both_services_work_inside_of_their_walls(site: Site) -> None:
    """The brain leads with its own server, the agent is heard, no source fails; hands come and go with their drop-in, and with
    a data folder of their own: a link that the agent without hands has left leads root nowhere.
    """
    site.does("systemctl", "start", BRAIN.name)
    site.wait_for(
        lambda: bool((status := site.api("/api/v1/status")) and status["leads"] and status["pack"]),
        "the brain leads",
    )
    site.does("systemctl", "start", AGENT.name)
    site.agent_connects(1)
    assert site.owner(BRAIN) == ("gpuward", "gpuward")
    assert site.owner(AGENT) == ("gpuward-agent", "gpuward-agent")
    site.agent_answers()
    site.does("ln", "-sf", "/root/victim", "/var/lib/gpuward-agent/journal.jsonl.part")
    with_hands = site.etc / "systemd/system" / f"{AGENT.name}.d" / HANDS.name
    for start, installed, owner in ((2, True, "root"), (3, False, "gpuward-agent")):
        if installed:
            shutil.copy(HANDS, with_hands)
        else:
            with_hands.unlink()
        site.does("systemctl", "daemon-reload")
        site.does("systemctl", "restart", AGENT.name)
        site.agent_connects(start)
        assert site.owner(AGENT) == (owner, owner)
        assert site.does("stat", "-c", "%U", "/var/lib/gpuward-agent") == "gpuward-agent"
        assert site.box.run("test", "-e", "/root/victim").returncode == 1
        site.agent_answers()
    where = f"00{os.getpid() % 0xFF:02x}:{int(time.time()) % 0xFF:02x}:00"
    write_kernel_line(f"NVRM: Xid (PCI:{where}): 79, GPU has fallen off the bus.")
    site.wait_for(
        lambda: any(where in one["scope"] for one in site.api("/api/v1/incidents")["incidents"]),
        "the kernel's line is an incident",
    )
    warnings = [
        line for line in site.does("cat", "/run/agent.log").splitlines() if line.startswith("WARNING")
    ]
    assert [line for line in warnings if "is not trusted here" not in line] == [], (
        "a source or the folder fails"
    )
    for unit in (BRAIN, AGENT):
        found, count = open_to_others(site.box.root / "var/lib" / unit.stem)
        assert found == []
        assert count > 3
