"""A real bond fails over, by itself and by bond.failover, in a User-mode Linux kernel over this machine's root (read-only)."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
BOOT_AND_RUN_S = 200.0  # 7 s on two cores; a machine under load takes longer


@pytest.mark.root
@pytest.mark.component("user-mode-linux")
@pytest.mark.slow
def test_the_active_slave_changes_when_its_cable_goes(tmp_path: Path) -> None:
    """Carrier lost on the active slave: the other takes over, one is missing; it returns; the bond goes. In between
    bond.failover moves it, and refuses what it must.
    """
    if shutil.which("linux.uml") is None or shutil.which("modprobe") is None:
        pytest.skip("needs apt-get install user-mode-linux kmod")
    said = run_guest(HERE / "uml/guest.py", tmp_path)
    assert said[0] == {"kind": "start", "said": 0}, "a bond that is whole is silent"
    failover = {event["kind"]: event for event in said[1:3]}
    assert failover["bond.active_slave"] == {"kind": "bond.active_slave", "active": "vb", "before": "va"}
    assert failover["bond.slaves"]["down"] == "va"
    assert said[3] == {"kind": "bond.slaves", "up": 2, "slaves": 2, "down": "", "degraded": False}
    assert said[-1]["kind"] == "bond.removed"
    stories = {row["story"]: (row["said"], row["active"]) for row in said if row["kind"] == "story"}
    assert stories["plan"] == ("['make va the active slave of bond0 (now vb)']", "vb")
    assert stories["other"] == ("va is the active slave of bond0, was vb", "va")
    assert stories["back"] == ("vb is the active slave of bond0, was va", "vb")
    assert stories["already"] == ("vb is the active slave of bond0 already", "vb")
    assert stories["needed"] == ("va is the active slave of bond0, was vb", "va")
    assert stories["needed back"] == ("vb is the active slave of bond0, was va", "vb")
    refused = {
        "needless": "the active slave of bond0 is vb, not va",
        "stranger": "va1 is no slave of bond0",
        "dead": "the MII status of va is down",
        "none": "no other slave whose MII status is up",
        "no bond": "there is no bond va",
        "mode": "bond1 is in mode balance-rr",
        "control": "bond0 carries the control path",
    }
    for story, why in refused.items():
        text, active = stories[story]
        assert str(text).startswith("Refused: ")
        assert why in str(text)
        assert active == "vb", story


def run_guest(script: Path, folder: Path) -> list[dict[str, object]]:
    """Boots the kernel, runs `script` in it, returns what it printed; fails with all output when it did not end.

    `folder`: for what is built for it.
    """
    library = folder / "ptrace.so"
    build = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library)]
    subprocess.run([*build, str(HERE / "uml/ptrace.c")], check=True)
    # hostfs shows this machine's root: read-only, so that the guest cannot change it.
    argv = [
        *("linux.uml", "mem=256M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        *(f"init={HERE / 'uml/init.sh'}", "con=null", "con0=fd:0,fd:1", "quiet"),
        *(f"python={sys.executable}", f"repo={REPO}", f"guest={script}"),
    ]
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | {"LD_PRELOAD": str(library)},
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=BOOT_AND_RUN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        pytest.fail(f"the guest did not end within {BOOT_AND_RUN_S:.0f} s:\n{output[-4000:]}")
    assert "UML-DONE" in output, output[-4000:]
    assert "UML-FAILED" not in output, output[-4000:]
    lines = [line.partition("GUEST ")[2].strip() for line in output.splitlines() if "GUEST {" in line]
    return [json.loads(line) for line in lines]
