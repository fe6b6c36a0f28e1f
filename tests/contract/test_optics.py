"""Memories of modules: what is read of them, and what they say, by the layouts of their specifications."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.optics import module_of, wanted
from agent.contract.optics_cmis import ADVERTISED, LANES
from agent.contract.optics_module import (
    HALF_BYTES,
    LOWER,
    UPPER,
    Flag,
    Half,
    OpticalLane,
    OpticsModule,
)
from agent.contract.optics_sff import SFP_DIAGNOSTICS
from tests.contract.optics_memories import (
    ALL,
    OSFP,
    OSFP_COPPER,
    QSFP,
    QSFP_COPPER,
    SFP,
    SFP_COPPER,
    Memory,
    changed,
)


def module(memory: Memory) -> OpticsModule:
    """Fails where the layout is not known."""
    found = module_of(memory)
    assert found is not None
    return found


def told(memory: Memory, *, alarm: bool = True) -> set[tuple[str, int]]:
    """What is beyond its limit, and on which lane."""
    return {(flag.what, flag.lane) for flag in module(memory).flags if flag.alarm == alarm}


@pytest.mark.parametrize("name", ALL)
def test_what_is_wanted_is_what_there_is(name: str) -> None:
    """Half after half, the lower one first, until there is nothing more to read."""
    memory: Memory = {}
    while halves := wanted(memory):
        memory |= {half: ALL[name][half] for half in halves}
    assert memory == ALL[name]
    assert next(iter(memory)) == LOWER


def test_an_sfp() -> None:
    """Everything in its unit."""
    assert module(SFP) == OpticsModule(
        layout="SFP",
        vendor="FINISAR CORP.",
        part="FTLX8571D3BCL",
        revision="A",
        serial="AL20L80",
        temperature_c=36.5,
        lanes={1: OpticalLane(receive_uw=500.0, transmit_uw=562.3, bias_ma=6.5)},
    )


def test_a_qsfp28() -> None:
    """Four lanes."""
    found = module(QSFP)
    assert (found.layout, found.vendor, found.part, found.revision, found.serial, found.cable) == (
        *("QSFP", "Mellanox", "MMA1B00-C100D", "A3", "MT1945FT08123"),
        False,
    )
    assert (found.temperature_c, found.flags, found.dark) == (40.0, (), ())
    assert list(found.lanes) == [1, 2, 3, 4]
    assert found.lanes[2] == OpticalLane(receive_uw=891.2, transmit_uw=1122.0, bias_ma=7.2)


def test_an_osfp() -> None:
    """The lanes that it has, with its factor of the bias."""
    found = module(OSFP)
    assert (found.layout, found.vendor, found.part, found.revision, found.serial, found.cable) == (
        *("CMIS", "NVIDIA", "MMS4X00-NS", "A1", "MT2321FT00042"),
        False,
    )
    assert (found.temperature_c, found.flags, found.dark) == (51.5, (), ())
    assert list(found.lanes) == [1, 2, 3, 4]
    assert found.lanes[3] == OpticalLane(receive_uw=1148.2, transmit_uw=1380.4, bias_ma=89.6)


@pytest.mark.parametrize(
    ("memory", "part", "serial"),
    [
        (SFP_COPPER, "MCP2M00-A001E30N", "MT2019VS04410"),
        (QSFP_COPPER, "MCP1600-C003E30N", "MT1838VS00671"),
        (OSFP_COPPER, "MCP4Y10-N001", "MT2247VS05512"),
    ],
)
def test_a_copper_cable_has_a_name_and_measures_nothing(memory: Memory, part: str, serial: str) -> None:
    """Whatever stands where others have their flags."""
    if memory is not SFP_COPPER:
        memory = {**memory, LOWER: memory[LOWER][:3] + b"\xff" * (HALF_BYTES - 3)}
    found = module(memory)
    assert (found.part, found.serial, found.copper, found.cable) == (part, serial, True, True)
    assert (found.temperature_c, found.lanes, found.dark, found.flags) == (None, {}, (), ())


@pytest.mark.parametrize(
    "memory",
    [changed(QSFP, UPPER, 130, 0x23), changed(OSFP, UPPER, 203, 0x23), changed(SFP, LOWER, 8, 0x08)],
)
def test_an_active_optical_cable_is_a_cable_that_measures(memory: Memory) -> None:
    """Its ends cannot be taken off."""
    found = module(memory)
    assert (found.cable, found.copper, bool(found.lanes)) == (True, False, True)


@pytest.mark.parametrize(
    ("at", "value", "alarms", "warnings"),
    [
        (112, 0x80, {("temperature_high", 0)}, set()),
        (112, 0x10, {("voltage_low", 0)}, set()),
        (112, 0x08, {("bias_high", 1)}, set()),
        (112, 0x01, {("transmit_low", 1)}, set()),
        (113, 0x40, {("receive_low", 1)}, set()),
        (113, 0x3F, set(), set()),  # bits that have no meaning here
        (116, 0x40, set(), {("temperature_low", 0)}),
        (117, 0x80, set(), {("receive_high", 1)}),
        (110, 0x04, {("transmit_fault", 1)}, set()),
        (110, 0x84, set(), set()),  # transmission is switched off by its pin
        (110, 0x44, set(), set()),  # or by software
    ],
)
def test_flags_of_an_sfp(
    at: int, value: int, alarms: set[tuple[str, int]], warnings: set[tuple[str, int]]
) -> None:
    """SFF-8472, bytes 110 to 117 of address A2h."""
    memory = changed(SFP, SFP_DIAGNOSTICS, at, value)
    assert (told(memory), told(memory, alarm=False)) == (alarms, warnings)


def test_what_an_sfp_does_not_implement_is_not_believed() -> None:
    """Byte 93 says what its flags mean; with an external calibration its values need a table."""
    loud = changed({**SFP, SFP_DIAGNOSTICS: b"\xff" * HALF_BYTES}, SFP_DIAGNOSTICS, 110, 0xFE)
    assert module(changed(loud, LOWER, 93, 0x00)).flags == ()
    assert module(changed(loud, LOWER, 93, 0x00)).dark == ()
    external = module(changed(loud, LOWER, 92, 0x58))
    assert (external.lanes, external.temperature_c, external.dark) == ({}, None, (1,))
    assert Flag("receive_low", 1, alarm=True) in external.flags
    assert wanted({LOWER: changed(SFP, LOWER, 92, 0x6C)[LOWER]}) == (), "behind a change of address"


@pytest.mark.parametrize(
    ("at", "value", "alarms", "warnings"),
    [
        (6, 0x80, {("temperature_high", 0)}, set()),
        (6, 0x20, set(), {("temperature_high", 0)}),
        (7, 0x40, {("voltage_low", 0)}, set()),
        (9, 0x48, {("receive_low", 1), ("receive_high", 2)}, set()),
        (10, 0x04, {("receive_low", 4)}, set()),
        (10, 0x10, set(), {("receive_low", 3)}),
        (11, 0x80, {("bias_high", 1)}, set()),
        (12, 0x02, set(), {("bias_high", 4)}),
        (14, 0x40, {("transmit_low", 3)}, set()),
        (4, 0x02, {("transmit_fault", 2)}, set()),
        (4, 0xF0, set(), set()),  # of the host's side
    ],
)
def test_flags_of_a_qsfp28(
    at: int, value: int, alarms: set[tuple[str, int]], warnings: set[tuple[str, int]]
) -> None:
    """SFF-8636, bytes 3 to 14."""
    memory = changed(QSFP, LOWER, at, value)
    assert (told(memory), told(memory, alarm=False)) == (alarms, warnings)


def test_lanes_of_a_qsfp28_that_send_nothing_by_intent() -> None:
    """Switched off (byte 86), without a signal from the host (byte 3), or not there (byte 113)."""
    ill = changed(changed(QSFP, LOWER, 13, 0x44), LOWER, 14, 0x44)
    assert told(ill) == {("transmit_low", lane) for lane in (1, 2, 3, 4)}
    quiet = changed(changed(changed(ill, LOWER, 86, 0x01), LOWER, 3, 0x20), LOWER, 113, 0x04)
    assert told(quiet) == {("transmit_low", 4)}
    assert list(module(quiet).lanes) == [1, 2, 4]
    assert module(changed(QSFP, LOWER, 3, 0x0A)).dark == (2, 4)


@pytest.mark.parametrize(
    ("where", "at", "value", "alarms", "warnings"),
    [
        (LOWER, 9, 0x01, {("temperature_high", 0)}, set()),
        (LOWER, 9, 0x08, set(), {("temperature_low", 0)}),
        (LOWER, 9, 0x20, {("voltage_low", 0)}, set()),
        (LANES, 135, 0x02, {("transmit_fault", 2)}, set()),
        (LANES, 140, 0x08, {("transmit_low", 4)}, set()),
        (LANES, 143, 0x01, {("bias_high", 1)}, set()),
        (LANES, 145, 0x01, set(), {("bias_high", 1)}),
        (LANES, 150, 0x06, {("receive_low", 2), ("receive_low", 3)}, set()),
        (LANES, 151, 0x01, set(), {("receive_high", 1)}),
        (LANES, 150, 0xF0, set(), set()),  # lanes that it does not have
    ],
)
def test_flags_of_an_osfp(
    where: Half, at: int, value: int, alarms: set[tuple[str, int]], warnings: set[tuple[str, int]]
) -> None:
    """CMIS 5.0, byte 9 and page 11h."""
    memory = changed(OSFP, where, at, value)
    assert (told(memory), told(memory, alarm=False)) == (alarms, warnings)


def test_lanes_of_an_osfp_that_carry_no_traffic() -> None:
    """Their data path is not up, or the host sends them nothing."""
    ill = changed(changed(OSFP, LANES, 140, 0x0F), LANES, 150, 0x0F)
    resting = changed(ill, LANES, 128, 0x41)  # lane 1 is deactivated
    assert told(resting) == {(what, lane) for what in ("transmit_low", "receive_low") for lane in (2, 3, 4)}
    unfed = changed(ill, LANES, 136, 0x0E)
    assert {lane for what, lane in told(unfed) if what == "transmit_low"} == {1}
    assert module(changed(OSFP, LANES, 147, 0xF4)).dark == (3,)


def _two_links(dark: int) -> Memory:
    """The module as two cards share it, lanes 1 and 2 each's, 3 and 4 the other's; without light on these lanes, as they say."""
    memory = changed(changed(OSFP, LANES, 147, dark), LANES, 150, dark)
    for lane, path in ((1, 0), (2, 0), (3, 2), (4, 2)):
        memory = changed(memory, LANES, 205 + lane, 0x10 | path << 1)
    return memory


@pytest.mark.parametrize(
    ("dark", "missing"), [(0x00, ()), (0x0C, ()), (0x08, (4,)), (0x0F, (1, 2, 3, 4)), (0x0E, (2,))]
)
def test_a_link_that_shares_a_module_is_not_the_others(dark: int, missing: tuple[int, ...]) -> None:
    """The other one's far end is off: no lane of its data path has light, which is no fault of this module. Where none has any,
    they all count.
    """
    found = module(_two_links(dark))
    assert found.dark == missing
    assert {lane for what, lane in told(_two_links(dark)) if what == "receive_low"} == set(missing)
    assert {lane for lane, one in found.lanes.items() if one.receive_uw is None} == {
        lane for lane in range(1, 5) if dark >> (lane - 1) & 1 and lane not in missing
    }
    assert all(one.transmit_uw for one in found.lanes.values())


@pytest.mark.parametrize(
    ("memory", "where", "at", "noise"),
    [(SFP, SFP_DIAGNOSTICS, 110, range(112, 118)), (QSFP, LOWER, 2, range(3, 15))],
)
def test_a_module_that_is_not_ready_tells_its_name_only(
    memory: Memory, where: Half, at: int, noise: range
) -> None:
    """Just plugged in, its flags are those of a module without power."""
    for byte in noise:
        memory = changed(memory, where, byte, 0xFF)
    found = module(changed(memory, where, at, 0x01))
    assert (found.vendor, found.part) == (module(memory).vendor, module(memory).part)
    assert (found.flags, found.dark, dict(found.lanes), found.temperature_c) == ((), (), {}, None)


def test_what_a_qsfp_does_not_measure_is_not_zero() -> None:
    """Older ones do not measure the light that they send; a person would take -40 dBm for a dead laser."""
    silent = QSFP
    for byte in (22, 23, *range(50, 58)):
        silent = changed(silent, LOWER, byte, 0)
    assert module(silent).temperature_c is None
    assert {one.transmit_uw for one in module(silent).lanes.values()} == {None}
    says_so = changed(silent, UPPER, 220, 0x24)
    assert module(says_so).temperature_c == 0.0
    assert {one.transmit_uw for one in module(says_so).lanes.values()} == {0.0}


def test_monitors_that_an_osfp_does_not_have() -> None:
    """It says so on page 01h."""
    found = module(changed(changed(OSFP, ADVERTISED, 159, 0x02), ADVERTISED, 160, 0x01))
    assert found.temperature_c is None
    assert found.lanes[1] == OpticalLane(bias_ma=45.0)


def test_another_identifier_is_left_alone() -> None:
    """A module whose layout nobody knows here, such as an X2."""
    memory = {LOWER: changed(SFP, LOWER, 0, 0x0A)[LOWER]}
    assert wanted(memory) == ()
    assert module_of(memory) is None


_HALF = st.binary(min_size=HALF_BYTES, max_size=HALF_BYTES)
_IDENTIFIERS = st.sampled_from((0x03, 0x0D, 0x11, 0x18, 0x19, 0x1E, 0x00, 0xFF))


@given(_IDENTIFIERS, _HALF, st.lists(_HALF, min_size=4, max_size=4))
def test_any_bytes_are_read_in_few_halves(identifier: int, lower: bytes, others: list[bytes]) -> None:
    """Whatever a module has in its memory: what is told of it is bounded, and can be printed."""
    memory: Memory = {LOWER: bytes((identifier,)) + lower[1:]}
    while halves := wanted(memory):
        memory |= {half: others.pop() for half in halves}
    found = module_of(memory)
    if found is not None:
        assert len(found.flags) <= 8 + 8 * 13
        assert set(found.lanes) <= set(range(1, 9))
        assert set(found.dark) <= {1, *found.lanes}
        texts = (found.vendor, found.part, found.revision, found.serial)
        assert all(len(text) <= 16 and text.isprintable() for text in texts)
        assert found.temperature_c is None or -128 <= found.temperature_c < 128
