"""docs/coverage.md: what it says of published failures is true of the rules that are shipped."""

import json
import re

import pytest

from docs import coverage
from docs.coverage import FailureClass
from tests.brain.diagnose_kit import BOOT, ask

HAVE = {rule.name: rule for rule in coverage.shipped().rules}
CLASSES = [
    pytest.param(one, id=f"{study.name[:12]}-{one.name}")
    for study in coverage.read().studies
    for one in study.classes
]
XIDS = [
    pytest.param(int(code), one.rules, id=f"{study.name[:12]}-{code}")
    for study in coverage.read().studies
    for one in study.classes
    if one.name.startswith("XID ") and one.state == "covered"
    for code in re.findall(r"\d+", one.name)
]
TEXT = {
    63: "pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.",
    64: "Row Remapper Error: (0x0000000001234000) - All reserved rows for bank are remapped",
    74: "pid=1234, name=python3, NVLink: fatal error detected on link 3(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
    94: "pid=1234, name=python3, Contained: SM (0x1). RST: No, D-RST: No",
    95: "pid=1234, name=python3, Uncontained: FBHUB (0x1). RST: Yes, D-RST: No",
}


@pytest.mark.parametrize("one", CLASSES)
def test_a_class_names_rules_that_there_are_or_says_why_none(one: FailureClass) -> None:
    """A gap has its reason, and nothing is both seen and a gap."""
    assert [name for name in one.rules if name not in HAVE] == []
    assert bool(one.rules) != bool(one.gap), "either rules, or why there is none"
    assert one.share > 0


def test_each_rule_has_a_remedy_or_a_reason_for_none() -> None:
    """And no reason is left of a rule that has one by now, or that is gone."""
    without = {name for name, rule in HAVE.items() if not rule.runbook}
    assert coverage.read().without_remedy.keys() == without


def test_each_rule_has_a_source() -> None:
    """What begins its symptoms comes from somewhere."""
    symptoms = {one.name: one for one in coverage.shipped().symptoms}
    assert [name for name, rule in HAVE.items() if not coverage.sources_of(rule, symptoms)] == []


@pytest.mark.parametrize(("code", "rules"), XIDS)
def test_the_kernel_line_of_each_published_xid_begins_one_of_its_rules(
    code: int, rules: tuple[str, ...]
) -> None:
    """Two lines, as one NVLink error is only watched."""
    text = TEXT.get(code, "pid=1234, name=python3, something happened")
    lines = [f"[  {at}.000000] NVRM: Xid (PCI:0000:1b:00): {code}, {text}\n" for at in (100, 160, 220)]
    answer = json.loads(ask(BOOT + "".join(lines), "--json"))
    assert {one["cause"] for one in answer["incidents"]} & set(rules), answer["incidents"]
