"""A site overrides the vendor's judgement, with a reason: what an XID leads to changes, the log does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.contract.lines import KernelReader
from agent.contract.lines.base import unsent as unsent_event
from agent.contract.messages import Scalar, Severity
from brain.adapters import pack as packs
from brain.core.engine import Engine
from brain.core.faults import facts
from brain.core.inputs import EventSeen, PackLoaded
from brain.core.pack import lint
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Expect, Match, Override, Pack
from brain.core.rehearsal import examples
from brain.core.rehearsal.timeline import Timeline
from tests.shipped import shipped_pack

XID_62 = "NVRM: Xid (PCI:0000:3b:00): 62, pid=7, name=python, 0000(00000000) 00000000 00000000"
QUIET = Override(
    name="our-62s",
    on=Match(kind="gpu.xid", where={"code": 62}),
    severity=Severity.INFO,
    action="IGNORE",
    because="a known bug of our test driver",
)


def causes(pack: Pack, line: str) -> list[tuple[str, str]]:
    """(cause, evidence) of the incidents that a kernel line leads to."""
    timeline = Timeline(Engine(actions=ACTIONS, observe_all=True))
    timeline.feed(PackLoaded(id="pack", pack=pack), 1000.0)
    (unsent,) = KernelReader().read(line)
    timeline.feed(EventSeen(event=examples.event_of(unsent, "n1")), 1001.0)
    timeline.run(1002.0)
    return [(one.cause, one.evidence[0].text) for one in timeline.incidents.values()]


@pytest.fixture(scope="module")
def pack() -> Pack:
    """gpuward's own rules."""
    return shipped_pack()


def test_an_overruled_xid_has_the_sites_consequences(pack: Pack) -> None:
    """To the vendor the GPU must be reset, to the site nothing is wrong; another code is judged as before."""
    assert [cause for cause, _ in causes(pack, XID_62)] == ["gpu-fatal-xid"]
    ours = replace(pack, overrides=(QUIET,))
    assert causes(ours, XID_62) == []
    assert causes(ours, XID_62.replace(": 62,", ": 95,")) != []


def test_a_site_may_judge_more_severely_and_the_evidence_says_why(pack: Pack) -> None:
    """To the vendor XID 43 is the application's fault; this site wants the GPU examined."""
    strict = replace(
        QUIET, name="strict", on=Match(kind="gpu.xid", where={"code": 43}), severity=Severity.FATAL
    )
    assert causes(pack, XID_62.replace(": 62,", ": 43,")) == []
    ((cause, shown),) = causes(replace(pack, overrides=(strict, QUIET)), XID_62.replace(": 62,", ": 43,"))
    assert cause == "gpu-fatal-xid"
    assert "strict: a known bug of our test driver" in shown


def test_an_override_forbids_no_rule_its_examples(pack: Pack) -> None:
    """A rule's example says what it does without the site's judgement; one that shows the override's work holds, too."""
    given = replace(pack, overrides=(replace(QUIET, on=Match(kind="gpu.xid"), severity=Severity.INFO),))
    assert [one for one in examples.run_all(given, ACTIONS) if not one.ok] == []
    rule = next(rule for rule in pack.rules if rule.name == "gpu-fatal-xid")
    quiet = replace(rule.examples[0], expect=Expect(nothing=True))
    assert not examples.run(given, ACTIONS, quiet)
    assert examples.run(pack, ACTIONS, quiet)


@pytest.mark.parametrize("data", [{"found": True}, {}], ids=["from the beginning", "switched off"])
def test_a_site_that_runs_without_ecc_says_so(pack: Pack, tmp_path: Path, data: dict[str, Scalar]) -> None:
    """Else it is told, of a node as a ticket where it was so from the beginning, and as degraded where it was switched off."""
    page = (Path(__file__).parents[2] / "docs" / "write-a-rule.md").read_text()
    example = page.partition("  no-ecc-here:")[2].partition("```")[0]
    for folder in ("rules", "runbooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "rules/site.yaml").write_text("overrides:\n  no-ecc-here:" + example)
    (ours,) = packs.load(tmp_path / "rules", tmp_path / "runbooks").overrides
    off = unsent_event(
        "gpu.setting",
        "gpu/0000:3b:00",
        Severity.WARNING,
        {"what": "ecc.mode", "before": "0", "now": "0", **data},
        "",
    )
    for given, wanted in (
        (pack, [("gpu-ecc-found-off", "P3") if data else ("gpu-ecc-off", "P2")]),
        (replace(pack, overrides=(ours,)), []),
    ):
        timeline = Timeline(Engine(actions=ACTIONS, observe_all=True))
        timeline.feed(PackLoaded(id="pack", pack=given), 1000.0)
        timeline.feed(EventSeen(event=examples.event_of(off, "n1")), 1001.0)
        timeline.run(1100.0)
        assert [(one.cause, one.severity) for one in timeline.incidents.values()] == wanted


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (replace(QUIET, because=" "), "overrides.our-62s.because: is empty"),
        (replace(QUIET, severity=None, action=""), "overrides.our-62s: changes nothing"),
        (replace(QUIET, on=Match(kind="gpu.xyd")), "there is no event kind 'gpu.xyd'"),
        (replace(QUIET, on=Match(kind="link.state")), "link.state has no action"),
        (replace(QUIET, on=Match(kind="gpu.xid", where={"kode": 1})), "gpu.xid has no field 'kode'"),
    ],
)
def test_a_senseless_override_is_refused(pack: Pack, override: Override, says: str) -> None:
    """The finding names the place and what is wrong."""
    assert any(says in problem for problem in lint.problems(replace(pack, overrides=(override,)), ACTIONS))


def test_overrides_are_read_from_files_and_travel_with_the_pack(tmp_path: Path) -> None:
    """They are written beside the rules; an unknown key is an error with file and line."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "runbooks").mkdir()
    file = tmp_path / "rules" / "site.yaml"
    text = (
        "overrides:\n  our-62s:\n    on: {kind: gpu.xid, where: {code: 62}}\n    severity: info\n"
        "    action: IGNORE\n    because: a known bug of our test driver\n"
    )
    file.write_text(text)
    pack = packs.load(tmp_path / "rules", tmp_path / "runbooks")
    assert pack.overrides == (QUIET,)
    assert packs.parse(packs.dump(pack)) == pack
    assert lint.problems(pack, ACTIONS) == []
    file.write_text(text.replace("severity", "sevrity"))
    (fault,) = packs.scan(tmp_path / "rules", tmp_path / "runbooks").errors
    assert "rules/site.yaml:4: overrides.our-62s.sevrity" in str(fault)


def test_the_first_override_that_fits_says_action_and_severity() -> None:
    """What an override does not name stays as the node reported it; an event that no override fits is unchanged."""
    (unsent,) = KernelReader().read(XID_62)
    event = examples.event_of(unsent, "n1")
    later = replace(QUIET, name="later", severity=Severity.FATAL)
    judged = facts.overruled([QUIET, later], event)
    assert (judged.severity, judged.data["action"], judged.data["overruled_by"]) == (
        Severity.INFO,
        "IGNORE",
        "our-62s",
    )
    assert judged.id == event.id
    only_severity = facts.overruled([replace(QUIET, action="")], event)
    assert only_severity.data["action"] == "RESET_GPU"
    assert facts.overruled([replace(QUIET, severity=None)], event).severity is event.severity
    assert facts.overruled([replace(QUIET, on=Match(kind="gpu.xid", where={"code": 1}))], event) is event
