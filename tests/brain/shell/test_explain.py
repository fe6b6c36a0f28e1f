"""The console's view of an incident: the whole chain, also of rows that an older version wrote."""

import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from agent.shared.words import speaking
from brain.adapters.readmodel import ReadModel
from brain.cli.explain import render
from brain.cli.main import FOLDERS
from brain.console import explain as chains
from brain.console.answers import encoded
from brain.console.speech import in_language
from brain.core.effects import Note
from brain.core.jobs_seen import JobSeen
from brain.core.state import HitJob, HitNode, Hold, IncidentState, OwnedDrain, State
from tests.brain.world import GPU, Story, pack
from tests.simulations.stories import played


def explain(model: ReadModel, state: State, id_: str) -> Any:
    """The chain, as the API sends it; None: there is none."""
    found = chains.explain(model, state, id_, traced=False)
    return None if found is None else orjson.loads(encoded(found))


def filled(path: Path) -> tuple[ReadModel, Story]:
    """A read model with one lost GPU: its incident, run and notes."""
    story = Story(pack())
    story.event(1, "gpu.xid", GPU, code=79)
    story.time.run(30)
    model = ReadModel(path)
    model.begin("log-1")
    notes: list[tuple[int, Note]] = list(enumerate(story.time.notes, 1))
    model.write(len(notes), notes, story.time.incidents.values(), story.time.runs.values())
    return model, story


def test_an_incident_is_explained_from_page_to_kernel_line(tmp_path: Path) -> None:
    """Rule, symptoms, evidence, run and pages are all there, by the incident's id and by the run's."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    found = explain(model, story.engine.state, incident.id)
    assert found is not None
    assert found["rule"]["name"] == "gpu-lost"
    assert found["rule"]["matching_rules"] == ["gpu-lost@gpu/n1/0000:3b:00"]
    assert found["rule"]["support"] == found["rule"]["matching_rules"], "scripts of version 0.1 read it so"
    assert found["rule"]["knowledge"]["cause"]["en"]
    assert [one["name"] for one in found["symptoms"]] == ["off_bus"]
    assert [one["kind"] for one in found["evidence"]] == ["gpu.xid"]
    assert [step["action"] for step in found["runs"][0]["steps"]] == ["evidence.collect", "page"]
    assert found["pages"]
    by_run = explain(model, story.engine.state, found["runs"][0]["id"])
    assert {key: by_run[key] for key in by_run if key != "found"} == {
        key: found[key] for key in found if key != "found"
    }
    assert explain(model, story.engine.state, "inc-none") is None
    model.close()


def test_why_is_told_in_the_readers_language(tmp_path: Path) -> None:
    """What the rule says stands once, in the reader's language; of a rule without Chinese, or an older brain, in English."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    found = explain(model, story.engine.state, incident.id)
    model.close()
    found["rule"]["knowledge"] |= {
        "cause": {"en": "Power or heat.", "zh": "供电或过热。"},
        "todo": {"en": "Power it off and on.", "zh": "断电重启。"},
    }
    own = {**found, "rule": {**found["rule"], "because_zh": "它已脱离总线"}}
    older = {**found, "rule": {key: value for key, value in found["rule"].items() if key != "because_zh"}}
    cause, todo = (found["rule"]["knowledge"][name] for name in ("cause", "todo"))

    def shown(chain: Any, spoken: str) -> str:
        with speaking(spoken, FOLDERS):
            return " ".join("\n".join(render(chain, notes=False, width=300)).split())

    assert found["rule"]["because_zh"] == ""
    for chain, spoken, because, other in (
        (own, "zh", "它已脱离总线", "en"),
        (own, "en", "because of gpu-lost", "zh"),
        (found, "zh", "because of gpu-lost", "en"),
        (older, "zh", "because of gpu-lost", "en"),
    ):
        text = shown(chain, spoken)
        assert because in text
        for told in (cause, todo):
            assert text.count(told[spoken]) == 1, "once"
            assert told[other] not in text


