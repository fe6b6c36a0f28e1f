"""A stand-in for dcgmi of DCGM 3 and 4: what it prints of which incidents, and a program that prints it.

Written from NVIDIA's documentation of dcgmi and dcgm_errors.h; the texts below are made up after those formats.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIDTH = 54
_TRIAGE = "Check DCGM and system logs for errors. Reset GPU. Restart DCGM. Rerun diagnostics."
_FIELD = "Run a field diagnostic on the GPU."
_RESET = "Drain the GPU and reset it or reboot the node."
# Error → what DCGM prints of GPU 3, and whether it judges the system a failure.
MESSAGES: Mapping[str, tuple[str, bool]] = {
    "PCI_REPLAY_RATE": (
        "Detected more than 8 PCIe replays per minute for GPU 3 : 41 Reconnect PCIe card.",
        False,
    ),
    "VOLATILE_DBE_DETECTED": (f"Detected 2 volatile double-bit ECC error(s) in GPU 3. {_RESET}", True),
    "VOLATILE_SBE_DETECTED": (
        "More than 4 single-bit ECC error(s) detected in GPU 3 Volatile SBEs: 17 Monitor - this GPU can still"
        " perform workload.",
        False,
    ),
    "PENDING_PAGE_RETIREMENTS": (
        "A pending retired page has been detected in GPU 3. Monitor - this GPU can still perform workload",
        False,
    ),
    "RETIRED_PAGES_LIMIT": (f"64 or more retired pages have been detected in GPU 3.  {_FIELD}", True),
    "RETIRED_PAGES_DBE_LIMIT": (
        "An excess of 15 retired pages due to DBEs have been detected and more than one page has been retired"
        " due to DBEs in the past week in GPU 3.",
        True,
    ),
    "CORRUPT_INFOROM": (
        "A corrupt InfoROM has been detected in GPU 3. Flash the InfoROM to clear this corruption.",
        False,
    ),
    "CLOCKS_EVENT_THERMAL": (
        "Detected clocks event due to thermal violation in GPU 3. Verify that the cooling on this machine is "
        "functional, including external, thermal material interface, fans, and any other components.",
        False,
    ),
    "POWER_UNREADABLE": (f"Cannot reliably read the power usage for GPU 3. {_TRIAGE}", False),
    "NVLINK_ERROR_THRESHOLD": (
        "Detected 4 nvlink_flit_crc_error_count_total NvLink errors on GPU 3's NVLink which exceeds threshold"
        " of 1 Monitor the NVLink. It can still perform workload.",
        False,
    ),
    "NVLINK_DOWN": (f"GPU 3's NvLink link 9 is currently down {_TRIAGE}", True),
    "FABRIC_HEALTH": (
        "Detected 21 Fabric Health: Route Unhealthy for GPU 3 Check DCGM and system logs for errors. Route "
        "Unhealthy",
        True,
    ),
    "CONNECTX_UNCORRECTABLE": ("ConnectX entity Id:0 uncorrectable fatal errors: 0x1000", True),
    "CONNECTX_HEALTH": ("ConnectX entity Id:0 health status: 2", False),
    "FIELD_THRESHOLD": ("Detected 104.5 cpu_temp_current for CPU:0 which is above the threshold 100.0", True),
    "NVLINK_CRC_ERROR_THRESHOLD": (
        "140.0 nvlink_data_crc_error_count_total NvLink errors found occuring per second on GPU 3, exceeding "
        "the limit of 100 per second.",
        True,
    ),
    "NVLINK_ERROR_CRITICAL": (
        "Detected 1 datalink layer recovery error counter NvLink errors on GPU 3's NVLink (should be 0) "
        f"{_FIELD}",
        True,
    ),
    "NVSWITCH_FATAL_ERROR": (f"Detected fatal errors on NvSwitch 2 link 0 {_FIELD}", True),
    "NVSWITCH_NON_FATAL_ERROR": (
        "Detected nonfatal errors on NvSwitch 2 link 0 Monitor the NVSwitch. It can still perform workload.",
        False,
    ),
    "ROW_REMAP_FAILURE": (
        "GPU 3 had uncorrectable memory errors and row remapping failed. Reset the GPU or reboot the node "
        "immediately.",
        True,
    ),
    "UNCONTAINED_ERROR": (f"GPU had an uncontained error (XID 95) {_RESET}", True),
    "UNCORRECTABLE_ROW_REMAP": ("GPU 3 had uncorrectable memory errors and 2 rows were remapped", False),
    "PENDING_ROW_REMAP": ("GPU 3 had memory errors and row remappings are pending", False),
    "XID_ERROR": ("Detected XID 48 for GPU 3  (triggered by XID 48: Double Bit ECC Error)", True),
    "SXID_ERROR": ("Detected fatal NvSwitch SXID 20034", True),
    "FABRIC_MANAGER_TRAINING_ERROR": (
        "Fabric Manager (Cluster UUID: 0, Clique ID: 1, Health Mask: 0x1): not trained.",
        True,
    ),
    "SRAM_THRESHOLD": ("SRAM Threshold Count exceeded on GPU 3: 11 Check memory", True),
    "NVLINK_EFFECTIVE_BER_THRESHOLD": (
        "Detected effective BER 4.10e-11 exceeds minimum threshold on GPU 3's NVLink.",
        True,
    ),
    "FALLEN_OFF_BUS": (
        "GPU 3 has fallen off the bus  (triggered by XID 79: GPU %d has fallen off the bus)",
        True,
    ),
    "NVLINK_SYMBOL_BER_THRESHOLD": (
        "Detected symbol BER 4.10e-07 exceeds minimum threshold on GPU 3's NVLink.",
        True,
    ),
    "IMEX_UNHEALTHY": ("IMEX daemon status is -3 (not READY) Check IMEX installation.", True),
    "FABRIC_PROBE_STATE": (
        "GPU 3: Fabric State is Not Started (1). Fabric Manager training has not started.",
        True,
    ),
    "GPU_RECOVERY": ("GPU 3 requires a reset to recover from a fault. Recovery action: 1 (GPU_RESET).", True),
    "CONTAINED_ERROR": (
        "GPU had a contained error. Restart the application.  (triggered by XID 94: GPU had a contained "
        "error.)",
        False,
    ),
    "UNCORRECTABLE_ROW_REMAP_LIMIT": (
        f"GPU 3 exceeded uncorrectable row remap limit with 512 remapped rows {_FIELD}",
        False,
    ),
    "CLOCKS_EVENT_POWER": (
        "Detected clocks event due to power violation in GPU 3. Monitor the power conditions. This GPU can "
        "still perform workload.",
        False,
    ),
}
# As DCGM 3 says them.
OLD_MESSAGES: Mapping[str, tuple[str, bool]] = {
    "CLOCKS_EVENT_THERMAL": (
        "Detected clock throttling due to thermal violation in GPU 3. Verify the cooling.",
        False,
    ),
    "CLOCKS_EVENT_POWER": (
        "Detected clock throttling due to power violation in GPU 3. Monitor the power conditions.",
        False,
    ),
}
INFOROM = MESSAGES["CORRUPT_INFOROM"][0]
NO_WATCHES = "Error: Health watches not enabled. Please enable watches. \n"
NO_ENGINE = (
    "Error: unable to establish a connection to the specified host: localhost\n"
    "Error: Unable to connect to host engine. Host engine connection invalid/disconnected.\n"
)
NO_GROUP = "Error: Unable to check health watches. Return: The Group is not found\n"
BUSES = ("0000:1b:00", "0000:3b:00", "0000:5d:00", "0000:9a:00")
_LATE = ".,/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """An incident of DCGM's."""

    message: str
    system: str = "Memory system"
    failed: bool = False
    group: str = "GPU"
    number: int = 3


