"""XID 74 (NVLink up to generation 4): which bits of the seven registers mean what.

Generated from rules/catalog/xid.yaml by deploy/dev/xid_table.py: edit that file, not this one.
"""

from typing import Final

# (register, counted from 1; bits; what the vendor says; errors on one link until it is to be repaired, 0: never)
ROWS: Final[tuple[tuple[int, int, str, int], ...]] = (
    (1, 0x40800001, "ignore", 0),
    (1, 0x00100002, "secondary; follow the other error; alone: report", 3),
    (1, 0x00000030, "likely ECC/parity hardware; escalate if >2 on the same link", 3),
    (1, 0x11031300, "possible hardware: reseat/inspect link, run diagnostics if it persists", 3),
    (1, 0x00600000, "marginal signal integrity: check connections, field diag", 3),
    (1, 0x28000000, "escalate if repeated", 2),
    (3, 0x00000047, "likely ECC/parity hardware; escalate if >2 on the same link", 3),
    (3, 0x00002000, "unexpected in production: report", 3),
    (3, 0x00090000, "if repeated: field diag and report", 2),
    (3, 0x00060000, "escalate if repeated", 2),
    (4, 0x00030000, "secondary; follow the other error; alone: report", 3),
    (4, 0x00040000, "secondary but fabric reset required; alone: report", 1),
    (5, 0x1B6C0000, "likely ECC/parity hardware; escalate if >2 on the same link", 3),
    (5, 0x24900000, "corrected-ECC threshold passed: keep running, optional field diag", 0),
)