def test_rows_of_an_older_version_are_shown_under_todays_names(tmp_path: Path) -> None:
    """The read model outlives an upgrade: its rows are not written again, so they are translated when read."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    today = explain(model, story.engine.state, incident.id)
    assert today is not None
    model.close()
    for old, new in (("person", "needs_human"), ("mended", "recovered"), ("open", "open")):
        with sqlite3.connect(tmp_path / "history") as db:
            row = orjson.loads(orjson.dumps(incident))
            row["support"] = row.pop("matching_rules")
            del row["hit"]
            row["state"] = old
            db.execute("UPDATE incidents SET state = ?, body = ?", (old, orjson.dumps(row)))
        db.close()
        model = ReadModel(tmp_path / "history")
        found = explain(model, story.engine.state, incident.id)
        assert found is not None
        assert found["incident"]["state"] == new
        assert found["rule"] == today["rule"]
        assert found["incident"]["hit"]["known"] == "no_scheduler"
        assert [one["state"] for one in model.incidents(open_only=False)] == [new]
        model.close()


def test_an_id_that_several_incidents_begin_with_names_them(tmp_path: Path) -> None:
    """No incident is guessed; the one whose whole id it is goes first."""
    story = Story(pack())
    for bdf in ("0000:3b:00", "0000:5d:00"):
        story.event(1, "gpu.xid", f"gpu/{bdf}", code=79)
    story.time.run(30)
    model = ReadModel(tmp_path / "history")
    model.begin("log-1")
    model.write(1, [], story.time.incidents.values(), ())
    assert model.incident("inc-") is None
    assert sorted(model.beginning("inc-")) == sorted(story.time.incidents)
    one = next(iter(story.time.incidents))
    assert model.beginning(one) == [one]
    assert model.beginning("inc-none!") == []
    model.close()


def test_plans_stand_in_the_order_of_the_ladder(tmp_path: Path) -> None:
    """Whoever would perform a step answers when it can: the brain before the node, and a slow BMC last."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    (run,) = story.time.runs.values()
    plans = [
        (100 + seq, Note(kind="step.plan", text="x", id=f"p{seq}", at=2, incident=incident.id, run=run.id, scope="", caused_by="",
                         data={"step": f"{run.id}.{rung}.a1", "ok": rung != "s2", "lines": [f"do {rung}"]}))
        for seq, rung in enumerate(("s2", "b1", "s10", "s6", "s1"))
    ]  # fmt: skip
    model.write(200, plans, (), ())
    found = explain(model, story.engine.state, incident.id)
    assert found is not None
    assert [one["step"].split(".")[-2] for one in found["runs"][0]["would"]] == [
        "s1",
        "s2",
        "s6",
        "s10",
        "b1",
    ]
    lines = [line.strip() for line in render(found, notes=False, width=100) if "asked" in line]
    assert [line.removeprefix("asked").strip() for line in lines] == [
        "1. would do: do s1", "2. would be refused: do s2", "6. would do: do s6", "10. would do: do s10",
        "back 1. would do: do b1",
    ]  # fmt: skip
    model.close()


def test_an_incident_that_is_not_judged_yet_says_why(tmp_path: Path) -> None:
    """A node that gpuward itself has switched off is silent: whoever finds that incident need not look for a second fault."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    found = explain(model, story.engine.state, incident.id)
    model.close()
    assert found is not None
    assert not any(line.strip().startswith("waits") for line in render(found, notes=False, width=100))
    found["incident"] |= {
        "state": "settling",
        "waits": "inc-x has switched n1 off: it is judged when that incident is over",
    }
    lines = list(render(found, notes=False, width=100))
    assert "  waits        inc-x has switched n1 off: it is judged when that incident is over" in lines


def test_the_command_that_gives_a_node_back_can_be_typed(tmp_path: Path) -> None:
    """An incident that keeps a node out of service ends with it."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    for owner, offered in (("inc-other", False), (incident.id, True)):
        story.engine.state.drains["n1"] = {owner: OwnedDrain(since=1)}
        found = explain(model, story.engine.state, incident.id)
        assert found is not None
        found["incident"]["state"] = "needs_human"
        assert any("gpuward return n1" in line for line in render(found, notes=False, width=100)) == offered
    model.close()


