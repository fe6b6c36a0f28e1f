"""Reading a pluggable module's memory, whichever of the three layouts it has: which halves are wanted, and what they say."""

from collections.abc import Callable

from agent.contract.optics_cmis import cmis, cmis_wanted
from agent.contract.optics_module import LOWER, Half, Memory, OpticsModule
from agent.contract.optics_sff import qsfp, qsfp_wanted, sfp, sfp_wanted

# Identifier (SFF-8024, table 4-1) → which halves are wanted besides the lower one, and how they are read.
_LAYOUTS: dict[int, tuple[Callable[[Memory], tuple[Half, ...]], Callable[[Memory], OpticsModule]]] = {
    0x03: (sfp_wanted, sfp),
    **dict.fromkeys((0x0C, 0x0D, 0x11), (qsfp_wanted, qsfp)),
    # QSFP-DD, OSFP, SFP-DD, DSFP, QSFP and SFP with CMIS, OSFP-XD.
    **dict.fromkeys((0x18, 0x19, 0x1A, 0x1B, 0x1E, 0x1F, 0x20, 0x24, 0x25), (cmis_wanted, cmis)),
}


def wanted(memory: Memory) -> tuple[Half, ...]:
    """Halves that are still to be read; none: `module_of` has what it needs. The lower one comes first."""
    if LOWER not in memory:
        return (LOWER,)
    layout = _LAYOUTS.get(memory[LOWER][0])
    return () if layout is None else tuple(half for half in layout[0](memory) if half not in memory)


def module_of(memory: Memory) -> OpticsModule | None:
    """What the module says; None: its memory has a layout that is not known."""
    layout = _LAYOUTS.get(memory[LOWER][0])
    return None if layout is None else layout[1](memory)
