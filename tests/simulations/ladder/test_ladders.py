"""Every runbook, in every way in which it can go: none ends without a page or a heal."""

import functools

import pytest

from brain.cli.backtest import rule_sets
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Pack
from simulations.ladder import report
from simulations.ladder.rehearsal import rehearsed


@functools.cache
def shipped() -> Pack:
    """gpuward's own rules and runbooks."""
    return rule_sets.shipped().pack(places={})


@functools.cache
def compiled() -> CompiledCache:
    """Packs of this process, each compiled once."""
    return CompiledCache()


@pytest.mark.parametrize("runbook", sorted(one.name for one in shipped().runbooks))
def test_no_way_of_a_runbook_ends_without_a_page_or_a_heal(runbook: str) -> None:
    """Each step works, heals, does not help, helps for nine minutes, fails, is refused, never answers, or dies with its node or
    brain.
    """
    tree = rehearsed(shipped(), ACTIONS, runbook, compile_pack=compiled())
    assert not [f"{end}: {report.told(way)}" for way, end in report.bad(tree)]
    assert tree.plays > 0
