"""Which priorities of an interface are lossless: priority flow control (PFC) as its driver reports it through the kernel's
DCB interface (include/uapi/linux/dcbnl.h, IEEE 802.1Qaz).
"""

import struct

from agent.shared import rtnetlink
from agent.shared import rtnetlink_wire as wire

_GETDCB, _IEEE_GET = 78, 21
_IFNAME, _IEEE, _IEEE_PFC = 1, 13, 2
_HEADER = struct.Struct("=BBH")  # struct dcbmsg: family, command, padding
_PFC_ENABLED = 1  # the place of pfc_en in struct ieee_pfc: one bit for each priority


def lossless_priorities(name: str) -> frozenset[int]:
    """The priorities with PFC, 0 to 7; OSError when the driver does not tell (EOPNOTSUPP) or there is no interface."""
    body = _HEADER.pack(0, _IEEE_GET, 0) + wire.attribute(_IFNAME, name.encode() + b"\0")
    return of_answer(rtnetlink.call(_GETDCB, 0, body))


def of_answer(body: bytes) -> frozenset[int]:
    """The priorities in the kernel's answer; none where it says nothing of PFC."""
    values = dict(wire.attributes(body, _HEADER.size))
    pfc = dict(wire.attributes(values.get(_IEEE, b""))).get(_IEEE_PFC, b"")
    enabled = pfc[_PFC_ENABLED] if len(pfc) > _PFC_ENABLED else 0
    return frozenset(priority for priority in range(8) if enabled & 1 << priority)
