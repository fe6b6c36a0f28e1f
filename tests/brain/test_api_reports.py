"""Reports are reckoned from the history, and say nothing that is not there."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.adapters.readmodel import ReadModel
from brain.console.api.report_shapes import ReportShape
from brain.console.reports import reckon, show
from brain.console.reports.reckon import Reckoned
from brain.core.jobs_seen import JobSeen
from brain.core.pack.spec import Rung
from brain.core.state import HitJob, HitNode, IncidentState
from tests.brain.world import GPU, Story, history_of, pack

SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda two: (min(two), max(two))))


def reckoned(model: ReadModel, since: float, until: float) -> list[Reckoned]:
    """As the route does."""
    found = model.incidents_between(since, until, 100)
    return [
        reckon.incident(one, model.runs_of(one["id"]), since, until)
        for one in found
        if one["state"] != IncidentState.EXPLAINED
    ]


def report(model: ReadModel, since: float, until: float) -> ReportShape:
    """Of a time."""
    return show.report(
        reckoned(model, since, until), since=since, until=until, reaches=model.oldest(), whole=True
    )


@pytest.fixture
def story() -> Story:
    """A link that heals by itself, and a GPU whose node stays drained until somebody closes it."""
    small = pack()
    books = [
        replace(book, rungs=(Rung(name="drain", do="scheduler.drain"), *book.rungs))
        if book.name == "gpu-lost"
        else book
        for book in small.runbooks
    ]
    found = Story(replace(small, runbooks=tuple(books)))
    found.event(1000, "link.state", "link/eth0", "n2", up=False, age_s=4.0)
    found.run(1100)
    found.event(2000, "gpu.xid", GPU, code=79)
    found.run(9200)
    return found


@pytest.fixture
def model(tmp_path: Path, story: Story) -> ReadModel:
    """Its history."""
    return history_of(story, tmp_path / "history")


def test_the_times_of_a_story(story: Story, model: ReadModel) -> None:
    """Detected after 4 s as the node says, healed by a run that nobody had to approve; the other is open, its node out."""
    found = report(model, 0.0, 9200.0)
    causes = {one.cause: one for one in found.causes}
    (link,), (gpu,) = story.incidents("link-down"), story.incidents("gpu-lost")
    (run,) = [run for run in story.time.runs.values() if run.incident == link.id]
    own = causes["link-down"]
    assert (own.incidents, own.open, own.healed, own.without_people) == (1, 0, 1, 1.0)
    assert own.detect.median_s == pytest.approx(4.0)
    assert own.heal.median_s == pytest.approx(run.ended_at - link.opened_at)
    assert own.decide.median_s == pytest.approx(run.steps[0].at - link.opened_at)
    assert own.node_hours == 0
    lost = causes["gpu-lost"]
    assert (lost.incidents, lost.open, lost.healed, lost.without_people) == (1, 1, 0, None)
    drain = next(step for one in story.time.runs.values() if one.incident == gpu.id for step in one.steps)
    assert lost.node_hours == found.total.node_hours == pytest.approx((9200 - drain.at) / 3600, abs=1e-3)
    assert [(one.node, one.incidents) for one in found.nodes] == [("n1", 1), ("n2", 1)]
    assert (found.total.incidents, found.total.without_people) == (2, 1.0)


def test_hours_saved_are_the_time_until_people_would_have_begun(story: Story, model: ReadModel) -> None:
    """From the first step of the remedy, for the one that healed without people; by the site's word how long they take."""
    (link,) = story.incidents("link-down")
    (run,) = [run for run in story.time.runs.values() if run.incident == link.id]
    first = link.opened_at - 4.0  # as its node says
    began = run.steps[0].at - first
    found = report(model, 0.0, 9200.0)
    causes = {one.cause: one for one in found.causes}
    assert found.people_begin_s == 3000
    assert causes["link-down"].node_hours_saved == pytest.approx((3000 - began) / 3600, abs=1e-3)
    assert causes["gpu-lost"].node_hours_saved == 0, "it is open, and people must act"
    assert found.total.node_hours_saved == causes["link-down"].node_hours_saved
    for people_s, saved_s in ((600.0, 600 - began), (began / 2, 0.0), (0.0, 0.0)):
        raw = next(one for one in model.incidents_between(0.0, 9200.0, 100) if one["id"] == link.id)
        one = reckon.incident(raw, model.runs_of(link.id), 0.0, 9200.0, people_s)
        assert one.saved_s == pytest.approx(saved_s, abs=1e-3), people_s
    raw["pages"]["acked_by"] = "ann"
    assert reckon.incident(raw, model.runs_of(link.id), 0.0, 9200.0).saved_s == 0, "ann had it"


