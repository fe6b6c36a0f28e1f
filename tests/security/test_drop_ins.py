"""Each drop-in of the agent's unit under a real systemd: what it is for is refused without it, and done with it."""

import shutil
import time
from collections.abc import Iterator

import pytest

from tests.e2e.stack import ROOT
from tests.real import nspawn
from tests.security.units import AGENT

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing()),
]
WITHIN_S = 90.0
CODE = "/opt/gpuward"
# In the place of the agent, with all the rights and walls of its unit.
PROBE = """[Service]
ExecStart=
ExecStart=/bin/sh -c '{command} >/run/gpuward-agent/said 2>&1; echo "status $?" >>/run/gpuward-agent/said; exec sleep infinity'
"""
# What the source `optics` asks the kernel, of an interface that has no module.
OPTICS = (
    f"PYTHONPATH={CODE} PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c "
    '"from agent.shared.module_memory import read_half; from agent.contract.optics_module import LOWER; '
    'read_half(\\\\"lo\\\\", LOWER)"'
)
# As Ascend's driver leaves them: the files of its devices belong to its group, and npu-smi opens them.
NPU_SMI = "#!/bin/sh\nexec 3<>/opt/davinci_manager && echo '| npu-smi 23.0.3'\n"


class Probe:
    """A container with the agent's unit, in which a command runs instead of the agent."""

    def __init__(self, box: nspawn.Machine) -> None:
        self.box = box
        etc = box.root / "etc"
        self.drop_ins = etc / f"systemd/system/{AGENT.name}.d"
        self.drop_ins.mkdir(parents=True)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "agent", box.root / CODE[1:] / "agent", ignore=ignored)
        shutil.copy(AGENT, etc / "systemd/system")
        shutil.copy(AGENT.with_suffix(".sysusers.conf"), etc / "agent.sysusers.conf")
        self.does("systemd-sysusers", "/etc/agent.sysusers.conf")

    def does(self, *argv: str) -> str:
        """What a command in the container prints; it must succeed."""
        done = self.box.run(*argv)
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout.strip()

    def says(self, command: str, *drop_ins: str) -> str:
        """What the command prints, and its status, with these drop-ins."""
        for path in self.drop_ins.iterdir():
            path.unlink()
        for name in drop_ins:
            shutil.copy(AGENT.parent / f"{AGENT.name}.d" / name, self.drop_ins)
        (self.drop_ins / "probe.conf").write_text(PROBE.format(command=command))
        self.does("systemctl", "daemon-reload")
        self.does("systemctl", "restart", AGENT.name)
        deadline = time.monotonic() + WITHIN_S
        while "status " not in (said := self.box.run("cat", "/run/gpuward-agent/said").stdout):
            assert time.monotonic() < deadline, said
            time.sleep(0.1)  # before it looks again, until the deadline
        return said


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    with nspawn.machine(tmp_path_factory.mktemp("box"), {}, capabilities=("CAP_SYSLOG",)) as box:
        yield Probe(box)


def test_optics_conf_lets_the_agent_read_modules(probe: Probe) -> None:
    """Without it the kernel refuses the question; with it, it answers: the interface has none."""
    assert "PermissionError" in probe.says(OPTICS)
    said = probe.says(OPTICS, "optics.conf")
    assert "PermissionError" not in said
    assert "OSError: [Errno 95]" in said, "Operation not supported: lo has no module"


def test_ascend_conf_lets_the_agent_ask_npus(probe: Probe) -> None:
    """The tool opens what belongs to the group of the driver; it is not the agent's, nor anybody's else."""
    tool = probe.box.root / "usr/local/sbin/npu-smi"
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text(NPU_SMI)
    probe.does("groupadd", "--system", "HwHiAiUser")
    probe.does("mknod", "/opt/davinci_manager", "c", "1", "3")
    probe.does("chown", "root:HwHiAiUser", "/opt/davinci_manager")
    probe.does("chmod", "0660", "/opt/davinci_manager")
    probe.does("chmod", "0755", "/usr/local/sbin/npu-smi")
    assert "Permission denied" in probe.says("npu-smi info")
    assert probe.says("npu-smi info", "ascend.conf") == "| npu-smi 23.0.3\nstatus 0\n"


def test_ascend_conf_on_a_node_without_npus(probe: Probe) -> None:
    """The agent does not start, and systemd says that the group is missing: as the file says."""
    if probe.box.run("getent", "group", "HwHiAiUser").returncode == 0:
        probe.does("groupdel", "HwHiAiUser")
    shutil.copy(AGENT.parent / f"{AGENT.name}.d" / "ascend.conf", probe.drop_ins)
    (probe.drop_ins / "probe.conf").write_text(PROBE.format(command="true"))
    probe.does("systemctl", "daemon-reload")
    assert probe.box.run("systemctl", "restart", AGENT.name).returncode != 0
    assert probe.does("systemctl", "show", "-P", "ExecMainStatus", AGENT.name) == "216"
