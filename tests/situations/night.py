"""Situations at three in the morning: people act by hand in the middle, and what a repair meets has nothing to do with it."""

from agent.contract.commands import Outcome
from agent.contract.messages import Severity
from brain.core.pack.spec import Mode, ModeSetting, Priority, Window
from simulations import changes as ch
from simulations.events import event
from simulations.faults import Fix
from simulations.scenarios.moves import (
    GPU,
    Moves,
    answers,
    change,
    job,
    lasting,
    nobody_leads,
    node,
    nodes,
    says,
    says_about,
    says_of,
    silent,
    together,
)
from simulations.scenarios.troubles import dark, gpu_lost, gpu_wants_reset, nic_broken, port_down, rows_spent
from simulations.virtual_fleet import START
from tests.situations import checks as c
from tests.situations.situation import Situation

HOUR_S = 3600.0
N, FAR = node(1), node(70)
APPROVE = (ModeSetting(mode=Mode.APPROVE),)
VISITED = nodes(3, 14, 17)
_DRAIN, _RESET, _RESUME = "scheduler.drain", "gpu.reset", "scheduler.resume"
_UNLOADING = event(
    "nic.driver", "nic/mlx5_0", Severity.ERROR, what="fw_fatal", message="Driver is in error state. Unloading"
)


def _killer(job_id: str, every_s: float) -> Moves:
    """A job that is requeued from node to node, and a GPU is lost wherever it runs."""
    return together(
        *(
            job(60 + every_s * n, job_id, [name])
            + gpu_lost(90 + every_s * n, [name])
            + change(110 + every_s * n, [name], ch.JobEnds(job=job_id))
            for n, name in enumerate(VISITED)
        )
    )


