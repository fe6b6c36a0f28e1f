"""Who is paged, when, and by how many pages: chains with deadlines, acknowledgements, alert groups in storms."""

from dataclasses import replace
from typing import Any

from brain.core.inputs import Leader
from brain.core.pack.spec import (
    EscalationStep,
    Paging,
    Priority,
    Rule,
)
from tests.brain.world import GPU, Story, pack, rule

CHAIN = (
    EscalationStep(to="oncall"),
    EscalationStep(to="lead", after_s=300),
    EscalationStep(to="manager", after_s=900),
)


def story(undelivered: int = 0, rules: tuple[Rule, ...] = (), **settings: Any) -> Story:
    """A site with an escalation chain for P1, and no shared causes."""
    given = pack(escalation={Priority.P1: CHAIN}, shared_nodes=100000, **settings)
    return Story(replace(given, rules=(*given.rules, *rules)), undelivered=undelivered)


def told(of: Story, *what: str) -> list[tuple[int, str, str]]:
    """(when, what, to) of every page that was sent, in order."""
    pages = []
    for note in of.time.notes:
        if note.kind == "page.sent" and ", with others" not in note.text:
            kind, _, rest = note.text.partition(" to ")
            pages.append((round(note.at), kind, rest.partition(":")[0]))
    return [page for page in pages if not what or page[1] in what]


def silent(of: Story, at: float, *nodes: int) -> None:
    """These nodes become unreachable: P1, one page each, no runbook."""
    for node in nodes:
        of.event(at, "node.unreachable", "node", f"n{node}")


def back(of: Story, at: float, *nodes: int) -> None:
    """They are reachable again."""
    for node in nodes:
        of.event(at, "node.returned", "node", f"n{node}")


def test_without_an_acknowledgement_the_next_group_of_the_chain_is_paged() -> None:
    """On call at once, the lead after 5 minutes, the manager after 15; from then on repeats go to all three."""
    it = story()
    silent(it, 10, 1)
    it.run(10 + 2500)
    assert told(it, "open") == [(10, "open", "oncall"), (310, "open", "lead"), (910, "open", "manager")]
    repeats = told(it, "repeat")
    assert [entry for entry in repeats if entry[0] == 310] == [(310, "repeat", "oncall")]
    assert [to for at, _, to in repeats if at == 1210] == ["oncall", "lead", "manager"]
    assert "oncall told 5 minutes ago, nobody has acknowledged" in str(it.notes("page.sent"))


def test_the_chain_needs_no_repeats() -> None:
    """A site with rare repeats still pages the next group in time."""
    it = story(page_repeat_s=(36000.0,))
    silent(it, 10, 1)
    it.run(1000)
    assert told(it) == [(10, "open", "oncall"), (310, "open", "lead"), (910, "open", "manager")]


def test_an_acknowledgement_stops_the_chain_and_goes_to_all_who_were_paged() -> None:
    """Ann acknowledges: the manager is not paged, and the lead is informed."""
    it = story()
    silent(it, 10, 1)
    it.run(400)
    (incident,) = it.incidents()
    it.say(400, "ack", id=incident.id)
    back(it, 3000, 1)
    it.run(9000)
    assert told(it) == [
        (10, "open", "oncall"),
        (310, "repeat", "oncall"),
        (310, "open", "lead"),
        (400, "ack", "oncall"),
        (400, "ack", "lead"),
        (3030, "resolve", "oncall"),
        (3030, "resolve", "lead"),
    ]
    assert it.engine.state.fault_free()


def test_what_was_acknowledged_before_its_first_page_is_told_once() -> None:
    """Somebody saw it in the console, within its hold-off: nobody is called for it, and the chain is not climbed."""
    slow = rule(
        "silent-for-long",
        "node",
        {"symptom": "silent"},
        severity=Priority.P1,
        hold_off_s=60,
        page=Paging.OPEN,
    )
    it = story(rules=(slow,))
    silent(it, 10, 1)
    it.run(20)
    (opened,) = it.incidents("silent-for-long")
    it.say(20, "ack", id=opened.id)
    it.run(10 + 2500)
    of_it = [page.what for page in it.time.pages if page.subject.id == opened.id]
    assert of_it == ["open", "ack"]


