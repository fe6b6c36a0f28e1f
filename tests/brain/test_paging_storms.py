"""Who is paged in storms: alert groups, and codes that are paged once."""

from dataclasses import replace

from agent.contract.actions.spec import Disrupts
from brain.core.effects import SendPage
from brain.core.pack.spec import (
    Match,
    Paging,
    Priority,
    Rule,
    Runbook,
    Rung,
    Symptom,
    Verify,
)
from brain.core.state import IncidentState
from tests.brain.test_paging import back, silent, story, told
from tests.brain.world import GPU, Story, pack, rule


def grouped(of: Story) -> list[SendPage]:
    """The pages that list incidents."""
    return [page for page in of.time.pages if page.subject.listed]


def test_a_storm_that_goes_on_is_one_page_each_half_minute() -> None:
    """One more node each second for two minutes: four pages, then one for each thirty seconds."""
    it = story()
    for number in range(120):
        silent(it, 10 + number, number)
    it.run(200)
    assert [at for at, _, _ in told(it, "open")] == [10, 11, 12, 13, 44, 75, 106, 137]
    assert sum(len(page.subject.listed) for page in grouped(it) if page.what == "open") == 116


def test_a_storm_is_one_page() -> None:
    """Twenty nodes in five seconds: four pages, then one with the other sixteen; one command acknowledges those."""
    it = story()
    for number in range(20):
        silent(it, 10 + number / 4, number)
    it.run(60)
    assert told(it) == [*[(10, "open", "oncall")] * 3, (11, "open", "oncall"), (41, "open", "oncall")]
    (page,) = grouped(it)
    assert [line.node for line in page.subject.listed] == [f"n{number}" for number in range(4, 20)]
    assert page.text == "16 more incidents within 30 s"
    assert page.subject.severity == "P1"
    for incident in it.incidents():
        assert incident.pages.notified == ["oncall"]
        assert incident.pages.waiting == {}, "delivered, by itself or with the others"
    said = [
        note
        for note in it.time.notes
        if note.kind == "page.delivered" and "in one page with others" in note.text
    ]
    assert len(said) == 16

    it.say(100, "ack", id=page.subject.id)
    for incident in it.incidents()[:4]:
        it.say(100, "ack", id=incident.id)
    back(it, 200, *range(19))
    it.run(300)
    assert [one.what for one in grouped(it)] == ["open", "ack"]
    back(it, 400, 19)
    it.run(500)
    assert [one.what for one in grouped(it)] == ["open", "ack", "resolve"]
    assert told(it, "repeat") == []
    assert it.engine.state.fault_free()


def test_a_storm_that_nobody_acknowledges_escalates_as_a_storm() -> None:
    """The lead gets four pages and one alert group, not twenty pages; the alert group is repeated as one."""
    it = story()
    silent(it, 10, *range(20))
    it.run(700)
    assert len([to for _, _, to in told(it, "open") if to == "lead"]) == 5
    assert len([one for one in grouped(it) if one.to == "lead" and one.what == "open"]) == 1
    assert len([one for one in grouped(it) if one.what == "repeat"]) == 3
    listed = {line.incident for one in grouped(it) if one.to == "lead" for line in one.subject.listed}
    alone = {one.subject.id for one in it.time.pages if one.to == "lead" and not one.subject.listed}
    assert listed | alone == {incident.id for incident in it.incidents()}
    assert not listed & alone


def test_what_is_more_urgent_than_the_storm_does_not_wait_in_it() -> None:
    """A P0 among P1s is paged at once; a further P1 waits for thirty seconds."""
    fabric = rule("fabric-down", "fabric", {"symptom": "sm_moved_widely"}, severity=Priority.P0, page="open")
    it = story(rules=(replace(fabric, page=pack().rules[0].page),))
    silent(it, 10, *range(6))
    for number in range(40, 46):
        it.event(12, "ib.sm_lid", "port/mlx5_0.1", f"n{number}", sm_lid=7)
    it.run(13)
    first = [page.subject.severity for page in it.time.pages if page.what == "open"]
    assert "P0" in first
    it.run(60)
    assert "P0" not in [line.severity for page in grouped(it) for line in page.subject.listed]


def test_news_of_a_grouped_incident_comes_with_its_alert_group() -> None:
    """Ten lost GPUs whose runbooks page: one update of the alert group, not one page for each."""
    it = story()
    for number in range(10):
        it.event(10, "gpu.xid", GPU, f"n{number}", code=79)
    it.run(100)
    (incident, *_) = [one for one in it.incidents() if one.pages.grouped]
    it.event(200, "job.cuda_error", "node", incident.node, name="CUDA_ERROR_DEVICE_REMOVED")
    it.run(240)
    whats = [page.what for page in grouped(it)]
    assert whats[0] == "open"
    assert whats.count("update") <= 1
    assert all(one.pages.waiting == {} for one in it.incidents())


def test_a_storm_that_ends_before_it_was_paged_is_paged_once() -> None:
    """An incident that closed while it was collected is not hidden."""
    it = story(group_within_s=120)
    silent(it, 10, *range(10))
    back(it, 20, *range(10))
    it.run(400)
    assert [page.what for page in grouped(it)] == ["open", "resolve"]
    assert all(line.over for line in grouped(it)[0].subject.listed)
    assert it.engine.state.fault_free()


