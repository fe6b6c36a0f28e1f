"""Situations of the people beside the machine: their drains and repairs by hand, what they are told, and what waits for them."""

from agent.contract.commands import Outcome
from agent.contract.messages import Severity
from simulations.events import event
from tests.situations import checks as c
from tests.situations.faults import INFO, gpu_lost
from tests.situations.moves import GPU, answers, lasting, node, together
from tests.situations.situation import Situation

HOUR_S = 3600.0
N = node(1)
_BRAKE = event("gpu.throttle", GPU, Severity.WARNING, active=True, thermal=False, reasons="hw_power_brake")
_FULL_SPEED = event("gpu.throttle", GPU, INFO, active=False, thermal=False, reasons="")

SITUATIONS = (
    Situation(
        what="A rack lacks power, a node more every 5 minutes, and has it again after two hours",
        expected="one incident; the nodes that had been drained by then come back, and nothing stays open",
        moves=together(
            *(lasting(60 + 300.0 * n, [node(n)], _BRAKE, _FULL_SPEED, for_s=7200 - 300.0 * n) for n in range(10))
        ),
        until_s=4 * HOUR_S,
        checks=(c.out(), c.touches_at_most(3), c.ends("left-drained", "closed"), c.ends("shared-gpu-power-brake-cell", "closed")),
    ),
    Situation(
        what="A GPU dies for good, and the BMC of its node does not answer",
        expected="the page says that the node gets no new jobs and was not switched off; nothing is tried again",
        moves=together(
            answers(1, "bmc.power_cycle", Outcome.UNREACHABLE, "BMC: no route to host"),
            answers(1, "node.isolate", Outcome.UNREACHABLE, "BMC: no route to host"),
            gpu_lost(60, [N], dead=True),
        ),
        until_s=6 * HOUR_S,
        checks=(
            c.does(N, "scheduler.drain", "node.reboot", "bmc.power_cycle", "node.isolate"),
            c.told("n001 gets no new jobs", "was NOT switched off (BMC: no route to host)"),
            c.out(N),
        ),
    ),
)
