"""CI's second look: the few tests that failed beside others run once more, alone. `python -m tests.second_look`.

A test of real servers has bounds of time, and a machine that is loaded for a minute can miss one. Such a test passes alone;
a defect fails again. What depends on no machine (PURE) gets no second look: there each failure is one. Which tests needed it
is said in one line, and stays in CI's output: a test that is named there again and again is to be mended (decision 61).
"""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

KEY = "gpuward/closing"  # in pytest's cache: how the last whole run ended
MOST = 5  # so many tests may have been unlucky; more are no accident
PURE = (
    "tests/agent/",
    "tests/brain/core/",
    "tests/contract/",
    "tests/laws/",
    "tests/replay/",
    "tests/situations/",
    "tests/stories/",
)


def pytest_sessionstart(session: pytest.Session) -> None:
    """A run that is killed leaves no record of the one before."""
    if not hasattr(session.config, "workerinput") and getattr(session.config, "cache", None) is not None:
        session.config.cache.set(KEY, None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """Keeps which tests failed. Of a parallel run only the process that hands out the tests does."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    cache = getattr(session.config, "cache", None)
    if reporter is None or cache is None or hasattr(session.config, "workerinput"):
        return
    failed = {report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, ())}
    cache.set(KEY, {"exit": int(exitstatus), "failed": sorted(failed)})


def refusal(ended: object) -> str:
    """Why a run gets no second look; empty: it may. `ended`: what the cache keeps, `{"exit": int, "failed": [node id]}`."""
    if not isinstance(ended, dict) or not ended.get("failed"):
        return "no test of a whole run is known to have failed"
    failed: list[str] = ended["failed"]
    if ended.get("exit") != pytest.ExitCode.TESTS_FAILED:
        return "the run was broken off"
    if len(failed) > MOST:
        return f"{len(failed)} tests failed, and more than {MOST} are no accident"
    if pure := [test for test in failed if test.startswith(PURE) or "::" not in test]:
        return f"what depends on no machine failed: {', '.join(pure)}"
    return ""


def main(arguments: Sequence[str] = ()) -> int:
    """Runs the failed tests once more, one at a time, with further arguments for pytest. 0: all of them passed."""
    kept = Path(".pytest_cache/v") / KEY
    ended = json.loads(kept.read_text("utf-8")) if kept.is_file() else None
    why = refusal(ended)
    if why or ended is None:
        sys.stderr.write(f"no second look: {why}\n")
        return 1
    failed = ended["failed"]
    again = [sys.executable, "-m", "pytest", "-rsfE", "-q", "-p", "no:cacheprovider", *arguments, *failed]
    code = subprocess.run(again, check=False).returncode
    end = "passed alone: to be made steady" if code == 0 else "failed, and again alone"
    sys.stdout.write(f"second look, {end}: {', '.join(failed)}\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
