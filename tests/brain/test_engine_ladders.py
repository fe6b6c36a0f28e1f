"""Stories about the engine: modes, holds, budgets, tries, verifications, and what people hear of them."""

from dataclasses import replace

from brain.core.pack.spec import Mode, Priority, Runbook, Rung
from brain.core.state import IncidentState
from tests.brain.world import GPU, Story, pack


def test_in_observe_mode_a_complete_plan_and_no_action() -> None:
    """The plan names every rung, with the answer of the gates."""
    story = Story(pack(Mode.OBSERVE))
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(100)
    assert story.actions() == []
    (plan,) = [note.data["plan"] for note in story.time.notes if note.kind == "run.started"]
    assert isinstance(plan, list)
    assert "link.bounce(link=link/eth1)" in plan[0]
    assert len(plan) == 2
    (incident,) = story.incidents()
    assert incident.state is IncidentState.NEEDS_HUMAN


def test_allowing_a_runbook_begins_what_was_only_planned() -> None:
    """`gpuward mode bounce auto` starts the runbook of an open incident."""
    story = Story(pack(Mode.OBSERVE))
    story.event(10, "link.state", "link/eth1", up=False)
    story.say(50, "mode", runbook="bounce", mode="auto", nodes="n1")
    story.run(200)
    assert story.actions() == [("n1", "link.bounce")]
    assert story.engine.state.incidents == {}


def test_a_mode_for_nodes_that_nobody_knows_says_so() -> None:
    """It is taken, since they may come; that of a slip of the finger would never be met again."""
    story = Story(pack(Mode.OBSERVE))
    story.event(10, "link.state", "link/eth1", up=False)
    for nodes in ("n1", "n*", "*", "", "gpu-9*"):
        story.say(50, "mode", runbook="bounce", mode="approve", nodes=nodes)
    story.run(60)
    told = story.notes("operator.mode")
    assert told[-1] == "ann sets bounce to approve on nodes gpu-9*, which fits no node known now"
    assert not [text for text in told[:-1] if "no node" in text]
    assert [mode.nodes for mode in story.engine.state.modes] == ["n1", "n*", "*", "", "gpu-9*"]


def test_approve_mode_waits_for_an_operator() -> None:
    """Nothing disruptive without an approval; with it the run goes on, and a note names who approved."""
    story = Story(pack(Mode.APPROVE))
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(60)
    assert story.actions() == []
    (incident,) = story.incidents()
    story.say(70, "approve", id=incident.id)
    story.run(200)
    assert story.actions() == [("n1", "link.bounce")]
    assert any("ann approves" in text for text in story.notes("operator.approve"))


def test_an_approval_that_comes_too_early_says_when_it_can_be_given() -> None:
    """While the incident settles there is no run yet."""
    story = Story(pack(Mode.APPROVE))
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(10.5)
    (incident,) = story.incidents()
    assert incident.state is IncidentState.SETTLING
    story.say(10.5, "approve", id=incident.id)
    story.run(10.6)
    (refused,) = story.notes("operator.refused")
    assert f"{incident.id} settles for 1 s more: then its run begins" in refused
    story.run(60)
    run = f"{incident.id}.r1"
    story.say(60, "deny", id=incident.id)
    story.say(61, "approve", id=run)
    story.run(70)
    assert f"{run} waits for no approval: it is" in story.notes("operator.refused")[-1]


def test_a_hold_stops_disruptive_rungs_and_its_release_lets_them_go() -> None:
    """Law 2, and law 7: after the release everything goes on."""
    story = Story()
    story.say(5, "hold", scope="node/n1", why="maintenance")
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(60)
    assert story.actions() == []
    assert any("ann holds node/n1: maintenance" in text for text in story.notes("run.held"))
    story.say(70, "release", scope="node/n1")
    story.run(71.5)
    assert story.actions() == [("n1", "link.bounce")]


def test_a_hold_with_an_end_ends_by_itself() -> None:
    """A forgotten hold that was given a time does not last for ever."""
    story = Story()
    story.say(5, "hold", scope="all", why="firmware", for_s=100)
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(104)
    assert story.actions() == []
    story.run(200)
    assert story.actions() == [("n1", "link.bounce")]


