"""What an operator can change about collectors."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The agent fills it from its configuration and its machine."""

    driver: str = ""  # version of the NVIDIA driver, e.g. `580.82`; empty: not known
    burst_s: float = 5.0  # equal facts within this time are held together, seconds; 0: every one is said
    idle_window_s: float = 600.0  # how long a held GPU must show zero utilisation to be reported, seconds
    nics: Mapping[str, str] = field(
        default_factory=dict
    )  # PCI address with the function -> InfiniBand device