def wrapped(text: str) -> list[str]:
    """As dcgmi breaks a message into lines: between words, and a comma, full stop or slash at a line's end is lost."""
    lines: list[str] = []
    start = end = 0
    if len(text) <= WIDTH:
        return [text]
    while start < len(text):
        end = min(end + WIDTH, len(text) - 1)
        if end < len(text) - 1:
            while text[end] != " " and text[end + 1] not in " " + _LATE:
                end -= 1
            while text[end] == " ":
                end -= 1
        while start < len(text) and text[start] == " ":
            start += 1
        if start < len(text):
            lines.append(text[start : end + 1])
        start = end + 2
    return lines


def report(incidents: Iterable[Fails] = ()) -> str:
    """What `dcgmi health -c -j` prints."""
    body: dict[str, Any] = {}
    worst = 0
    for one in incidents:
        verdict = "Failure" if one.failed else "Warning"
        worst = max(worst, 1 + one.failed)
        entity = body.setdefault(one.group, {"children": {}})["children"].setdefault(
            str(one.number), {"children": {"Errors": {"children": {}}}, "value": verdict}
        )
        entity["value"] = "Failure" if one.failed else entity["value"]
        systems = entity["children"]["Errors"]["children"]
        judged = systems.setdefault(one.system, {"overflow": [], "value": verdict, "texts": []})
        judged["value"] = "Failure" if one.failed else judged["value"]
        judged["texts"].append(one.message)
        judged["overflow"] = wrapped(", ".join(judged["texts"]))
    for group in body.values():
        for entity in group["children"].values():
            for judged in entity["children"]["Errors"]["children"].values():
                del judged["texts"]
    body["Overall Health"] = {"value": ("Healthy", "Warning", "Failure")[worst]}
    return json.dumps({"body": body, "header": ["Health Monitor Report"]}, indent=3, sort_keys=True) + "\n"


