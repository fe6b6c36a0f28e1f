"""Generates the tables of agent/contract (XIDs, XID 74's registers, NVLink5, SXids) and of brain/core/why (XIDs' classes)
from rules/catalog/*.yaml.

    python deploy/dev/xid_table.py            writes them
    python deploy/dev/xid_table.py --check    exit status 1 when one of them is stale

The agent reads no YAML (memory), so it carries the catalogue's decisive columns as Python.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CATALOG = ROOT / "rules/catalog/xid.yaml"
XID_TABLE = ROOT / "agent/contract/xid_table.py"
NVLINK5_TABLE = ROOT / "agent/contract/nvlink5_table.py"
NVLINK4_TABLE = ROOT / "agent/contract/nvlink4_table.py"
SXID_CATALOG = ROOT / "rules/catalog/sxid.yaml"
SXID_TABLE = ROOT / "agent/contract/sxid_table.py"
CLASS_TABLE = ROOT / "brain/core/why/xid_classes.py"
MADE = "Generated from rules/catalog/xid.yaml by deploy/dev/xid_table.py: edit that file, not this one."

# After these a GPU cannot be used until it or its machine was restarted: critical becomes our fatal.
UNUSABLE = ("RESET_GPU", "RESTART_BM", "RESTART_VM", "WORKFLOW_XID_48")


def severity(row: dict[str, Any]) -> str:
    """Our severity of one row of the catalogue."""
    word = row["severity"]
    if word == "critical":
        return "fatal" if row["action"] in UNUSABLE else "error"
    # decode: the line itself says it (NVLink5, XID 154); this is for a line that does not.
    return "error" if word == "decode" else str(word)


def xid_table(catalog: dict[str, Any]) -> str:
    """The text of xid_table.py."""
    lines = [
        '"""XID code -> (name, immediate action, severity).',
        "",
        MADE,
        '"""',
        "",
        "from collections.abc import Mapping",
        "from typing import Final",
        "",
        "XIDS: Final[Mapping[int, tuple[str, str, str]]] = {",
    ]
    lines += [
        f'    {row["code"]}: ("{row["name"]}", "{row["action"] or ""}", "{severity(row)}"),'
        for row in catalog["xids"]
    ]
    return "\n".join([*lines, "}", ""])


def class_table(catalog: dict[str, Any]) -> str:
    """The text of xid_classes.py."""
    lines = [
        '"""XID code -> its class in the catalogue: what it comes from. Codes that no present GPU raises are left out.',
        "",
        MADE,
        '"""',
        "",
        "from collections.abc import Mapping",
        "from typing import Final",
        "",
        "CLASSES: Final[Mapping[int, str]] = {",
    ]
    lines += [
        f'    {row["code"]}: "{row["class"]}",'
        for row in catalog["xids"]
        if row["status"] != "unused_on_ampere_plus"
    ]
    return "\n".join([*lines, "}", ""])


def nvlink4_table(catalog: dict[str, Any]) -> str:
    """The text of nvlink4_table.py."""
    lines = [
        '"""XID 74 (NVLink up to generation 4): which bits of the seven registers mean what.',
        "",
        MADE,
        '"""',
        "",
        "from typing import Final",
        "",
        "# (register, counted from 1; bits; what the vendor says; errors on one link until it is to be repaired, 0: never)",
        "ROWS: Final[tuple[tuple[int, int, str, int], ...]] = (",
    ]
    for row in catalog["nvlink_xid74_rules"]:
        bits = sum(1 << bit for bit in row["bits"])
        lines.append(f'    ({row["reg"]}, 0x{bits:08X}, "{row["verdict"]}", {row["repair_at"]}),')
    return "\n".join([*lines, ")", ""])


