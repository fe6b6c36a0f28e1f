"""Oracles of what comes of it: the way back, pages, waiting, one node among others, restarts (laws 3, 7, 8, 10, 14, 15)."""

from collections import Counter

from brain.core.effects import Note, Perform, SendPage
from brain.core.inputs import Delivery, EventSeen, Leader, OperatorCommand
from brain.core.state import Incident, Run
from tests.laws.cell import Cell
from tests.laws.moment import Moment
from tests.laws.oracle import OVER, Found, contains
from tests.laws.truth import disruptive, forged
from tests.laws.world import Story

MOST_ASKED = 8  # for several reasons, one after the other


class BackInService:
    """Laws 3 and 8: a node is given back when it was heard after the last step, and nobody else wants it drained."""

    law = 8
    looks_at: tuple[type, ...] = (Perform,)

    def __init__(self) -> None:
        self._last: dict[str, float] = {}  # run -> when its newest disruptive step ended or left

    def see(self, cell: Cell, moment: Moment) -> Found:
        now = moment.now
        for step in moment.performed:
            if disruptive(step):
                self._last[step.run] = now
            run = cell.runs.get(step.run)
            if step.action != "scheduler.resume":
                continue
            node = cell.node(step.node)
            owners = [owner for owner in node.drained_for if owner != step.incident and _wants(cell, owner)]
            if owners:
                yield f"{step.id}: {step.node} is given back while {owners[0]} wants it drained"
            if run is not None and run.requested_by not in ("", "schedule"):
                continue  # who asks for it answers for what the node is like
            ended = [at for id_, (at, _) in cell.ended.items() if id_.startswith(f"{step.run}.")]
            since = max([self._last.get(step.run, 0.0), *ended])
            if node.heard_at < self._last.get(step.run, 0.0) or not node.alive:
                yield f"{step.id}: {step.node} is given back and was not heard since {since}"

    def end(self, story: Story) -> Found:
        return iter(())


def _wants(cell: Cell, owner: str) -> bool:
    """Is the fault there for which that incident drained a node?"""
    incident = cell.incidents.get(owner)
    over = incident is None or incident.state in ("closed", "explained")
    return not over and bool(incident and incident.matching_rules)


class PagesArrive:
    """Law 10: a page is never lost; nor is an alert: as long as it is not resolved, one open incident has it."""

    law = 10
    looks_at: tuple[type, ...] = (Delivery, SendPage)

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], str] = {}  # (alert, channel group) -> newest page
        self._open: dict[
            tuple[str, str], bool
        ] = {}  # (alert of one incident, channel group) -> is it open there?
        self._taken: set[str] = set()
        self._sent: dict[str, float] = {}  # page -> when

    def see(self, cell: Cell, moment: Moment) -> Found:
        given = moment.given
        if isinstance(given, Delivery) and given.ok:
            self._taken.add(given.page)
        for page in moment.pages:
            self._sent.setdefault(page.id, moment.now)
            alert = page.id.rpartition(".p")[0], page.to
            self._last[alert] = page.id
            if not page.subject.listed:
                self._open[alert] = page.what != "resolve"
        return iter(())

    def end(self, story: Story) -> Found:
        for (about, to), page in self._last.items():
            if (
                page not in self._taken and self._sent[page] < story.cell.now - 600
            ):  # the story has just ended
                yield f"{page} about {about} never reached {to}"
        known = story.cell.incidents.values()
        have = Counter(one.pages.key or one.id for one in known if one.state not in ("closed", "explained"))
        for (alert, to), is_open in self._open.items():
            if is_open and have[alert] != 1:
                yield f"the alert {alert} is open at {to}, and {have[alert]} open incidents have it"


