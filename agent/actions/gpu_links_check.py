"""gpu.links_check: are a node's GPUs linked as they should be? Asks NVML again until all is well, or a minute is over.

What is expected: every GPU that the PCI bus shows answers; PCIe has the width that card and slot can have together;
at full performance it has the speed of the other GPUs; as many NVLinks are active as on the GPU with the most, all at
one speed; the NVLink fabric is completed. What all GPUs of the node lack alike shows only against other nodes: that is
what the figures are for.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.alike import alike
from agent.actions.base import Done, NodeAction, NotPassed, Params
from agent.actions.gpus import GpuKit
from agent.actions.nvml_client import GpuLinks, gpu_address
from agent.contract import components
from agent.contract.errors import ActionError, Refused, Unreachable
from agent.contract.figures import Figure
from agent.nvml import bus

_LOOK_S = 1.0
MAX_NAMED = 8  # problems that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with the links of one GPU."""

    # Empty: with those of the node as a whole.
    bdf: str
    text: str


class GpuLinksCheck(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "gpu.links_check"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        return [f"ask NVML for the PCIe links and NVLinks of {_wanted(params) or 'all GPUs'}"]

    async def run(self, params: Params) -> Done:
        """Checks; NotPassed when something is still wrong after the time that links may take to train."""
        wanted = _wanted(params)
        expected = bus.gpus_on_bus(self._kit.host)
        if wanted and wanted not in expected:
            raise ActionError(f"there is no GPU {wanted} on the PCI bus")
        if not expected:
            return Done(text="this node has no GPUs")
        end_s = self._kit.host.mono_s() + self._kit.settle_s
        while True:
            problems, gpus = await self._look(wanted, expected)
            if not problems or self._kit.host.mono_s() > end_s:
                break
            await asyncio.sleep(_LOOK_S)
        if not problems:
            try:
                await self._kit.until_fabric()
            except ActionError as error:
                problems = [str(error)]
        done = Done(
            text=_text(gpus, problems),
            figures=tuple(_figures(gpus)),
            alike=alike(self._kit.host, self._kit.config.ib_root),
            untested=tuple(_untested(gpus, wanted)),
        )
        if problems:
            raise NotPassed(done)
        return done

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it only reads."""

    async def _look(self, wanted: str, expected: dict[str, str]) -> tuple[list[str], list[GpuLinks]]:
        try:
            gpus = await self._kit.nvml.links()
        except (Refused, Unreachable) as error:
            return [f"{len(expected)} GPUs are on the PCI bus, but {error}"], []
        found = [
            *(
                Problem(bdf=bdf, text="is on the PCI bus, and NVML does not show it")
                for bdf in expected
                if bdf not in {gpu.bdf for gpu in gpus}
            ),
            *judged(gpus),
        ]
        return [
            f"{one.bdf or 'a GPU'} {one.text}" for one in found if one.bdf in (wanted, "") or not wanted
        ], gpus


def judged(gpus: list[GpuLinks]) -> Iterator[Problem]:
    """What is wrong by what one look shows."""
    most = max((_active(gpu) for gpu in gpus), default=0)
    fastest = max((link.mb_per_s for gpu in gpus for link in gpu.nvlinks if link.active), default=0)
    # The generation of the GPUs at full performance: an idle GPU may save power.
    awake = max((gpu.generation or 0 for gpu in gpus if gpu.performance == 0), default=0)
    for gpu in gpus:
        if gpu.lost:
            yield Problem(bdf=gpu.bdf, text=f"does not answer: NVML calls it {gpu.lost}")
            continue
        if gpu.width and gpu.width_max and gpu.width < gpu.width_max:
            yield Problem(bdf=gpu.bdf, text=f"has PCIe x{gpu.width} of x{gpu.width_max}")
        reachable = min(gpu.generation_max or 0, awake)
        if gpu.performance == 0 and gpu.generation and gpu.generation < reachable:
            yield Problem(bdf=gpu.bdf, text=f"has PCIe generation {gpu.generation}, others have {reachable}")
        if (active := _active(gpu)) < most:
            down = ", ".join(str(link.number) for link in gpu.nvlinks if not link.active) or "not reported"
            yield Problem(bdf=gpu.bdf, text=f"has {active} of {most} NVLinks (inactive: {down})")
        slow = [link for link in gpu.nvlinks if link.active and 0 < link.mb_per_s < fastest]
        if slow:
            yield Problem(
                bdf=gpu.bdf,
                text=f"has {len(slow)} NVLinks slower than {fastest} MB/s, link {slow[0].number}: {slow[0].mb_per_s}",
            )


def _active(gpu: GpuLinks) -> int:
    return sum(link.active for link in gpu.nvlinks)


def _untested(gpus: list[GpuLinks], wanted: str) -> Iterator[str]:
    slow = [
        gpu
        for gpu in gpus
        if gpu.bdf == wanted or not wanted
        if gpu.generation and gpu.generation_max and gpu.generation < gpu.generation_max
    ]
    if slow:
        yield (
            f"PCIe speed under load of {', '.join(gpu.bdf for gpu in slow[:MAX_NAMED])}: now generation "
            f"{slow[0].generation} of {slow[0].generation_max}, which may be to save power"
        )


def _figures(gpus: list[GpuLinks]) -> Iterator[Figure]:
    yield Figure(name="gpus", value=len([gpu for gpu in gpus if not gpu.lost]))
    if widths := [gpu.width for gpu in gpus if gpu.width]:
        yield Figure(name="gpu.pcie_lanes", value=min(widths))
    if any(gpu.nvlinks for gpu in gpus):
        yield Figure(name="gpu.nvlinks", value=min(_active(gpu) for gpu in gpus))
    if speeds := [link.mb_per_s for gpu in gpus for link in gpu.nvlinks if link.active and link.mb_per_s]:
        yield Figure(name="gpu.nvlink_mb_per_s", value=min(speeds))


def _text(gpus: list[GpuLinks], problems: list[str]) -> str:
    if problems:
        more = f"; and {len(problems) - MAX_NAMED} more" if len(problems) > MAX_NAMED else ""
        return f"links are not as expected: {'; '.join(problems[:MAX_NAMED])}{more}"
    lanes = min((gpu.width or 0 for gpu in gpus), default=0)
    nvlinks = min((_active(gpu) for gpu in gpus), default=0)
    text = f"{len(gpus)} GPUs answer, PCIe x{lanes} or more" if lanes else f"{len(gpus)} GPUs answer"
    return f"{text}, {nvlinks} NVLinks each" if nvlinks else text


def _wanted(params: Params) -> str:
    """The GPU's address; empty: all."""
    component = str(params.get("gpu", components.NODE))
    return gpu_address(component) if components.type_of(component) == "gpu" else ""
