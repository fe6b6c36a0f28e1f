"""What may be left out, and who says so: as an ordinary user the tests that need root or a component are skipped with
their reason; in CI (GPUWARD_CI) a test that is left out is a failure (left_out.py)."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import file_order, shipped
from tests.fences import Open

pytest_plugins = [
    "tests.closing_line",
    "tests.second_look",
    "tests.left_out",
    "tests.nightly",
    "tests.small_run",
    "pytester",
]

# Who imports aiohttp reads the machine's 140 certificates twice, in a fifth of a second: hundreds of processes that trust
# none of them. Tests of TLS name the authority that they trust. One there must be: libraries in Rust do not start without any.
os.environ.setdefault("SSL_CERT_FILE", str(Path(__file__).parent / "fixtures/nobody.pem"))

settings.register_profile("default", deadline=None, print_blob=True)
# CI judges a change: it tries the same examples each time. `make test` by hand looks for new ones.
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("GPUWARD_CI") else "default")


@pytest.fixture(scope="session", autouse=True)
def _steps_have_begun() -> None:
    """Tests call actions without a brain around them; tests/brain/test_fence.py tries what holds elsewhere."""
    from brain import fence

    fence.outside = Open()


@pytest.fixture(scope="session", autouse=True)
def _our_rules_are_read_once() -> Iterator[None]:
    """Hundreds of tests ask a command or a brain that reads them, each for half a second."""
    from brain.adapters import pack

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "scan", shipped.scan_once)
        yield


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
    """Puts the files in an order that keeps the processors busy; leaves out what needs root where there is none."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    items[:] = [item for file in file_order.in_order(files) for item in files[file]]
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))
