"""What actions are made from: the machine, the agent's configuration, and what several actions share.

The shared parts are made, and their code is imported, when the first action needs them.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from agent.config import AgentConfig
from agent.host import Host
from agent.nvml.pause import NvmlPause

if TYPE_CHECKING:
    from agent.actions.bundle_folder import BundleFolder
    from agent.actions.gpus import GpuKit
    from agent.actions.modules import Modules

# Host and port of the broker that we are connected to; None before the first connection.
Peer = Callable[[], tuple[str, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAgain:
    """What came of a look; its facts are in the spool."""

    # Sources that looked.
    looked: int
    # Source that should run and could not look → why.
    blind: Mapping[str, str]
    # The conditions that are present, as kind and component.
    present: tuple[str, ...]


# Makes all sources look again; of a component's neighbourhood only, or (empty) everything.
LookAgain = Callable[[str], Awaitable[LookedAgain]]


async def _nobody_looks(_component: str) -> LookedAgain:
    return LookedAgain(looked=0, blind={}, present=())


@dataclass(frozen=True, kw_only=True)
class ActionSetup:
    """What an action may know when it is made; one per agent."""

    host: Host
    config: AgentConfig
    # For the actions that must not cut the way to the broker.
    peer: Peer
    # Makes the agent's own NVML source let go of the driver.
    pause: NvmlPause = field(default_factory=NvmlPause)
    look: LookAgain = _nobody_looks

    @cached_property
    def bundles(self) -> "BundleFolder":
        """Where evidence is kept until it is sent; actions that write there take turns."""
        from agent.actions.bundle_folder import BundleFolder

        return BundleFolder(self.host, self.config.data_dir / "evidence")

    @cached_property
    def modules(self) -> "Modules":
        """Kernel modules."""
        from agent.actions.modules import Modules

        return Modules(self.host, modprobe=self.config.modprobe, rmmod=self.config.rmmod)

    @cached_property
    def gpus(self) -> "GpuKit":
        """What the actions on GPUs share: one of them at a time has the driver."""
        from agent.actions.gpus import gpu_kit

        return gpu_kit(self.host, self.config, self.modules, self.pause)
