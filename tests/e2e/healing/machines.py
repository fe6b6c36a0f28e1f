"""Machines that a BMC switches on and off: each is an agent's process; and a Kubernetes API beside them.

    with machine(whole, "gpu1", 'allow = ["evidence.collect"]') as one: ...    # one.bmc: its chassis, one.table: for brain.toml

The BMC is OpenIPMI's simulator, asked over IPMI. A machine whose folder has a file `line` writes its text to the kernel
log a while after each start, as a driver does that finds its GPU dead.
"""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.healing.nodes import command
from tests.e2e.stack import Stack
from tests.real.ipmi_host import FILES, Host, ipmi_host
from tests.real.kube_fake import Fake

_SAYS_S = 3  # so long after the start the driver has looked at its GPUs
_BOOT = """#!/bin/sh
[ -e {folder}/line ] && (sleep {says_s}; read pid < {folder}/node.pid; kill -0 "$pid" && cat {folder}/line > /dev/kmsg) &
exec {agent} >> {log} 2>&1
"""


class Machine:
    """One node with its BMC; off until `start`."""

    def __init__(self, node: str, bmc: Host) -> None:
        self.node, self.bmc = node, bmc

    @property
    def table(self) -> str:
        """Its part of the brain's configuration."""
        return (
            f'[bmc.{self.node}]\ntype = "ipmi"\nnodes = "{self.node}"\naddress = "127.0.0.1:{self.bmc.port}"\n'
            f'user = "admin"\npassword_file = "{self.bmc.password}"\ncipher_suite = 3\npoll_s = 0.3\n'
        )

    def start(self, whole: Stack, config: str) -> int:
        """Switched on by its BMC for the first time; its agent's process."""
        argv = " ".join(command(whole, self.node, config))
        log = whole.folder / f"agent-{self.node}.log"
        boot = self.bmc.folder / "boot.sh"
        boot.write_text(_BOOT.format(folder=self.bmc.folder, says_s=_SAYS_S, agent=argv, log=log))
        boot.chmod(0o755)
        return self.bmc.fresh()

    def freeze(self) -> None:
        """It hangs: nothing runs any more, and its power is on."""
        os.kill(self.bmc.node, signal.SIGSTOP)

    def dies_with(self, line: str) -> None:
        """Its driver says so now, and after each start."""
        (self.bmc.folder / "line").write_text(line)
        Path("/dev/kmsg").write_text(line)


@contextlib.contextmanager
def machine(folder: Path, node: str) -> Iterator[Machine]:
    """A machine, off, with a BMC of its own; gone with the block."""
    home = folder / f"bmc-{node}"
    home.mkdir()
    script = (FILES / "chassis.sh").read_text()
    sleeper = "setsid sleep 600 < /dev/null > /dev/null 2>&1"
    assert sleeper in script
    chassis = home / "chassis.sh"
    chassis.write_text(script.replace(sleeper, f"setsid {home}/boot.sh < /dev/null > /dev/null 2>&1"))
    chassis.chmod(0o755)
    (home / "boot.sh").write_text("#!/bin/sh\nexec sleep 600\n")
    with ipmi_host(home, f'chassis_control "{chassis} {home}"') as bmc:
        yield Machine(node, bmc)


@contextlib.contextmanager
def kubernetes(folder: Path, *nodes: str) -> Iterator[Fake]:
    """An API server with these nodes, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    fake = Fake(folder)
    for node in nodes:
        fake.node(node)
    try:
        asyncio.run_coroutine_threadsafe(fake.__aenter__(), loop).result(30)
        try:
            yield fake
        finally:
            asyncio.run_coroutine_threadsafe(fake.__aexit__(None, None, None), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
