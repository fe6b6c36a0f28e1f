"""The truth of a cell, kept from what is told to the engine and what it shows; no oracle asks the engine."""

from agent.contract.actions.spec import Disrupts
from agent.contract.commands import Outcome
from agent.contract.messages import Event
from brain.core.effects import (
    Step,
)
from brain.core.inputs import (
    EventSeen,
    JobsAnswer,
    NodeState,
    OperatorCommand,
    StepResult,
)
from tests.laws.cell import Cell, HoldTold, StepUnderWay
from tests.laws.moment import Moment


def shown(cell: Cell, moment: Moment) -> None:
    """Keeps the incidents and runs as the engine shows them; called before the oracles look."""
    for incident in moment.incidents:
        cell.incidents[incident.id] = incident
    for run in moment.runs:
        cell.runs[run.id] = run


def observed(cell: Cell, moment: Moment) -> None:
    """Keeps the cell's truth up to date with one input and its effects; called after the oracles have looked."""
    given, now = moment.given, moment.now
    match given:
        case EventSeen(event=event):
            cell.node(event.node).heard_at = now
            if event.kind == "command.result" and not forged(cell, event):
                _ended(cell, str(event.data["command"]), Outcome(str(event.data["outcome"])), now)
        case StepResult(step=step, outcome=outcome):
            _ended(cell, step, outcome, now)
        case NodeState(node=name, alive=alive):
            node = cell.node(name)
            node.alive = alive
            if alive:
                node.heard_at = now
        case JobsAnswer(people=False):
            cell.node(given.node).jobs_answer = (now, given.known, given.protected)
        case OperatorCommand(id=id_, verb="hold", args=args) if args.get("why"):
            for_s = float(args.get("for_s", 0))
            scope = str(args["scope"])
            cell.holds[id_] = HoldTold(scope=scope, since=now, until=now + for_s if for_s else 0.0)
        case OperatorCommand(verb="release", args=args):
            there = [
                id_
                for id_, hold in cell.holds.items()
                if hold.scope == args["scope"] and (not hold.until or hold.until > now)
            ]
            if len(there) == 1:  # of several, one must be named by its id
                del cell.holds[there[0]]
        case OperatorCommand(verb="approve", args=args):
            cell.approvals[str(args["id"]).partition(".")[0]] = now
        case _:
            pass
    for note in moment.notes:
        if note.kind == "node.forgotten":
            _forgotten(cell, note.scope.removeprefix("node/"))
    for begun in moment.performed:
        if begun.id not in cell.under_way:
            cell.under_way[begun.id] = StepUnderWay(step=begun, since=now, disrupts=begun.disrupts)


def _forgotten(cell: Cell, node: str) -> None:
    """People take care of it: its drain is nobody's in the cell, and a step that drains it yet is nobody's either. When it
    speaks again it is a new node, which nothing has said to be silent.
    """
    cell.node(node).drained_for.clear()
    cell.node(node).alive = True
    cell.holds = {id_: hold for id_, hold in cell.holds.items() if hold.scope != f"node/{node}"}
    for id_, begun in list(cell.under_way.items()):
        if begun.step.node == node and begun.step.action == "scheduler.drain":
            del cell.under_way[id_]


def _ended(cell: Cell, step_id: str, outcome: Outcome, now: float) -> None:
    ended = cell.under_way.pop(step_id, None)
    if ended is None:
        return
    cell.ended.setdefault(step_id, (now, outcome))
    step = ended.step
    undone = outcome is Outcome.FAILED and step.params.get("then") == "undo"
    nothing = outcome in (Outcome.REFUSED, Outcome.UNREACHABLE) or undone
    if step.action == "scheduler.drain" and not nothing:
        cell.node(step.node).drained_for[step.incident] = now
    if step.action == "scheduler.resume" and outcome is Outcome.OK:
        cell.node(step.node).drained_for.clear()


def forged(cell: Cell, event: Event) -> bool:
    """Does the node report a result that is not its own to report?"""
    at_work = cell.under_way.get(str(event.data.get("command")))
    return at_work is not None and (at_work.step.node != event.node or at_work.step.where != "node")


def disruptive(step: Step) -> bool:
    """Does a step disturb anything?"""
    return step.disrupts is not Disrupts.NOTHING