def test_what_many_nodes_share_does_not_end_with_one_of_them(tmp_path: Path) -> None:
    """Sixteen nodes are out of service: each is given back when it is well, and `all` is the word that the page has too."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    found = explain(model, story.engine.state, incident.id)
    assert found is not None
    model.close()
    found["incident"] |= {"state": "needs_human", "scope": "cell", "node": "", "nodes": 16}
    found["out_of_service"] = [f"n{at:02}" for at in range(1, 17)]
    text = " ".join(" ".join(render(found, notes=False, width=100)).split())
    assert "ends this" not in text
    assert "gpuward return NODE when it is well: gives it back" in text
    assert "out of service for this: n01, n02, n03" in text
    assert "gpuward hold all --why" in text
    assert "hold cell" not in text


def test_who_is_hit_is_told_a_line_for_each_job(tmp_path: Path) -> None:
    """Those that run there first; where nothing is known, who must do what. A brain of version 0.1 says nothing of it."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    jobs = [
        HitJob(job=JobSeen(id="4711", name="train-llama", user="alice", nodes=16), since=60.0),
        HitJob(job=JobSeen(id="12", user="bob", nodes=1), since=60.0, gone_at=120.0),
    ]
    cases: list[tuple[dict[str, HitNode], str, list[str]]] = [
        ({}, "no_scheduler", ["  not known    no scheduler is configured: whoever runs gpuward adds a table"]),
        ({"n1": HitNode(asked=1)}, "asked", ["  not known    the scheduler is being asked"]),
        (
            {"n1": HitNode(why="slurm: away")},
            "silent",
            ["  not known    the scheduler does not answer", "               not answered: slurm: away (n1)"],
        ),
        ({"n1": HitNode(at=60.0, scheduler="")}, "no_table", ["  not known    no table [schedulers.*] has these nodes"]),
        ({"n1": HitNode(at=60.0, scheduler="s")}, "known", ["  nobody       no job runs there, as of 01-01 00:01:00Z"]),
        (
            {"n1": HitNode(at=60.0, known_since=60.0, scheduler="s", jobs=jobs, unlisted=2)},
            "known",
            [
                "  00:01:00     job 4711 (train-llama) of alice: 1 of its 16 nodes",
                "  00:01:00     job 12 of bob: its only node; not there any more since 01-01 00:02:00Z",
                "               and 2 more jobs",
            ],
        ),
    ]  # fmt: skip
    for hit, known, wanted in cases:
        model.write(50, [], [replace(incident, hit=hit)], ())
        found = explain(model, story.engine.state, incident.id)
        assert found["incident"]["hit"]["known"] == known
        lines = list(render(found, notes=False, width=150))
        for line in wanted:
            assert any(one.startswith(line) for one in lines), (line, lines[:30])
    del found["incident"]["hit"]
    assert not any("WHO IS HIT" in line for line in render(found, notes=False, width=150))
    model.close()


def test_a_chain_is_told_in_chinese_to_its_last_word(tmp_path: Path) -> None:
    """Also what a page of a step said, and what its runbook is for; and an incident that came back says so in its head."""
    story = played("cable-cut").timeline
    (incident,) = [one for one in story.incidents.values() if one.cause == "link-down"]
    incident.times = 3
    model = ReadModel(tmp_path / "again")
    model.begin("log-1")
    notes: list[tuple[int, Note]] = list(enumerate(story.notes, 1))
    model.write(len(notes), notes, story.incidents.values(), story.runs.values())
    with in_language("zh"):
        (run,) = explain(model, State(), incident.id)["runs"]
    assert re.search("[\u4e00-\u9fff]", run["summary"]), run["summary"]
    said = [step["params"]["text"] for step in run["steps"] if step["action"] == "page"]
    assert said
    assert all(re.search("[\u4e00-\u9fff]", one) for one in said), said
    head = list(render(explain(model, State(), incident.id), notes=False, width=100))[:8]
    assert any("it came back 2 times" in line for line in head), head
    model.close()


def test_a_hold_is_told_with_the_incident_that_it_stops(tmp_path: Path) -> None:
    """Of its node, of a place that has it, or of everything; not of a neighbour, and not of what is over."""
    model, story = filled(tmp_path / "history")
    (incident,) = story.time.incidents.values()
    state = story.engine.state
    for number, scope in enumerate(("node/n1", "all", "node/n2"), 1):
        state.holds[f"hold-{number}"] = Hold(
            id=f"hold-{number}", scope=scope, who="ann", why="cables", since=1.0, until=0.0
        )
    found = explain(model, state, incident.id)
    assert [one["scope"] for one in found["holds"]] == ["node/n1", "all"]
    head = "\n".join(render(found, notes=False, width=100)).partition("WHO IS HIT")[0]
    assert "hold         node/n1: cables (hold-1 of ann" in head
    incident.state = IncidentState.CLOSED
    model.write(99, [], [incident], [])
    assert explain(model, state, incident.id)["holds"] == []
    model.close()
