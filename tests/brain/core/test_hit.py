"""Who is hit by an incident: what it asks its nodes' schedulers, what it keeps of the answers, and that nothing else follows."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from brain.adapters.snapshot import dump, parse
from brain.core import hit, hit_words
from brain.core.effects import AskJobs, CancelStep, Effect, Note, Perform, SendPage, SetTimer, WriteIntent
from brain.core.engine import Engine
from brain.core.hit_words import HitKnown
from brain.core.inputs import Input, JobsAnswer, Leader
from brain.core.jobs_seen import MAX_SEEN, JobSeen, listed
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Mode, Pack
from brain.core.state import HitJob, HitNode, Incident
from tests.brain.world import GPU, Story, pack
from tests.laws import fleet
from tests.laws.story import Teller

TRAIN = JobSeen(id="4711", name="train-llama", user="alice", nodes=16, gpus=8)
SMALL = JobSeen(id="4712", name="nb", user="bob", nodes=1)
SLURM = JobsAnswer(id="", node="", known=True, jobs=("4711",), seen=(TRAIN,), scheduler="slurm")
SILENT = JobsAnswer(id="", node="", known=False, why="slurm: away", scheduler="slurm")
NOBODY = JobsAnswer(id="", node="", known=True, scheduler="slurm")


class Site(Story):
    """A site whose scheduler answers for each node in turn, and then as the last time; None: never."""

    def __init__(self, *answers: JobsAnswer | None, **settings: Any) -> None:
        self.answers = list(answers)
        self.effects: list[AskJobs] = []
        super().__init__(pack(**({"ask_who_is_hit": True} | settings)))

    @property
    def asked(self) -> list[str]:
        """About which nodes, for people."""
        return [one.node for one in self.effects if one.people]

    @property
    def incident(self) -> Incident:
        """The first one, as it is or was last."""
        return self.incidents()[0]  # type: ignore[no-any-return]  # World keeps what is shown

    def hears(self, given: Input) -> None:
        """A second later."""
        at = self.engine.state.now + 1
        self.time.feed(given, at)
        self.run(at + 1)

    def _answer(self, effect: Effect, now: float) -> Iterable[tuple[float, Input]]:
        if not isinstance(effect, AskJobs):
            return super()._answer(effect, now)
        self.effects.append(effect)
        told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if told is None:
            return []
        id_ = f"j:{effect.node}:{now}:{effect.people}"
        return [(now + 0.2, replace(told, id=id_, node=effect.node, people=effect.people))]


def told(story: Site, *, asks: bool = True) -> hit_words.HitStanding:
    """What people read of its incident."""
    return hit_words.standing(story.incident.hit, asks=asks)


def down(*answers: JobsAnswer | None, until: float = 5, **settings: Any) -> Site:
    """A link of n1 goes down."""
    story = Site(*answers, **settings)
    story.heals = False
    story.event(1, "link.state", "link/eth1", up=False)
    story.run(until)
    return story


@pytest.mark.parametrize(
    ("answer", "known", "short"),
    [
        pytest.param(SLURM, HitKnown.KNOWN, "alice's 4711 (1 of its 16 nodes)", id="a job"),
        pytest.param(NOBODY, HitKnown.KNOWN, "nobody: no job runs there", id="no job"),
        pytest.param(SILENT, HitKnown.SILENT, "not known: slurm: away (n1)", id="no answer"),
        pytest.param(None, HitKnown.ASKED, "", id="the answer is still out"),
        pytest.param(replace(NOBODY, scheduler=""), HitKnown.NO_TABLE, "", id="no scheduler has the node"),
        pytest.param(replace(SLURM, seen=(), scheduler=None), HitKnown.KNOWN, "job 4711 (1 node of it)", id="of version 0.1"),
    ],
)  # fmt: skip
def test_an_incident_learns_who_is_hit(answer: JobsAnswer | None, known: HitKnown, short: str) -> None:
    """It asks once about its node, keeps the answer with the time, and has a line for pages."""
    story = down(answer)
    assert story.asked == ["n1"]
    assert told(story).known is known
    assert hit_words.short(story.incident.hit) == short
    assert (told(story).since > 0) == (told(story).at > 0) == (known is HitKnown.KNOWN)


def test_without_a_scheduler_nobody_is_asked() -> None:
    """And people read who must do what: no scheduler is configured."""
    story = down(SLURM, ask_who_is_hit=False)
    assert story.effects == []
    incident = story.incident
    assert hit_words.standing(incident.hit, asks=False).known is HitKnown.NO_SCHEDULER
    assert hit_words.standing(incident.hit, asks=True).known is HitKnown.NOT_ASKED


def test_what_it_learns_is_noted_once_and_paged() -> None:
    """One note with whose job it is; the pages that follow have the line."""
    story = down(SLURM, until=2000)
    assert story.notes("incident.hit") == [
        "on n1 runs job 4711 (train-llama) of alice: 1 of its 16 nodes, 8 GPUs"
    ]
    assert story.time.pages
    assert {page.subject.hit for page in story.time.pages} == {"alice's 4711 (1 of its 16 nodes)"}


@pytest.mark.parametrize(
    ("answers", "notes"),
    [
        ((NOBODY,), ["no job runs on n1"]),
        ((SILENT,), ["it is not known whose jobs run on n1: slurm: away"]),
        ((SILENT, NOBODY), ["it is not known whose jobs run on n1: slurm: away", "no job runs on n1"]),
        (
            (replace(NOBODY, scheduler=""),),
            ["it is not known whose jobs run there: no scheduler of the configuration has n1"],
        ),
    ],
)
def test_the_first_answer_is_noted_whatever_it_is(answers: tuple[JobsAnswer, ...], notes: list[str]) -> None:
    """Once, though it is asked again: by its note whoever looks at the page sees the answer."""
    assert down(*answers, until=100).notes("incident.hit") == notes


def test_faults_of_one_node_ask_one_question() -> None:
    """Each of its incidents has the answer."""
    story = Site(SLURM)
    story.heals = False
    story.event(1, "link.state", "link/eth1", up=False)
    story.event(1, "gpu.xid", GPU, code=79)
    story.run(2)
    assert story.asked == ["n1"]
    incidents = story.engine.state.incidents.values()
    assert len(incidents) == 2
    assert all(one.hit["n1"].jobs[0].job == TRAIN for one in incidents)


def test_it_is_asked_again_where_nothing_was_known_and_then_no_more() -> None:
    """After one, five and 25 minutes. Once it is known, no more."""
    story = down(SILENT, until=4000)
    assert story.asked == ["n1"] * 4
    known = down(SILENT, SLURM, until=4000)
    assert known.asked == ["n1"] * 2
    assert told(known).known is HitKnown.KNOWN
    assert told(known).why == ""


def test_what_was_known_stays_when_the_scheduler_is_silent_later() -> None:
    """Who was hit is no less true because nobody answers now."""
    story = down(SLURM, SILENT)
    story.hears(replace(SILENT, id="j2", node="n1"))
    assert [line.job.id for line in told(story).jobs] == ["4711"]
    assert told(story).why == "slurm: away (n1)"
    assert f"hit:{story.incident.id}" not in story.engine.state.timers


def test_a_job_that_has_left_was_hit_all_the_same() -> None:
    """A gate's question tells: the job is gone, another one came. The size that a gate's answer lacks is known from before."""
    story = down(SLURM)
    at = story.engine.state.now
    both = replace(SLURM, id="a", node="n1", seen=(replace(TRAIN, nodes=0), SMALL))
    story.hears(both)
    story.hears(replace(SLURM, id="b", node="n1", seen=(SMALL,)))
    there, gone = told(story).jobs
    assert (there.job, there.since, there.gone_at) == (SMALL, at + 1, 0.0)
    assert (gone.job.nodes, gone.gone_at) == (16, at + 2)
    assert hit_words.short(story.incident.hit) == "bob's 4712 (its only node), and 1 more job"
    assert len(story.notes("incident.hit")) == 2


def test_nothing_is_decided_by_an_answer_for_people() -> None:
    """A protected job and a drain of others in it hold nothing up: the gates have not asked. Law 2 asks by itself."""
    hostile = replace(SLURM, protected="4711 (account prod)", drained="ann: mine", ours=False)
    heard, unheard = down(hostile, until=60), down(None, until=60)
    assert heard.actions() == unheard.actions() != []
    assert heard.engine.state.jobs == {}
    asked = Site(SLURM, ask_jobs=True)
    asked.event(1, "link.state", "link/eth1", up=False)
    asked.run(30)
    assert {one.people for one in asked.effects} == {True, False}


def test_a_wide_incident_asks_about_some_of_its_nodes_and_counts_the_rest() -> None:
    """Sixteen of forty; one job on them is one line, with how much of it they are."""
    story = Site(SLURM)
    for number in range(1, 41):
        story.event(1 + number / 100, "ib.sm_lid", "node", f"n{number}")
    story.run(10)
    wide = [one for one in story.engine.state.incidents.values() if not one.node and one.nodes == 40]
    assert len(wide) == 1
    now = hit_words.standing(wide[0].hit, asks=True)
    assert (now.asked, now.answered) == (hit.MAX_NODES, hit.MAX_NODES)
    (line,) = now.jobs
    assert (len(line.on), hit_words.share(line), line.gpus) == (16, "all of its 16 nodes", 128)
    assert len(story.asked) <= 40


def test_what_explains_an_incident_takes_over_who_is_hit_by_it() -> None:
    """Also the answer that is still out; each of the two has its own copy from then on."""
    story = Site(SLURM)
    story.event(1, "ib.sm_lid", "node", "n1")
    story.run(5)
    for number in (2, 3):
        story.event(5 + number / 100, "ib.sm_lid", "node", f"n{number}")
    story.run(20)
    wide = next(one for one in story.incidents() if not one.node)
    former = next(one for one in story.incidents() if one.node == "n1")
    assert former.explained_by == wide.id
    assert sorted(wide.hit) == ["n1", "n2", "n3"]
    assert wide.hit["n1"] is not former.hit["n1"]
    assert wide.hit["n1"].known_since == former.hit["n1"].known_since
    assert story.asked.count("n2") == 1


def test_in_a_storm_few_questions_are_out_before_it_is_known_what_they_are() -> None:
    """Settling incidents ask no more than MAX_OUT at once."""
    story = Site(None)
    story.heals = False
    for number in range(1, 301):
        story.event(1, "gpu.xid", GPU, f"n{number}", code=79)
    story.run(1.5)
    assert len(story.engine.state.asked) <= max(hit.MAX_OUT, len(_opened(story)))


def _opened(story: Site) -> list[Incident]:
    return [one for one in story.engine.state.incidents.values() if one.state != "settling"]


def test_what_the_former_leader_was_asked_is_asked_again() -> None:
    """Whoever dies with a question takes it along."""
    story = down(None)
    story.hears(Leader(id="lead2", epoch=2, brain="b2"))
    assert story.asked == ["n1", "n1"]
    known = down(SLURM)
    known.hears(Leader(id="lead2", epoch=2, brain="b2"))
    assert known.asked == ["n1"]


def test_it_is_forgotten_with_the_incident() -> None:
    """No timer, no question and no answer is left."""
    story = Site(SILENT)
    story.event(1, "link.state", "link/eth1", up=False)
    story.event(3, "link.state", "link/eth1", up=True)
    story.run(9000)
    assert story.engine.state.fault_free()
    assert story.engine.state.asked == {}
    assert not [name for name in story.engine.state.timers if name.startswith(hit.TIMER)]


def test_a_snapshot_keeps_it_and_an_older_one_has_none() -> None:
    """Written, read, and decided the same from there; without the new fields it is read as not asked."""
    story = down(SILENT, SLURM)
    written = dump(story.engine.state)
    again = Engine(parse(written), actions=ACTIONS)
    at = story.engine.state.now
    answer = replace(SLURM, id="later", node="n1")
    first, second = story.engine.handle(answer, at + 1), again.handle(answer, at + 1)
    assert [one for one in first if isinstance(one, Note)] == [one for one in second if isinstance(one, Note)]
    assert dump(story.engine.state) == dump(again.state)
    again.close()


def test_an_answer_twice_changes_nothing() -> None:
    """Law: twice."""
    story = down(SLURM)
    answer, at = replace(SLURM, id="x", node="n1", seen=(SMALL,)), story.engine.state.now + 1
    story.engine.handle(answer, at)
    before = dump(story.engine.state)
    assert story.engine.handle(answer, at) == []
    assert dump(story.engine.state) == before


def test_what_is_kept_is_bounded() -> None:
    """Of many jobs those that run there; of a name what fits, and nothing in it acts."""
    node = HitNode(at=1.0, scheduler="s")
    for turn in range(1, 6):
        seen = [JobSeen(id=f"{turn}-{n}") for n in range(10)]
        node.jobs = hit._merged(node.jobs, seen, float(turn))
    assert len(node.jobs) == hit.MAX_JOBS
    assert [one.job.id for one in node.jobs[:10]] == [f"5-{n}" for n in range(10)]
    assert {one.gone_at for one in node.jobs[10:]} == {5.0}
    many = listed(JobSeen(id=str(n), nodes=n) for n in range(100))
    assert (len(many), many[0].nodes) == (MAX_SEEN, 99)
    (bad,) = listed([JobSeen(id="1", name="<b>" + "x" * 10_000, user="a\x1b[2J\u202e\ud800", nodes=-4)])
    assert (len(bad.name), bad.user, bad.nodes) == (80, "a\\x1b[2J\\u202e\\ud800", 0)


@pytest.mark.parametrize(
    ("job", "on", "text"),
    [
        (TRAIN, 1, "job 4711 (train-llama) of alice: 1 of its 16 nodes, 8 GPUs"),
        (TRAIN, 16, "job 4711 (train-llama) of alice: all of its 16 nodes, 128 GPUs"),
        (SMALL, 1, "job 4712 (nb) of bob: its only node"),
        (JobSeen(id="ml/web-1", name="web-1", user="ml", gpus=1), 1, "job ml/web-1 of ml: 1 node of it, 1 GPU"),
        (JobSeen(id="9"), 2, "job 9: 2 nodes of it"),
    ],
)  # fmt: skip
def test_how_a_job_reads(job: JobSeen, on: int, text: str) -> None:
    """One line for each, over all nodes of the incident."""
    nodes = {f"n{n}": HitNode(at=1.0, scheduler="s", jobs=[HitJob(job=job, since=1.0)]) for n in range(on)}
    (line,) = hit_words.standing(nodes, asks=True).jobs
    assert hit_words.sentence(line) == text


@pytest.mark.parametrize("seed", [1, 8, 14, 15, 16, 17, 18, 22, 25])
def test_no_random_story_goes_another_way_for_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same story, with people asking who is hit and without: the same steps, pages and timers at the same times.

    The answers name protected jobs, come late, or not, and change; brains restart in between.
    """
    with_it, asked = _course(seed, monkeypatch, asks=True)
    without, not_asked = _course(seed, monkeypatch, asks=False)
    assert with_it == without
    assert (asked > 3, not_asked, len(without) > 10) == (True, 0, True)