SITUATIONS = (
    Situation(
        what="An operator resumes a node by hand while our drain of its dead GPU waits for a job, and another job starts there",
        expected="neither job is ended at the deadline, the node is not drained again, and a page says why",
        moves=together(
            job(1, "71", [N]),
            gpu_wants_reset(60, [N]),
            change(600, [N], ch.DrainSet(reason="")),
            job(700, "72", [N]),
        ),
        until_s=8 * HOUR_S,
        checks=(
            c.runs_on(N, "71"),
            c.runs_on(N, "72"),
            c.counts(N, _DRAIN, 1),
            c.told("someone has taken the drain off n001"),
            c.pages(2),
        ),
    ),
    Situation(
        what='An operator writes "let 71 finish, then firmware" over our drain while it waits for job 71',
        expected="job 71 is not ended at our deadline; her drain stays; a page says what stands in the way",
        moves=together(
            job(1, "71", [N]),
            gpu_wants_reset(60, [N]),
            change(600, [N], ch.DrainSet(reason="ann: let 71 finish, then firmware")),
        ),
        until_s=8 * HOUR_S,
        checks=(
            c.runs_on(N, "71"),
            c.out(N),
            c.never(_RESET),
            c.told("drained by someone else, left as it is (ann: let 71 finish, then firmware)"),
            c.pages(2),
        ),
    ),
    Situation(
        what="A node is rebooted by hand: its InfiniBand port is down first, and then it is silent for ten minutes",
        expected="told once that it is silent, and what would restart it; nothing is done; in service when it is back",
        moves=together(
            change(60, [N], ch.PortDown(device="mlx5_0")), change(62, [N], ch.GoesDown(for_s=600))
        ),
        until_s=3 * HOUR_S,
        checks=(c.untouched(), c.out(), c.pages(2), c.ends("ib-port-down", "closed"), c.no_page_after(665)),
    ),
    Situation(
        what="A DPU restarts: its driver complains, link and port are down, the node is silent for 70 s, and all is well again",
        expected="no card is reset and no node drained for it; each page is resolved",
        moves=together(
            lasting(60, [N], _UNLOADING, for_s=80),
            change(61, [N], ch.PortDown(device="mlx5_0"), ch.CarrierLost(link="eth1")),
            silent(62, [N], 70),
            change(140, [N], ch.PortUp(device="mlx5_0"), ch.AdminUp(link="eth1")),
        ),
        until_s=3 * HOUR_S,
        checks=(
            c.never(_DRAIN, "nic.reset", "node.reboot"),
            c.out(),
            c.pages(3),
            c.ends("link-down", "closed"),
            c.ends("node-unreachable", "closed"),
            c.ends("ib-port-down", "closed"),
        ),
    ),
    Situation(
        what="A leaf switch restarts while the reset of a card under it is verified",
        expected="the node is not rebooted for the switch; it is tested again when that is back, and given back",
        nodes=512,
        moves=together(
            nic_broken(60, [N]),
            change(75, nodes(0, 32), ch.PortDown(device="mlx5_0")),
            change(195, nodes(0, 32), ch.PortUp(device="mlx5_0")),
        ),
        until_s=HOUR_S,
        checks=(
            c.does(N, _DRAIN, "nic.reset", _RESUME),
            c.ends("nic-broken", "closed"),
            c.ends("switch-suspected", "closed"),
            c.out(),
            c.pages(0, Priority.P0),
            c.pages(3),
        ),
    ),
    Situation(
        what="A job kills a GPU on every node to which it is requeued, one every 45 minutes",
        expected="five nodes are healed; then no more, and a page names the job",
        nodes=512,
        moves=_killer("666", 2700),
        until_s=16 * HOUR_S,
        checks=(
            c.touches_at_most(5),
            c.told(
                "gpu-lost was treated on 5 nodes within a day",
                "and job 666 ran on each of them as it does here",
            ),
            c.pages(len(VISITED) + 3),  # for each node, for the one that waits, and for the job
        ),
    ),
    Situation(
        what="Bob holds a node that waits for a new card, switches it off for two hours, releases it, and says return",
        expected="nothing before his word; whoever is paged that it is silent reads that he holds it, then what to type",
        moves=together(
            rows_spent(60, [N]),
            says(HOUR_S - 60, "hold", who="bob", scope=f"node/{N}", why="new card"),
            change(HOUR_S, [N], ch.GoesDown(for_s=2 * HOUR_S, power=True)),
            change(3 * HOUR_S + 5, [N], ch.FixApplied(fix=Fix.TIME, component=GPU)),
            says(4 * HOUR_S, "release", who="bob", scope=f"node/{N}"),
            says(4 * HOUR_S + 10, "return", who="bob", node=N),
        ),
        until_s=6 * HOUR_S,
        checks=(
            c.does(N, _DRAIN, _RESUME),
            c.never(_RESUME, until_s=4 * HOUR_S),
            c.told("node-unreachable", "bob holds node/n001: new card"),
            c.told("it waits for your word", "`gpuward return n001` gives it back"),
            c.never_told("gave up"),
            c.out(),
        ),
    ),
    Situation(
        what="An operator denies the repair of a GPU, whose driver then says nothing of it for two days",
        expected="it is not begun again; when it is closed, nobody reads that its symptoms are gone",
        moves=together(
            gpu_wants_reset(60, [N]), says_of(61.2, "deny", "gpu-fatal-xid", why="the vendor looks at it")
        ),
        until_s=48 * HOUR_S,
        checks=(
            c.untouched(),
            c.pages(2),
            c.said(
                "incident.closed",
                "nothing has reported it for 24 hours, and nothing has said that it is over",
            ),
            c.never_told("symptoms have been gone"),
        ),
    ),
    Situation(
        what="A GPU is lost on a node with two jobs; one ends after an hour, the other runs on for a day",
        expected="no new jobs at once, no restart before the deadline of four hours; then requeued and healed",
        moves=together(
            job(1, "71", [N]),
            job(1, "72", [N]),
            gpu_lost(60, [N]),
            change(HOUR_S, [N], ch.JobEnds(job="71")),
        ),
        until_s=8 * HOUR_S,
        checks=(
            c.never("node.reboot", "bmc.power_cycle", until_s=4 * HOUR_S),
            c.ends("gpu-lost", "closed"),
            c.out(),
            c.pages(1),
        ),
    ),
    Situation(
        what="A BMC says that it has cut the power, and the node was never off",
        expected="not taken for healed; a person gets it, and the node stays out of service",
        moves=together(
            answers(1, "bmc.power_cycle", Outcome.OK, "off and on again"),
            answers(1, "node.isolate", Outcome.OK, "off"),
            gpu_lost(60, [N]),
        ),
        until_s=4 * HOUR_S,
        checks=(c.out(N), c.never(_RESUME), c.ends("gpu-lost", "needs_human"), c.pages(2)),
    ),
    Situation(
        what="The management network is cut for five minutes under three repairs",
        expected="one page for the network; each repair goes on, and no remedy is repeated",
        nodes=256,
        moves=together(
            gpu_wants_reset(60, [N]),
            gpu_lost(60, [node(70)]),
            nic_broken(60, [node(130)]),
            silent(63, nodes(0, 256), 300),
        ),
        until_s=4 * HOUR_S,
        checks=(
            c.out(),
            c.counts(N, _RESET, 1),
            c.counts(node(70), "bmc.power_cycle", 1),
            c.counts(node(130), "nic.reset", 1),
            c.pages(4),
        ),
    ),
    Situation(
        what="A row has its power back after a surge: 16 nodes boot, and six of them have lost a GPU",
        expected="one incident of the power and one of the GPUs; at most one node is restarted on top",
        moves=together(dark(60, nodes(0, 16), 900), *(gpu_lost(965 + n, [node(2 * n)]) for n in range(6))),
        until_s=6 * HOUR_S,
        checks=(c.touches_at_most(1), c.pages(6)),
    ),
    Situation(
        what="Nobody leads for 40 minutes after our reboot; an operator resumes the node meanwhile, and a job starts",
        expected="no power cycle under that job without an approval, whose page says that the node was given back",
        moves=together(
            gpu_lost(60, [N]),
            nobody_leads(62.5, 2400),
            change(900, [N], ch.DrainSet(reason="")),
            job(1000, "9", [N]),
        ),
        until_s=6 * HOUR_S,
        checks=(
            c.runs_on(N, "9"),
            c.never("bmc.power_cycle"),
            c.told("approval wanted", "somebody has given n001 back since it was drained"),
            c.pages(2),
        ),
    ),
    Situation(
        what="A night's hold of everything is released at seven; of three nodes that broke, two were repaired by hand meanwhile",
        expected="only the one that is still broken is healed, after a fresh look",
        moves=together(
            says(10, "hold", scope="all", why="night freeze"),
            gpu_wants_reset(60, nodes(1, 3, 17)),
            change(2 * HOUR_S, nodes(1, 2, 17), ch.FixApplied(fix=Fix.RESET_GPU, component=GPU)),
            says(6 * HOUR_S, "release", scope="all"),
        ),
        until_s=9 * HOUR_S,
        checks=(c.untouched(*nodes(1, 2, 17)), c.does(node(35), _DRAIN, _RESET, _RESUME), c.out()),
    ),
    Situation(
        what="In a site of two leaves one leaf dies: 32 of 64 nodes lose their ports",
        expected="one page for each group, which names the leaf; no node is touched",
        moves=port_down(60, nodes(0, 32), for_s=900),
        until_s=HOUR_S,
        checks=(c.untouched(), c.told("leaf/leaf-0"), c.pages(2), c.ends("switch-suspected", "closed")),
    ),
    Situation(
        what="A node dies for good, and the last that it tells is that its port is down",
        expected="one incident of the silent node asks people; nothing is done for the port, nor is anybody asked about it",
        moves=together(change(60, [N], ch.PortDown(device="mlx5_0")), silent(62, [N], 48 * HOUR_S)),
        until_s=24 * HOUR_S,
        checks=(c.untouched(), c.pages(2), c.told("node-unreachable", "approval wanted")),
    ),
    Situation(
        what="An operator approves a repair on a node that bob holds",
        expected="the hold stands, and she reads that it does",
        settings={"modes": APPROVE},
        moves=together(
            says(10, "hold", who="bob", scope=f"node/{N}", why="PSU"),
            gpu_wants_reset(60, [N]),
            says_of(120, "approve", "gpu-fatal-xid"),
        ),
        until_s=HOUR_S,
        checks=(
            c.untouched(),
            c.said("operator.approve", "nothing begins while bob holds node/n001: PSU"),
            c.told("bob holds node/n001: PSU"),
            c.pages(1),
        ),
    ),
    Situation(
        what="A maintenance window of a row overruns: 30 nodes stay off for an hour after its end",
        expected="nobody is called while it lasts; one page at its end, and no BMC action; resolved when they are back",
        settings={
            "maintenance": (Window(scope="pod/row-0", since=START, until=START + HOUR_S, why="a busbar"),)
        },
        moves=dark(300, nodes(0, 30), 2 * HOUR_S),
        until_s=5 * HOUR_S,
        checks=(
            c.untouched(),
            c.pages(1),
            c.told("no maintenance window holds it any more"),
            c.ends("shared-node-unreachable-leaf", "closed"),
        ),
    ),
    Situation(
        what="Our drain of one of two dead nodes waits for its job, and an operator closes the incident of the wrong one",
        expected="its run ends and its drain is not forgotten: an incident says that it stands; the other node is healed",
        nodes=128,
        moves=together(
            job(1, "71", [N]),
            job(1, "72", [FAR]),
            gpu_wants_reset(60, [N, FAR]),
            says_about(600, "close", FAR),
            change(HOUR_S, [N], ch.JobEnds(job="71")),
            change(HOUR_S, [FAR], ch.JobEnds(job="72")),
        ),
        until_s=6 * HOUR_S,
        checks=(
            c.does(N, _DRAIN, _RESET, _RESUME),
            c.does(FAR, _DRAIN),
            c.out(FAR),
            c.ends("left-drained", "open"),
            c.pages(3),
        ),
    ),
)
