"""Memories of modules, built byte by byte from SFF-8472, SFF-8636 and CMIS 5.0: each of a module that is well."""

from agent.contract.optics_cmis import ADVERTISED, LANES
from agent.contract.optics_module import HALF_BYTES, LOWER, UPPER, Half
from agent.contract.optics_sff import SFP_DIAGNOSTICS

Memory = dict[Half, bytes]


def half(first: int, **fields: str | int) -> bytes:
    """128 bytes from byte `first` on; a field is `at<decimal>` (a text or one byte) or `word<decimal>` (two bytes)."""
    made = bytearray(HALF_BYTES)
    for name, value in fields.items():
        size = 2 if name.startswith("word") else 1
        place = int(name.removeprefix("word").removeprefix("at")) - first
        put = value.encode() if isinstance(value, str) else value.to_bytes(size, "big")
        made[place : place + len(put)] = put
    return bytes(made)


def changed(memory: Memory, where: Half, at: int, value: int) -> Memory:
    """The memory with another byte, by its address in the specification's table."""
    made = bytearray(memory[where])
    made[at - where.offset] = value
    return {**memory, where: bytes(made)}


# SFF-8472: 10GBASE-SR with LC; diagnostics, calibrated in the module (0x68), all flags implemented (0xF0).
SFP: Memory = {
    LOWER: half(
        0, at0=0x03, at2=0x07, at20="FINISAR CORP.   ", at40="FTLX8571D3BCL   ", at56="A   ",
        at68="AL20L80         ", at92=0x68, at93=0xF0,
    ),
    # 36.5 °C, 3.3 V, bias 6.5 mA (3250 x 2 µA), sends 562.3 µW, receives 500 µW.
    SFP_DIAGNOSTICS: half(0, word96=36 * 256 + 128, word98=33000, word100=3250, word102=5623, word104=5000),
}  # fmt: skip

# SFF-8472: passive copper (byte 8, bit 2), copper pigtail, no diagnostics.
SFP_COPPER: Memory = {
    LOWER: half(
        0, at0=0x03, at2=0x21, at8=0x04, at20="Mellanox        ", at40="MCP2M00-A001E30N", at56="A2  ",
        at68="MT2019VS04410   ",
    ),
}  # fmt: skip

# SFF-8636: 100GBASE-SR4 with MPO (0x0C); 850 nm VCSEL (0x00).
QSFP: Memory = {
    LOWER: half(
        0, at0=0x11, word22=40 * 256, word26=33000,
        word34=7943, word36=8912, word38=7079, word40=8128,  # receives, 0.1 µW
        word42=3500, word44=3600, word46=3550, word48=3450,  # bias, 2 µA
        word50=10000, word52=11220, word54=10471, word56=9772,  # sends, 0.1 µW
    ),
    UPPER: half(
        128, at128=0x11, at130=0x0C, at147=0x00, at148="Mellanox        ", at168="MMA1B00-C100D   ", at184="A3",
        at196="MT1945FT08123   ",
    ),
}  # fmt: skip

# SFF-8636: passive copper, equalized (0xB0 in byte 147), no separable connector.
QSFP_COPPER: Memory = {
    LOWER: half(0, at0=0x11, at2=0x04),
    UPPER: half(
        128, at128=0x11, at130=0x23, at147=0xB0, at148="Mellanox        ", at168="MCP1600-C003E30N", at184="A2",
        at196="MT1838VS00671   ",
    ),
}  # fmt: skip

# CMIS 5.0: OSFP 400GBASE-DR4, four of eight lanes (the others are not supported: 0xF0 in byte 210), all of them activated (4).
OSFP: Memory = {
    LOWER: half(0, at0=0x19, at1=0x50, at3=0x06, word14=51 * 256 + 128, word16=33000),
    UPPER: half(
        128, at128=0x19, at129="NVIDIA          ", at148="MMS4X00-NS      ", at164="A1", at166="MT2321FT00042   ",
        at203=0x0C, at210=0xF0, at212=0x06,
    ),
    # Temperature and voltage; bias in steps of 4 µA (factor 2), light sent and received.
    ADVERTISED: half(128, at159=0x03, at160=0x0F),
    LANES: half(
        128, at128=0x44, at129=0x44, at130=0x44, at131=0x44,
        word154=13490, word156=14125, word158=13804, word160=14454,
        word170=22500, word172=22600, word174=22400, word176=22550,
        word186=12589, word188=12023, word190=11482, word192=12303,
    ),
}  # fmt: skip

# CMIS 5.0: passive copper, no further pages (bit 7 of byte 2).
OSFP_COPPER: Memory = {
    LOWER: half(0, at0=0x19, at1=0x50, at2=0x80),
    UPPER: half(
        128, at128=0x19, at129="NVIDIA          ", at148="MCP4Y10-N001    ", at164="A4", at166="MT2247VS05512   ",
        at203=0x23, at212=0x0B,
    ),
}  # fmt: skip

ALL = {
    "SFP": SFP, "SFP of copper": SFP_COPPER, "QSFP28": QSFP, "QSFP28 of copper": QSFP_COPPER,
    "OSFP": OSFP, "OSFP of copper": OSFP_COPPER,
}  # fmt: skip
