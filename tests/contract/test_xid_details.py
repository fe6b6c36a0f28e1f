# ruff: noqa: E501  # kernel lines stand as they are printed
"""What single XIDs say further: the place of a failure, its address, the registers of a link."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract import kinds
from agent.contract.xid_details import details, registers_advice
from agent.contract.xid_facts import XidReader

HEAD = "NVRM: Xid (PCI:0000:b5:00): "
TABLE: list[tuple[str, dict[str, Any]]] = [
    ("13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address", {"gpc": 1, "tpc": 3, "sm": 0, "error": "Out Of Range Address", "action": "RESTART_APP"}),
    ("13, pid=41, name=python, Graphics SM Global Exception on (GPC 0, TPC 2): Multiple Warp Errors", {"gpc": 0, "tpc": 2, "sm": None, "error": "Multiple Warp Errors"}),
    ("13, pid=41, name=python, Graphics Exception: ESR 0x50df30=0x107000e 0x50df34=0x0", {"gpc": None, "error": None}),
    ("31, pid=2163, name=train, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f12_34567000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ", {"engine": "GRAPHICS", "client": "GPCCLIENT_T1_0", "fault_address": "0x7f1234567000", "fault_type": "FAULT_PDE", "access": "ACCESS_TYPE_VIRT_READ", "pid": 2163}),
    ("31, pid=2163, name=train, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC3 GPCCLIENT_T1_0 faulted @ 0x7f12_34567000. Fault is of type FAULT_PTE ACCESS_TYPE_VIRT_WRITE", {"gpc": 3, "client": "GPCCLIENT_T1_0", "access": "ACCESS_TYPE_VIRT_WRITE"}),
    ("31, pid=7, name=a, Ch 0000000d, intr 00000000. MMU Fault: ENGINE CE3 HUBCLIENT_CE1 faulted @ 0x0_00000000. Fault is of type FAULT_INFO_TYPE_UNSUPPORTED_KIND", {"engine": "CE3", "fault_address": "0x000000000", "access": None}),
    ("48, pid=7, name=a, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 1.", {"partition": 6, "subpartition": 1}),
    ("63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.", {"memory": "row_remap_pending", "needs_reset": True}),
    ("63, Dynamic Page Retirement: New page retired, reboot to activate (0x000000000004a2b1).", {"memory": "page_retired", "needs_reset": True, "fault_address": "0x000000000004a2b1"}),
    ("64, Row Remapper Error: (0x0000000001234000) - All reserved rows for bank are remapped", {"memory": "row_remap_failed", "exhausted": True, "fault_address": "0x0000000001234000"}),
    ("94, pid=7, name=a, Contained: LTC (0x4,0x0). RST: No, D-RST: No", {"contained": True, "unit": "LTC", "location": "0x4,0x0", "needs_reset": False, "needs_drain": False}),
    ("95, pid=7, name=a, Uncontained: FBHUB (0x1, 0x0). RST: Yes, D-RST: No", {"contained": False, "unit": "FBHUB", "needs_reset": True}),
    ("94, Contained: CE User Channel (0x9). RST: No, D-RST: No", {"unit": "CE User Channel"}),
    ("94, pid=7, name=a, Contained: SM (0x1). Physical Address 0x7f00, RST: No, D-RST: Yes", {"unit": "SM", "needs_reset": False, "needs_drain": True}),
    ("95, Uncontained: LTC TAG (0x2,0x0) after 3 retries; RST: yes, D-RST: no.", {"unit": "LTC TAG", "needs_reset": True, "needs_drain": False}),
    ("94, Contained: PMU Halt. RST: Yes, D-RST: No", {"contained": True, "unit": "PMU Halt", "location": None, "needs_reset": True, "needs_drain": False}),
    ("95, pid='<unknown>', name=<unknown>, Uncontained: GR Unrecoverable. RST: Yes, D-RST: Yes", {"contained": False, "unit": "GR Unrecoverable", "needs_reset": True, "needs_drain": True}),
    ("95, Uncontained: FBHUB", {"contained": False, "unit": "FBHUB", "needs_reset": None}),
    ("94, Contained: CE (0x6)", {"unit": "CE", "needs_reset": None}),
    ("136, NVLink: Link training failed for link 5(0x0, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0)", {"link": 5, "links": None}),
    ("136, NVLink: Link training failed for link 17 (0x0, 0x1)", {"link": 17}),
    ("136, NVLink: Link training failed for links 0x30 (0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", {"link": None, "links": "4, 5"}),
    ("136, NVLink: Link training failed for links 0x8(0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", {"link": 3, "links": None}),
    ("136, NVLink: Link training failed for links 0x0 (0x0)", {"link": None, "links": None}),
    ("136, pid=7, name=nvidia-smi, Link 0x3ffff training", {"links": "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17"}),
    ("136, something else", {"link": None, "links": None}),
    ("74, NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)", {"link": 14, "registers": "0x0 0x0 0x10000 0x0 0x0 0x0 0x0", "advice": "if repeated: field diag and report", "action": "WORKFLOW_NVLINK_ERR"}),
    ("74, NVLink: fatal error detected on link 2(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", {"link": 2, "advice": "ignore", "action": "IGNORE"}),
    ("74, NVLink: fatal error detected on link 2(0x11, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", {"advice": "likely ECC/parity hardware; escalate if >2 on the same link", "action": "WORKFLOW_NVLINK_ERR"}),
    ("74, NVLink: fatal error detected on link 2(0x1, 0x80, 0x0, 0x0, 0x0, 0x0, 0x0)", {"advice": "ignore; bits that the catalogue does not know", "action": "WORKFLOW_NVLINK_ERR"}),
    ("45, pid=9, name=python, Ch 00000010 caused by previous Xid 31", {"caused_by": 31, "gpc": None}),
    ("79, GPU has fallen off the bus.", {"memory": None, "unit": None}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "want"), TABLE, ids=[text[:50] for text, _ in TABLE])
def test_details(text: str, want: dict[str, Any]) -> None:
    """Each message's fields; None: the field is absent."""
    (unsent,) = XidReader().read(HEAD + text)
    kinds.check(unsent)
    assert {name: unsent.data.get(name) for name in want} == want


def test_unknown_register_bits_are_never_ignored() -> None:
    """Only what the catalogue names may be called harmless; no bit at all says nothing."""
    assert registers_advice((0,) * 7) == ("", False)
    for register in range(7):
        for bit in range(32):
            said, ignored = registers_advice(tuple(1 << bit if at == register else 0 for at in range(7)))
            assert ignored == (register == 0 and bit in (0, 23, 30))
            assert said


@given(st.sampled_from([13, 31, 48, 63, 64, 74, 94, 95, 136]), st.text(max_size=200), st.sampled_from(TABLE))
def test_no_message_breaks_it(code: int, text: str, row: tuple[str, dict[str, Any]]) -> None:
    """Any code with any message, and with another's."""
    for message in (text, row[0], row[0] + text, row[0][: len(text)] + text):
        assert set(details(code, message)) <= {field.name for field in kinds.KINDS["gpu.xid"].fields}
