"""The extended resources by which a cluster hands out GPUs and NPUs: which they are, and how many of them. Pure.

Sources: the device plugins of NVIDIA (`nvidia.com/gpu`; `.shared` where `renameByDefault` is set; `nvidia.com/mig-<profile>` with
the strategy "mixed"), AMD (`amd.com/gpu`; `amd.com/<compute>_<memory>`, as cpx_nps4, with "mixed"), Huawei
(`huawei.com/Ascend910`, vNPUs as `huawei.com/Ascend310P-4c.3cpu`, newer ones `huawei.com/npu`) and Intel (`gpu.intel.com/i915`,
`xe`; `habana.ai/gaudi`).
Memory or cores of a GPU, which sharing schedulers offer (`nvidia.com/gpumem`), are no GPUs and fit none of these.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

COMMON = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-*",
    "amd.com/gpu",
    "amd.com/?px_nps[1248]",
    "huawei.com/Ascend910",
    "huawei.com/Ascend310",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend*-[0-9]*c*",
    "huawei.com/npu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
)
# A pattern's domain is written out: `*` alone would take every extended resource of a cluster, network cards too, for a GPU.
_PATTERN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/[A-Za-z0-9*?\[][A-Za-z0-9._*?\[\]-]{0,62}")
_COUNT = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocatable:
    """What a node has of these resources."""

    # resource -> how many there are, and how many of them pods can have
    by_resource: Mapping[str, tuple[int, int]]

    @property
    def total(self) -> tuple[int, int]:
        """The sums of both."""
        counts = self.by_resource.values()
        return sum(have for have, _ in counts), sum(usable for _, usable in counts)

    @property
    def plugins_gone(self) -> tuple[str, ...]:
        """The makers (the domains of resources) of whose resources pods can have nothing: one plug-in offers all of a maker's."""
        alive = {_maker(name) for name, (_, usable) in self.by_resource.items() if usable > 0}
        there = {_maker(name) for name, (have, _) in self.by_resource.items() if have > 0}
        return tuple(sorted(there - alive))

    @property
    def text(self) -> str:
        """The resource; of several each with its numbers, those that lack something first."""
        if len(self.by_resource) == 1:
            return next(iter(self.by_resource))
        rows = sorted(self.by_resource.items(), key=lambda row: (row[1][1] >= row[1][0], row[0]))
        return ", ".join(f"{usable} of {have} {name}" for name, (have, usable) in rows)


class GpuResources:
    """Those that fit one of the patterns."""

    def __init__(self, patterns: Sequence[str] = COMMON) -> None:
        self.patterns = tuple(patterns)
        self._fits = re.compile("|".join(map(translate, patterns)))

    def wanted(self, container: Mapping[str, Any]) -> int:
        """How many a container requests, of all of them together."""
        wanted = container.get("resources") or {}
        limits = dict(self._counts(wanted.get("limits")))
        # For extended resources both are equal where both are given.
        return sum({**dict(self._counts(wanted.get("requests"))), **limits}.values())

    def allocatable(self, status: Mapping[str, Any]) -> Allocatable | None:
        """Those of a node, by its status; None: it has none now. Once a plug-in has been gone for five minutes, the kubelet
        says 0 of what it offered, and so it does after a change of MIG's geometry: that proves nothing.
        """
        usable = dict(self._counts(status.get("allocatable")))
        found = {
            name: (have, usable.get(name, 0))
            for name, have in sorted(self._counts(status.get("capacity")))
            if have > 0
        }
        return Allocatable(by_resource=found) if found else None

    def _counts(self, quantities: object) -> Iterator[tuple[str, int]]:
        if not isinstance(quantities, Mapping):
            return
        for name, count in quantities.items():
            if self._fits.fullmatch(str(name)) and _COUNT.fullmatch(
                text := str(count if count is not None else "")
            ):
                yield name, int(text)


def patterns_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """The patterns that the option names: a list, or one text with commas. ValueError: one of them names no extended resource."""
    parts = given.split(",") if isinstance(given, str) else given
    found = tuple(dict.fromkeys(part.strip() for part in parts))
    for one in found:
        if not _PATTERN.fullmatch(one):
            raise ValueError(
                f"{one!r} is not the name of an extended resource: want DOMAIN/NAME, where NAME may have * and ?"
            )
    if not found:
        raise ValueError("names no resource: want at least one, as nvidia.com/gpu")
    return found


def _maker(resource: str) -> str:
    return resource.partition("/")[0]
