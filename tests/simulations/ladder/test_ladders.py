"""Every runbook, in every way in which it can go: none ends without a page or a heal."""

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from click.testing import CliRunner

from agent.contract.errors import ConfigError
from brain.cli.backtest import rule_sets
from brain.core.operators.requests import REQUEST
from brain.core.pack.actions import ACTIONS
from brain.core.pack.compiled import CompiledCache
from brain.core.pack.spec import Pack, Runbook
from simulations.ladder import report
from simulations.ladder.ends import StepEnd
from simulations.ladder.fault import ToldFault, leading_to
from simulations.ladder.play import Play
from simulations.ladder.played import LadderPlayed
from simulations.ladder.rehearsal import NOTHING, rehearsed
from simulations.ladder.tree import MOST_RUNS, Fork, Leaf, Round, Tree, WayEnd, leaf
from simulations.simulate import simulate


@functools.cache
def shipped() -> Pack:
    """gpuward's own rules and runbooks."""
    return rule_sets.shipped().pack(places={})


@functools.cache
def compiled() -> CompiledCache:
    """Packs of this process, each compiled once."""
    return CompiledCache()


def ways() -> list[tuple[str, str]]:
    """(runbook, cause) of all that leads to one; no cause: people start it."""
    return [
        (runbook.name, cause)
        for runbook in shipped().runbooks
        for cause in leading_to(shipped(), runbook.name) or ([""] if runbook.request else [])
    ]


def tree_of(runbook: str, cause: str = "", pack: Pack | None = None, *, fine: bool = True) -> Tree:
    """The tree of a shipped runbook."""
    return rehearsed(pack or shipped(), ACTIONS, runbook, cause, compile_pack=compiled(), fine=fine)


def with_runbook(changed: Runbook) -> Pack:
    """The shipped pack with one runbook changed."""
    books = tuple(changed if one.name == changed.name else one for one in shipped().runbooks)
    return replace(shipped(), version=f"changed-{changed.name}", runbooks=books)


def ends_of(tree: Tree) -> dict[tuple[StepEnd, ...], WayEnd | Round]:
    """How its steps ended -> how that way ends."""
    return {
        tuple(end for _, end in way): one if isinstance(one, Round) else one.verdict
        for way, one in tree.leaves()
    }


def test_every_runbook_is_rehearsed() -> None:
    """A fault leads to it, or people start it; so nobody has to remember to rehearse a new one."""
    assert {runbook for runbook, _ in ways()} == {one.name for one in shipped().runbooks}


def marked() -> Iterator[ParameterSet]:
    """All of them. For the nightly run: those by which a runbook is reached once more, and all with circumstances told finely
    apart, as the command does.
    """
    seen: set[str] = set()
    for runbook, cause in ways():
        again = [pytest.mark.nightly("the runbook's ways against another fault")] if runbook in seen else []
        seen.add(runbook)
        yield pytest.param(runbook, cause, False, marks=again, id=f"{runbook}-{cause}")
        finer = pytest.mark.nightly("the same ways, each in more circumstances")
        yield pytest.param(runbook, cause, True, marks=finer, id=f"{runbook}-{cause}-fine")


@pytest.mark.parametrize(("runbook", "cause", "fine"), list(marked()))
def test_no_way_of_a_runbook_ends_without_a_page_or_a_heal(runbook: str, cause: str, fine: bool) -> None:
    """Each step works, heals, does not help, helps for nine minutes, fails, is refused, never answers, or dies with its node or
    brain.
    """
    tree = tree_of(runbook, cause, fine=fine)
    assert not [f"{end}: {report.told(way)}" for way, end in report.bad(tree)]
    assert list(tree.leaves())


def test_what_each_end_of_a_step_leads_to() -> None:
    """Persistence mode of a GPU is one step, which people are told of when it does not help, or does not last."""
    tree = tree_of("persistence-on")
    found = ends_of(tree)
    assert found[StepEnd.HEALS,] is WayEnd.HEALED
    for end in (StepEnd.STAYS, StepEnd.FAILS, StepEnd.SILENT, StepEnd.DIES):
        assert found[end,] is WayEnd.PAGED
    assert found[StepEnd.RETURNS, StepEnd.HEALS] is WayEnd.HEALED
    assert found[StepEnd.RETURNS, StepEnd.RETURNS, StepEnd.RETURNS] is Round.TOLD
    assert isinstance(tree.root, Fork)
    assert tree.root.after_s == 120.0  # its symptom lasts so long before it counts


