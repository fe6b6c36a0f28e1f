"""Situations of many nodes that share a cause: power, cooling, storage, a release, a driver."""

from brain.core.pack.spec import Priority
from simulations.events import event
from simulations.scenarios.moves import GPU, GPU_2, Moves, kernel, lasting, nodes, silent, together, xid
from simulations.scenarios.troubles import INFO, agent_restarts, dark, gpu_lost, hot
from tests.situations import checks as c
from tests.situations.situation import Situation

_HUNG = event("kernel.stall", "node", what="hung_task", process="python3", pid=4711, for_s=120.0)


def _server_hangs(at_s: float, on: tuple[str, ...], for_s: float) -> Moves:
    bad = event("storage.server", "node", answers=False, filesystem="nfs", server="10.0.0.5")
    well = event("storage.server", "node", INFO, answers=True, filesystem="nfs", server="10.0.0.5")
    return together(
        lasting(at_s, on, bad, well, for_s=for_s, repeat_s=300), lasting(at_s + 120, on, _HUNG, for_s=1)
    )


SITUATIONS = (
    Situation(
        what="A rack loses power: 16 nodes at once, and returns",
        expected="one incident, no BMC action until people say so, resolved",
        nodes=256,
        moves=dark(60, nodes(0, 16), 1200),
        until_s=3600,
        checks=(
            c.sees_at_most(1),
            c.untouched(),
            c.ends("shared-node-unreachable-rack", "closed"),
            c.wish(c.pages(1)),
        ),
    ),
    Situation(
        what="A rack loses power, a node every 30 s",
        expected="one incident from the fourth node on, no BMC action",
        nodes=256,
        moves=dark(60, nodes(0, 16), 1800, every_s=30),
        until_s=5400,
        checks=(c.sees_at_most(4), c.untouched(), c.pages(8)),
    ),
    Situation(
        what="XID 79 on 5 % of the nodes within an hour, one driver version",
        expected='the first are healed, then "these belong together", no more reboots, a page with what they share',
        nodes=512,
        moves=gpu_lost(60, nodes(0, 26, 19), every_s=138),
        until_s=7200,
        checks=(c.touches_at_most(5), c.said("run.held", "belong together"), c.told("belong together")),
    ),
    Situation(
        what="XID 79 on 60 nodes within an hour",
        expected="stops early and says why",
        nodes=512,
        moves=gpu_lost(60, nodes(0, 60, 8), every_s=60),
        until_s=7200,
        checks=(c.touches_at_most(5), c.said("run.held", "belong together"), c.told("belong together")),
    ),
    Situation(
        what="A job causes XID 13 and 31 on 200 nodes",
        expected="nothing is done to nodes; the job's owner is told",
        nodes=256,
        moves=together(
            kernel(60, nodes(0, 200), xid(13, GPU, "pid=1234, name=python3, Graphics SM Warp Exception")),
            kernel(61, nodes(0, 200), xid(31, GPU_2, "pid=1234, name=python3, MMU Fault")),
        ),
        until_s=3600,
        checks=(c.untouched(), c.pages(0)),
    ),
    Situation(
        what="Cooling fails in a row: 64 nodes with 8 GPUs each",
        expected="one incident of the row, facility told, no node touched",
        nodes=256,
        moves=together(
            *(
                hot(
                    60 + 10 * n,
                    nodes(8 * n, 8),
                    [f"gpu/0000:{bus}:00" for bus in ("1b", "29", "45", "4e", "9b", "ab", "c1", "d0")],
                    1800,
                )
                for n in range(8)
            )
        ),
        until_s=5400,
        checks=(c.untouched(), c.sees_at_most(3), c.pages(3), c.wish(c.sees_at_most(1))),
    ),
    Situation(
        what="A file server hangs 256 nodes, and comes back",
        expected="one incident of the file server, hung tasks explained by it, no reboot",
        nodes=512,
        moves=_server_hangs(60, nodes(0, 256), 1200),
        until_s=7200,
        checks=(c.untouched(), c.sees_at_most(1), c.pages(1, Priority.P0)),
    ),
    Situation(
        what="All agents restart at once (an upgrade)",
        expected="one note, no incident that wakes anybody",
        moves=agent_restarts(60, nodes(0, 64), 20),
        until_s=1800,
        checks=(c.untouched(), c.sees_at_most(1), c.wish(c.pages(0))),
    ),
    Situation(
        what="A rolling restart of agents, each silent for 20 s",
        expected="no page",
        moves=agent_restarts(60, nodes(0, 64), 20, every_s=30),
        until_s=3600,
        checks=(c.untouched(), c.pages(0)),
    ),
    Situation(
        what="A rolling restart of the nodes, one every two minutes, which nobody told gpuward of",
        expected="few incidents, few pages, nobody is restarted on top",
        moves=silent(60, nodes(0, 64), 200, every_s=120),
        until_s=10800,
        checks=(c.untouched(), c.pages(18)),
    ),
    Situation(
        what="Half a cell loses the broker and comes back with old events",
        expected="one incident; old facts need a fresh sign or a person",
        moves=together(
            silent(60, nodes(0, 32), 600),
            kernel(
                100,
                nodes(4, 3),
                xid(95, GPU, "pid=1, name=python3, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No"),
            ),
        ),
        until_s=5400,
        checks=(c.untouched(), c.said("incident.opened", "shared")),
    ),
    Situation(
        what="A driver upgrade, a node per minute",
        expected="recognised as a roll-out (versions change), no remedy",
        moves=lasting(
            60,
            nodes(0, 30),
            event("gpu.version_mismatch", "node", client="570.86.10", module="550.54.15"),
            event("nvml.answers", "node", INFO, after_s=0.0, open_s=150.0),
            for_s=300,
            every_s=60,
        ),
        until_s=5400,
        checks=(c.untouched(), c.pages(5)),
    ),
)
