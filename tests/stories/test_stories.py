"""Every story ends as its file says, and docs/judgement.md tells it."""

from pathlib import Path

import pytest

from simulations.scenarios.load import ScenarioError
from tests.stories import page
from tests.stories.judged import all_judged, judged
from tests.stories.load import files, load, still_open

NAMES = [(path, tale.name) for path in files() for tale in load(path).stories]


@pytest.mark.parametrize(("path", "name"), NAMES, ids=[name for _, name in NAMES])
def test_what_is_found_is_what_is_expected(path: Path, name: str) -> None:
    """A story is right, unless tests/stories/open.yaml says why it is not; then it is not."""
    found = next(one for one in judged(path) if one.tale.name == name)
    why = still_open().get(name, "")
    if found.right and why:
        pytest.fail("it is right now: take it out of tests/stories/open.yaml", pytrace=False)
    if not found.right and not why:
        pytest.fail("\n".join(found.unmet), pytrace=False)


def test_names_are_keys() -> None:
    """No two stories have one name, and what is open is a story."""
    names = [name for _, name in NAMES]
    assert len(names) == len(set(names))
    assert set(still_open()) <= set(names)


def test_the_page_is_fresh() -> None:
    """`python -m tests.stories --write` would change nothing."""
    if page.PAGE.read_text() != page.page(dict(all_judged())):
        pytest.fail("docs/judgement.md is out of date: run `python -m tests.stories --write`", pytrace=False)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{at: 1, on: n001, dark: 60, darkness: 1}", "x.yaml:5: stories.a.timeline.0.darkness: Unexpected"),
        ("{at: 1, on: n001}", "x.yaml:5: stories.a.timeline.0: needs one of"),
        ("{at: 1, on: n001, dark: 60, silent: 5}", "x.yaml:5: stories.a.timeline.0: needs one of"),
        ("{at: 1, on: n064, dark: 60}", "x.yaml:5: stories.a.timeline.0.on: the site has no node n064"),
        ("{at: 1, on: n1-3, dark: 60}", "x.yaml:5: stories.a.timeline.0.on: no nodes"),
        ("{at: 1, on: n001, drill: flood}", "x.yaml:5: stories.a.timeline.0.drill: there is no drill"),
        ("{at: 1, on: n001, event: gpu.gone, data: {a: 1}}", "timeline.0.event: there is no kind of event"),
        (
            "{at: early, on: n001, dark: 60}",
            "x.yaml:5: stories.a.timeline.0.at: Input should be a valid number",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, error: str) -> None:
    """Keys are strict, and who wrote them is told where to look."""
    file = tmp_path / "x.yaml"
    file.write_text(
        f"title: T\nstories:\n  a:\n    timeline:\n      - {text}\n    what: W\n    why: Y\n    expect: {{pages: 0}}\n"
    )
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert error in str(caught.value)