def test_a_ladder_climbs() -> None:
    """Reset, reboot, power cycle; a drained node is tested and given back, or people are told."""
    tree = tree_of("reset-gpu", "gpu-fatal-xid")
    rungs = {tuple(f"{rung} {end.name}" for rung, end in way): one for way, one in tree.leaves()}
    healed = (
        "evidence WORKS",
        "drain WORKS",
        "reset HEALS",
        "links WORKS",
        "diagnosis WORKS",
        "acceptance WORKS",
        "resume WORKS",
    )
    one = rungs[healed]
    assert isinstance(one, Leaf)
    assert (one.verdict, one.out_of_service) == (WayEnd.HEALED, False)
    lost = [one for way, one in rungs.items() if way[-1:] == ("power cycle STAYS",) and isinstance(one, Leaf)]
    assert lost
    assert all(one.verdict is WayEnd.PAGED and one.out_of_service for one in lost)


def test_a_runbook_that_gives_up_in_silence_is_found() -> None:
    """`on_failure: quit` ends a run as if it had worked."""
    (book,) = (one for one in shipped().runbooks if one.name == "persistence-on")
    silent = with_runbook(
        replace(book, rungs=tuple(replace(rung, on_failure="quit") for rung in book.rungs[:1]))
    )
    tree = tree_of("persistence-on", pack=silent)
    found = ends_of(tree)
    assert found[StepEnd.STAYS, StepEnd.STAYS, StepEnd.STAYS] is Round.SILENT
    assert found[StepEnd.HEALS,] is WayEnd.HEALED
    assert any(line.startswith("MUST NOT BE: ") for line in report.page(tree, 100))


def test_the_same_bytes_every_time() -> None:
    """It can be compared in a pull request."""
    one, other = (json.dumps(report.data(tree_of("link-bounce"), shipped())) for _ in range(2))
    assert one == other
    assert report.page(tree_of("link-bounce"), 100) == report.page(tree_of("link-bounce"), 100)


def test_a_play_reaches_no_actuator() -> None:
    """Law 9: it has an engine, a script and facts; the only world that it knows is itself."""
    _, example = leading_to(shipped(), "persistence-on")["gpu-persistence-off"]
    play = Play(
        shipped(),
        ACTIONS,
        ToldFault(shipped(), example),
        [StepEnd.HEALS],
        compiled(),
        cause="gpu-persistence-off",
    )
    played = play.run()
    assert [(one.step.action, one.end) for one in played.steps] == [("gpu.persistence", StepEnd.HEALS)]
    assert not played.broken


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--runbook", "nope"], "there is no runbook 'nope' (have: accept-node, "),
        (
            ["--runbook", "reset-gpu", "--fault", "nope"],
            "no rule leads from 'nope' to reset-gpu (what does: gpu-fatal-xid, ",
        ),
    ],
)
def test_what_is_not_there_is_named(args: list[str], says: str) -> None:
    """With what there is."""
    done = CliRunner().invoke(simulate, args)
    assert isinstance(done.exception, ConfigError)
    assert says in str(done.exception)


def test_a_fault_alone_is_a_mistake() -> None:
    """It asks for the runbook."""
    done = CliRunner().invoke(simulate, ["--fault", "gpu-lost"])
    assert done.exit_code == 2
    assert "--fault is for --runbook" in done.output


def test_the_command_says_by_its_exit_status_what_must_not_be(tmp_path: Path) -> None:
    """0 for a shipped runbook; 1 for one of a site's own that forgets a fault."""
    assert CliRunner().invoke(simulate, ["--runbook", "persistence-on", "--json"]).exit_code == 0
    rules = Path(__file__).parents[3] / "rules"
    books = tmp_path / "runbooks"
    books.mkdir()
    for file in (rules.parent / "runbooks").glob("*.yaml"):
        text = file.read_text()
        if file.stem == "persistence-on":
            text = text.replace("do: gpu.persistence", "do: gpu.persistence\n    on_failure: quit")
            text = text[: text.index("  - name: oncall")] if "  - name: oncall" in text else text
        (books / file.name).write_text(text)
    done = CliRunner().invoke(
        simulate, ["--runbook", "persistence-on", "--rules", str(rules), "--runbooks", str(books)]
    )
    assert done.exit_code == 1, done.output
    assert "MUST NOT BE" in done.output


