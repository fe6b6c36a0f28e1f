"""One question or order to NVML, in a process of its own that can be killed; used by actions.

Run as a file, like nvml_child.py, so that it imports the standard library and pynvml alone:

    python -I agent/nvml_ask.py look                         what all GPUs are and how they answer
    python -I agent/nvml_ask.py power_limit <bus id> <mW>
    python -I agent/nvml_ask.py persistence <bus id> <0|1>

It prints one JSON object: `{"gpus": [...]}` (keys: see `_gpu`), `{"done": true}`, `{"absent": why}` where there is no
NVML, or `{"error": <NVML return code>, "why": text}` where NVML said no. A value that this driver or card does not say
is null.
"""

import ctypes
import json
import sys
import types
from typing import Any

# As in nvml_child.py: pynvml imports ctypes.util for Windows alone.
if __name__ == "__main__":
    sys.modules.setdefault("ctypes.util", types.ModuleType("ctypes.util")).__dict__.setdefault(
        "find_library", None
    )
import pynvml

_LOST = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "reset_required",
    pynvml.NVML_ERROR_GPU_NOT_FOUND: "not_found",
}
_RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, from R565


def _gpu(index: int) -> dict[str, Any]:
    """One GPU as it answers now: lost, bus id, UUID, architecture, limits (mW), holders, fabric, recovery action."""
    says: dict[str, Any] = {
        "index": index, "bus": "", "uuid": "", "lost": "", "arch": None, "limit": None, "default": None,
        "least": None, "most": None, "persistence": None, "pids": [], "fabric": None, "recovery": None,
    }  # fmt: skip

    def ask(name: str, *args: Any) -> Any:
        try:
            return getattr(pynvml, name)(*args)
        except pynvml.NVMLError as error:
            says["lost"] = says["lost"] or _LOST.get(error.value, "")
            return None

    handle = ask("nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return says
    pci = ask("nvmlDeviceGetPciInfo", handle)
    says["bus"] = _text(pci.busId) if pci is not None else ""
    says["uuid"] = _text(ask("nvmlDeviceGetUUID", handle))
    says["arch"] = ask("nvmlDeviceGetArchitecture", handle)
    says["limit"] = ask("nvmlDeviceGetPowerManagementLimit", handle)
    says["default"] = ask("nvmlDeviceGetPowerManagementDefaultLimit", handle)
    if (span := ask("nvmlDeviceGetPowerManagementLimitConstraints", handle)) is not None:
        says["least"], says["most"] = span
    says["persistence"] = ask("nvmlDeviceGetPersistenceMode", handle)
    for kind in ("Compute", "Graphics"):
        found = ask(f"nvmlDeviceGet{kind}RunningProcesses_v3", handle)
        if found is None:  # drivers before 510
            found = ask(f"nvmlDeviceGet{kind}RunningProcesses_v2", handle)
        says["pids"] += [one.pid for one in found or ()]
    for info in (pynvml.c_nvmlGpuFabricInfo_v3_t(), pynvml.c_nvmlGpuFabricInfo_v2_t()):
        if ask("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info)) is not None:
            says["fabric"] = [info.state, info.status]
            break
    for value in ask("nvmlDeviceGetFieldValues", handle, [_RECOVERY_ACTION]) or ():
        if value.nvmlReturn == pynvml.NVML_SUCCESS:
            says["recovery"] = value.value.uiVal
    return says


def main(verb: str, *words: str) -> dict[str, Any]:
    """See the module's docstring."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"absent": str(error)}
    try:
        if verb == "look":
            return {"gpus": [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]}
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(words[0].encode())
        if verb == "power_limit":
            pynvml.nvmlDeviceSetPowerManagementLimit(handle, int(words[1]))
        elif verb == "persistence":
            pynvml.nvmlDeviceSetPersistenceMode(handle, int(words[1]))
        else:
            raise ValueError(verb)
        return {"done": True}
    except pynvml.NVMLError as error:
        return {"error": error.value, "why": str(error)}


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])) + "\n")
