"""How often an XID has come back at one place: what tells a part that is broken from a program that is wrong.

NVIDIA's workflows for XID 13 and 31: a program that is wrong fails wherever it runs; a part that is broken fails whatever
runs there. So only programs (XID 13), or jobs (XID 31), that failed at this place and at no other are counted.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from agent.contract.messages import Scalar

DAY_S = 86_400.0
_ONE_S = 60.0  # lines without a process, and lines about one NVLink, within this time are one failure
_MOST = 100  # failures that are remembered for one place or GPU


@dataclass(slots=True)
class _Failed:
    """A program or a job that failed: where, and when last."""

    last_s: float
    places: set[Hashable] = field(default_factory=set)


class XidRepeats:
    """Counts within a day. It begins anew when the agent does."""

    def __init__(self) -> None:
        # What is compared (a GPU's processing clusters; the node's GPUs; an NVLink) → who failed there.
        self._failed: dict[Hashable, dict[Hashable, _Failed]] = {}

    def of(self, component: str, data: Mapping[str, Scalar], now_s: float) -> int:
        """How often within a day, this one included; 0 for other XIDs, and where the line does not tell the place."""
        gpu = "/".join(component.split("/")[:2])
        match data.get("code"):
            case 13 if "gpc" in data and "tpc" in data:
                who = data.get("pid") or self._spell(gpu, now_s)
                return self._count(gpu, who, (data["gpc"], data["tpc"]), now_s)
            case 31 if who := data.get("job") or data.get("process"):
                return self._count("node", who, gpu, now_s)
            case 74:
                link = (gpu, data.get("link"))
                return self._count(link, self._spell(link, now_s), link, now_s)
        return 0

    def _count(self, group: Hashable, who: Hashable, place: Hashable, now_s: float) -> int:
        failed = {
            name: one
            for name, one in self._failed.get(group, {}).items()
            if now_s - one.last_s < DAY_S and name != who
        }
        before = self._failed.get(group, {}).get(who)
        places = before.places if before is not None and now_s - before.last_s < DAY_S else set()
        if len(places) < _MOST:
            places.add(place)
        failed[who] = _Failed(now_s, places)
        while len(failed) > _MOST:
            del failed[next(iter(failed))]
        self._failed[group] = failed
        return sum(one.places == {place} for one in failed.values())

    def _spell(self, group: Hashable, now_s: float) -> Hashable:
        """A name for a failure without a process: the same as long as lines follow each other."""
        times = [
            (one.last_s, name) for name, one in self._failed.get(group, {}).items() if isinstance(name, float)
        ]
        last_s, name = max(times, default=(now_s - 2 * _ONE_S, 0.0))
        return name if now_s - last_s < _ONE_S else now_s


def with_repeats(data: Mapping[str, Scalar], repeats: int) -> Mapping[str, Scalar]:
    """The event's data with the count, from the second on, and for an NVLink whether it is to be repaired."""
    if repeats < 2:
        return data
    found: dict[str, Scalar] = {**data, "repeats": repeats}
    repair_at = data.get("repair_at", 0)
    if isinstance(repair_at, int) and 0 < repair_at <= repeats:
        found["persists"] = True
    return found
