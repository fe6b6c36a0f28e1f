"""The runner of rules' examples: it must be able to fail one."""

from dataclasses import replace

import pytest

from brain.core.pack.actions import ACTIONS
from brain.core.pack.rulebook import Matcher
from brain.core.pack.spec import Example, Expect, Given, Mode, ModeSetting, Pack, Place, Settings
from brain.core.rehearsal import examples
from tests.matchers import each_matcher
from tests.shipped import shipped_pack

XID_79 = Given(kernel="NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
LINK_DOWN = Given(
    event="link.state",
    component="link/eth2",
    data={"up": False, "admin_up": True, "carrier": False, "operstate": "down"},
)
LINK_UP = Given(
    at=0.5,
    event="link.state",
    component="link/eth2",
    severity="info",
    data={"up": True, "admin_up": True, "carrier": True, "operstate": "up"},
)

CAME = "came: gpu-lost at gpu/n1/0000:3b:00 with runbook gpu-lost"


@pytest.fixture(scope="module")
def pack() -> Pack:
    """gpuward's own rules."""
    return shipped_pack()


@each_matcher
def test_every_example_of_our_rules_holds(pack: Pack, matcher: Matcher) -> None:
    """Law coverage: each rule has an example that matches and one that does not; whichever matcher is in use."""
    results = examples.run_all(pack, ACTIONS, matcher=matcher)
    assert [result for result in results if not result.ok] == []
    assert {result.rule for result in results} == {rule.name for rule in pack.rules}


TABLE: tuple[tuple[tuple[Given, ...], Expect, str], ...] = (
    ((XID_79,), Expect(nothing=True), f"expected no incident, {CAME}"),
    ((XID_79,), Expect(incident="gpu-stuck-job"), f"expected gpu-stuck-job, {CAME}"),
    ((XID_79,), Expect(incident="gpu-lost", scope="node/n1"), f"expected gpu-lost at node/n1, {CAME}"),
    (
        (XID_79,),
        Expect(incident="gpu-lost", runbook="link-bounce"),
        f"expected gpu-lost with runbook link-bounce, {CAME}",
    ),
    ((XID_79,), Expect(incidents=2), f"expected 2 incidents, {CAME}"),
    ((Given(kernel="all is well"),), Expect(incident="gpu-lost"), "expected gpu-lost, came: no incident"),
    ((XID_79,), Expect(incident="gpu-lost", scope="gpu/n1/0000:3b:00", runbook="gpu-lost", incidents=1), ""),
    ((replace(XID_79, node="g7"),), Expect(incident="gpu-lost", scope="gpu/g7/0000:3b:00"), ""),
    ((XID_79, LINK_DOWN), Expect(incident="link-down", incidents=2), ""),
    ((LINK_UP, LINK_DOWN), Expect(nothing=True), ""),
    ((LINK_DOWN, replace(LINK_UP, at=2)), Expect(incident="link-down", incidents=1), ""),
    ((replace(XID_79, age_s=90000),), Expect(nothing=True), ""),
    (
        (replace(LINK_DOWN, nodes=20),),
        Expect(incident="shared-link-down-cell", scope="cell", incidents=1),
        "",
    ),
    ((Given(unreachable=True, node="n4"),), Expect(incident="node-unreachable", scope="node/n4"), ""),
)


@pytest.mark.parametrize(("given", "expect", "says"), TABLE)
def test_incidents_are_compared_with_what_is_expected(
    pack: Pack, given: tuple[Given, ...], expect: Expect, says: str
) -> None:
    """Cause, scope, runbook and number are compared; facts are fed in the order of their times."""
    assert examples.run(pack, ACTIONS, Example(name="one", given=given, expect=expect)) == says


def test_a_kernel_line_may_come_in_any_encoding(pack: Pack) -> None:
    """An example is pasted from dmesg, journald or /dev/kmsg as it is."""
    text = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    expect = Expect(incident="gpu-lost", incidents=1)
    for line in (
        f"[  692.641414] {text}",
        f"3,344,692641414,-;{text}",
        f"kern  :err   : 2026-11-20T13:17:35,651653+00:00 {text}",
        f"Nov 20 13:15:47 g7 kernel: {text}",
    ):
        given = (Given(kernel=line),)
        assert examples.run(pack, ACTIONS, Example(name="one", given=given, expect=expect)) == ""


def test_the_site_does_not_change_the_examples(pack: Pack) -> None:
    """An example shows what a rule means: the modes, topology and budgets of a site do not change it."""
    site = replace(
        pack,
        settings=Settings(modes=(ModeSetting(mode=Mode.AUTO),), shared_nodes=1, disruptive_runs=0),
        places={f"n{number}": Place(leaf="l1", rack="r1") for number in range(1, 4)},
    )
    assert [result for result in examples.run_all(site, ACTIONS) if not result.ok] == []