def discovery(buses: Iterable[str] = BUSES) -> str:
    """What `dcgmi discovery -l` prints."""
    line = f"+{'-' * 8}+{'-' * 70}+\n"
    rows = list(enumerate(buses))
    text = (
        f"{len(rows)} GPUs found.\n{line}| GPU ID | Device Information{' ' * 51}|\n{line.replace('-', '=')}"
    )
    for number, bus in rows:
        for first, said in (
            (str(number), "Name: NVIDIA H100 80GB HBM3"),
            ("", f"PCI Bus ID: 0000{bus.upper()}.0"),
            ("", f"Device UUID: GPU-5c4f1a20-0000-0000-0000-00000000000{number}"),
        ):
            text += f"| {first:6} | {said:68} |\n"
        text += line
    return f"{text}0 NvSwitches found.\n+-----------+\n| Switch ID |\n+-----------+\n+-----------+\n"


_PROGRAM = """#!/bin/sh
cd '{folder}' || exit 3
echo "$*" >> calls
[ -e hangs ] && exec sleep 600
case "$1" in
-v) cat version ;;
discovery) cat discovery ;;
health)
    while [ $# -gt 0 ]; do
        case "$1" in -g) group=$2 ;; -s) set=$2 ;; esac
        shift
    done
    if [ -n "$set" ]; then
        [ -e "watched.$group" ] && cp "watched.$group" "health.$group"
        echo "Health monitor systems set successfully."
        exit 0
    fi
    cat "health.$group" || exit 255
    grep -q ^Error: "health.$group" && exit 255
    exit 0 ;;
*) echo "PARSE ERROR: Argument: $1"; exit 1 ;;
esac
"""


class FakeDcgmi:
    """The program, and what it prints from now on."""

    def __init__(self, folder: Path, *, version: str = "4.2.3") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "dcgmi"
        self.path.write_text(_PROGRAM.format(folder=folder))
        self.path.chmod(0o755)
        self.prints("discovery", discovery())
        self.prints("version", f"Version : {version}\nBuild ID : 13\nBuild Type : Release\n")
        self.prints("health.g", report())
        self.prints("calls", "")

    def prints(self, what: str, text: str) -> None:
        """`health.<group>`, `discovery`, `version`; `watched.<group>`: its health once watches are set."""
        (self.folder / what).write_text(text)

    def hangs(self, hangs: bool) -> None:
        """It does not end any more, or ends again."""
        if hangs:
            (self.folder / "hangs").touch()
        else:
            (self.folder / "hangs").unlink()

    def calls(self) -> list[str]:
        """With which arguments it was called."""
        return (self.folder / "calls").read_text().splitlines()
