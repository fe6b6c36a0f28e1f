"""The last words of a test run: how many tests passed, failed and were left out, and for which reasons.

    2,310 passed, 0 failed, 31 left out (29 need root; 2 need apt-get install opensm)
    2310 passed, 0 failed, 31 skipped

The first line is for people, the last one for programs. A run that ended early says how many tests were not run; for
programs those have failed. Of a parallel run only the process that hands out the tests prints them.
"""

from collections import Counter
from collections.abc import Generator, Iterable

import pytest

_REPEATED = {"needs": "need", "is": "are"}  # the verb of a reason that holds for more than one test
_BROKEN_OFF = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why it was skipped, in the words of the test."""
    told = getattr(report, "wasxfail", "") or report.longrepr
    text = str(told[2] if isinstance(told, tuple | list) else told or "")
    return text.removeprefix("Skipped: ") or "no reason given"


def _counted(reason: str, count: int) -> str:
    first, _, rest = reason.partition(" ")
    return f"{count} {_REPEATED.get(first, first) if count > 1 else first} {rest}".rstrip()


def lines(
    passed: Iterable[str],
    failed: Iterable[str],
    skipped: Iterable[pytest.TestReport | pytest.CollectReport],
    not_run: int = 0,
) -> list[str]:
    """The closing lines: for people, for programs. A test that passed and whose end then failed counts as failed only."""
    bad, out = set(failed), list(skipped)
    good = set(passed) - bad
    reasons = Counter(_reason(report) for report in out).most_common()
    told = f" ({'; '.join(_counted(reason, count) for reason, count in reasons)})" if out else ""
    rest = f", {not_run:,} not run" if not_run else ""
    return [
        f"{len(good):,} passed, {len(bad):,} failed, {len(out):,} left out{told}{rest}",
        f"{len(good)} passed, {len(bad) + not_run} failed, {len(out)} skipped",
    ]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """After all that pytest itself has to say."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return  # a worker: its reports are counted where they arrive
    stats = reporter.stats
    failed = [report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())]
    passed = [report.nodeid for kind in ("passed", "xpassed") for report in stats.get(kind, ())]
    skipped = [report for kind in ("skipped", "xfailed") for report in stats.get(kind, ())]
    not_run = 0
    if not session.config.option.collectonly:
        reports = [report for kind in stats for report in stats[kind] if kind]
        ran = {report.nodeid for report in reports if isinstance(report, pytest.TestReport)}
        not_run = max(0, session.testscollected - len(ran))
    if exitstatus in _BROKEN_OFF and not failed:
        not_run = max(1, not_run)
    for line in lines(passed, failed, skipped, not_run):
        reporter.write_line(line)