def test_two_faults_on_one_node_are_healed_one_after_the_other() -> None:
    """Law 1: one disruptive run on a node at a time."""
    story = Story()
    story.event(10, "link.state", "link/eth1", up=False)
    story.event(10, "link.state", "link/eth2", up=False)
    story.run(13)
    assert len(story.performed) == 1
    story.run(200)
    assert sorted(str(perform.step.params["link"]) for perform in story.performed) == [
        "link/eth1",
        "link/eth2",
    ]


def test_the_worst_incident_of_a_node_is_next_and_then_the_one_that_waits_longest() -> None:
    """Three wait for the first one's end: the P1 that came last, then the others in their order."""
    small = pack(disruptive_runs=9)
    rules = tuple(
        replace(rule, severity=Priority.P1) if rule.name == "link-down" else rule for rule in small.rules
    )
    story = Story(replace(small, rules=rules))
    for number, name in enumerate(("a", "b", "c")):
        story.event(1 + number / 10, "service.state", f"service/{name}.service", active="failed")
    story.event(2, "link.state", "link/eth1", up=False)
    story.run(300)
    where = [perform.step.params for perform in story.performed]
    assert where == [
        {"unit": "a.service"},
        {"link": "link/eth1"},
        {"unit": "b.service"},
        {"unit": "c.service"},
    ]


def test_the_budget_of_a_runbook_is_kept() -> None:
    """Law 1: five nodes have the same fault, and at most two are healed at once."""
    story = Story(pack(shared_nodes=50), heals=False)
    for number in range(5):
        story.event(10, "link.state", "link/eth1", f"n{number}", up=False)
    most = 0
    for second in range(10, 120):
        story.run(second)
        most = max(most, sum(1 for run in story.engine.state.runs.values() if run.claimed))
    assert most == 2
    assert len({perform.step.node for perform in story.performed}) == 5


def test_a_remedy_that_was_tried_twice_is_left_to_people() -> None:
    """Law 8: the link fails again and again; two runs, then people must act."""
    story = Story()
    for number in range(4):
        story.event(100 + number * 100, "link.state", "link/eth1", up=False)
        story.run(180 + number * 100)
    assert len(story.performed) == 2
    assert any("was tried 2 times" in text for text in story.notes("run.exhausted"))


def test_an_old_fault_needs_a_fresh_fact() -> None:
    """A backlog after an outage: the link may have been up again for a long time."""
    story = Story()
    story.event(1000, "link.state", "link/eth1", up=False, age_s=300)
    story.run(1050)
    assert story.actions() == []
    story.event(1060, "link.state", "link/eth1", up=False)
    story.run(1100)
    assert story.actions() == [("n1", "link.bounce")]


def test_a_backlog_is_not_taken_for_a_burst() -> None:
    """The errors of ten minutes arrive at once; the window uses the times when they occurred."""
    story = Story()
    for minute in range(10):
        story.event(
            1000,
            "ib.errors",
            "port/mlx5_0.1",
            age_s=600 - 60 * minute,
            counter="symbol_error",
            delta=50,
            spec_s=1_500.0,
            value=50,
        )
    story.run(1001)
    assert story.incidents() == []
    story.event(
        1002, "ib.errors", "port/mlx5_0.1", counter="symbol_error", delta=100, spec_s=3_000.0, value=600
    )
    story.run(1100)
    assert [incident.cause for incident in story.incidents()] == ["phy-errors"]


def test_errors_that_do_not_return_after_the_bounce_are_healed() -> None:
    """A symptom that no event clears ends when the remedy is performed; it does not return, so the remedy worked."""
    story = Story()
    story.event(
        10, "ib.errors", "port/mlx5_0.1", counter="symbol_error", delta=500, spec_s=15_000.0, value=500
    )
    story.run(300)
    (incident,) = story.incidents()
    assert incident.state is IncidentState.CLOSED
    assert [action for _, action in story.actions()] == ["evidence.collect", "link.bounce"]


