"""One query or setting of NVML, in a process of its own that can be killed; used by actions.

Run as a file, so that it imports only the standard library and pynvml:

    python -I agent/nvml/ask.py look                         the state of all GPUs
    python -I agent/nvml/ask.py links                        their PCIe links and NVLinks
    python -I agent/nvml/ask.py power_limit <bus id> <mW>
    python -I agent/nvml/ask.py persistence <bus id> <0|1>

It prints one JSON object: `{"gpus": [...]}` (keys: see `_state` and `_links_state`), `{"done": true}`, `{"absent": why}`
where there is no NVML, or `{"error": <NVML return code>, "why": text}` where NVML refuses. A value that this driver
or card does not report is null.
"""

import ctypes
import json
import sys
import types
from collections.abc import Callable
from typing import Any

# As in start.py: pynvml needs ctypes.util on Windows only.
if __name__ == "__main__":
    sys.modules.setdefault("ctypes.util", types.ModuleType("ctypes.util")).__dict__.setdefault(
        "find_library", None
    )
import pynvml

Ask = Callable[..., Any]
_LOST = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "reset_required",
    pynvml.NVML_ERROR_GPU_NOT_FOUND: "not_found",
}
# As in child.py: a call that is supported did not work; and what NVML answers from what it has read before.
_FAILED = (
    pynvml.NVML_ERROR_UNKNOWN,
    pynvml.NVML_ERROR_TIMEOUT,
    pynvml.NVML_ERROR_IRQ_ISSUE,
    pynvml.NVML_ERROR_OPERATING_SYSTEM,
    pynvml.NVML_ERROR_INSUFFICIENT_POWER,
)
_IDENTITY = ("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo", "nvmlDeviceGetUUID")
_RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, from R565
# NVML_FI_DEV_NVLINK_*: how many links; speed (MB/s) and state (0 inactive, 1 active, 2 asleep) of each, from R530.
_LINK_COUNT, _LINK_SPEED, _LINK_STATE = 91, 164, 165


class _Asked:
    """The calls about one GPU."""

    def __init__(self) -> None:
        self._lost = ""
        self._worked: set[str] = set()
        self._failed: set[str] = set()

    def ask(self, name: str, *params: Any) -> Any:
        """What the call answers, None where it does not."""
        try:
            answer = getattr(pynvml, name)(*params)
        except pynvml.NVMLError as error:
            self._lost = self._lost or _LOST.get(error.value, "")
            if error.value in _FAILED:
                self._failed.add(name)
            return None
        self._worked.add(name)
        return answer

    def lost(self) -> str:
        """Why the GPU is lost; empty: at least half of what it was asked worked, or is not supported."""
        few = len(self._failed) > len(self._worked.difference(_IDENTITY))
        return self._lost or ("unknown_error" if few else "")


def _gpu(index: int) -> dict[str, Any]:
    """The state of one GPU now; limits in mW."""
    asked = _Asked()
    return _state(index, asked.ask) | {"lost": asked.lost()}


def _links(index: int) -> dict[str, Any]:
    """The links of one GPU now; `nvlinks` has [number, state, MB/s] of each link whose state NVML reports."""
    asked = _Asked()
    return _links_state(index, asked.ask) | {"lost": asked.lost()}


def _state(index: int, ask: Ask) -> dict[str, Any]:
    found: dict[str, Any] = {
        "index": index, "bus": "", "uuid": "", "arch": None, "limit": None, "default": None,
        "least": None, "most": None, "persistence": None, "pids": [], "fabric": None, "recovery": None,
    }  # fmt: skip
    handle = ask("nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return found
    pci = ask("nvmlDeviceGetPciInfo", handle)
    found["bus"] = _text(pci.busId) if pci is not None else ""
    found["uuid"] = _text(ask("nvmlDeviceGetUUID", handle))
    found["arch"] = ask("nvmlDeviceGetArchitecture", handle)
    found["limit"] = ask("nvmlDeviceGetPowerManagementLimit", handle)
    found["default"] = ask("nvmlDeviceGetPowerManagementDefaultLimit", handle)
    if (span := ask("nvmlDeviceGetPowerManagementLimitConstraints", handle)) is not None:
        found["least"], found["most"] = span
    found["persistence"] = ask("nvmlDeviceGetPersistenceMode", handle)
    for kind in ("Compute", "Graphics"):
        processes = ask(f"nvmlDeviceGet{kind}RunningProcesses_v3", handle)
        if processes is None:  # drivers before 510
            processes = ask(f"nvmlDeviceGet{kind}RunningProcesses_v2", handle)
        found["pids"] += [one.pid for one in processes or ()]
    for info in (pynvml.c_nvmlGpuFabricInfo_v3_t(), pynvml.c_nvmlGpuFabricInfo_v2_t()):
        if ask("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info)) is not None:
            found["fabric"] = [info.state, info.status]
            break
    for value in ask("nvmlDeviceGetFieldValues", handle, [_RECOVERY_ACTION]) or ():
        if value.nvmlReturn == pynvml.NVML_SUCCESS:
            found["recovery"] = value.value.uiVal
    return found


def _links_state(index: int, ask: Ask) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bus": "", "width": None, "width_max": None, "generation": None, "generation_max": None,
        "performance": None, "nvlinks": [],
    }  # fmt: skip
    handle = ask("nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return found
    pci = ask("nvmlDeviceGetPciInfo", handle)
    found["bus"] = _text(pci.busId) if pci is not None else ""
    found["width"] = ask("nvmlDeviceGetCurrPcieLinkWidth", handle)
    found["width_max"] = ask("nvmlDeviceGetMaxPcieLinkWidth", handle)
    found["generation"] = ask("nvmlDeviceGetCurrPcieLinkGeneration", handle)
    found["generation_max"] = ask("nvmlDeviceGetMaxPcieLinkGeneration", handle)
    found["performance"] = ask("nvmlDeviceGetPerformanceState", handle)

    def field(field_id: int, scope: int) -> int | None:
        for value in ask("nvmlDeviceGetFieldValues", handle, [(field_id, scope)]) or ():
            if value.nvmlReturn == pynvml.NVML_SUCCESS:
                return int(value.value.uiVal)
        return None

    for link in range(min(field(_LINK_COUNT, 0) or 0, pynvml.NVML_NVLINK_MAX_LINKS)):
        state = field(_LINK_STATE, link)
        if state is None:  # drivers before 530
            state = ask("nvmlDeviceGetNvLinkState", handle, link)
        if state is not None:
            found["nvlinks"].append([link, state, field(_LINK_SPEED, link) or 0])
    return found


def main(verb: str, *args: str) -> dict[str, Any]:
    """See the module's docstring."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"absent": str(error)}
    try:
        if verb == "look":
            return {"gpus": [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]}
        if verb == "links":
            return {"gpus": [_links(index) for index in range(pynvml.nvmlDeviceGetCount())]}
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(args[0].encode())
        if verb == "power_limit":
            pynvml.nvmlDeviceSetPowerManagementLimit(handle, int(args[1]))
        elif verb == "persistence":
            pynvml.nvmlDeviceSetPersistenceMode(handle, int(args[1]))
        else:
            raise ValueError(verb)
        return {"done": True}
    except pynvml.NVMLError as error:
        return {"error": error.value, "why": str(error)}


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])) + "\n")
