"""A guest with a kernel of its own: Debian's, in QEMU's pure emulation, over this machine's root (read-only).

    said = guest("tests.real.qemu.rdma")     # modules that print JSON lines, run by the venv's own python

What the guest has: rxe, bonding, veth, devlink with two cards that can be broken (qemu/card/gwcard.c), /dev/ipmi0 with
QEMU's BMC, /dev/watchdog, an NVMe controller, and at /dev/ttyS1 QEMU's monitor (QMP). About 3 s to the first script; each
`import` costs more than on the machine itself.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent / "qemu"
REPO = HERE.parents[2]
CACHE = Path(os.environ.get("GPUWARD_GUEST_CACHE", "/var/cache/gpuward-guest"))
PREPARE_S = 120.0
RUN_S = 250.0  # 12 s on two cores; a machine under load takes longer
_TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "modprobe": "kmod",
    "make": "make",
    "gcc": "gcc",
    "xz": "xz-utils",
    "devlink": "iproute2",
}
OperatorCommand = dict[str, Any]
_DEVICES = (
    *("-device", "edu,addr=5.0,multifunction=on", "-device", "edu,addr=5.1", "-device", "edu,addr=6.0"),
    *("-device", "ipmi-bmc-sim,id=bmc0", "-device", "isa-ipmi-kcs,bmc=bmc0", "-device", "i6300esb"),
    *("-device", "nvme,id=disk0,serial=DISK-0,addr=7.0"),
)


def missing() -> str:
    """Why there can be no guest here; empty when there can."""
    absent = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    absent += [] if list(Path("/usr/src").glob("linux-headers-*-amd64")) else ["linux-headers-amd64"]
    return f"needs apt-get install {' '.join(absent)}" if absent else ""


def machine(words: Mapping[str, str], *, cpus: int) -> list[str]:
    """QEMU's argv for the prepared guest, without its devices; `words` go on its kernel line."""
    ready = Path(
        subprocess.run(
            [HERE / "prepare.sh", CACHE], check=True, stdout=subprocess.PIPE, text=True, timeout=PREPARE_S
        ).stdout.strip()
    )
    # The guest writes no bytecode that anybody reads again, and compiles slowly.
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "agent", "tests/real"], cwd=REPO, check=True, timeout=200
    )
    line = {"python": sys.executable, "repo": str(REPO), "modules": str(ready / "modules"), **words}
    return [
        # A processor without vector units: emulating them costs half as much again.
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "qemu64"),
        *("-smp", str(cpus), "-m", "640"),
        *("-display", "none", "-no-reboot", "-serial", "stdio"),
        *("-kernel", str(ready / "vmlinux"), "-initrd", str(ready / "initrd"), "-append"),
        "console=ttyS0 quiet panic=-1 " + " ".join(f"{name}={value}" for name, value in line.items()),
        "-virtfs",
        "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
    ]


def first(process: "subprocess.Popen[Any]") -> None:
    """Runs before the machine's other work: a guest whose processor is emulated would stand still beside it, and miss the
    deadlines that are right for a machine of its own. `process`: of a session of its own.
    """
    os.setpriority(os.PRIO_PROCESS, process.pid, -10)
    with contextlib.suppress(FileNotFoundError):  # a kernel that weighs processes, not sessions
        Path(f"/proc/{process.pid}/autogroup").write_text("-10")


def guest(*modules: str) -> dict[str, list[OperatorCommand]]:
    """Boots, runs these Python modules side by side; the JSON lines that each printed. Fails when one of them did."""
    with tempfile.TemporaryDirectory() as folder:
        # The monitor at the guest's second serial port: a script in there changes the devices around it.
        monitor = f"unix:{folder}/monitor"
        wires = ("-qmp", f"{monitor},server=on,wait=off", "-serial", monitor)
        argv = [*machine({"scripts": ",".join(modules)}, cpus=2), *wires, "-nic", "none", *_DEVICES]
        output = _played(argv)
    assert "QEMU-DONE" in output, output[-6000:]
    assert "QEMU-FAILED" not in output, output[-6000:]
    said: dict[str, list[OperatorCommand]] = {module: [] for module in modules}
    for line in output.splitlines():
        if line.startswith("GUEST "):
            _, module, text = line.split(" ", 2)
            said[module].append(json.loads(text))
    return said


def _played(argv: list[str]) -> str:
    """What the guest said until it was off."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    first(process)
    try:
        output, _ = process.communicate(timeout=RUN_S)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        pytest.fail(f"the guest did not end within {RUN_S:.0f} s:\n{output[-6000:]}")
    return output