def scripts_to(tree: Tree) -> Iterator[tuple[tuple[StepEnd, ...], Fork]]:
    """(ends on a way, the step that stands elsewhere to which it leads) of all that is shown once."""
    forks: dict[int, Fork] = {}
    merged: list[tuple[tuple[StepEnd, ...], int]] = []

    def walk(fork: Fork, way: tuple[StepEnd, ...]) -> None:
        forks[fork.number] = fork
        for branch in fork.branches:
            here = (*way, branch.end)
            if isinstance(branch.then, Fork):
                walk(branch.then, here)
            elif branch.then is None:
                merged.append((here, branch.again))

    assert isinstance(tree.root, Fork)
    walk(tree.root, ())
    return ((way, forks[number]) for way, number in merged)


@pytest.mark.parametrize(
    ("runbook", "cause"),
    [("inspect-fabric", ""), ("return-node", ""), ("connect-rdma", "rdma-connect-failed")],
)
def test_what_is_shown_once_ends_so_whichever_way_leads_there(runbook: str, cause: str) -> None:
    """A check that failed is told at the end, and a node that has died is away: then a step is not in the same circumstances.

    From the third run on circumstances are coarser: runs that may begin again for ever would have no end (tree.py).
    """
    tree = tree_of(runbook, cause)
    compared = 0
    for way, fork in scripts_to(tree):
        if fork.asked.run >= MOST_RUNS:
            continue
        for branch in fork.branches:
            if not isinstance(branch.then, Leaf):
                continue
            played = play(runbook, cause, (*way, branch.end))
            assert played.waits is None, way
            one = leaf(played)
            assert (one.verdict, one.out_of_service) == (branch.then.verdict, branch.then.out_of_service), way
            compared += 1
    assert compared


def play(runbook: str, cause: str, script: Sequence[StepEnd]) -> LadderPlayed:
    """A shipped runbook, by this script."""
    example = leading_to(shipped(), runbook)[cause][1] if cause else NOTHING
    return Play(
        shipped(),
        ACTIONS,
        ToldFault(shipped(), example),
        script,
        compiled(),
        cause=cause or f"{REQUEST}-{runbook}",
        requests="" if cause else runbook,
    ).run()


def test_a_start_that_another_one_overtakes_is_never_over() -> None:
    """The node dies in the reset, and is restarted by its BMC meanwhile: it comes back once, and not while it boots again."""
    script = (StepEnd.WORKS, StepEnd.WORKS, StepEnd.DIES, StepEnd.HEALS)
    played = play("reset-gpu", "gpu-fatal-xid", script)
    assert [one.rung.name for one in played.steps] == ["evidence", "drain", "reset", "reboot"]
    assert played.waits is not None
    assert (played.waits.rung.name, played.waits.returning) == ("links", True)


def test_too_many_ways_are_told_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wrote the runbook is told what to do."""
    monkeypatch.setattr("simulations.ladder.tree.MOST_PLAYS", 5)
    monkeypatch.setattr("simulations.ladder.tree.MOST_FINE", 5)
    done = CliRunner().invoke(simulate, ["--runbook", "connect-rdma"])
    assert isinstance(done.exception, ConfigError)
    assert "connect-rdma has more ways than are played" in str(done.exception)


def test_a_ladder_that_is_played_with_coarser_circumstances_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what that leaves out; one that is not says nothing of it."""
    fine = json.loads(CliRunner().invoke(simulate, ["--runbook", "persistence-on", "--json"]).output)
    assert fine["circumstances"] == "fine"
    monkeypatch.setattr("simulations.ladder.tree.MOST_FINE", 5)
    coarse = json.loads(CliRunner().invoke(simulate, ["--runbook", "persistence-on", "--json"]).output)
    assert coarse["circumstances"] == "coarse"
    assert coarse["leaves_out"] == [*fine["leaves_out"], report.COARSE]
    assert "would not be seen" in " ".join(
        CliRunner().invoke(simulate, ["--runbook", "persistence-on"]).output.split()
    )


def test_runbooks_without_their_rules_are_a_mistake() -> None:
    """They would be left unread, and gpuward's own played instead."""
    done = CliRunner().invoke(simulate, ["--runbook", "persistence-on", "--runbooks", "."])
    assert done.exit_code == 2
    assert "--runbooks goes with --rules" in done.output


def test_a_page_is_as_wide_as_its_terminal() -> None:
    """No line of it is wider."""
    assert max(map(len, report.page(tree_of("persistence-on"), 80))) <= 80
