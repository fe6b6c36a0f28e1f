"""What `gpuward check` finds wrong with a runbook whose types are right."""

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.actions.spec import Disrupts, Repeat
from brain.core.pack.spec import (
    Rung,
    Verify,
)
from tests.brain.lint_kit import PACK, RUNBOOK, RUNG, found

RUNBOOKS: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
    ({"name": "Mend it"}, {}, "runbooks.Mend it: a runbook's name is in kebab-case"),
    ({"rungs": ()}, {}, "runbooks.mend.rungs: a ladder needs a rung"),
    ({"for_several": "more"}, {}, "runbooks.mend.for_several: there is no runbook 'more'"),
    ({"for_several": "mend"}, {}, "runbooks.mend.for_several: mend is not for several parts"),
    (
        {"for_several": "mend", "several": True},
        {},
        "runbooks.mend.for_several: it is for several parts itself",
    ),
    ({"rungs": (RUNG, RUNG)}, {}, "runbooks.mend.rungs.1.name: there are two rungs 'restart'"),
    (
        {"return_to_service": (Rung(name="test", do="port.check", after=("reboot",)),)},
        {},
        "return_to_service.0.after.0: the ladder has no rung 'reboot' (has: restart)",
    ),
    ({}, {"after": ("restart",)}, "rungs.0.after: only a rung of return_to_service has `after`"),
    (
        {"return_to_service": (Rung(name="stop", do="service.stop", params={"unit": "x"}),)},
        {},
        "return_to_service.0: a return to service must disrupt nothing",
    ),
    (
        {
            "return_to_service": (
                Rung(name="test", do="gpu.diagnose", params={"level": 1}, disrupts=Disrupts.NODE),
            )
        },
        {},
        "return_to_service.0: a return to service must disrupt nothing",
    ),
    ({"tries": 0}, {}, "runbooks.mend.tries: tries must be at least 1"),
    ({"scope": "fabric"}, {}, "runbooks.mend.scope: only a runbook with `request: true` has a scope"),
    (
        {"scope": "fabric", "request": True},
        {},
        "rungs.0.do: service.restart runs on a node, but the runbook is of scope fabric",
    ),
    (
        {},
        {"do": "shell.run"},
        "rungs.0.do: there is no action 'shell.run' (have: service.restart, service.start",
    ),
    ({}, {"params": {}}, "rungs.0.params: service.restart needs unit"),
    ({}, {"params": {"unit": 3}}, "rungs.0.params: service.restart: unit must be text"),
    (
        {},
        {"params": {"unit": "$why", "speed": 3}},
        "rungs.0.params: service.restart has no parameter 'speed'",
    ),
    (
        {},
        {"params": {"unit": "$colour"}},
        "rungs.0.params.unit: rule gpu-lost gives no '$colour' (gives: scope",
    ),
    ({}, {"verify": None}, "rungs.0: disrupts something and is not verified"),
    ({}, {"verify": Verify(within_s=0, for_s=1)}, "rungs.0.verify: within_s must be more than 0 s"),
    (
        {},
        {"verify": Verify(within_s=9, for_s=1, gone=("x",))},
        "rungs.0.verify.gone.0: there is no symptom 'x'",
    ),
    (
        {},
        {"disrupts": Disrupts.NOTHING},
        "rungs.0.disrupts: service.restart disrupts job: a rung can only say worse",
    ),
    (
        {},
        {"do": "link.bounce", "params": {"link": "$component"}, "repeat": Repeat.SAFE, "retries": 99},
        "must be 0 to 10",
    ),
    ({}, {"when": {"colour": 1}}, "rungs.0.when: no situation has a field 'colour'"),
    ({}, {"timeout_s": -1}, "rungs.0.timeout_s: must not be negative"),
    ({}, {"do": "page", "params": {"to": "$why"}}, "rungs.0.params.to: a page has no '$why'"),
    (
        {},
        {"do": "page", "params": {"whom": "me"}},
        "rungs.0.params: page has no parameter 'whom' (have: to, text)",
    ),
)


@pytest.mark.parametrize(("changes", "rung", "says"), RUNBOOKS)
def test_runbooks(changes: dict[str, Any], rung: dict[str, Any], says: str) -> None:
    """One change to a sound runbook or its rung, one problem that names it."""
    book = replace(RUNBOOK, **({"rungs": (replace(RUNG, **rung),)} | changes))
    problems = found(replace(PACK, runbooks=(book,)))
    assert any(says in one for one in problems), problems


def test_a_rung_may_be_more_careful_than_its_action() -> None:
    """Worse disruption and a stricter repeat class are allowed."""
    rung = replace(RUNG, disrupts=Disrupts.NODE, repeat=Repeat.PROBE)
    assert found(replace(PACK, runbooks=(replace(RUNBOOK, rungs=(rung,)),))) == []
