"""What an operator can change about collectors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.contract.messages import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The agent fills it from its configuration and its machine."""

    driver: str = ""  # version of the NVIDIA driver, e.g. `580.82`; empty: not known
    burst_s: float = 5.0  # equal facts within this time are held together, seconds; 0: every one is said
    idle_window_s: float = 600.0  # how long a held GPU must show zero utilisation to be reported, seconds
    # PCI address with the function -> InfiniBand device
    nics: Mapping[str, str] = field(default_factory=dict)
    lost_before: frozenset[str] = (
        frozenset()
    )  # addresses of GPUs that an earlier run of the agent reported lost
    ecc_before: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # agent.last_known
    node_before: Mapping[str, Scalar] = field(default_factory=dict)  # agent.last_known
    # The names and meanings of agent.config.AgentConfig:
    ib_exempt: tuple[str, ...] = ()
    ib_expected_gbps: float = 0.0
    congestion_per_s: float = 1000.0
    kernel_modules: tuple[str, ...] = ()
    memory_low_percent: float = 2.0
    memory_pressure_percent: float = 10.0
    io_pressure_percent: float = 50.0
    disk_full_percent: float = 95.0
    clock_offset_s: float = 0.5
    job_nan_loss: bool = False