def _course(
    seed: int, monkeypatch: pytest.MonkeyPatch, *, asks: bool
) -> tuple[list[tuple[float, object]], int]:
    """What a story's engine has machines, people and the clock do; and how often people asked who is hit."""
    whole = fleet.pack

    def pack_of(size: int, mode: Mode, *, careful: bool) -> Pack:
        made = whole(size, mode, careful=careful)
        return replace(made, settings=replace(made.settings, ask_who_is_hit=asks))

    seen: list[tuple[float, object]] = []
    asked: list[Effect] = []

    def see(_: object, given: Input, now: float, effects: list[Effect]) -> None:
        for one in effects:
            if isinstance(one, AskJobs) and one.people:
                asked.append(one)
            elif isinstance(one, SendPage):
                seen.append((now, replace(one, subject=replace(one.subject, hit=""))))
            elif isinstance(one, Perform | WriteIntent | CancelStep) or _decides(one):
                seen.append((now, one))

    with monkeypatch.context() as patched:
        patched.setattr(fleet, "pack", pack_of)
        story = Teller(seed, 12, CompiledCache(), see).play()
    assert story.differ == []
    return seen, len(asked)


def _decides(one: Effect) -> bool:
    return (isinstance(one, AskJobs) and not one.people) or (
        isinstance(one, SetTimer) and not one.name.startswith("hit:")
    )
