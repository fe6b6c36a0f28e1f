"""Makes the models of rules and runbooks from the pack in force. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from agent.contract.actions.spec import Disrupts
from brain.console import shapes
from brain.console.api.base import TwoLanguagesShape
from brain.console.api.pack_shapes import (
    AdviceShape,
    LadderRungShape,
    RuleDetailShape,
    RuleEntryShape,
    RuleSymptomShape,
    RunbookDetailShape,
    RunbookEntryShape,
    SetModeShape,
)
from brain.console.pack.figures import Figures, Fired, Ran, middle
from brain.console.speech import told, told_page
from brain.core.pack.actions import ACTIONS
from brain.core.pack.conditions import symptoms_in
from brain.core.pack.spec import PAGE, ModeSetting, Pack, Rule, Runbook, Rung, Scalar, Text, Verify
from brain.core.people import do
from brain.core.state import ModeOverride, RunState

Sources = Mapping[tuple[str, str], str]  # ("rules", name) -> `<file>:<line>`
_WORSE = list(Disrupts)
_OVER = (RunState.SUCCEEDED, RunState.EXHAUSTED, RunState.OBSERVED, RunState.CANCELLED)


def rule(spec: Rule, figures: Figures, sources: Sources) -> RuleEntryShape:
    """Returns a rule in short."""
    return RuleEntryShape(**_rule(spec, figures, sources))


def rule_in_full(spec: Rule, pack: Pack, figures: Figures, sources: Sources) -> RuleDetailShape:
    """Returns a rule."""
    knowledge = spec.knowledge
    known = {symptom.name: symptom for symptom in pack.symptoms}
    return RuleDetailShape(
        **_rule(spec, figures, sources),
        pack=pack.version,
        cause_text=_text(knowledge.cause),
        todo=_text(knowledge.todo),
        advice=[AdviceShape(when=dict(one.when), todo=_text(one.todo)) for one in knowledge.advice],
        links=list(knowledge.links),
        when=dict(spec.when),
        symptoms=[
            RuleSymptomShape(
                name=name,
                summary=told(known[name].summary) if name in known else "",
                source=sources.get(("symptoms", name), ""),
            )
            for name in dict.fromkeys(symptoms_in(spec.when))
        ],
        inhibits=[*spec.inhibits, *spec.inhibits_on_node, *spec.inhibits_together],
        hold_off_s=spec.hold_off_s,
        resolve_delay_s=spec.resolve_delay_s,
    )


def _rule(spec: Rule, figures: Figures, sources: Sources) -> dict[str, Any]:
    own = figures.rules.get(spec.name, Fired())
    return {
        "name": spec.name,
        "cause": spec.cause or spec.name,
        "scope": spec.scope,
        "severity": spec.severity,
        "because": spec.because,
        "because_zh": spec.because_zh,
        "runbook": spec.runbook,
        "page": spec.page.value,
        "source": sources.get(("rules", spec.name), ""),
        "fired": own.fired,
        "open": own.open,
        "healed": len(own.healed_s),
        "healed_in_s": middle(own.healed_s),
        "last_at": shapes.iso(own.last_at),
    }


def runbook(spec: Runbook, pack: Pack, figures: Figures, sources: Sources) -> RunbookEntryShape:
    """Returns a runbook in short."""
    return RunbookEntryShape(**_runbook(spec, pack, figures, sources))


def runbook_in_full(
    spec: Runbook,
    pack: Pack,
    figures: Figures,
    sources: Sources,
    modes: Iterable[ModeSetting | ModeOverride],
    said: Mapping[str, float],
) -> RunbookDetailShape:
    """Returns a runbook. `said`: what people said of modes -> when, as the audit has it."""
    return RunbookDetailShape(
        **_runbook(spec, pack, figures, sources),
        pack=pack.version,
        rungs=[_rung(rung) for rung in spec.rungs],
        return_to_service=[_rung(rung) for rung in spec.return_to_service],
        modes=list(_modes(spec.name, modes, said)),
        request=spec.request,
        every_s=spec.every_s,
        tries=spec.tries,
        tries_within_s=spec.tries_within_s,
        last_resort=spec.last_resort,
        for_several=spec.for_several,
    )


def _runbook(spec: Runbook, pack: Pack, figures: Figures, sources: Sources) -> dict[str, Any]:
    own = figures.runbooks.get(spec.name, Ran())
    ended = {state.value: own.states.get(state, 0) for state in _OVER}
    return {
        "name": spec.name,
        "summary": spec.summary,
        "source": sources.get(("runbooks", spec.name), ""),
        "at_most": spec.at_most.value,
        "rules": [one.name for one in pack.rules if one.runbook == spec.name],
        "starts_on": spec.scope if spec.request else "",
        "runs": sum(own.states.values()),
        "under_way": sum(own.states.values()) - sum(ended.values()),
        **ended,
        "healed_in_s": middle(own.took_s),
        "last_at": shapes.iso(own.last_at),
    }


def disrupts(rung: Rung, *, returning: bool = False) -> str:
    """Returns what a rung disrupts, as the gates judge it (brain/core/healing/plans.py). `returning`: on the way back."""
    spec = ACTIONS.get(rung.do)
    if spec is None or rung.do == PAGE or (returning and spec.tests):
        return Disrupts.NOTHING.value
    worse = max(spec.disrupts, rung.disrupts, key=_WORSE.index) if rung.disrupts else spec.disrupts
    return worse.value


def repeat(rung: Rung) -> str:
    """Returns a rung's repeat class; empty: its action is not known."""
    spec = ACTIONS.get(rung.do)
    found = rung.repeat or (spec.repeat if spec else None)
    return found.value if found else ""


