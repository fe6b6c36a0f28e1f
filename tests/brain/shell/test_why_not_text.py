"""`gpuward explain --why-not`, and how sure an incident is, as the command line prints them: with what the history knows."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.cells import cell_len

from brain.adapters.readmodel import ReadModel
from brain.cli import explain as explained
from brain.cli import why_not as printed
from brain.console import explain as chains
from brain.console import why
from brain.console.answers import encoded
from brain.core.pack.spec import Place
from brain.core.why import why_not
from tests.brain.world import GPU, Story, history_of, pack
from tests.shipped import shipped_pack


def answered(story: Story, model: ReadModel, rule: str, scope: str) -> Any:
    """The answer of the API."""
    return orjson.loads(encoded(why.answer(why_not.of(story.engine.look(), rule, scope), model)))


def lines_of(found: Any, width: int = 100) -> list[str]:
    """What is printed."""
    return list(printed.render(found, width=width))


@pytest.fixture
def returned() -> Story:
    """A GPU that was off the bus, and came back."""
    story = Story()
    story.event(1, "gpu.xid", GPU, code=79)
    story.event(50, "gpu.returned", GPU)
    story.event(290, "gpu.idle", GPU, unit="u", job="")
    return story.run(290)


def test_what_was_there_says_when_it_ended_and_why(returned: Story, tmp_path: Path) -> None:
    """Only the history knows it: the engine has forgotten. What never was says how far back that is."""
    model = history_of(returned, tmp_path / "history")
    found = answered(returned, model, "gpu-lost", "gpu/n1/0000:3b:00")
    (one,) = found["conditions"]
    assert (one["in_the_way"], one["past"]["why"]) == (True, "gpu.returned on gpu/0000:3b:00")
    text = lines_of(found)
    assert text[0].endswith("gpu-lost does not match at gpu/n1/0000:3b:00\x1b[0m")
    assert "  because      off_bus is not active at gpu/n1/0000:3b:00" in text
    assert any("ended 4 minutes ago, at " in line and "gpu.returned" in line for line in text), text
    assert "  begins with  gpu.xid with code 79 or gpu.off_bus or gpu.lost" in text
    never = answered(returned, model, "service-failed", "service/n1/a[b]*?.service")
    assert never["conditions"][0]["past"]["at"] is None
    assert any("never active" in line for line in lines_of(never))
    by_node = answered(returned, model, "gpu-lost-by-job", "n1")
    assert by_node["scope"] == "node/n1"
    model.close()


def test_a_full_page_of_other_symptoms_does_not_mean_never(returned: Story, tmp_path: Path) -> None:
    """What is not among the newest notes is not known before them."""
    returned.run(399)
    for at in range(400, 402 + 2 * why._NOTES, 2):
        returned.event(at, "gpu.lost", GPU)
        returned.event(at + 1, "gpu.returned", GPU)
    returned.run(402 + 2 * why._NOTES)
    model = history_of(returned, tmp_path / "history")
    found = answered(returned, model, "gpu-idle", "gpu/n1/0000:3b:00")
    past = next(one["past"] for one in found["conditions"] if one["symptom"] == "gpu_idle" and one["past"])
    assert past["at"] is None
    assert past["since"] > "1970-01-01T00:06:40"
    model.close()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_it_fits_the_terminal(returned: Story, tmp_path: Path, width: int) -> None:
    """In narrow windows and in wide ones."""
    model = history_of(returned, tmp_path / "history")
    for rule, scope in (
        ("gpu-lost", "gpu/n1/0000:3b:00"),
        ("gpu-idle", "gpu/n1/0000:3b:00"),
        ("sm-failover", "fabric/default"),
    ):
        for line in lines_of(answered(returned, model, rule, scope), width):
            plain = line.replace("\x1b[1m", "").replace("\x1b[0m", "").replace("\x1b[36m", "")
            assert cell_len(plain) <= width or " " not in plain.strip(), line
    model.close()


def test_a_match_that_waits_says_until_when(tmp_path: Path) -> None:
    """The gate, until when, when it is asked again, the runbook and its mode."""
    story = Story(heals=False)
    story.say(0.5, "hold", scope="node/n1", why="firmware", for_s=600.0)
    story.event(1, "link.state", "link/ib0", up=False)
    story.run(5)
    model = history_of(story, tmp_path / "history")
    found = answered(story, model, "link-down", "link/n1/ib0")
    text = "\n".join(lines_of(found))
    assert found["outcome"] == "open"
    assert "gate         hold, until " in text
    assert "asked again at" in text
    assert "runbook      bounce (auto)" in text
    assert "ann holds node/n1: firmware" in text
    assert f"gpuward explain {found['incident']}" in text
    model.close()


def test_which_place_it_is_and_which_it_is_not(tmp_path: Path) -> None:
    """Of a shared cause: the place, why it is that one, and the others that were considered."""
    places = {f"n{n}": Place(leaf=f"l{(n - 1) // 6}", rack=f"r{n % 3}") for n in range(1, 25)}
    story = Story(shipped_pack(places=places))
    for number in range(1, 7):
        story.event(number / 10, "gpu.xid", GPU, f"n{number}", code=79, action="RESTART_BM", name="x")
    story.run(60)
    (incident,) = [one for one in story.incidents() if one.scope == "leaf/l0"]
    model = history_of(story, tmp_path / "history")
    ctx = story.engine.look()
    found = chains.explain(
        model, story.engine.state, incident.id, traced=False, judge=lambda id_: why.judge(ctx, id_)
    )
    assert found is not None
    assert found.places[0].place == "leaf/l0"
    assert found.places[0].best
    assert found.place_sure >= 0.75
    text = list(explained.render(orjson.loads(encoded(found)), notes=False, width=120))
    assert "  it is        leaf/l0: all of its 6 nodes show it; none outside of it does" in text
    assert any(line.startswith("  not          rack/r0 (2 of 8 nodes): ") for line in text), text
    assert any("nearly all nodes that show it are in this place" in line for line in text)
    model.close()


@pytest.mark.parametrize("width", [80, 120])
def test_how_sure_and_what_would_change_it(tmp_path: Path, width: int) -> None:
    """In the chain of an incident that is open; of one that is over neither is told."""
    story = Story(pack(), heals=False)
    story.event(1, "link.state", "link/ib0", up=False)
    story.run(5)
    model = history_of(story, tmp_path / "history")
    (incident,) = story.incidents()

    def chain() -> Any:
        ctx = story.engine.look()
        found = chains.explain(
            model, story.engine.state, incident.id, traced=False, judge=lambda id_: why.judge(ctx, id_)
        )
        assert found is not None
        return orjson.loads(encoded(found))

    found = chain()
    assert found["sureness"]["level"] == "sure"
    assert found["changes"][0]["turn"] == "ends"
    text = list(explained.render(found, notes=False, width=width))
    whole = "\n".join(text)
    assert "HOW SURE" in whole
    assert "  sure         it is a state that the node has read" in whole
    assert "WHAT WOULD CHANGE IT" in whole
    assert "  its end      it ends when link.state with up true comes from" in whole
    assert all(cell_len(line) <= width + 9 for line in text)
    story.say(6, "close", id=incident.id)
    story.run(7)
    over = chain()
    assert (over["sureness"], over["changes"]) == (None, [])
    assert "HOW SURE" not in "\n".join(explained.render(over, notes=False, width=width))
    model.close()
