"""What all tests of the console's pages have in common."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.web.kit import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all of a module; each test has its own cookies (`look`)."""
    with chromium() as one:
        yield one
