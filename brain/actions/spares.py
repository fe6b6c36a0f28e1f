"""Pools of nodes of which a share is to be idle and healthy, as spares for what fails: counted by what a scheduler says. Pure."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar

from pydantic import Field

from brain.actions.witness import NodeSaid, Spares


@dataclass(frozen=True, slots=True, kw_only=True)
class SparePool:
    """A table of `spares`."""

    # Shell pattern: the nodes of the pool, by their name in gpuward
    nodes: str
    # Share of them that is to be idle and healthy, 0 to 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


def counted(name: str, pool: SparePool, said: Iterable[NodeSaid], ill: Collection[str]) -> Spares:
    """`ill`: nodes with an open incident, or whose agent is not heard: what is idle there is no spare."""
    here = [one for one in said if fnmatchcase(one.node, pool.nodes)]
    idle = [one.node for one in here if one.idle]
    sick = tuple(sorted(node for node in idle if node in ill))
    wanted = math.ceil(pool.share * len(here) - 1e-9)  # of a pool of nine one node
    return Spares(
        pool=name,
        ready=len(idle) - len(sick),
        wanted=wanted,
        of=len(here),
        ill=sick,
        out=sum(one.out for one in here),
    )
