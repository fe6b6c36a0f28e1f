"""Which failed tests CI runs once more, and which never."""

import json
from pathlib import Path

import pytest

from tests import second_look
from tests.small_run import SmallRun

SERVER = "tests/real/test_lanes.py::test_one"

REFUSED = {
    "nothing failed": {"exit": 0, "failed": []},
    "broken off": {"exit": 2, "failed": [SERVER]},
    "too many": {"exit": 1, "failed": [f"{SERVER}[{n}]" for n in range(second_look.MOST + 1)]},
    "pure": {"exit": 1, "failed": [SERVER, "tests/brain/core/test_spreads.py::test_one"]},
    "a file that cannot be read": {"exit": 1, "failed": ["tests/real/test_lanes.py"]},
    "no run": None,
    "something else": ["failed"],
}


@pytest.mark.parametrize("ended", REFUSED.values(), ids=REFUSED)
def test_refused(ended: object) -> None:
    """Each failure of what depends on no machine is a defect, and so are many at once."""
    assert second_look.refusal(ended)


def test_a_few_tests_of_real_servers_may_be_looked_at_again() -> None:
    """Up to MOST of them."""
    assert not second_look.refusal({"exit": 1, "failed": [f"{SERVER}[{n}]" for n in range(second_look.MOST)]})


LUCK = """
import pathlib

def test_unlucky_once():
    seen = pathlib.Path("seen")
    there = seen.exists()
    seen.touch()
    assert there

def test_broken():
    assert {broken}

def test_good():
    pass
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")])
@pytest.mark.parametrize("broken", [False, True])
def test_what_passes_alone_passes(
    small_run: SmallRun,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    broken: bool,
) -> None:
    """And what fails again has failed; both are said with the tests' names, and nothing else runs again."""
    text = LUCK.format(broken=not broken)
    first = small_run(text, "tests.second_look", "-p", "cacheprovider", "--runs-in-its-own-process", *options)
    assert first.ret == 1
    kept = json.loads((pytester.path / ".pytest_cache/v" / second_look.KEY).read_text("utf-8"))
    assert kept["exit"] == 1
    assert [test.partition("::")[2] for test in kept["failed"]] == ["test_broken", "test_unlucky_once"][
        not broken :
    ]
    monkeypatch.chdir(pytester.path)
    assert second_look.main() == int(broken)
    said = capfd.readouterr().out
    assert ("passed alone" in said) is not broken
    assert "test_good" not in said


def test_without_a_run_nothing_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI asks only after a failure: no record of it is one, too."""
    monkeypatch.chdir(tmp_path)
    assert second_look.main() == 1