def test_a_severity_without_a_chain_is_paged_to_those_on_call_again_and_again() -> None:
    """P2 has no chain here, and is repeated because the site wants it so."""
    it = story(page_repeats=(Priority.P2,))
    it.heals = False
    it.event(10, "link.state", "link/eth1", up=False)
    it.run(10 + 2500)
    assert {to for _, _, to in told(it)} == {"oncall"}
    assert [at for at, _, _ in told(it, "repeat")] == [311, 611, 1211, 2411]


def test_a_raised_severity_is_paged_and_goes_by_the_faster_chain() -> None:
    """A P2 becomes a P1 after ten minutes: the lead's deadline has passed already."""
    worse = rule("bad-link", "node", {"symptom": "device_removed"}, cause="link-down", severity=Priority.P1)
    it = story(rules=(worse,))
    it.heals = False
    it.event(10, "link.state", "link/eth1", up=False)
    it.event(700, "job.cuda_error", "node", name="CUDA_ERROR_DEVICE_REMOVED")
    it.run(720)
    assert (700, "update", "oncall") in told(it)
    assert (700, "open", "lead") in told(it)
    assert "raised from P2 to P1" in str(it.notes("page.sent"))
    (incident,) = it.incidents("link-down")
    assert incident.pages.severities == ["P2"]


def test_the_chain_goes_on_while_no_channel_works() -> None:
    """Undelivered pages are retried for ever, and the next group's channels may work."""
    it = story(undelivered=10_000)
    silent(it, 10, 1)
    it.run(2000)
    assert [to for _, _, to in told(it, "open")] == ["oncall", "lead", "manager"]
    assert told(it, "repeat") == [], "the undelivered page is retried, no second one is queued behind it"
    it.undelivered = 0
    it.run(2400)
    assert sorted(it.incidents()[0].pages.by) == ["lead", "manager", "oncall"]
    assert it.incidents()[0].pages.waiting == {}


def test_a_resolution_never_overtakes_its_alert() -> None:
    """No channel worked while the incident lasted: its alert is not sent afterwards, its resolution is."""
    it = story(undelivered=6)
    silent(it, 10, 1)
    back(it, 20, 1)
    it.run(400)
    assert [page.what for page in it.time.pages] == ["open"] * 4 + ["resolve"] * 3
    assert it.engine.state.fault_free()


def test_pages_that_wait_for_a_channel_go_out_as_one_alert() -> None:
    """An open page and its update wait: the update replaces the open page, and opens the alert."""
    it = story(undelivered=2)
    it.event(10, "gpu.xid", GPU, code=79)
    it.run(60)
    assert [page.what for page in it.time.pages] == ["open", "open", "open"]
    assert it.time.pages[-1].text == "gpu-lost: tell"
    assert it.incidents()[0].pages.waiting == {}


def test_a_page_has_what_followed_from_its_input_and_never_changes() -> None:
    """It is sent before the run begins, by the same input, and names that run. Later changes of the incident do not reach it."""
    it = story()
    it.event(10, "gpu.xid", GPU, code=79)
    it.run(12)
    assert it.time.pages[0].what == "open"
    opened = it.time.pages[0].subject
    assert (opened.id, opened.cause, opened.state) == (it.incidents()[0].id, "gpu-lost", "healing")
    assert [run.rpartition(".")[2] for run in opened.runs] == ["r1"]
    assert [fact.text for fact in opened.evidence] == ["gpu.xid on " + GPU]
    before = repr(opened)
    it.say(19, "ack", id=opened.id)
    it.event(20, "gpu.returned", GPU)
    it.run(200)
    assert it.incidents()[0].state == "closed"
    assert repr(opened) == before


def test_a_new_leader_sends_pages_under_way_again() -> None:
    """The last leader may have crashed with them; delivered pages are not sent again."""
    it = story()
    silent(it, 10, 1)
    it.run(20)
    it.time.pages.clear()
    answer, it.time._perform = it.time._perform, lambda _effect, _now: ()
    silent(it, 30, 2)
    it.run(40)
    it.time._perform = answer
    it.time.feed(Leader(id="leader-2", epoch=2, brain="b2"), 50)
    it.run(51)
    assert [(page.what, page.subject.node) for page in it.time.pages] == [("open", "n2"), ("open", "n2")]
    assert all(one.pages.waiting == {} for one in it.incidents())
