"""Which GPUs' power limits gpuward has lowered, from the agent's own note."""

from typing import ClassVar, Self

from agent.collectors.samples import LoweredPower, Sample
from agent.host import Host
from agent.shared.power_caps import FILE, PowerCaps
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

PERIOD_S = 10.0


class PowerCapSource(Source):
    """Emits LoweredPower for each of them, every `period_s` seconds. Those of an earlier boot are emitted once, as over."""

    name: ClassVar[str] = "power_caps"
    needs: ClassVar[str] = "data_dir (emits nothing as long as no power limit is lowered)"

    def __init__(self, host: Host, caps: PowerCaps, *, period_s: float = PERIOD_S) -> None:
        self._host = host
        self._caps = caps
        self._poller = Poller(self._poll, what=self.name, period_s=period_s, hang_s=30.0)

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host, PowerCaps(setup.config.data_dir / FILE))

    async def run(self, emit: Emit) -> None:
        """Follow the note until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """What it says now; of a recorded machine nothing."""
        for sample in self._poll() if self._host.live else ():
            emit(sample)

    def _poll(self) -> list[Sample]:
        samples: list[Sample] = []
        for cap in self._caps.read():
            over = cap.boot != self._host.boot_id()
            samples.append(
                LoweredPower(
                    bdf=cap.bdf,
                    limit_mw=cap.cap_mw,
                    before_mw=cap.before_mw,
                    over=over,
                    mono_s=self._host.mono_s(),
                )
            )
            if over:
                self._caps.forget(cap.bdf)
        return samples
