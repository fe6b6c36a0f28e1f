"""What orders of the actions through a scheduler say: how long to wait, for which rung, whose marks. Pure."""

from agent.contract.messages import clip
from brain.actions.base import Order, number, text
from brain.actions.marks import Mark
from brain.actions.patience import SPARE_S

MAX_WAIT_S = 30 * 86_400.0
MAX_IDLE_WAIT_S = 604_800.0
LEAVE_S = 120.0  # how long requeued jobs may take to leave the node (KillWait, grace periods)
ALL = "all"  # owners: every mark of ours


def wait(order: Order) -> tuple[float, str]:
    """Returns how long jobs may run on, within the step's deadline, and what happens then."""
    wait_s = number(order.params, "wait_s", 0.0, 0.0, MAX_WAIT_S)
    then = text(order.params, "then", "fail", ("fail", "undo", "requeue", "go_on"))
    spare_s = SPARE_S + (LEAVE_S if then == "requeue" else 0.0)
    return max(0.0, min(wait_s, order.timeout_s - spare_s)), then


def rung_of(order: Order) -> str:
    """Of a run; ids of steps are <run>.<rung>.<attempt>."""
    return order.id.rpartition(".")[0] or order.id


def mark_of(order: Order) -> Mark:
    """Returns the mark of the order's incident."""
    return Mark(incident=order.incident, why=clip(order.why, 150))


def owners_of(order: Order) -> frozenset[str] | None:
    """Returns the incidents that let the node go; None: all of them."""
    wanted = text(order.params, "owners", order.incident).split()
    return None if wanted == [ALL] else frozenset(wanted)


def names_of(owners: frozenset[str] | None) -> str:
    """Returns how these incidents are named in a sentence."""
    return ", ".join(sorted(owners)) if owners is not None else "ours"


def idle_wait(order: Order) -> float:
    """Returns how long to wait for an idle moment, within the step's deadline."""
    wait_s = number(order.params, "wait_s", MAX_IDLE_WAIT_S, 0.0, MAX_IDLE_WAIT_S)
    return max(0.0, min(wait_s, order.timeout_s - SPARE_S))