class EverythingEnds:
    """Law 14: every state that waits has an end; what we took out of service is never forgotten."""

    law = 14
    looks_at: tuple[type, ...] = (SendPage,)

    def __init__(self) -> None:
        self._belong_together: set[str] = set()  # causes whose faults belong together, as people were told

    def see(self, cell: Cell, moment: Moment) -> Found:
        for page in moment.pages:
            lines = [(page.subject.cause, page.text)]
            lines += [(line.cause, line.text) for line in page.subject.listed]  # told in one page with others
            self._belong_together |= {cause for cause, text in lines if "these belong together" in text}
        return iter(())

    def _for_a_person(self, cell: Cell, run: Run) -> bool:
        """Whether people were told why it is held, or have set it so themselves."""
        if run.why.endswith("(gate related)"):
            return cell.incidents[run.incident].cause in self._belong_together
        # What they share has an incident of its own, and its symptom may last for a week. Known, and weaker than it should be:
        # that incident may be of another place than the node's, which then only its own page tells of.
        if run.why.endswith("(gate shared)"):
            fault = cell.incidents[run.incident].rule
            return any(
                not one.node and one.state in ("open", "needs_human") and fault in one.rule
                for one in cell.incidents.values()
            )
        return "observe" in run.why or "breaker" in run.why

    def end(self, story: Story) -> Found:
        holds = [hold for hold in story.cell.holds.values() if not hold.until]
        for run in story.cell.runs.values():
            if run.state in ("intent", "performing", "verifying", "cancelling"):
                yield f"{run.id} is {run.state} for ever: {run.why}"
            elif run.state == "held" and not holds and not self._for_a_person(story.cell, run):
                yield f"{run.id} is held for ever: {run.why}"
        said = [
            one for one in story.cell.incidents.values() if one.state in ("open", "healing", "needs_human")
        ]
        for node in story.cell.nodes.values():
            if node.drained_for and not any(
                one.node == node.name
                or any(
                    contains(story.cell.pack, scope, node.name) for scope in (one.scope, *_stands_for(one))
                )
                for one in said
            ):
                yield f"{node.name} stays drained for {next(iter(node.drained_for))}, and no open incident says so"


class ForItselfOnly:
    """Law 15: what a node reports of a step that is not its own is no result.

    That the node is heard at all is a fact about itself: a run that waits for just that may move.
    """

    law = 15
    looks_at: tuple[type, ...] = (EventSeen,)

    def see(self, cell: Cell, moment: Moment) -> Found:
        given = moment.given
        if (
            isinstance(given, EventSeen)
            and given.event.kind == "command.result"
            and forged(cell, given.event)
        ):
            step = cell.under_way[str(given.event.data["command"])].step
            if any(note.kind == "step.result" and note.run == step.run for note in moment.notes):
                yield f"{given.event.node} says how {step.id} of {step.node or 'the brain'} ended, and it counts"

    def end(self, story: Story) -> Found:
        return iter(())


class WayBack:
    """Law 7: a tripped breaker or a storm never blocks the way back."""

    law = 7
    looks_at: tuple[type, ...] = ()

    def see(self, cell: Cell, moment: Moment) -> Found:
        return iter(())

    def end(self, story: Story) -> Found:
        for run in story.cell.runs.values():
            if run.worked and run.state not in OVER:
                yield f"{run.id} never brings {run.node} back: {run.state}, {run.why}"


class SameAfterRestart:
    """The machine's law of restart (0 here): rebuilt from a snapshot the engine answers byte by byte as it would have."""

    law = 0
    looks_at: tuple[type, ...] = ()

    def see(self, cell: Cell, moment: Moment) -> Found:
        return iter(())

    def end(self, story: Story) -> Found:
        yield from (f"after a restart {given} has other effects" for given in story.differ)


class NobodyIsAskedTwice:
    """Law 14, and the users' nights: for one step people are asked once to approve, as long as nothing has changed."""

    law = 14
    looks_at: tuple[type, ...] = (OperatorCommand, Leader, Note)

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], int] = {}

    def see(self, cell: Cell, moment: Moment) -> Found:
        given = moment.given
        if isinstance(given, (OperatorCommand, Leader)):
            self._asked.clear()  # something has changed
        for note in moment.notes:
            if note.kind == "page.sent" and ": approval wanted" in note.text:
                key = note.incident, note.text
                self._asked[key] = self._asked.get(key, 0) + 1
                if self._asked[key] == MOST_ASKED:
                    yield f"{MOST_ASKED} pages say of {note.incident}: {note.text}"

    def end(self, story: Story) -> Found:
        return iter(())


def _stands_for(incident: Incident) -> list[str]:
    """The further places for which an incident speaks: its page took over those of their incidents."""
    return [match.partition("@")[2] for match in incident.stands_for]
