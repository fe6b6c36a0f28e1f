"""Why an incident is what it is called, in Chinese too: what rules say, and what the engine adds to it."""

import re
from dataclasses import replace

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core.faults import cards
from brain.core.pack.shared import generated
from brain.core.pack.spec import Mode, ModeSetting, Rule, Settings
from brain.core.pack.topology import CELL, WIDE
from brain.core.paging import subjects
from brain.core.state import AlertGroup
from tests.brain.world import GPU, Story, pack
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"[a-z]+ [a-z]+ [a-z]+ [a-z]+ [a-z]+")  # a sentence


@pytest.mark.parametrize("rule", SHIPPED.rules, ids=lambda rule: rule.name)
def test_each_shipped_rule_says_it_in_chinese(rule: Rule) -> None:
    """Also what is generated of it: a site that writes none has its English."""
    assert CHINESE.search(rule.because_zh), f"rules/: {rule.name} has no because_zh"
    assert not ENGLISH.search(rule.because_zh)


def test_each_kind_of_shared_cause_says_it_in_chinese() -> None:
    """The kind of place has a Chinese name."""
    found = {rule.scope: rule.because_zh for _, rule in generated(SHIPPED, (*WIDE, CELL))}
    assert set(found) == {*WIDE, CELL}
    assert all(text.startswith("同一") for text in found.values())
    assert all(len(CHINESE.findall(text)) > 20 for text in found.values())
    assert found["rack"].startswith("同一机架有这么多节点")


def story(mode: Mode = Mode.OBSERVE) -> Story:
    """The shipped rules, on a fleet that nothing heals."""
    return Story(replace(SHIPPED, settings=Settings(modes=(ModeSetting(mode=mode),))), heals=False)


def test_several_parts_of_a_node() -> None:
    """Both sentences grow together, and survive a restart and new rules."""
    given = story()
    for number, part in enumerate(("gpu/0000:3b:00", "gpu/0000:4c:00")):
        given.event(10 + number, "gpu.xid", part, code=79)
    given.run(30)
    (incident,) = given.incidents("gpu-lost")
    rule = next(one for one in SHIPPED.rules if one.name == incident.rule)
    assert incident.because.startswith(f"{rule.because}; several parts of one node")
    assert incident.because_zh.startswith(f"{rule.because_zh}；同一节点的多个部件")
    again = parse(dump(given.engine.state))
    assert [one.because_zh for one in again.incidents.values()] == [incident.because_zh]
    assert subjects.of_incident(incident).because_zh == incident.because_zh


def test_a_cards_past() -> None:
    """What it had in another chassis; of a rule without Chinese nothing is said in half of it."""
    for zh in ("它已脱离总线", ""):
        rules = pack()
        given = Story(replace(rules, rules=tuple(replace(one, because_zh=zh) for one in rules.rules)))
        given.event(1, cards.KIND, GPU, "n1", serial="1653023018213")
        given.event(1000, "gpu.off_bus", GPU, "n1")
        given.event(1010, "gpu.returned", GPU, "n1")
        given.event(10_000, cards.KIND, GPU, "n1", serial="1653023018999")
        given.event(10_000, cards.KIND, GPU, "n2", serial="1653023018213")
        given.event(20_000, "gpu.off_bus", GPU, "n2")
        given.run(20_005)
        (found,) = [one for one in given.incidents("gpu-lost") if one.node == "n2"]
        assert "the card 1653023018213 had 1 fault" in found.because
        wanted = (
            f"{zh}；卡 1653023018213 曾在 gpu/n1/0000:3b:00 出现 1 次故障（gpu-lost），"
            "最近一次在 5 小时前：故障可能随卡转移而来"
        )
        assert found.because_zh == (wanted if zh else "")


def test_what_a_person_asked_for() -> None:
    """Who, and why."""
    given = story(Mode.AUTO)
    given.event(1, "agent.started", "node", "n1")
    given.say(10, "start", runbook="inspect-node", node="n1", why="看看")
    given.run(10.5)
    found = [one for one in given.engine.state.incidents.values() if one.rule == "request"]
    assert [(one.because, one.because_zh) for one in found] == [
        ("ann asked for it: 看看", "ann 要求这样做：看看")
    ]


def test_many_incidents_are_told_in_one_page() -> None:
    """An alert group has no rule."""
    for digest, english, chinese in (
        ("", "began within moments", "片刻之内"),
        ("P2", "nobody is woken for", "叫醒"),
    ):
        group = AlertGroup(id="grp-1", to="oncall", opened_at=1.0, digest=digest)
        about = subjects.of_alert_group(group, {})
        assert english in about.because
        assert chinese in about.because_zh