def test_errors_that_return_after_the_bounce_fail_the_verification_at_once() -> None:
    """The same errors again: the rung did not help, and no rung is left."""
    story = Story()
    story.event(
        10, "ib.errors", "port/mlx5_0.1", counter="symbol_error", delta=500, spec_s=15_000.0, value=500
    )
    story.event(
        20, "ib.errors", "port/mlx5_0.1", counter="symbol_error", delta=500, spec_s=15_000.0, value=1000
    )
    story.run(25)
    assert story.notes("run.not_verified")
    (incident,) = story.incidents()
    assert incident.state is IncidentState.NEEDS_HUMAN


def test_an_idle_gpu_whose_owner_is_a_service_gets_it_restarted() -> None:
    """Idle for a minute without a job: the unit that holds the GPU is restarted; the event names it."""
    story = Story()
    story.event(10, "gpu.idle", GPU, unit="embedder.service", job="", idle_s=600.0)
    story.run(69)
    assert story.incidents() == []
    story.run(200)
    assert [perform.step.params for perform in story.performed] == [{"unit": "embedder.service"}]
    assert story.engine.state.incidents == {}


def test_five_changes_in_a_minute_are_flapping() -> None:
    """Down, up, down, up, down: the fifth change begins the symptom."""
    story = Story(pack(Mode.OBSERVE))
    for number in range(5):
        story.event(10 + number * 5, "link.state", "link/eth1", up=bool(number % 2))
    story.run(31)
    assert "link-flapping" in [incident.cause for incident in story.incidents()]
    story.run(1000)
    assert [incident.state for incident in story.incidents("link-flapping")] == [IncidentState.CLOSED]


def test_a_page_that_cannot_be_delivered_is_tried_until_it_is() -> None:
    """Law 10."""
    story = Story(undelivered=4)
    story.event(10, "gpu.xid", GPU, code=79)
    story.run(100)
    assert len(story.notes("page.undelivered")) == 4
    assert story.notes("page.delivered")


def test_pages_repeat_until_somebody_acknowledges() -> None:
    """After 5, 10 and 20 minutes; then ann acknowledges."""
    story = Story(pack(page_repeats=(Priority.P2,)))
    story.event(10, "link.state", "link/eth1", up=False)
    story.heals = False
    story.run(10 + 1300)
    repeats = [page for page in story.time.pages if page.what == "repeat"]
    assert len(repeats) == 3
    (incident,) = story.incidents()
    story.say(1400, "ack", id=incident.id)
    story.run(3500)
    assert len([page for page in story.time.pages if page.what == "repeat"]) == 3


def test_returning_a_node_ends_its_symptoms() -> None:
    """`gpuward return n1`: the technician has repaired it."""
    story = Story()
    story.event(10, "gpu.xid", GPU, code=79)
    story.say(100, "return", node="n1")
    story.run(300)
    assert [incident.state for incident in story.incidents()] == [IncidentState.CLOSED]


def test_refused_commands_are_noted_and_change_nothing() -> None:
    """A mistyped command must not look as if it had worked."""
    story = Story()
    for verb, args in [
        ("hold", {}),
        ("release", {"scope": "x"}),
        ("approve", {"id": "inc-x"}),
        ("fly", {}),
        ("mode", {"runbook": "bounce", "mode": "wild"}),
    ]:
        story.say(10, verb, **args)
    story.run(20)
    assert len(story.notes("operator.refused")) == 5


def test_every_group_that_was_paged_gets_the_resolution() -> None:
    """The groups `scheduler` and `oncall` each get an alert and its resolution."""
    both = Runbook(
        name="bounce",
        summary="tell both",
        rungs=(Rung(name="s", do="page", params={"to": "scheduler"}), Rung(name="o", do="page")),
    )
    rules = pack()
    story = Story(
        replace(rules, runbooks=tuple(both if book.name == "bounce" else book for book in rules.runbooks))
    )
    story.event(10, "link.state", "link/eth1", up=False)
    story.run(50)
    story.event(60, "link.state", "link/eth1", up=True)
    story.run(200)
    told = [(page.what, page.to) for page in story.time.pages]
    assert told == [
        ("open", "oncall"),
        ("open", "scheduler"),
        ("update", "oncall"),
        ("resolve", "oncall"),
        ("resolve", "scheduler"),
    ]
