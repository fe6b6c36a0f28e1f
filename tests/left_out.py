"""In CI (GPUWARD_CI) a test that is left out is a failure, whatever it is left out by: a mark, `pytest.skip` in a test, a
fixture or a module, `importorskip`, `xfail`. Only a test with the mark `optional` may be."""

import os
from collections.abc import Generator

import pytest


def _failed(report: pytest.TestReport | pytest.CollectReport) -> None:
    report.longrepr = f"{report.nodeid} was left out, and CI must run it: {report.longrepr}"
    report.outcome = "failed"
    if hasattr(report, "wasxfail"):
        del report.wasxfail


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Of one test."""
    report = yield
    if os.environ.get("GPUWARD_CI") and report.skipped and not item.get_closest_marker("optional"):
        _failed(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Of a whole module."""
    report = yield
    if os.environ.get("GPUWARD_CI") and report.skipped:
        _failed(report)
    return report
