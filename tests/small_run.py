"""pytest over one small file: for the tests of what our plug-ins say and refuse."""

from collections.abc import Callable
from typing import Any

import pytest

# Asks for a process of its own: what ends a run is not to end ours, and xdist's processes are those of a whole run.
OWN_PROCESS = "--runs-in-its-own-process"
SmallRun = Callable[..., pytest.RunResult]


@pytest.fixture
def small_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> SmallRun:
    """Runs a text of tests: `small_run(text, plugin, *options, ini="", **env)`, with one plug-in of ours and, for `-n`,
    xdist; with none of the others that are installed.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("GPUWARD_CI", raising=False)

    def run(text: str, plugin: str, *options: str, ini: str = "", **env: str) -> pytest.RunResult:
        pytester.makepyfile(test_tiny=text)
        pytester.makeini(f"[pytest]\n{ini}")
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        given: list[Any] = [option for option in options if option != OWN_PROCESS]
        if "-n" in given:
            given = ["-p", "xdist", *given]
        given = ["-p", plugin, "-p", "no:cacheprovider", *given, "test_tiny.py"]
        if OWN_PROCESS in options or "-n" in given:
            return pytester.runpytest_subprocess(*given, timeout=200)
        return pytester.runpytest_inprocess(*given)

    return run
