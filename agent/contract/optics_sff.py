"""The memory of SFP modules (SFF-8472) and of QSFP+ and QSFP28 modules (SFF-8636).

Units: power in 0.1 µW, bias in 2 µA, temperature in 1/256 °C. A module that has just been powered is not ready to tell anything
of them, for up to two seconds.
"""

from collections.abc import Iterator

from agent.contract.optics_module import (
    LOWER,
    UPPER,
    Flag,
    Half,
    Memory,
    OpticalLane,
    OpticsModule,
    graded,
    lanes_of,
    number,
    text,
)

SFP_DIAGNOSTICS = Half(0x51, 0, 0)  # address A2h
_ENDLESS = (0x21, 0x23)  # SFF-8024, table 4-3: copper pigtail, no separable connector
_PASSIVE, _ACTIVE = 0x04, 0x08  # SFF-8472, byte 8: a cable with such ends
# Byte 92: it has diagnostics; they are calibrated in it; they are behind a change of address, which we do not make.
_MONITORED, _CALIBRATED, _BEHIND_CHANGE = 0x40, 0x20, 0x04
# Byte 93: which of its flags mean something.
_TELLS_LIMITS, _TELLS_FAULT, _TELLS_LIGHT = 0x80, 0x20, 0x10
_NOT_READY = 0x01  # byte 2 of a QSFP, byte 110 of an SFP's diagnostics
# SFF-8636, byte 220: it measures its temperature, and the light that it sends. Older ones do without these bits: what is not zero
# is believed all the same.
_WARM, _TRANSMIT = 0x20, 0x04
_FIRST_COPPER = 0xA  # SFF-8636, byte 147, upper half: 0 to 9 are lasers


def sfp_wanted(memory: Memory) -> tuple[Half, ...]:
    """What is to be read besides the lower half."""
    kind = memory[LOWER][92]
    return (SFP_DIAGNOSTICS,) if kind & _MONITORED and not kind & _BEHIND_CHANGE else ()


def sfp(memory: Memory) -> OpticsModule:
    """SFF-8472."""
    base = memory[LOWER]
    # Active optical cables call themselves active cables, too; only they measure something.
    copper = bool(base[8] & _PASSIVE or (base[8] & _ACTIVE and not base[92] & _MONITORED))
    diagnostics = None if copper else memory.get(SFP_DIAGNOSTICS)
    if diagnostics is not None and diagnostics[110] & _NOT_READY:
        diagnostics = None
    measured = diagnostics if base[92] & _CALIBRATED else None
    lit = diagnostics is None or not base[93] & _TELLS_LIGHT or not diagnostics[110] & 0x02
    return OpticsModule(
        layout="SFP",
        vendor=text(base, 20, 35),
        part=text(base, 40, 55),
        revision=text(base, 56, 59),
        serial=text(base, 68, 83),
        copper=copper,
        cable=bool(base[8] & (_PASSIVE | _ACTIVE)) or base[2] in _ENDLESS,
        temperature_c=None if measured is None else number(measured, 96, signed=True) / 256,
        lanes={}
        if measured is None
        else {
            1: OpticalLane(
                receive_uw=number(measured, 104) / 10,
                transmit_uw=number(measured, 102) / 10,
                bias_ma=number(measured, 100) / 500,
            )
        },
        dark=() if lit else (1,),
        flags=() if diagnostics is None else tuple(_sfp_flags(diagnostics, base[93])),
    )


def _sfp_flags(half: bytes, tells: int) -> Iterator[Flag]:
    """Bytes 112 and 113 are alarms, 116 and 117 warnings: two bits of each byte for each quantity, high before low."""
    status = half[110]
    off = bool(status & 0xC0)  # transmission is switched off, by a pin or by a bit
    if tells & _TELLS_FAULT and status & 0x04 and not off:
        yield Flag("transmit_fault", 1, alarm=True)
    if not tells & _TELLS_LIMITS:
        return
    for first, alarm in ((112, True), (116, False)):
        bits = number(half, first)
        for place, what in enumerate(("temperature", "voltage", "bias", "transmit", "receive")):
            if off and what in {"bias", "transmit"}:
                continue
            for side, bit in (("high", 15 - 2 * place), ("low", 14 - 2 * place)):
                if bits >> bit & 1:
                    yield Flag(f"{what}_{side}", 0 if place < 2 else 1, alarm)


def qsfp_wanted(memory: Memory) -> tuple[Half, ...]:
    """What is to be read besides the lower half: its live values are there already."""
    return () if UPPER in memory else (UPPER,)


def qsfp(memory: Memory) -> OpticsModule:
    """SFF-8636."""
    live, base = memory[LOWER], memory[UPPER]
    copper = base[147 - 128] >> 4 >= _FIRST_COPPER
    ready = not copper and not live[2] & _NOT_READY
    # Byte 113: lanes that it does not have.
    used = ~live[113] & 0x0F if ready else 0
    warm = ready and (base[220 - 128] & _WARM or live[22:24] != b"\0\0")
    sends = base[220 - 128] & _TRANSMIT or live[50:58] != bytes(8)
    return OpticsModule(
        layout="QSFP",
        vendor=text(base, 148 - 128, 163 - 128),
        part=text(base, 168 - 128, 183 - 128),
        revision=text(base, 184 - 128, 185 - 128),
        serial=text(base, 196 - 128, 211 - 128),
        copper=copper,
        cable=copper or base[130 - 128] in _ENDLESS,
        temperature_c=number(live, 22, signed=True) / 256 if warm else None,
        lanes={lane: _qsfp_lane(live, lane, sends=bool(sends)) for lane in lanes_of(used)},
        dark=lanes_of(live[3] & used),
        flags=tuple(_qsfp_flags(live, used)) if ready else (),
    )


def _qsfp_lane(live: bytes, lane: int, *, sends: bool) -> OpticalLane:
    place = 2 * (lane - 1)
    return OpticalLane(
        receive_uw=number(live, 34 + place) / 10,
        bias_ma=number(live, 42 + place) / 500,
        transmit_uw=number(live, 50 + place) / 10 if sends else None,
    )


def _qsfp_flags(live: bytes, used: int) -> Iterator[Flag]:
    yield from graded("temperature", 0, live[6] >> 4)
    yield from graded("voltage", 0, live[7] >> 4)
    on = used & ~live[86]
    fed = on & ~(live[3] >> 4)  # without a signal from the host a lane sends nothing
    yield from (Flag("transmit_fault", lane, alarm=True) for lane in lanes_of(live[4] & on))
    for first, what in ((9, "receive"), (11, "bias"), (13, "transmit")):
        for lane in lanes_of(used if what == "receive" else fed):
            # Of two lanes in one byte the odd one has the upper half.
            yield from graded(what, lane, live[first + (lane - 1) // 2] >> (4 if lane % 2 else 0) & 0x0F)
