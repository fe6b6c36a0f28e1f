"""What the node is made of, so that the brain can see drift over the fleet. Said at start and on change."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import ClassVar

from agent.collectors.readings import Gpu, Reading
from agent.collectors.readings_node import GpuCard, Inventory, NicCard
from agent.contract import components
from agent.contract.components import NODE
from agent.contract.errors import ContractError
from agent.contract.messages import Draft, Scalar, Severity, clip


class InventoryCollector:
    """The digest leaves out what differs between equal nodes (UUIDs, serials, GUIDs, addresses)."""

    name: ClassVar[str] = "inventory"
    wants: ClassVar[tuple[type, ...]] = (Inventory, Gpu)
    kinds: ClassVar[tuple[str, ...]] = ("node.inventory", "node.inventory.gpu", "node.inventory.nic")

    def __init__(self, *, before: Mapping[str, Scalar] | None = None) -> None:
        """`before`: what `settled` of an earlier run was."""
        self.settled: Mapping[str, Scalar] = before or {}  # the last inventory with the driver of its GPUs
        self._node: dict[str, Scalar] | None = None
        self._parts: dict[str, dict[str, Scalar]] = {}  # component -> what was said of it
        self._cards: dict[str, GpuCard] = {}  # address -> card, of the last inventory
        self._nvml: dict[str, tuple[str, str]] = {}  # address -> UUID and serial, as NVML says them

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if isinstance(reading, Inventory):
            yield from self._inventory(reading)
        elif isinstance(reading, Gpu) and reading.uuid:
            said = (reading.uuid, reading.serial)
            if self._nvml.get(reading.bdf) != said:
                self._nvml[reading.bdf] = said
                if reading.bdf in self._cards:
                    yield from self._gpu(self._cards[reading.bdf])

    def _inventory(self, now: Inventory) -> Iterator[Draft]:
        node = _node(now)
        if node != self._node:
            yield Draft(
                kind="node.inventory",
                component=NODE,
                severity=Severity.INFO,
                data={**node, "changed": self._changed(node)},
                evidence=_changes(self._node or self.settled or None, node),
            )
            self._node = node
            if _complete(node):
                self.settled = node
        self._cards = {card.bdf: card for card in now.gpus}
        for card in now.gpus:
            yield from self._gpu(card)
        for nic in now.nics:
            yield from self._part("node.inventory.nic", f"nic/{nic.device}", _nic(nic))

    def _changed(self, node: dict[str, Scalar]) -> bool:
        """Not while a node boots and its driver is not loaded yet: then there is nothing to compare."""
        return _complete(node) and bool(self.settled) and node["digest"] != self.settled.get("digest")

    def _gpu(self, card: GpuCard) -> Iterator[Draft]:
        uuid, serial = self._nvml.get(card.bdf, ("", ""))
        data: dict[str, Scalar] = {
            "model": clip(card.model),
            "uuid": clip(card.uuid or uuid),
            "serial": clip(serial),
            "vbios": clip(card.vbios),
            "firmware": clip(card.firmware),
        }
        yield from self._part("node.inventory.gpu", f"gpu/{card.bdf}", data)

    def _part(self, kind: str, component: str, data: dict[str, Scalar]) -> Iterator[Draft]:
        before = self._parts.get(component)
        if data == before:
            return
        try:
            components.check(component)
        except ContractError:
            return
        self._parts[component] = data
        yield Draft(
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
        "gpu_models": _counted(card.model or "unknown" for card in now.gpus),
        "nics": len(now.nics),
        "nic_firmware": _counted(f"{nic.model or 'unknown'} {nic.firmware}".strip() for nic in now.nics),
        "cpus": now.cpus,
        "memory_mb": now.memory_mb,
        "product": clip(now.product),
        "bios": clip(now.bios),
    }
    # Equal nodes differ by some pages in what the firmware leaves of their memory: it counts in GiB, rounded.
    told = {**data, "memory_mb": round(now.memory_mb / 1024)}
    vbios = _counted(f"{card.model} {card.vbios} {card.firmware}" for card in now.gpus)
    text = "\n".join([*(f"{key}={told[key]}" for key in sorted(told)), vbios])
    return {"digest": sha256(text.encode()).hexdigest()[:12], **data}


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


def _counted(names: Iterable[str]) -> str:
    """`8 NVIDIA H100 80GB HBM3`: sorted by name, so that equal nodes say the same."""
    return clip(", ".join(f"{number} {name}" for name, number in sorted(Counter(names).items())))


def _changes(before: Mapping[str, Scalar] | None, now: dict[str, Scalar]) -> str:
    if before is None:
        return ""
    return clip(
        "; ".join(f"{key} {before.get(key)} -> {now[key]}" for key in now if before.get(key) != now[key])
    )
