"""What may be left out, and who says so: as an ordinary user the tests that need root or a component are skipped with
their reason; in CI (GPUWARD_CI) a test that is left out is a failure (left_out.py)."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Parts of their paths. What follows them is short.
LONGEST = (
    *(
        "e2e/healing/test_guest",
        "e2e/healing/test_gpu_nodes",
        "e2e/healing/",
        "e2e/test_up",
        "e2e/test_spine",
    ),
    *(
        "e2e/test_crash",
        "real/test_guest",
        "agent/test_line_storms",
        "real/test_long_outage",
        "real/test_kube_",
    ),
    *(
        "agent/test_nvml_trouble",
        "e2e/",
        "real/test_brain",
        "real/",
        "brain/test_rulebook",
        "agent/test_nvml",
    ),
    *("situations/test_situations", "brain/test_paging_laws", "replay/", "brain/test_crashes"),
)
pytest_plugins = ["tests.closing_line", "tests.left_out", "tests.small_run", "pytester"]

settings.register_profile("default", deadline=None, print_blob=True)
# CI judges a change: it tries the same examples each time. `make test` by hand looks for new ones.
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("GPUWARD_CI") else "default")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests are collected, and stay: the garbage collector need not look through them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest stories first, so that no worker sits alone with one in the end; leaves out what needs root where there
    is none.
    """
    items.sort(
        key=lambda item: next((n for n, word in enumerate(LONGEST) if word in item.nodeid), len(LONGEST))
    )
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))
