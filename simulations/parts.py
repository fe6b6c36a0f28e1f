"""The state of each part of a simulated machine. Pure."""

from dataclasses import dataclass

CONTROL_LINK = "eth0"  # carries the control path: the agent refuses to bounce it
FABRIC_MANAGER = "nvidia-fabricmanager.service"
UNITS = (
    "nvidia-persistenced.service",
    FABRIC_MANAGER,
    "slurmd.service",
    "munge.service",
    "containerd.service",
    "nvidia-dcgm.service",
)


@dataclass(slots=True, kw_only=True)
class SimulatedGpu:
    """One GPU."""

    bdf: str
    index: int
    present: bool = True
    # A job or a unit holds it, and nothing runs on it.
    idle: bool = False
    # The job that holds it.
    job: str = ""
    # The systemd unit that holds it.
    unit: str = ""
    # The kernel has removed its PCI device.
    removed: bool = False
    # Lost for good: only another card helps.
    dead: bool = False
    # Lost until the next boot.
    warm: bool = False

    @property
    def component(self) -> str:
        """`gpu/0000:1b:00`."""
        return f"gpu/{self.bdf}"


@dataclass(slots=True, kw_only=True)
class SimulatedPort:
    """One InfiniBand port."""

    device: str
    sm_lid: int = 1
    up: bool = True
    # No link until the port is reset.
    stuck: bool = False
    # No link, whatever is done.
    cut: bool = False
    # A reset of the port ends them.
    errors_per_s: int = 0
    # The value of the error counter.
    symbol_error: int = 0

    @property
    def component(self) -> str:
        """`port/mlx5_0.1`."""
        return f"port/{self.device}.1"


@dataclass(slots=True, kw_only=True)
class SimulatedLink:
    """One network interface."""

    name: str
    admin_up: bool = True
    # No carrier until the interface is taken down and up.
    stuck: bool = False
    # No carrier, whatever is done: a person must replace the cable.
    cut: bool = False

    @property
    def component(self) -> str:
        """`link/eth1`."""
        return f"link/{self.name}"

    @property
    def carrier(self) -> bool:
        """Whether the interface has a carrier."""
        return self.admin_up and not (self.stuck or self.cut)


@dataclass(slots=True, kw_only=True)
class SimulatedUnit:
    """One systemd unit."""

    name: str
    active: str = "active"

    @property
    def component(self) -> str:
        """`service/slurmd.service`."""
        return f"service/{self.name}"
