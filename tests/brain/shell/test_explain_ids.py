"""`gpuward explain` takes whatever has an id, and no answer costs a scan of the history."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from brain.adapters import readmodel
from brain.adapters.readmodel import ReadModel
from brain.cli.explain import render
from brain.console import explain as chains
from brain.console.answers import encoded
from brain.core.effects import Note
from brain.core.inputs import OperatorCommand
from brain.core.pack.spec import Place
from tests.brain.test_paging import silent
from tests.brain.test_paging import story as storm
from tests.brain.world import GPU, Story, pack


class Told:
    """A story, and its history as the console reads it."""

    def __init__(self, path: Path, story: Story) -> None:
        self.story, self.path = story, path
        self.model = ReadModel(path)
        self.model.begin("log-1")
        notes: list[tuple[int, Note]] = list(enumerate(story.time.notes, 1))
        self.model.write(len(notes), notes, story.time.incidents.values(), story.time.runs.values())

    def explain(self, id_: str) -> Any:
        """The answer of the API; None: nothing has this id."""
        found = chains.explain(self.model, self.story.engine.state, id_, traced=False)
        return None if found is None else orjson.loads(encoded(found))

    def says(self, id_: str) -> str:
        """What the command line prints."""
        return "\n".join(render(self.explain(id_), notes=False, width=100))

    def command(self, verb: str, **args: Any) -> str:
        """Gives a command, and returns its id."""
        id_ = f"s:{len(self.story.time.notes):032x}"
        before = len(self.story.time.notes)
        self.story.time.feed(OperatorCommand(id=id_, who="ann", verb=verb, args=args), 40 + before)
        self.story.run(41 + before)
        notes = list(enumerate(self.story.time.notes, 1))[before:]
        self.model.write(
            len(self.story.time.notes),
            notes,
            self.story.time.incidents.values(),
            self.story.time.runs.values(),
        )
        return id_


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """One lost GPU, which was paged, on which a runbook ran."""
    story = Story(pack())
    story.event(1, "gpu.xid", GPU, code=79)
    story.run(30)
    told = Told(tmp_path / "history", story)
    yield told
    told.model.close()


def test_each_part_of_an_incident_leads_to_its_chain(told: Told) -> None:
    """From page, run, step, a node's command, bundle, event and note: the same chain, and what was asked for."""
    (incident,), (run,) = told.story.time.incidents.values(), told.story.time.runs.values()
    step = run.steps[0].id
    page = next(note.data["page"] for note in told.story.time.notes if note.kind == "page.sent")
    note = next(note for note in told.story.time.notes if note.kind == "step.result")
    asked = {
        incident.id: "incident", incident.id[:7]: "incident", page: "page", run.id: "run", step: "step", f"n1/{step}": "step",
        f"{step}.cancel": "command", "n1:s1:1": "event", note.id: "note",
    }  # fmt: skip
    whole = told.explain(incident.id)
    for id_, kind in asked.items():
        found = told.explain(str(id_))
        assert (found["found"]["kind"], found["found"]["incidents"]) == (kind, [incident.id]), id_
        assert {**found, "found": None} == {**whole, "found": None}, id_
        assert "WHY WE THINK SO" in told.says(str(id_))
    assert [one["kind"] for one in told.explain(str(page))["found"]["notes"]] == [
        "page.sent",
        "page.delivered",
    ]
    assert {one["run"] for one in told.explain(run.id)["found"]["notes"]} == {run.id}
    assert [one["kind"] for one in told.explain(step)["found"]["notes"]] == ["step.result"]
    assert told.explain(note.id)["found"]["notes"][0]["text"] == note.text
    assert told.explain("n1:s1:1")["found"]["notes"], "what the event led to"


def test_a_hold_says_who_when_and_what_became_of_it(told: Told) -> None:
    """It belongs to no incident: what is known is told, and how it is released while it is in force."""
    command = told.command("hold", scope="node/n1", why="a firmware upgrade")
    (hold,) = told.story.engine.state.holds.values()
    found = told.explain(hold.id)
    assert found["incident"] is found["rule"] is None
    assert (found["found"]["hold"]["who"], found["found"]["hold"]["why"]) == ("ann", "a firmware upgrade")
    assert f"gpuward release {hold.id}" in told.says(hold.id)
    assert told.explain(command)["found"]["notes"][0] == found["found"]["notes"][0]
    told.command("release", scope=hold.id)
    after = told.explain(hold.id)["found"]
    assert after["hold"] is None
    assert [note["kind"] for note in after["notes"]] == ["operator.hold", "operator.release"]
    assert "not in force any more" in told.says(hold.id)
    assert told.explain(hold.id[:-1]) is None


def test_a_command_says_what_came_of_it(told: Told) -> None:
    """One that was refused, one about a mode, and one about an incident, whose chain follows."""
    (incident,) = told.story.time.incidents.values()
    refused = told.command("release", scope="node/nowhere")
    assert "there is no hold on 'node/nowhere'" in told.says(refused)
    assert told.explain(refused)["incident"] is None
    mode = told.command("mode", runbook="gpu-lost", mode="approve")
    assert "sets gpu-lost to approve" in told.says(mode)
    acked = told.explain(told.command("ack", id=incident.id))
    assert (acked["found"]["kind"], acked["incident"]["id"]) == ("command", incident.id)
    assert [note["kind"] for note in acked["found"]["notes"]] == ["page.acked", "page.sent"]


