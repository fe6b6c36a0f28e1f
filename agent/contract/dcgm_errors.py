"""Which error of DCGM's health check a message of it means. Pure; one table.

`dcgmi health -c -j` prints messages and no codes: an error is known by words of its message, of which DCGM 3 and 4 have the same
but for those where both stand here. Codes and names: dcgm_errors.h (DCGM_FR_*). Messages of one system stand one after the other
in one text, each followed by advice and, since DCGM 4, by the XID that led to it; so each error is looked for in the whole text.

What NVML or the kernel's log tell as well, gpuward has told before DCGM does: `told_by` is that kind. Its rules go by that kind
alone, and one fault is one incident.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MOST_TEXT = 16 * 1024
UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmError:
    """One error."""

    # As in dcgm_errors.h; 0: none of its own.
    code: int
    # Without DCGM_FR_.
    name: str
    # Kind by which gpuward tells the same itself; empty: only DCGM tells it.
    told_by: str = ""
    # DCGM may judge it a failure; else a warning.
    fails: bool = False
    # It is no sign of a fault: a GPU at full load works at its power limit.
    ordinary: bool = False
    # Of an XID.
    xid: int = 0


# Name → code, words of its message (a group: the XID), `told_by`, and whether it may be a failure.
_Row = tuple[int, str, str, bool]
_TABLE: dict[str, _Row] = {
    "PCI_REPLAY_RATE": (3, r"PCIe replays per minute", "gpu.pcie_errors", False),
    "VOLATILE_DBE_DETECTED": (4, r"volatile double-bit ECC error", "gpu.ecc", True),
    "VOLATILE_SBE_DETECTED": (5, r"single-bit ECC error", "gpu.ecc", False),
    "PENDING_PAGE_RETIREMENTS": (6, r"pending retired page", "gpu.retired_pages", False),
    "RETIRED_PAGES_LIMIT": (7, r"or more retired pages", "", True),
    "RETIRED_PAGES_DBE_LIMIT": (8, r"excess of \d{1,9} retired pages", "", True),
    "CORRUPT_INFOROM": (9, r"corrupt InfoROM", "", False),
    "CLOCKS_EVENT_THERMAL": (10, r"due to thermal violation", "gpu.throttle", False),
    "POWER_UNREADABLE": (11, r"Cannot reliably read the power", "", False),
    "CLOCKS_EVENT_POWER": (12, r"due to power violation", "", False),
    "NVLINK_ERROR_THRESHOLD": (13, r"NvLink errors on GPU \d{1,4}'s NVLink which exceeds", "gpu.nvlink_errors", False),
    "NVLINK_DOWN": (14, r"NvLink link -?\d{1,4} is currently down", "gpu.nvlink_state", True),
    "NVSWITCH_FATAL_ERROR": (15, r"\bfatal errors on NvSwitch", "nvswitch.sxid", True),
    "NVSWITCH_NON_FATAL_ERROR": (16, r"\bnonfatal errors on NvSwitch", "nvswitch.sxid", False),
    "FABRIC_HEALTH": (33, r"Fabric Health: ", "gpu.fabric", True),
    "CONNECTX_UNCORRECTABLE": (33, r"ConnectX entity Id:\d{1,9} uncorrectable", "pcie.error", True),
    "CONNECTX_HEALTH": (33, r"ConnectX entity Id:\d{1,9} health status", "", False),
    "FIELD_THRESHOLD": (36, r"which is above the threshold", "", True),
    "NVLINK_CRC_ERROR_THRESHOLD": (70, r"NvLink errors found", "gpu.nvlink_errors", True),
    "NVLINK_ERROR_CRITICAL": (71, r"NvLink errors on GPU \d{1,4}'s NVLink \(should be", "gpu.nvlink_errors", True),
    "ROW_REMAP_FAILURE": (80, r"row remapping failed", "gpu.remap", True),
    "UNCONTAINED_ERROR": (81, r"\buncontained error", "gpu.xid", True),
    "UNCORRECTABLE_ROW_REMAP": (84, r"memory errors and \d{1,9} rows were remapped", "gpu.remap", False),
    "PENDING_ROW_REMAP": (85, r"row remappings are pending", "gpu.remap", False),
    "XID_ERROR": (101, r"Detected XID (\d{1,4})\b", "gpu.xid", True),
    "SXID_ERROR": (109, r"fatal NvSwitch SXID", "nvswitch.sxid", True),
    "FABRIC_MANAGER_TRAINING_ERROR": (112, r"Fabric Manager \(Cluster UUID", "gpu.fabric", True),
    "SRAM_THRESHOLD": (118, r"SRAM Threshold Count exceeded", "gpu.sram_threshold", True),
    "NVLINK_EFFECTIVE_BER_THRESHOLD": (119, r"Detected effective BER", "gpu.nvlink_ber", True),
    "FALLEN_OFF_BUS": (120, r"has fallen off the bus", "gpu.lost", True),
    "NVLINK_SYMBOL_BER_THRESHOLD": (121, r"Detected symbol BER", "", True),
    # A node without jobs over several nodes may have no IMEX daemon; where one shall run, its unit is watched.
    "IMEX_UNHEALTHY": (122, r"IMEX \w{1,20} status is", "service.state", True),
    "FABRIC_PROBE_STATE": (123, r"Fabric State is", "gpu.fabric", True),
    "GPU_RECOVERY": (125, r"Recovery action: \d{1,4}", "gpu.recovery_action", True),
    "CONTAINED_ERROR": (131, r"\bcontained error", "gpu.xid", False),
    "UNCORRECTABLE_ROW_REMAP_LIMIT": (132, r"exceeded uncorrectable row remap limit", "", True),
}  # fmt: skip
_ORDINARY = frozenset(("CLOCKS_EVENT_POWER",))
NAMES = (*_TABLE, UNKNOWN)


def unknown(*, failed: bool) -> DcgmError:
    """One whose message no row has."""
    return DcgmError(code=0, name=UNKNOWN, fails=failed)


def errors(text: str, *, failed: bool) -> list[DcgmError]:
    """All errors that the text of one system tells, each once; `failed`: DCGM judges the system a failure.

    An unknown one where no row has words of the text, or where none that has can be a failure, though it is one.
    """
    found = list(_found(text[:_MOST_TEXT]))
    if not found or (failed and not any(one.fails for one in found)):
        found.append(unknown(failed=failed))
    return found


def _found(text: str) -> Iterator[DcgmError]:
    for name, (code, words, told_by, fails) in _TABLE.items():
        found = re.findall(words, text)
        for xid in sorted({int(one) for one in found}) if name == "XID_ERROR" else [0] * bool(found):
            yield DcgmError(
                code=code, name=name, told_by=told_by, fails=fails, ordinary=name in _ORDINARY, xid=xid
            )