def test_an_alert_group_is_as_urgent_as_its_most_urgent_incident_was() -> None:
    """One of ten links costs a job its GPU: the alert group is raised, and stays so when that incident is over."""
    worse = rule("bad-link", "node", {"symptom": "device_removed"}, cause="link-down", severity=Priority.P1)
    it = story(rules=(worse,))
    it.heals = False
    for number in range(10):
        it.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    it.event(100, "job.cuda_error", "node", "n7", name="CUDA_ERROR_DEVICE_REMOVED")
    it.run(150)
    newest = grouped(it)[-1]
    assert (newest.subject.severity, newest.subject.severities_before) == ("P1", ("P2",))
    assert newest.what == "update"
    it.event(160, "link.state", "link/eth1", "n7", up=True)
    it.say(160, "return", node="n7")
    it.run(700)
    assert next(line for line in grouped(it)[-1].subject.listed if line.node == "n7").over
    assert grouped(it)[-1].subject.severity == "P1"


def test_a_site_may_do_without_alert_groups() -> None:
    """With group_at_least = 0 every incident is paged by itself."""
    it = story(group_at_least=0)
    silent(it, 10, *range(12))
    it.run(100)
    assert len(told(it, "open")) == 12
    assert grouped(it) == []


CHECK = Verify(within_s=10, for_s=3)


def unknown_code(page: Paging = Paging.OPEN) -> tuple[Symptom, Rule]:
    """A code that no catalogue has, by GPU; its page is due once for the code."""
    symptom = Symptom(
        name="unknown_code", scope="gpu", summary="an unknown code", ttl_s=600, carry={"unknown_xid": "code"},
        on=(Match(kind="gpu.xid", where={"code": [900, 901]}),),
    )  # fmt: skip
    about = rule(
        "unknown-code",
        "gpu",
        {"symptom": "unknown_code"},
        severity=Priority.P3,
        page=page,
        page_once="unknown_xid",
    )
    return symptom, about


def test_an_unknown_code_is_paged_once_for_the_code() -> None:
    """Three nodes print code 900, one 901: one page of 900 for each of the first two, one of 901, and four incidents."""
    symptom, about = unknown_code()
    given = pack(shared_nodes=100000)
    it = Story(replace(given, symptoms=(*given.symptoms, symptom), rules=(*given.rules, about)))
    for at, node, code in ((10, "n1", 900), (20, "n2", 900), (30, "n3", 901), (40, "n4", 900)):
        it.event(at, "gpu.xid", GPU, node, code=code)
    it.run(100)
    assert len(it.incidents("unknown-code")) == 4
    assert [(page.what, page.subject.node) for page in it.time.pages] == [
        ("open", "n1"),
        ("open", "n2"),
        ("open", "n3"),
    ]
    assert "unknown-code@900 was paged for another incident" in it.notes("page.left_out")[0]


def test_a_code_is_paged_again_after_a_month() -> None:
    """By then nobody remembers it."""
    symptom, about = unknown_code()
    given = pack(shared_nodes=100000)
    it = Story(replace(given, symptoms=(*given.symptoms, symptom), rules=(*given.rules, about)))
    for at, node in ((10, "n1"), (10, "n2"), (29 * 86400, "n3"), (31 * 86400, "n4")):
        it.event(at, "gpu.xid", GPU, node, code=900)
    it.run(32 * 86400)
    assert [page.subject.node for page in it.time.pages if page.what == "open"] == ["n1", "n2", "n4"]


def test_the_page_of_a_storm_counts_every_node() -> None:
    """A fabric's incident on three nodes and two nodes' own: five nodes, not two."""
    it = story(group_at_least=1)
    for node in (1, 2, 3):
        it.event(10, "ib.sm_lid", "port/mlx5_0.1", f"n{node}")
    silent(it, 10, 7, 8)
    it.run(60)
    (page,) = [page for page in grouped(it) if page.what == "open"]
    assert page.subject.nodes == 5


def test_a_gate_that_stops_a_ladder_after_its_page_is_told() -> None:
    """The ladder has told the scheduler's operators; then a gate ends it: those on call read that gpuward gave up."""
    book = Runbook(
        name="bounce", summary="tell, bounce", tries=1,
        rungs=(
            Rung(name="tell", do="page", params={"to": "oncall", "text": "a link is down"}),
            Rung(name="bounce", do="link.bounce", params={"link": "$component"}, disrupts=Disrupts.NODE, verify=CHECK),
        ),
    )  # fmt: skip
    given = pack(shared_nodes=100000)
    it = Story(replace(given, runbooks=(*(one for one in given.runbooks if one.name != "bounce"), book)))
    it.event(10, "link.state", "link/eth1", up=False)
    it.run(100)
    it.event(200, "link.state", "link/eth1", up=False)
    it.run(300)
    last = [page for page in it.time.pages if page.what != "resolve"][-1]
    assert "gpuward gave up: " in last.text
    assert last.subject.state is IncidentState.NEEDS_HUMAN
