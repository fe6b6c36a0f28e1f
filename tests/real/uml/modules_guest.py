"""Runs inside User-mode Linux: driver.reload and module.load on real modules.

The code is that of the GPU driver; its table of modules comes from the configuration, and here names 8021q and the modules
that it needs, which use one another as NVIDIA's do. One JSON line per finding, prefixed with GUEST.
"""

import asyncio
import dataclasses
import json
import socket
import subprocess
from pathlib import Path

from agent.actions.driver_reload import DriverReload
from agent.actions.gpus import GpuKit, gpu_kit
from agent.actions.module_load import ModuleLoad
from agent.actions.modules import Modules
from agent.actions.nvml_client import GpuState, NvmlClient
from agent.config import AgentConfig
from agent.contract.errors import ActionError, Refused
from agent.host import Host
from agent.nvml.pause import NvmlPause

UNLOAD = ("8021q", "garp", "mrp", "stp", "llc")
MODPROBE, FAIL, CALLS = Path("/mnt/modprobe"), Path("/mnt/fail"), Path("/mnt/calls")
# The modules are not below /lib/modules here (see init.sh); and one load can be made to fail.
WRAPPER = f"""#!/bin/sh
echo "$@" >> {CALLS}
if [ "$(cat {FAIL} 2>/dev/null)" = "$1" ]; then rm {FAIL}; echo "modprobe: ERROR: could not insert '$1'" >&2; exit 1; fi
exec /usr/sbin/modprobe -d /mnt "$@"
"""


def tell(what: str, said: object) -> None:
    print("GUEST", json.dumps({"what": what, "said": said}), flush=True)


def loaded() -> list[str]:
    return sorted(set(Host().read("/proc/modules").split()) & set(UNLOAD))


async def attempt(what: str, action: DriverReload | ModuleLoad, params: dict[str, str] | None = None) -> None:
    try:
        done = (await action.run(params or {})).text
    except ActionError as error:
        done = f"{type(error).__name__}: {error}"
    tell(what, [done, loaded()])


class NoNvml(NvmlClient):
    """What the real one finds out here too, but a Python that starts costs it a second each time."""

    async def gpus(self) -> list[GpuState]:
        raise Refused("there is no NVML here")


def kit() -> GpuKit:
    """As an agent that has just been started would make it."""
    config = AgentConfig(
        data_dir=Path("/mnt"),
        gpu_services=(),  # no systemd here
        driver_unload=UNLOAD,
        driver_load=tuple(reversed(UNLOAD)),
        modprobe=str(MODPROBE),
        rmmod="/usr/sbin/rmmod",
    )
    modules = Modules(Host(), modprobe=config.modprobe, rmmod=config.rmmod)
    return dataclasses.replace(gpu_kit(Host(), config, modules, NvmlPause()), nvml=NoNvml())


async def main() -> None:
    MODPROBE.write_text(WRAPPER)
    MODPROBE.chmod(0o755)
    modules = kit().modules
    loading = ModuleLoad(modules, ("dummy", "no_such_module"))
    await attempt("module.load", loading, {"module": "dummy"})
    await attempt("module.load again", loading, {"module": "dummy"})
    await attempt("module.load of another", loading, {"module": "sch_netem"})
    await attempt("module.load of nothing", loading, {"module": "no_such_module"})

    reload = DriverReload(kit())
    await attempt("a driver that is not loaded", reload)
    CALLS.unlink()
    tell("plan", await reload.plan({}))
    await attempt("driver.reload", reload)
    tell("calls", CALLS.read_text().split())

    # A module outside the table uses one of it, and then somebody uses that.
    subprocess.run([MODPROBE, "llc2"], check=True)
    await attempt("used by another module", reload)
    open_socket = socket.socket(26, socket.SOCK_DGRAM)  # AF_LLC
    tell("in use", modules.blocked(("llc2", *UNLOAD)))
    open_socket.close()
    subprocess.run(["/usr/sbin/rmmod", "llc2"], check=True)

    FAIL.write_text("8021q")
    await attempt("a load that fails once", reload)

    # The agent dies when the first two modules are gone.
    note = Path("/mnt/gpu_driver_note.json")
    boot = Host().boot_id()
    note.write_text(json.dumps({"boot": boot, "services": [], "modules": list(reversed(UNLOAD))}))
    subprocess.run(["/usr/sbin/rmmod", "8021q", "garp"], check=True)
    tell("half unloaded", loaded())
    await DriverReload(kit()).recover({})
    tell("recovered", [loaded(), note.exists()])


asyncio.run(main())
