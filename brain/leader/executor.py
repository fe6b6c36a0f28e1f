"""Executes the engine's effects, while this brain leads: first what machines wait for, then what people read."""

import asyncio
import logging
from collections.abc import Sequence

from agent.shared.log_fields import about
from brain.adapters.timers import Timers
from brain.core.effects import (
    AskJobs,
    AskLook,
    AskPlan,
    CancelStep,
    DrainAgain,
    Effect,
    Note,
    Perform,
    SendPage,
    SetTimer,
    ShowIncident,
    ShowRun,
    Step,
    WriteIntent,
)
from brain.core.inputs import Intent
from brain.leader.jobs import JobQuestions
from brain.leader.leadership import Leadership
from brain.leader.log_writer import LogWriter
from brain.leader.lost_drains import LostDrains
from brain.leader.pages import PageSender
from brain.leader.steps import StepDispatcher
from brain.traces.ids import trace_id

# Commands of one batch that are made ready while their intents are on the way; more of them would hold up the answers.
PREPARED = 16
NOTES = "brain.notes"  # the logger of what the engine notes, while this brain leads (brain/cli/run.py)
_notes = logging.getLogger(NOTES)


class EffectExecutor:
    """Passes each effect to the part that carries it out. None of them waits. Call `finish` after a batch of inputs."""

    def __init__(
        self,
        *,
        brain: str,
        leadership: Leadership,
        timers: Timers,
        writer: LogWriter,
        steps: StepDispatcher,
        jobs: JobQuestions,
        lost_drains: LostDrains,
        pages: PageSender,
        traced: bool = False,
    ) -> None:
        """`traced`: does each incident have a trace?"""
        self._brain = brain
        self._leadership = leadership
        self._timers = timers
        self._writer = writer
        self._steps = steps
        self._jobs = jobs
        self._lost_drains = lost_drains
        self._pages = pages
        self._traced = traced
        self._to_tell: list[SendPage | Note] = []
        self._to_prepare: list[tuple[Step, int]] = []  # steps and epochs, whose intents are written

    def execute(self, effects: Sequence[Effect]) -> None:
        """Executes the effects of one input, if this brain leads. Otherwise the leader does, or did when it was new."""
        if not effects or not self._leadership.leads():  # most inputs have none
            return
        epoch = self._leadership.epoch
        for effect in effects:
            match effect:
                case SetTimer(name=name, due=due):
                    self._timers.set(name, due)
                case WriteIntent(step=step):
                    self._writer.append_or_drop(
                        Intent(id=f"i:{step.id}:{epoch}", step=step.id, epoch=epoch, brain=self._brain)
                    )
                    self._to_prepare.append((step, epoch))
                case Perform(step=step) | AskLook(step=step):
                    self._steps.perform(step, epoch)
                case AskPlan(step=step):
                    self._steps.plan(step)
                case CancelStep(step=step, why=why):
                    self._steps.cancel(step, epoch, why)
                case AskJobs(node=node, people=people):
                    self._jobs.ask(node, people=people)
                case DrainAgain():
                    self._lost_drains.again(effect)
                case SendPage() | Note():
                    self._to_tell.append(effect)
                case ShowIncident() | ShowRun():
                    continue  # HistoryWriter shows them, and notes too

    async def finish(self) -> None:
        """What was executed goes out. To write log lines and to compose pages takes as long as to decide: an intent that waited
        for them would be performed a millisecond later.
        """
        try:
            await self._writer.send()
            await asyncio.sleep(0)  # the connection writes to its socket in this turn
            for step, epoch in self._to_prepare[:PREPARED]:
                self._steps.prepare(step, epoch)
        finally:
            self._to_prepare = []
            told, self._to_tell = self._to_tell, []
            for effect in told:
                if isinstance(effect, SendPage):
                    self._pages.send(effect)
                else:
                    self._logged(effect)

    def _logged(self, note: Note) -> None:
        if _notes.isEnabledFor(logging.INFO):
            trace = trace_id(note.incident) if self._traced else ""
            with about(
                incident=note.incident, run=note.run, scope=note.scope, kind=note.kind, trace_id=trace
            ):
                _notes.info("%s", note.text)
