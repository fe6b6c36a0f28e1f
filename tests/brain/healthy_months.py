"""Months in which nothing but chance is at work: independent faults, few nodes with most of them, versions that people roll out.

The rates and the heavy tail are those of published fleets: 3.8 to 6.5 faults in 1,000 node-days, about 5 % of the nodes with
half of them (Llama 3, Meta's RSC, a B200 fleet of 63 nodes).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from brain.core.context import Context
from brain.core.effects import Note
from brain.core.faults import lemons, racks, releases, suspects
from brain.core.index import Index
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import Compiled
from brain.core.state import Node, State, SymptomState

DAY = 86400.0
DAYS = 30
CAUSES = ("gpu-lost", "gpu-fatal-xid", "nic-broken")
# (symptom, scope, XID): its weight among the faults.
MIX = (
    ("gpu_off_bus", "gpu", 0, 8), ("gpu_fatal_xid", "gpu", 119, 7), ("gpu_fatal_xid", "gpu", 48, 9),
    ("gpu_fatal_xid", "gpu", 95, 6), ("gpu_fatal_xid", "gpu", 62, 3), ("gpu_ecc_uncorrected", "gpu", 0, 8),
    ("gpu_row_retired", "gpu", 0, 9), ("gpu_nvlink_xid", "gpu", 0, 12), ("gpu_nvlink_errors", "gpu", 0, 6),
    ("gpu_pcie_errors", "gpu", 0, 5), ("gpu_thermal", "gpu", 0, 6), ("nic_broken", "nic", 0, 2),
    ("ib_symbol_errors", "port", 0, 7), ("ib_link_downs", "port", 0, 6), ("disk_failing", "disk", 0, 2),
    ("memory_uncorrected", "node", 0, 3), ("kernel_broke", "node", 0, 4), ("pcie_fatal", "node", 0, 2),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """One fleet over one month."""

    seed: int
    nodes: int
    # faults in 1,000 node-days
    rate: float = 6.5
    # a driver on which every fifth node has an XID within days of its roll-out; empty: none
    bad: str = ""
    # of lemons_of: whether all nodes have the same hazard, and how long it plays
    alike: bool = False
    days: int = DAYS


def false_alarms(compiled: Compiled, month: Month) -> list[str]:
    """What is said of versions in a month in which no version is at fault."""
    random = Random(month.seed)
    state = State(now=0.0)
    index = Index(state)
    said: list[str] = []

    def ctx(at: float) -> Context:
        state.now = at
        return Context(state, compiled, index, ACTIONS, f"i{at}", observe_all=False)

    def timers(until: float) -> None:
        while due := sorted((due, name) for name, due in state.timers.items() if due <= until):
            at, name = due[0]
            del state.timers[name]
            kind, _, what = name.partition(":")
            if kind == releases.TIMER:
                now = ctx(at)
                suspects.judge(now, what)
                said.extend(
                    one.text
                    for one in now.effects
                    if isinstance(one, Note) and one.kind.startswith("release.")
                )

    names = [f"n{number}" for number in range(month.nodes)]
    told = {name: _versions(random, number, month.nodes) for number, name in enumerate(names)}
    rolled = list(_roll_outs(random, names))
    bad = [
        (at, name) for at, name, what in rolled if month.bad and isinstance(what, str) and month.bad in what
    ]
    ill = [(at + random.uniform(DAY, 6 * DAY), name, 1) for at, name in bad if random.random() < 0.2]
    for at, name, what in sorted([*_faults(random, month, names), *rolled, *ill]):
        timers(at)
        if isinstance(what, int):
            symptom, scope, code, _ = MIX[what]
            part = f"{scope}/{name}" + ("" if scope == "node" else "/0")
            fact = SymptomState(name=symptom, scope=part, since=at, carried={"xid": code} if code else {})
            releases.fell_ill(ctx(at), fact)
        else:
            key = f"{releases.KIND} {name}"
            told[name] |= json.loads(what)
            before, values = state.peers.get(key), json.dumps(told[name])
            state.peers[key] = values
            releases.moved(ctx(at), name, before, values)
    timers(DAYS * DAY)
    return said


def lemons_of(compiled: Compiled, month: Month) -> list[tuple[str, float]]:
    """The nodes that are called lemons, each with how many times the mean hazard it has. Each fault needs one remedy."""
    return _called(compiled, month, lemons.remedied)


def racks_of(compiled: Compiled, month: Month) -> list[tuple[str, float]]:
    """The nodes whose remedy makes a suspect of their rack, with the same. `compiled` says where nodes stand."""
    return _called(compiled, month, racks.remedied)


def _called(
    compiled: Compiled, month: Month, judge: Callable[[Context, str, str], list[SymptomState]]
) -> list[tuple[str, float]]:
    random = Random(month.seed)
    state = State(now=0.0, nodes={name: Node(name=name) for name in map("n{}".format, range(month.nodes))})
    names = list(state.nodes)
    index = Index(state)
    weights = [1.0 if month.alike else random.paretovariate(1.1) for _ in names]
    mean = sum(weights) / len(weights)
    count = sum(random.random() < 0.5 for _ in range(int(2 * month.rate / 1000 * month.nodes * month.days)))
    times = sorted(random.uniform(0, month.days * DAY) for _ in range(count))
    found: dict[str, float] = {}
    for at, node in zip(times, random.choices(names, weights, k=count), strict=True):
        state.now = at
        made = Context(state, compiled, index, ACTIONS, f"i{at}", observe_all=False)
        cause = random.choices(CAUSES, (4, 4, 1))[0]
        called = lemons.remedied(made, node, cause)
        if called if judge is lemons.remedied else judge(made, node, cause):
            found.setdefault(node, weights[names.index(node)] / mean)
    return list(found.items())


def _versions(random: Random, number: int, nodes: int) -> dict[str, str]:
    """Three batches of hardware, each with its own firmware in part; what is installed varies from node to node."""
    batch = min(2, number * 4 // nodes)
    return {
        "product": f"P{batch}", "gpu_models": "8 H100" if batch else "8 H200", "bios": f"F{random.choice((16, 17, 17))}",
        "gpu_vbios": f"8 96.00.{batch}", "nic_firmware": random.choice(("28.36", "28.39", "28.39")),
        "kernel": random.choice(("5.15.0-1053", "5.15.0-1053", "6.8.0-40")), "driver": "550.90.07",
    }  # fmt: skip


def _faults(random: Random, month: Month, names: list[str]) -> Iterator[tuple[float, str, int | str]]:
    weights = [random.paretovariate(1.1) for _ in names]
    expected = month.rate / 1000 * month.nodes * DAYS
    count = sum(random.random() < 0.5 for _ in range(int(2 * expected)))
    kinds = random.choices(range(len(MIX)), [one[-1] for one in MIX], k=count)
    for kind, name in zip(kinds, random.choices(names, weights, k=count), strict=True):
        at = random.uniform(0, DAYS * DAY)
        for _ in range(1 + int(random.expovariate(1))):  # what is broken shows it again
            yield at, name, kind
            at += random.expovariate(1 / 7200)


def _roll_outs(random: Random, names: list[str]) -> Iterator[tuple[float, str, int | str]]:
    """Everything is told at first; then two drivers and a kernel go through parts of the fleet, a node a minute."""
    for name in names:
        yield random.uniform(0, 600), name, "{}"
    for field, version in (("driver", "570.10"), ("kernel", "6.11.0"), ("driver", "580.82")):
        at = random.uniform(DAY, 20 * DAY)
        for name in random.sample(names, int(len(names) * random.choice((0.1, 0.3, 1.0)))):
            yield at, name, json.dumps({field: version})
            at += 60
