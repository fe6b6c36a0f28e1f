"""A sound pack, of which a test changes one thing."""

from brain.core.pack import lint
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import (
    Example,
    Expect,
    Given,
    Knowledge,
    Match,
    Pack,
    Priority,
    Rule,
    Runbook,
    Rung,
    Symptom,
    Text,
    Verify,
)

TEXT = Text(en="text", zh="文字")
LOST = Given(event="gpu.lost", component="gpu/0000:3b:00", data={"reason": "lost"})
BACK = Given(event="gpu.returned", component="gpu/0000:3b:00", data={"by": "nvml"})

SYMPTOM = Symptom(
    name="lost",
    scope="gpu",
    summary="a GPU is lost",
    on=(Match(kind="gpu.lost"),),
    clear=(Match(kind="gpu.returned"),),
    carry={"why": "reason"},
)
RULE = Rule(
    name="gpu-lost",
    scope="gpu",
    when={"symptom": "lost"},
    severity=Priority.P1,
    because="NVML says so",
    knowledge=Knowledge(cause=TEXT, todo=TEXT),
    runbook="mend",
    examples=(
        Example(name="lost", given=(LOST,), expect=Expect(incident="gpu-lost", runbook="mend")),
        Example(name="back", given=(BACK,), expect=Expect(nothing=True)),
    ),
)
RUNG = Rung(
    name="restart",
    do="service.restart",
    params={"unit": "$why"},
    verify=Verify(within_s=10, for_s=1),
)
RUNBOOK = Runbook(name="mend", summary="Mend.", rungs=(RUNG,))
PACK = Pack(version="1", symptoms=(SYMPTOM,), rules=(RULE,), runbooks=(RUNBOOK,))


def found(pack: Pack) -> list[str]:
    """The problems of a pack."""
    return lint.problems(pack, ACTIONS)
