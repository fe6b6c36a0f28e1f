"""Readings of InfiniBand ports for the collector."""

from pathlib import Path

from agent.collectors.infiniband import InfinibandCollector
from agent.collectors.samples import IbPort, Sample
from agent.contract import kinds
from agent.contract.messages import UnsentEvent

NODE = Path(__file__).parents[1] / "fixtures/machines/ib-node"


def port(
    at_s: float,
    state: str = "ACTIVE",
    phys: str = "LinkUp",
    sm: int = 1,
    *,
    of: dict[str, int] | None = None,
    **counters: int,
) -> IbPort:
    """The port of mlx5_0, read at that time. `of`: counters whose names are no keywords."""
    return IbPort(
        device="mlx5_0",
        port=1,
        state=state,
        phys_state=phys,
        rate="400 Gb/sec (4X NDR)",
        lid=47,
        sm_lid=sm,
        link_layer="InfiniBand",
        counters=of or counters,
        mono_s=at_s,
    )


def events_of(collector: InfinibandCollector, *samples: Sample) -> list[UnsentEvent]:
    """What the collector says of these samples, each of a declared kind."""
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
        assert unsent.kind in InfinibandCollector.kinds
    return unsent_events
