"""amdgpu's `gpu_metrics`: one binary table with temperatures, power, activity, throttling and xGMI links. Pure.

Layouts: Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h (struct gpu_metrics_v1_4 to v1_8). Each content revision has its
own, so only those that are known are read, and a value of all ones is one that the card does not report.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SIZE = 8192  # bytes that are read of the file at most
XGMI_LINKS = 8
_FORMAT = 1
_NOW = range(4, 9)  # revisions with the temperatures, the power and the activity where v1.4 has them
_RESIDENCY = {6: 32, 7: 40, 8: 40}  # revision → where accumulation_counter is; five accumulators follow it
_LINKS = {7: 264, 8: 264}  # revision → where xgmi_link_status is
_HOTTEST_C = 200
_NONE16, _NONE32 = 0xFFFF, 0xFFFFFFFF
# What the accumulators are of, in their order, and what a GPU that loses time to it does. PPT, its power limit, is ordinary.
RESIDENCIES = ("prochot", "ppt", "socket_thermal", "vr_thermal", "hbm_thermal")


@dataclass(frozen=True, slots=True, kw_only=True)
class AmdMetrics:
    """One table. None: this card or revision does not report it."""

    hotspot_c: int | None = None
    memory_c: int | None = None
    power_w: int | None = None
    busy: int | None = None
    # The accumulation counter, and how much of it was spent in each of RESIDENCIES.
    residency: tuple[int, ...] | None = None
    # xGMI link → is it active? A link that leads nowhere is not.
    links: Mapping[int, bool] | None = None


def parse(table: bytes) -> AmdMetrics | None:
    """The table; None: it is shorter than it says, or of a revision that is not known."""
    if len(table) < 16:
        return None
    size, form, content = struct.unpack_from("<HBB", table)
    if form != _FORMAT or content not in _NOW or not 16 <= size <= len(table):
        return None
    hotspot, memory, _, power, busy = struct.unpack_from("<5H", table, 4)
    return AmdMetrics(
        hotspot_c=_celsius(hotspot),
        memory_c=_celsius(memory),
        power_w=_known(power, _NONE16),
        busy=_known(busy, _NONE16),
        residency=_residency(table, _RESIDENCY.get(content)),
        links=_links(table, _LINKS.get(content)),
    )


def throttled(before: Sequence[int] | None, now: Sequence[int] | None) -> frozenset[str] | None:
    """Which of RESIDENCIES grew between two tables: more than none is a violation (amdsmi_get_violation_status). None: not known.

    Counters of 32 bits that wrap, or that a reset has cleared, tell nothing once.
    """
    if before is None or now is None or now[0] <= before[0]:
        return None
    grown = zip(RESIDENCIES, before[1:], now[1:], strict=True)
    return frozenset(name for name, old, new in grown if new > old)


def _residency(table: bytes, at: int | None) -> tuple[int, ...] | None:
    if at is None or len(table) < at + 24:
        return None
    values = struct.unpack_from("<6I", table, at)
    return None if _NONE32 in values else values


def _links(table: bytes, at: int | None) -> dict[int, bool] | None:
    """0: inactive, 1: active (enum amdgpu_xgmi_link_status; 2: a virtual function, which is not told), all ones: not used."""
    if at is None or len(table) < at + 2 * XGMI_LINKS:
        return None
    values = struct.unpack_from(f"<{XGMI_LINKS}H", table, at)
    return {link: bool(value) for link, value in enumerate(values) if value in (0, 1)} or None


def _celsius(value: int) -> int | None:
    """None: more than any silicon can tell, e.g. 255, or one that is below zero."""
    return value if value <= _HOTTEST_C else None


def _known(value: int, none: int) -> int | None:
    return None if value == none else value
