"""The memory of QSFP-DD and OSFP modules, and of smaller ones with the same layout: CMIS 5.0 (OIF-CMIS-05.0).

Units: power in 0.1 µW, bias in 2 µA times a factor of the module, temperature in 1/256 °C. Eight lanes: those of a second bank
belong to modules with sixteen, of which only the first eight are read. Several links may share a module, each with a data path of
its own: two cards in one cage, or the parts of a port that is split.
"""

from collections.abc import Iterator

from agent.contract.optics_module import (
    GRADES,
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

ADVERTISED, LANES = Half(0x50, 0x01, 128), Half(0x50, 0x11, 128)
_FLAT = 0x80  # byte 2: there are no further pages
_ENDLESS = (0x21, 0x23)  # SFF-8024, table 4-3: copper pigtail, no separable connector
_COPPER = range(0x0A, 0x10)  # byte 212, media interface technology
_ACTIVATED = 4  # state of a lane's data path in which it carries traffic
# Page 01h, bytes 159 and 160: which monitors there are.
_TEMPERATURE = 0x01
_BIAS, _TRANSMIT, _RECEIVE = 0x01, 0x02, 0x04


def cmis_wanted(memory: Memory) -> tuple[Half, ...]:
    """What is to be read besides the lower half."""
    if UPPER not in memory:
        return (UPPER,)
    if memory[LOWER][2] & _FLAT or _is_copper(memory):
        return ()
    return tuple(half for half in (ADVERTISED, LANES) if half not in memory)


def cmis(memory: Memory) -> OpticsModule:
    """CMIS 5.0."""
    lower, base, advertised, live = memory[LOWER], memory[UPPER], memory.get(ADVERTISED), memory.get(LANES)
    copper = _is_copper(memory)
    warm = advertised is not None and advertised[159 - 128] & _TEMPERATURE
    used = 0 if live is None else _active(live) & ~base[210 - 128]
    heard = 0 if live is None else _heard(live, used)
    measured = {} if live is None else {lane: _lane(memory, live, lane, heard) for lane in lanes_of(used)}
    return OpticsModule(
        layout="CMIS",
        vendor=text(base, 129 - 128, 144 - 128),
        part=text(base, 148 - 128, 163 - 128),
        revision=text(base, 164 - 128, 165 - 128),
        serial=text(base, 166 - 128, 181 - 128),
        copper=copper,
        cable=copper or base[203 - 128] in _ENDLESS,
        temperature_c=number(lower, 14, signed=True) / 256 if warm else None,
        lanes=measured,
        dark=() if live is None else lanes_of(live[147 - 128] & heard),
        flags=() if live is None else tuple(_flags(lower, live, used, heard)),
    )


def _is_copper(memory: Memory) -> bool:
    return memory[UPPER][212 - 128] in _COPPER


def _active(live: bytes) -> int:
    """One bit for each lane whose data path is up; four bits of state for each, the odd lanes in the lower half."""
    states = (live[lane // 2] >> (4 if lane % 2 else 0) & 0x0F for lane in range(8))
    return sum(1 << lane for lane, state in enumerate(states) if state == _ACTIVATED)


def _heard(live: bytes, used: int) -> int:
    """Lanes to which somebody sends: not those of a data path without any light (the far end of that link is off, which the link
    tells) beside another one that has some.
    """
    paths: dict[int, int] = {}
    for lane in lanes_of(used):
        path = live[206 - 128 + lane - 1] >> 1 & 0x07  # Active Control Set, DataPathID
        paths[path] = paths.get(path, 0) | 1 << (lane - 1)
    lit = sum(lanes for lanes in paths.values() if lanes & ~live[147 - 128])
    return lit or used


def _lane(memory: Memory, live: bytes, lane: int, heard: int) -> OpticalLane:
    has = memory[ADVERTISED][160 - 128]
    place = 2 * (lane - 1)
    factor = 1 << min(2, has >> 3 & 0x03)  # 1, 2 or 4; 3 has no meaning yet
    return OpticalLane(
        transmit_uw=number(live, 154 - 128 + place) / 10 if has & _TRANSMIT else None,
        bias_ma=number(live, 170 - 128 + place) * factor / 500 if has & _BIAS else None,
        receive_uw=number(live, 186 - 128 + place) / 10
        if has & _RECEIVE and heard >> (lane - 1) & 1
        else None,
    )


def _flags(lower: bytes, live: bytes, used: int, heard: int) -> Iterator[Flag]:
    """One byte for each grade of a quantity, one bit in it for each lane; those of the whole module in byte 9."""
    yield from graded("temperature", 0, _turned(lower[9] & 0x0F))
    yield from graded("voltage", 0, _turned(lower[9] >> 4))
    fed = used & ~live[136 - 128]  # no signal from the host: such a lane sends nothing
    yield from (Flag("transmit_fault", lane, alarm=True) for lane in lanes_of(live[135 - 128] & used))
    for first, what in ((139, "transmit"), (143, "bias"), (149, "receive")):
        for place, (side, alarm) in enumerate(GRADES):
            mask = live[first - 128 + place] & (heard if what == "receive" else fed)
            yield from (Flag(f"{what}_{side}", lane, alarm) for lane in lanes_of(mask))


def _turned(bits: int) -> int:
    """Four bits in the other order: here the lowest is the high alarm."""
    return sum(1 << (3 - bit) for bit in range(4) if bits >> bit & 1)
