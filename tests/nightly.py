"""What only the nightly run plays: the mark `nightly(why)`, for what repeats the way of a test that CI has.

`make test` and `make test-real` leave it out (`-m "not nightly"`), `.ci/nightly` runs all. Nothing is lost in CI that way: each
file keeps a test there, and each real component.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

CI = "not nightly"  # of CI, as pytest's -m


def covering(why: str, *axes: Sequence[Any]) -> list[Any]:
    """All combinations of these values, for `parametrize`: CI has as many as put each value into one."""
    most = max(map(len, axes))
    ours = {tuple(number % len(axis) for axis in axes) for number in range(most)}
    places = itertools.product(*(range(len(axis)) for axis in axes))
    return [
        pytest.param(
            *(axis[at] for axis, at in zip(axes, place, strict=True)),
            marks=() if place in ours else pytest.mark.nightly(why),
        )
        for place in places
    ]


def first(count: int, why: str, values: Iterable[Any]) -> list[Any]:
    """These values, for `parametrize`: CI has the first ones."""
    return [
        pytest.param(value, marks=() if number < count else pytest.mark.nightly(why))
        for number, value in enumerate(values)
    ]


def _kept(items: Iterable[pytest.Item]) -> set[str]:
    files = {item.nodeid.partition("::")[0] for item in items}
    return files | {str(mark.args[0]) for item in items for mark in item.iter_markers("component")}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Refuses a mark without a reason, and a run of CI's from which a file or a component would be missing."""
    for item in items:
        for mark in item.iter_markers("nightly"):
            if not mark.args:
                raise pytest.UsageError(
                    f"{item.nodeid}: nightly(why) needs a reason: of what it is a repetition"
                )
    before = _kept(items)
    yield
    if config.option.markexpr == CI and (gone := sorted(before - _kept(items))):
        raise pytest.UsageError(f"CI would have no test of it any more, all are nightly: {', '.join(gone)}")