def sxid_severity(row: dict[str, Any]) -> tuple[str, str]:
    """(action, severity) of one row of the SXid catalogue, by the section of the vendor's guide that it stands in."""
    if row["section"] in ("fatal", "always_fatal"):
        return "RESET_GPUS_AND_NVSWITCHES", "fatal"
    if row["code"] == 22013 or row["name"].startswith("Single bit ECC") or row["name"].endswith("_event_end"):
        return "IGNORE", "info"
    return "", "warning"


def sxid_table(catalog: dict[str, Any]) -> str:
    """The text of sxid_table.py."""
    lines = [
        '"""SXid code -> (name, action, severity). The action of a fatal one: the vendor\'s guide, section D.9.',
        "",
        MADE.replace("/xid.yaml", "/sxid.yaml"),
        '"""',
        "",
        "from collections.abc import Mapping",
        "from typing import Final",
        "",
        "SXIDS: Final[Mapping[int, tuple[str, str, str]]] = {",
    ]
    for row in sorted(catalog["sxids"]["table"], key=lambda row: row["code"]):
        action, word = sxid_severity(row)
        lines.append(f'    {row["code"]}: ("{row["name"]}", "{action}", "{word}"),')
    return "\n".join([*lines, "}", ""])


def mask(text: str) -> str:
    """`(care, value)` of 32 signs, highest bit first, `-` for any; as Python text."""
    if len(text) != 32 or set(text) - set("01-"):
        raise ValueError(f"not a mask of 32 bits: {text!r}")
    care, value = ("".join("1" if sign in ones else "0" for sign in text) for ones in ("01", "1"))
    return f"(0x{int(care, 2):08X}, 0x{int(value, 2):08X})"


def nvlink5_table(catalog: dict[str, Any]) -> str:
    """The text of nvlink5_table.py."""
    lines = [
        '"""NVLink5 XIDs 144 to 150: which unit and bits lead to which action.',
        "",
        MADE,
        '"""',
        "",
        "from typing import Final",
        "",
        "Mask = tuple[int, int]  # bits that count, their value",
        "",
        "# (XID, unit names, mask of drivers before 575, mask from 575, error statuses (none: any), action)",
        "ROWS: Final[tuple[tuple[int, tuple[str, ...], Mask, Mask, tuple[int, ...], str], ...]] = (",
    ]
    for row in catalog["nvlink5_decode"]["rows"]:
        units = tuple(row["unit"].split("/"))
        statuses = tuple(
            f"0x{int(status, 16):X}" for status in (row["error_status"] or "").split("/") if status
        )
        for suffix in ("2", "") if "action2" in row else ("",):  # the narrower mask first
            cells = (
                str(row["xid"]),
                _tuple(f'"{unit}"' for unit in units),
                mask(row[f"v1_mask{suffix}"]),
                mask(row[f"v2_mask{suffix}"]),
                _tuple(statuses),
                f'"{row[f"action{suffix}"]}"',
            )
            lines += (
                ["    (", *(f"        {cell}," for cell in cells), "    ),"]
                if len(", ".join(cells)) > 103
                else [f"    ({', '.join(cells)}),"]
            )
    return "\n".join([*lines, ")", ""])


def _tuple(cells: Any) -> str:
    cells = list(cells)
    return f"({cells[0]},)" if len(cells) == 1 else f"({', '.join(cells)})"


def tables() -> dict[Path, str]:
    """What each generated file must hold."""
    catalog = yaml.safe_load(CATALOG.read_text())
    return {
        XID_TABLE: xid_table(catalog),
        CLASS_TABLE: class_table(catalog),
        NVLINK4_TABLE: nvlink4_table(catalog),
        NVLINK5_TABLE: nvlink5_table(catalog),
        SXID_TABLE: sxid_table(yaml.safe_load(SXID_CATALOG.read_text())),
    }


def main(argv: list[str]) -> int:
    """See the module's docstring."""
    stale = [path for path, text in tables().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} {'is stale' if '--check' in argv else 'written'}\n")
        if "--check" not in argv:
            path.write_text(tables()[path])
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
