"""Situations of switches, cables and subnet managers."""

from brain.core.pack.spec import Priority
from simulations import changes as ch
from simulations.scenarios.moves import change, drill, node, nodes, together
from simulations.scenarios.troubles import gpu_lost, port_down
from tests.situations import checks as c
from tests.situations.situation import Situation

DAY_S = 86400.0
SITUATIONS = (
    Situation(
        what="A leaf switch dies at once: 32 ports",
        expected="one incident of the leaf, network and on-call told once, no node touched, resolved with it",
        nodes=512,
        moves=port_down(60, nodes(0, 32), for_s=900),
        until_s=1800,
        checks=(
            c.sees({"switch-suspected": 1}),
            c.untouched(),
            c.ends("switch-suspected", "closed"),
            c.wish(c.pages(3)),
        ),
    ),
    Situation(
        what="The same leaf loses a port every 20 s",
        expected="one incident of the leaf from the third or fourth port on; what had begun stops at its next boundary",
        nodes=512,
        moves=port_down(60, nodes(0, 32), every_s=20),
        until_s=2400,
        checks=(
            c.sees_at_most(1, "switch-suspected"),
            c.told("leaf/leaf-0"),
            c.touches_at_most(4),
            c.never("scheduler.drain", "nic.reset", after_s=240),
        ),
    ),
    Situation(
        what="The subnet manager fails over while a GPU is healed",
        expected="both handled, neither disturbs the other",
        moves=together(gpu_lost(60, [node(3)]), drill(64, "sm-failover", "")),
        until_s=3600,
        checks=(
            c.sees({"gpu-lost": 1, "sm-failover": 1}),
            c.ends("gpu-lost", "closed"),
            c.ends("sm-failover", "closed"),
            c.touches_at_most(1),
            c.out(),
        ),
    ),
    Situation(
        what="A link is down for 5 s every 10 minutes, all day",
        expected="one incident with a rate; drained at the next idle moment",
        moves=together(
            *(
                change(600.0 * n, [node(5)], ch.CarrierLost(link="eth1"))
                + change(600.0 * n + 5, [node(5)], ch.AdminUp(link="eth1"))
                for n in range(1, 144)
            )
        ),
        until_s=DAY_S,
        checks=(c.sees_at_most(3), c.pages(6), c.out(node(5))),
    ),
    Situation(
        what="Bursts of flaps for a day",
        expected="one incident with a rate; drained at the next idle moment",
        moves=together(*(drill(3600.0 * n, "link-flapping", node(5)) for n in range(1, 24))),
        until_s=DAY_S,
        checks=(c.sees_at_most(3), c.pages(6), c.out(node(5))),
    ),
    Situation(
        what="An administrator sets a link down",
        expected="it is left down",
        moves=change(60, [node(5)], ch.AdminDown(link="eth1")),
        until_s=3600,
        checks=(c.untouched(), c.pages(0, Priority.P0, Priority.P1)),
    ),
)