def _rung(rung: Rung) -> LadderRungShape:
    spec = ACTIONS.get(rung.do)
    return LadderRungShape(
        name=rung.name,
        do=rung.do,
        means=spec.summary if spec else "",
        params=_params(rung),
        where=spec.where if spec else "brain",
        disrupts=disrupts(rung),
        repeat=repeat(rung),
        timeout_s=rung.timeout_s or (spec.timeout_s if spec else 0.0),
        retries=rung.retries,
        when=dict(rung.when),
        after=list(rung.after),
        verify=told(verification(rung.verify)),
        on_failure=rung.on_failure,
        on_refusal=rung.on_refusal,
    )


def _params(rung: Rung) -> dict[str, Scalar]:
    """A rung's parameters, and the text of its page as people read it."""
    given = dict(rung.params)
    return given | {"text": told_page(str(given["text"]))} if rung.do == PAGE and "text" in given else given


def verification(verify: Verify | None) -> str:
    """Returns when a rung has worked, as a sentence; empty: it heals nothing."""
    if verify is None:
        return ""
    what = ", ".join(verify.gone) if verify.gone else "all symptoms of the incident"
    reset = "all" if "*" in verify.reset_on_act else ", ".join(verify.reset_on_act)
    new = f"; of these {reset} must be told anew to count" if reset else ""
    return f"{what} gone within {verify.within_s:g} s, and then for {verify.for_s:g} s{new}"


def _modes(
    runbook: str, modes: Iterable[ModeSetting | ModeOverride], said: Mapping[str, float]
) -> Iterator[SetModeShape]:
    for one in modes:
        if not fnmatchcase(runbook, one.runbook):
            continue
        who, why, since = (one.who, one.why, one.since) if isinstance(one, ModeOverride) else ("", "", 0.0)
        sentence = f"{do(who, 'sets')} {one.runbook} to {one.mode} on nodes {one.nodes}"
        yield SetModeShape(
            runbook=one.runbook,
            nodes=one.nodes,
            mode=one.mode,
            who=who,
            why=why,
            at=shapes.iso(since or said.get(sentence, 0.0)) if who else None,
        )


def _text(text: Text) -> TwoLanguagesShape:
    return TwoLanguagesShape(en=text.en, zh=text.zh)
