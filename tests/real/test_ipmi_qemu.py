"""A BMC with a machine: QEMU (pure emulation) whose KCS interface is OpenIPMI's simulator, as a server's is its BMC.

The BMC starts the machine, and ends it over QEMU's `ipmi-bmc-extern`. There is no operating system: nobody in it obeys
an orderly shutdown.
"""

import asyncio
import shutil
import socket
from pathlib import Path

import pytest

from tests.real.bmc_kit import QUICK, built, perform
from tests.real.ipmi_host import Host, ipmi_host, missing


@pytest.mark.component("ipmi_sim ipmitool qemu")
async def test_a_machine_is_switched_on_cycled_and_fenced_by_its_bmc(tmp_path: Path) -> None:
    """Each power state that is told is that of the emulated machine."""
    qemu = shutil.which("qemu-system-x86_64")
    if why := missing() or ("" if qemu else "needs apt-get install qemu-system-x86"):
        pytest.skip(why)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    machine = [
        *(str(qemu), "-accel", "tcg", "-m", "32", "-display", "none", "-serial", "none", "-nic", "none"),
        *("-chardev", f"socket,id=bmc,host=127.0.0.1,port={port},reconnect=1"),
        *("-device", "ipmi-bmc-extern,id=bmc0,chardev=bmc", "-device", "isa-ipmi-kcs,bmc=bmc0"),
        *("-pidfile", str(tmp_path / "node.pid")),
    ]
    conf = f'serial 15 127.0.0.1 {port} codec VM\n  startcmd "{" ".join(machine)}"\n  startnow false'
    with ipmi_host(tmp_path, f"{conf}\n  poweroff_wait 3\n  kill_wait 2") as host:
        table = {
            "type": "ipmi",
            "address": f"127.0.0.1:{host.port}",
            "user": "admin",
            "password_file": str(host.password),
            "cipher_suite": 3,
            "nodes": "gpu01",
            **QUICK,
        }
        actions = built({"racks": table})
        await perform(actions["bmc.power_on"])
        first = await _pid(host)
        assert "seen off" in (await perform(actions["bmc.power_cycle"])).text
        assert await _pid(host) != first
        done = await perform(actions["node.isolate"], timeout_s=300.0, shutdown_s=0.5)
        assert "nothing was drained; switched off by its BMC: gpu01 is off" in done.text
        assert host.node == 0


async def _pid(host: Host) -> int:
    """QEMU's process id; it writes it a moment after its start."""
    await asyncio.to_thread(host.until, lambda: host.node != 0, "the machine did not start")
    return host.node
