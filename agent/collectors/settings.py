"""How the node is set up, so that the brain can compare it with nodes that are built alike. Told at start and on change."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Sample
from agent.collectors.samples_node import Inventory, NodeSettings
from agent.contract.components import NODE
from agent.contract.counted import counted_names
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip


class SettingsCollector(Collector):
    """node.settings, once it is known what the node is made of: by that the brain finds its peers."""

    name: ClassVar[str] = "settings"
    wants: ClassVar[tuple[type, ...]] = (Inventory, NodeSettings)
    kinds: ClassVar[tuple[str, ...]] = ("node.settings",)

    def __init__(self) -> None:
        self._made: dict[str, Scalar] | None = None
        self._now: NodeSettings | None = None
        self._told: dict[str, Scalar] | None = None

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, Inventory):
            models = counted_names(card.model or "unknown" for card in sample.gpus)
            self._made = {"product": clip(sample.product), "gpu_models": clip(models) or "no GPU"}
        elif isinstance(sample, NodeSettings):
            self._now = sample
        else:
            return
        if self._made is None or self._now is None:
            return
        data: dict[str, Scalar] = {
            **self._made,
            "boot": clip(self._now.boot),
            "processors": clip(self._now.processors),
            "mounts": clip(self._now.mounts),
            "rdma": clip(self._now.rdma),
        }
        if data != self._told:
            before, self._told = self._told or {}, data
            yield _settings(
                data,
                "; ".join(
                    f"{key} {before[key]} -> {data[key]}" for key in before if before[key] != data[key]
                ),
            )

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: what the node is compared with its peers by."""
        if isinstance(sample, NodeSettings) and self._told is not None:
            yield _settings(self._told, "")


def _settings(data: dict[str, Scalar], changed: str) -> UnsentEvent:
    return UnsentEvent(
        kind="node.settings", component=NODE, severity=Severity.INFO, data=dict(data), evidence=clip(changed)
    )
