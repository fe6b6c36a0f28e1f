"""gpu.reset as a process of its own, to be killed: `python gpu_probe.py run|recover <settings as JSON>`.

Settings: root (a tree whose /proc is this machine's), data_dir, bus (D-Bus address), services, smi, nvml (environment).
It prints what came of it.
"""

import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from agent.actions.gpu_reset import GpuReset
from agent.actions.gpus import gpu_kit
from agent.actions.modules import Modules
from agent.actions.nvml_client import NvmlClient
from agent.config import AgentConfig
from agent.contract.errors import ActionError
from agent.host import Host
from agent.nvml.pause import NvmlPause


def action(settings: dict[str, Any]) -> GpuReset:
    """As the agent makes it, but for the library that its NVML children load."""
    config = AgentConfig(
        data_dir=Path(settings["data_dir"]),
        dbus_address=settings["bus"],
        gpu_services=tuple(settings["services"]),
        nvidia_smi=settings["smi"],
    )
    host = Host(root=Path(settings["root"]))
    modules = Modules(host, modprobe=config.modprobe, rmmod=config.rmmod)
    kit = gpu_kit(host, config, modules, NvmlPause())
    return GpuReset(dataclasses.replace(kit, nvml=NvmlClient(env=settings["nvml"])))


async def main(verb: str, settings: dict[str, Any]) -> str:
    reset, params = action(settings), {"gpu": "gpu/0000:3b:00"}
    try:
        if verb == "run":
            return (await reset.run(params)).text
        await reset.recover(params)
        return "recovered"
    except ActionError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]))))