def test_what_nothing_is_known_of(told: Told) -> None:
    """Also where the id would be a pattern, or has the form of something that never was."""
    for id_ in (
        "hold-aaaaaaaa",
        "hold-*",
        "grp-aaaaaaaa",
        "grp-aaaaaaaa.p1",
        "s:0",
        "n1:s1:99",
        "*",
        "inc-zzzzzzzz.r1",
        "gpu-01",
    ):
        assert told.explain(id_) is None, id_


@pytest.mark.parametrize("id_", ["", "/", "n1/", "../", ".", "n1/."])
def test_an_id_that_names_nothing_is_nothing(told: Told, id_: str) -> None:
    """Not all that nothing has caused, such as the brain's own notes."""
    own = Note(id="brain:1", kind="access.token", text="a token was made", caused_by="", at=30.0)
    told.model.write(99, [(0, own)], (), ())
    assert told.explain(id_) is None


def test_an_alert_group_names_its_incidents(tmp_path: Path) -> None:
    """Also a page of it, and also when it is over and the engine has forgotten it."""
    story = storm()
    silent(story, 10, *range(2, 14))
    story.run(200)
    told = Told(tmp_path / "history", story)
    (group, *_) = story.engine.state.alert_groups
    live = told.explain(group)["found"]
    assert live["kind"] == "alert group"
    assert len(live["incidents"]) > 1
    assert f"gpuward explain {live['incidents'][0]}" in told.says(group)
    assert told.explain(f"{group}.p1")["found"]["notes"][0]["kind"] == "page.sent"
    story.engine.state.alert_groups.clear()
    assert sorted(told.explain(group)["found"]["incidents"]) == sorted(live["incidents"])
    told.model.close()


def test_an_event_of_several_incidents_names_them(told: Told) -> None:
    """No incident is guessed."""
    (one,) = told.story.time.incidents.values()
    story = Story(pack())
    story.event(1, "gpu.xid", GPU, node="n2", code=79)
    story.run(30)
    (other,) = story.time.incidents.values()
    other.evidence.append(one.evidence[0])
    told.model.write(999, [], [other], ())
    found = told.explain("n1:s1:1")
    assert (found["incident"], sorted(found["found"]["incidents"])) == (None, sorted([one.id, other.id]))
    assert f"gpuward explain {other.id}" in told.says("n1:s1:1")


def test_no_answer_reads_the_whole_history(told: Told) -> None:
    """Each question goes by an index; the only bounded look at many rows is that of the notes on holds and modes."""
    asked: list[str] = []
    db = sqlite3.connect(told.path)
    told.model.use(db)
    db.set_trace_callback(asked.append)
    hold = told.command("hold", scope="node/n1", why="x") and next(iter(told.story.engine.state.holds))
    asked.clear()
    for id_ in (
        hold,
        "n1:s1:1",
        "grp-aaaaaaaa",
        "s:0",
        "n1:s1:99",
        next(iter(told.story.time.incidents)),
        "n1:s1:1#0",
    ):
        told.explain(id_)
    db.set_trace_callback(None)
    scans = set()
    for question in {one for one in asked if one.startswith("SELECT")}:
        for *_, detail in db.execute(f"EXPLAIN QUERY PLAN {question}"):
            if detail.startswith("SCAN"):
                scans.add(re.sub(r"\d+", "#", detail))
    assert scans <= {"SCAN notes USING INDEX notes_said", "SCAN (subquery-#)"}, scans


def test_a_history_of_an_older_version_knows_its_events(told: Told, tmp_path: Path) -> None:
    """What of which incidents an event is evidence is made from the incidents that are there."""
    told.model.close()
    with sqlite3.connect(told.path) as db:
        db.execute("DROP TABLE evidence")
        db.execute("DELETE FROM meta WHERE key = 'evidence'")
    db.close()
    told.model = ReadModel(told.path)
    assert told.explain("n1:s1:1")["found"]["kind"] == "event"


def test_what_is_forgotten_with_an_incident(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of events does not outgrow the incidents."""
    monkeypatch.setattr(readmodel, "KEEP_OVER", 0)
    monkeypatch.setattr(readmodel, "_CHECK_EVERY", 1)
    told.command("close", id=next(iter(told.story.time.incidents)))
    assert told.model.incidents_of_event("n1:s1:1") == []


def test_an_alert_that_has_passed_on_is_found_with_who_has_it(tmp_path: Path) -> None:
    """The page of a node whose leaf switch explains it: the older pages are the node's, the newer ones the leaf's."""
    places = {f"n{number}": Place(leaf="l1") for number in range(6)}
    story = Story(pack(places=places), heals=False)
    story.event(10, "node.unreachable", "node", "n0")
    for node in ("n1", "n2", "n3", "n4"):
        story.event(40, "node.unreachable", "node", node)
    story.run(200)
    told = Told(tmp_path / "alerts.db", story)
    (first, leaf) = (
        next(one.id for one in story.time.incidents.values() if one.scope == scope)
        for scope in ("node/n0", "leaf/l1")
    )
    assert told.explain(f"{first}.p1")["found"]["incidents"] == [first]
    assert told.explain(f"{first}.p2")["found"]["incidents"] == [leaf]
    assert told.explain(f"{first}.p2")["pages"][0]["id"] == f"{first}.p2"
    assert f"goes on as that of {leaf}: gpuward explain {leaf}" in told.says(first)
    assert f"{first}, which began with that incident" in told.says(leaf)
    pages = told.explain(first)["incident"]["pages"]
    assert (pages["alert"], pages["passed_to"], pages["resolved"]) == (first, leaf, True)
    told.model.close()