def test_a_job_and_a_tenant_have_their_times_and_their_cost(story: Story, model: ReadModel) -> None:
    """Those of the incidents at their nodes; a node's hour counts once for each of them, whoever else was on it."""
    (link,), (gpu,) = story.incidents("link-down"), story.incidents("gpu-lost")
    of_link = HitNode(
        asked=1, at=1010.0, scheduler="slurm", jobs=[HitJob(job=JobSeen(id="4711", user="ann"), since=1010.0)]
    )
    both = [JobSeen(id="4711", user="ann"), JobSeen(id="4712", user="ben")]
    of_gpu = replace(of_link, jobs=[HitJob(job=one, since=2010.0) for one in both])
    model.write(10_000, (), [replace(link, hit={"n2": of_link}), replace(gpu, hit={"n1": of_gpu})])
    found = report(model, 0.0, 9200.0)
    jobs = {one.job: one for one in found.jobs}
    tenants = {one.tenant: one for one in found.tenants}
    lost, causes = found.total.node_hours, {one.cause: one for one in found.causes}
    assert jobs["4711"].node_hours == jobs["4712"].node_hours == tenants["ann"].node_hours == lost > 0
    assert jobs["4711"].heal == tenants["ann"].heal == causes["link-down"].heal
    assert (jobs["4711"].detect.count, jobs["4712"].detect.count) == (2, 1)
    assert jobs["4712"].heal.count == 0
    assert (
        jobs["4711"].node_hours_saved == tenants["ann"].node_hours_saved == found.total.node_hours_saved > 0
    )
    assert jobs["4712"].node_hours_saved == tenants["ben"].node_hours_saved == 0
    rows = list(csv.DictReader(io.StringIO(show.table(reckoned(model, 0.0, 9200.0), lambda: None).decode())))
    assert {row["cause"]: float(row["node_hours_saved"]) for row in rows} == {
        "link-down": pytest.approx(found.total.node_hours_saved, abs=1e-3),
        "gpu-lost": 0.0,
    }


def test_jobs_and_tenants_are_those_that_were_hit(story: Story, model: ReadModel) -> None:
    """As their scheduler has told it to people, also where no run began; a job of two incidents counts for both."""
    mine, other = JobSeen(id="4711", user="ann"), JobSeen(id="4712", user="ann")
    (link,), (gpu,) = story.incidents("link-down"), story.incidents("gpu-lost")
    of_link = HitNode(asked=1, at=1010.0, scheduler="slurm", jobs=[HitJob(job=mine, since=1010.0)])
    of_gpu = replace(of_link, jobs=[HitJob(job=one, since=2010.0) for one in (mine, other)])
    nobodys = replace(of_link, jobs=[HitJob(job=JobSeen(id="4713"), since=1010.0)])
    third = replace(link, id="inc-third", hit={"n3": nobodys})
    model.write(10_000, (), [replace(link, hit={"n2": of_link}), replace(gpu, hit={"n1": of_gpu}), third])
    found = report(model, 0.0, 9200.0)
    assert [(one.job, one.tenant, one.incidents) for one in found.jobs] == [
        ("4711", "ann", 2),
        ("4712", "ann", 1),
        ("4713", "", 1),
    ]
    assert [(one.tenant, one.incidents, one.jobs) for one in found.tenants] == [("ann", 2, 2), ("", 1, 1)]
    assert "not for whom" not in " ".join(found.not_known)
    rows = list(csv.DictReader(io.StringIO(show.table(reckoned(model, 0.0, 9200.0), lambda: None).decode())))
    assert {row["id"]: (row["jobs"], row["tenants"]) for row in rows} == {
        link.id: ("4711", "ann"),
        gpu.id: ("4711 4712", "ann"),
        "inc-third": ("4713", ""),
    }
    assert report(model, 5000.0, 9200.0).tenants == [], "it opened before"


def test_a_time_has_what_opened_in_it_and_the_hours_of_what_had_opened_before(model: ReadModel) -> None:
    """The GPU opened before this hour, and its node is out in all of it."""
    found = report(model, 3600.0, 7200.0)
    assert (found.total.incidents, found.total.node_hours) == (0, 1.0)
    assert report(model, 0.0, 500.0).causes == []


@given(SPANS)
def test_hours_that_several_cover_count_once(spans: list[tuple[int, int]]) -> None:
    """As counting second by second."""
    seconds = {second for began, ended in spans for second in range(began, ended)}
    assert reckon.hours([(float(began), float(ended)) for began, ended in spans]) == pytest.approx(
        len(seconds) / 3600, abs=1e-4
    )


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_nine_in_ten_took_no_longer(values: list[float]) -> None:
    """And no smaller value does that."""
    found = show.spread([*values, None])
    assert found.p90_s is not None
    assert found.count == len(values)
    assert sum(one <= found.p90_s + 1e-3 for one in values) >= 0.9 * len(values)
    assert sum(one < found.p90_s - 1e-3 for one in values) < 0.9 * len(values)


def test_nothing_in_the_table_is_a_formula_or_acts(story: Story, tmp_path: Path) -> None:
    """Names come from nodes and schedulers."""
    (one,) = story.incidents("gpu-lost")
    model = ReadModel(tmp_path / "other")
    model.begin("log-1")
    evil = {
        "=1+1": "'=1+1",
        "@x": "'@x",
        "+1": "'+1",
        "-1": "'-1",
        " =2": "' =2",
        "\t=3": "' =3",
        "\r\n@4": "'  @4",
        "\u3000\uff1d5": "' \uff1d5",
        "a\x1b[2J": "a\\x1b[2J",
        'a",\n"b': 'a", "b',
    }
    made = [
        replace(one, id=f"inc-{number}", cause=name, node=name, opened_at=float(number))
        for number, name in enumerate(evil)
    ]
    model.write(1, (), made)
    text = show.table(reckoned(model, 0.0, 9999.0), lambda: None).decode()
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(text)))
    assert {row["cause"] for row in rows} == set(evil.values())
    assert all(row["node"] == row["cause"] for row in rows)
    assert "\x1b" not in text
