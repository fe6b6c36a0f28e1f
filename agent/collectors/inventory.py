"""What the node is made of, so that the brain can see drift over the fleet. Reported at start and on change."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, ClassVar, Self

from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.samples import Gpu, Sample
from agent.collectors.samples_node import GpuCard, Inventory, NicCard
from agent.contract import components
from agent.contract.components import NODE
from agent.contract.counted import counted_names
from agent.contract.errors import ContractError
from agent.contract.messages import Scalar, Severity, UnsentEvent, clip


class InventoryCollector(Collector):
    """The digest leaves out what differs between equal nodes (UUIDs, serials, GUIDs, addresses)."""

    name: ClassVar[str] = "inventory"
    wants: ClassVar[tuple[type, ...]] = (Inventory, Gpu)
    kinds: ClassVar[tuple[str, ...]] = ("node.inventory", "node.inventory.gpu", "node.inventory.nic")
    remembers: ClassVar[str] = "node"

    def __init__(self, *, before: Mapping[str, Any] | None = None) -> None:
        """`before`: what an earlier run `remembered`."""
        # The last complete inventory: with the driver of its GPUs.
        self._settled: Mapping[str, Scalar] = _scalars(before or {})
        self._node: dict[str, Scalar] | None = None
        # Component → what was reported about it.
        self._parts: dict[str, dict[str, Scalar]] = {}
        # Address → card, of the last inventory.
        self._cards: dict[str, GpuCard] = {}
        # Address → UUID and serial number, from NVML.
        self._nvml: dict[str, tuple[str, str]] = {}

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(before=setup.remembered.get(cls.remembers))

    def remembered(self) -> Mapping[str, Any]:
        """The last complete inventory: another driver or firmware after a reboot is a change."""
        return self._settled

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if isinstance(sample, Inventory):
            yield from self._inventory(sample)
        elif isinstance(sample, Gpu) and sample.uuid:
            identity = (sample.uuid, sample.serial)
            if self._nvml.get(sample.bdf) != identity:
                self._nvml[sample.bdf] = identity
                if sample.bdf in self._cards:
                    yield from self._gpu(self._cards[sample.bdf])

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector: what the node is compared with its peers by. That it has changed was a change."""
        if isinstance(sample, Inventory) and self._node is not None:
            yield UnsentEvent(
                kind="node.inventory",
                component=NODE,
                severity=Severity.INFO,
                data={**self._node, "changed": False},
            )

    def _inventory(self, now: Inventory) -> Iterator[UnsentEvent]:
        node = _node(now)
        if node != self._node:
            yield UnsentEvent(
                kind="node.inventory",
                component=NODE,
                severity=Severity.INFO,
                data={**node, "changed": self._changed(node)},
                evidence=_changes(self._node or self._settled or None, node),
            )
            self._node = node
            if _complete(node):
                self._settled = node
        self._cards = {card.bdf: card for card in now.gpus}
        for card in now.gpus:
            yield from self._gpu(card)
        for nic in now.nics:
            yield from self._part("node.inventory.nic", f"nic/{nic.device}", _nic(nic))

    def _changed(self, node: dict[str, Scalar]) -> bool:
        """False while a node boots and its driver is not loaded yet: then there is nothing to compare."""
        return _complete(node) and bool(self._settled) and node["digest"] != self._settled.get("digest")

    def _gpu(self, card: GpuCard) -> Iterator[UnsentEvent]:
        uuid, serial = self._nvml.get(card.bdf, ("", ""))
        data: dict[str, Scalar] = {
            "model": clip(card.model),
            "uuid": clip(card.uuid or uuid),
            "serial": clip(serial),
            "vbios": clip(card.vbios),
            "firmware": clip(card.firmware),
        }
        yield from self._part("node.inventory.gpu", f"gpu/{card.bdf}", data)

    def _part(self, kind: str, component: str, data: dict[str, Scalar]) -> Iterator[UnsentEvent]:
        before = self._parts.get(component)
        if data == before:
            return
        try:
            components.check(component)
        except ContractError:
            return
        self._parts[component] = data
        yield UnsentEvent(
            kind=kind,
            component=component,
            severity=Severity.INFO,
            data=data,
            evidence=_changes(before, data),
        )


def _node(now: Inventory) -> dict[str, Scalar]:
    data: dict[str, Scalar] = {
        "kernel": clip(now.kernel),
        "driver": clip(now.driver),
        "gpus": len(now.gpus),
        "gpu_models": clip(counted_names(card.model or "unknown" for card in now.gpus)),
        "nics": len(now.nics),
        "nic_firmware": clip(
            counted_names(f"{nic.model or 'unknown'} {nic.firmware}".strip() for nic in now.nics)
        ),
        "cpus": now.cpus,
        "memory_mb": now.memory_mb,
        "product": clip(now.product),
        "bios": clip(now.bios),
    }
    # The memory that the firmware leaves differs by some pages between equal nodes: here it is rounded to GiB.
    rounded = {**data, "memory_mb": round(now.memory_mb / 1024)}
    vbios = clip(counted_names(f"{card.model} {card.vbios} {card.firmware}" for card in now.gpus))
    text = "\n".join([*(f"{key}={rounded[key]}" for key in sorted(rounded)), vbios])
    known = clip(counted_names(card.vbios for card in now.gpus if card.vbios))
    own = {"gpu_vbios": known} if known else {}  # by its cards' models it is in the digest already
    return {"digest": sha256(text.encode()).hexdigest()[:12], **data, **own}


def _scalars(raw: Mapping[str, Any]) -> dict[str, Scalar]:
    """What a file holds of `remembered`; whatever does not look like it is left out."""
    return {key: value for key, value in raw.items() if isinstance(value, str | int | float)}


def _complete(node: Mapping[str, Scalar]) -> bool:
    return bool(node["driver"]) or not node["gpus"]


def _nic(nic: NicCard) -> dict[str, Scalar]:
    return {
        "model": clip(nic.model),
        "board": clip(nic.board),
        "firmware": clip(nic.firmware),
        "guid": clip(nic.guid),
        "bdf": clip(nic.bdf),
        "netdevs": clip(nic.netdevs),
    }


def _changes(before: Mapping[str, Scalar] | None, now: dict[str, Scalar]) -> str:
    if before is None:
        return ""
    return clip(
        "; ".join(f"{key} {before.get(key)} -> {now[key]}" for key in now if before.get(key) != now[key])
    )
