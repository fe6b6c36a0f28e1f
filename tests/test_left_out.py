"""What CI says to a test that was left out."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.small_run import SmallRun

ROOT = Path(__file__).resolve().parents[1]
Ran = Callable[..., pytest.RunResult]

MARKERS = "markers =\n    optional(what): x\n    component(name): x\n"
# What leaves the test out; all but the last must run in CI.
WAYS = {
    "a mark": "@pytest.mark.skipif(True, reason='needs a switch')\ndef test_it(): pass\n",
    "the test": "def test_it():\n    pytest.skip('needs a switch')\n",
    "a component": "@pytest.mark.component('x')\ndef test_it():\n    pytest.skip('needs a switch')\n",
    "a fixture": "@pytest.fixture\ndef switch():\n    pytest.skip('needs a switch')\ndef test_it(switch): pass\n",
    "the module": "pytest.skip('needs a switch', allow_module_level=True)\ndef test_it(): pass\n",
    "an import": "pytest.importorskip('no_such_module')\ndef test_it(): pass\n",
    "expected failure": "@pytest.mark.xfail(reason='needs a switch')\ndef test_it():\n    raise AssertionError\n",
}
OPTIONAL = "@pytest.mark.optional('a switch')\ndef test_it():\n    pytest.skip('needs a switch')\n"


@pytest.fixture
def ran(small_run: SmallRun) -> Ran:
    """pytest on a text of tests."""

    def run(text: str, *options: str, **env: str) -> pytest.RunResult:
        return small_run(f"import pytest\n{text}", "tests.left_out", "-q", *options, ini=MARKERS, **env)

    return run


@pytest.mark.parametrize("text", WAYS.values(), ids=list(WAYS))
def test_ci_leaves_nothing_out(ran: Ran, text: str) -> None:
    """By hand it is only said."""
    done = ran(text, GPUWARD_CI="1")
    told = done.stdout.str()
    assert done.ret != 0, told
    assert "was left out, and CI must run it" in told
    assert "needs a switch" in told or "no_such_module" in told
    assert ran(text, GPUWARD_CI="").ret in (0, 5)  # 5: of a module that was left out no test is known


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_only_what_is_marked_may_be(ran: Ran, options: tuple[str, ...]) -> None:
    """What needs a device that CI has not."""
    assert ran(OPTIONAL, *options, GPUWARD_CI="1").ret == 0
    assert ran(WAYS["the test"], *options, GPUWARD_CI="1").ret == 1


def never_run(root: Path) -> Iterator[str]:
    """Functions `test_...` that pytest does not find: in a file, or a class, whose name does not say that it has tests."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            named = path.stem.startswith("test_") and getattr(node, "name", "")[:4] in ("test", "Test")
            for one in inside:
                if (
                    isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
                    and one.name.startswith("test_")
                    and not named
                ):
                    yield f"{path.relative_to(root)}:{one.lineno}: pytest never runs {one.name}"


def test_every_test_is_found() -> None:
    """A test that is never run is left out without a word."""
    assert list(never_run(ROOT / "tests")) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("clock_test.py", "def test_it(): pass\n"),
        ("kit.py", "async def test_it(): pass\n"),
        ("test_it.py", "class Clock:\n    def test_it(self): pass\n"),
    ],
)
def test_a_test_that_is_not_found_is_named(tmp_path: Path, file: str, text: str) -> None:
    """With its line."""
    (tmp_path / "test_good.py").write_text(
        "def test_it(): pass\nclass TestClock:\n    def test_it(self): pass\n"
    )
    (tmp_path / file).write_text(text)
    (message,) = never_run(tmp_path)
    assert message.startswith(f"{file}:")
