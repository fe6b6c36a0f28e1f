"""A fleet whose nodes tell what the GPUs of a job did in a minute."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from agent.contract.gpu_minutes import GpuMinute, encode
from agent.contract.messages import Event, Severity
from brain.core.engine import Engine
from brain.core.inputs import EventSeen, PackLoaded
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from tests.brain.world import Story
from tests.shipped import shipped_pack

PACK = replace(shipped_pack(), runbooks=tuple(replace(one, every_s=0) for one in shipped_pack().runbooks))
COMPILED = CompiledCache()
H100 = "NVIDIA H100 80GB HBM3"
ADDRESSES = tuple(f"0000:{number:02x}:00" for number in (0x1B, 0x29, 0x45, 0x4E, 0x9B, 0xAB, 0xC1, 0xD0))
NODES = tuple(f"n{number:03}" for number in range(64))
USUAL = (1980, 690, 100)  # MHz, W, %
SLOW = (1410, 410, 100)
WAITS = (1980, 230, 20)
Figures = tuple[int, int, int]


def engine() -> Engine:
    """A brain with the shipped rules; no inspections are scheduled."""
    made = Engine(actions=ACTIONS, compile_pack=COMPILED)
    made.handle(PackLoaded(id="p", pack=PACK), 0)
    return made


def minute(
    gpus: Sequence[Figures], *, job: str = "4711", model: str = H100, active: bool = True
) -> dict[str, Any]:
    """The data of gpu.minute."""
    named = [
        GpuMinute(bdf=bdf, sm_mhz=sm_mhz, power_w=power_w, busy=busy)
        for bdf, (sm_mhz, power_w, busy) in zip(ADDRESSES, gpus, strict=False)
    ]
    return {"active": active, "job": job, "model": model, **encode(named)}


def with_slow(*slots: int, figures: Figures = SLOW) -> list[Figures]:
    """Eight GPUs of which these are slow."""
    return [figures if slot in slots else USUAL for slot in range(8)]


def tells(
    story: Story, at: float, node: str, gpus: Sequence[Figures], *, age_s: float = 0.0, job: str = "4711"
) -> None:
    """A node tells a minute of a job."""
    data = minute(gpus, job=job)
    story.event(at, "gpu.minute", "node", node, age_s=age_s, severity=Severity.INFO, **data)


def even(
    story: Story, at: float, until: float, nodes: Iterable[str] = NODES, figures: Figures = USUAL
) -> None:
    """Every ten minutes these nodes tell that nothing has moved."""
    for node in nodes:
        time = at
        while time < until:
            tells(story, time, node, [figures] * 8)
            time += 600


def said(node: str, number: int, data: dict[str, Any], age_s: float = 0.0) -> EventSeen:
    """The event of a node as an input."""
    event = Event(
        id=f"{node}:s:{number}", node=node, kind="gpu.minute", component="node", severity=Severity.INFO, at="",
        age_s=age_s, boot="b", count=1, data=data, evidence="",
    )  # fmt: skip
    return EventSeen(event=event)


def slow_in(engine: Engine) -> dict[str, str]:
    """Node -> the parts of it that are slow now."""
    return {one.node: one.slow for one in engine.state.minutes.values() if one.slow not in ("", "?")}
