"""What the GPUs of one job on one node did in a minute, as the data of gpu.minute carries it. Pure.

One event has all of them, as lists apart by blanks and in one order, so that a node of eight GPUs needs one message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.contract import components
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar

MAX_GPUS = 16  # of one event
_MOST = 100_000  # a larger number is a mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMinute:
    """One GPU in one minute."""

    # PCI address, `0000:3b:00`
    bdf: str
    # median of the SM clock while it computed, MHz. 0: it did not, or does not report it
    sm_mhz: int
    # mean, W. 0: it does not report it
    power_w: int
    # mean utilisation, %
    busy: int


def encode(minutes: Iterable[GpuMinute]) -> dict[str, Scalar]:
    """The fields of the event's data; of more than MAX_GPUS the first ones."""
    kept = list(minutes)[:MAX_GPUS]
    return {
        "gpus": " ".join(one.bdf for one in kept),
        "sm_mhz": " ".join(str(one.sm_mhz) for one in kept),
        "power_w": " ".join(str(one.power_w) for one in kept),
        "busy": " ".join(str(one.busy) for one in kept),
    }


def decode(data: Mapping[str, Scalar]) -> tuple[GpuMinute, ...]:
    """The GPUs in an event's data; ContractError when it does not fit, names a GPU twice, or more than MAX_GPUS."""
    gpus = str(data.get("gpus", "")).split()
    clocks, powers, busy = (_numbers(data, name) for name in ("sm_mhz", "power_w", "busy"))
    if not len(gpus) == len(clocks) == len(powers) == len(busy):
        raise ContractError("gpu.minute: its lists differ in length")
    names = [components.bdf(one) for one in gpus[: MAX_GPUS + 1]]
    if len(gpus) > MAX_GPUS or len(dict.fromkeys(names)) < len(gpus):
        raise ContractError(f"gpu.minute: more than {MAX_GPUS} GPUs, or one twice")
    return tuple(
        GpuMinute(bdf=bdf, sm_mhz=sm_mhz, power_w=power_w, busy=min(100, used))
        for bdf, sm_mhz, power_w, used in zip(names, clocks, powers, busy, strict=True)
    )


def _numbers(data: Mapping[str, Scalar], name: str) -> list[int]:
    found = str(data.get(name, "")).split()
    if not all(one.isascii() and one.isdigit() and len(one) < 7 and int(one) <= _MOST for one in found):
        raise ContractError(f"gpu.minute: {name} must be whole numbers from 0 to {_MOST}")
    return [int(one) for one in found]
