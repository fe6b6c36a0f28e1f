"""node.accept: runs the site's acceptance programs, one after the other, and holds their figures to the site's limits.

Each leads a process group of its own, with its time limit, a clean environment and bounded output (agent/shared/tool.py),
without core dumps, and is the first that the kernel kills for memory (agent/shared/limited.py). A program that fails does
not stop the others, so that one result names all that is wrong. What every program printed is in the bundle.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from agent.acceptance import Program, programs
from agent.actions.action_setup import ActionSetup
from agent.actions.alike import alike
from agent.actions.base import Done, NodeAction, NotPassed, Params, report_progress
from agent.actions.bundle_folder import BundleFolder, Member
from agent.actions.gpus import GpuKit
from agent.contract.errors import Refused, Unreachable
from agent.contract.figures import Figure
from agent.shared import tool

_LIMITED = Path(__file__).resolve().parents[1] / "shared" / "limited.py"
SUITES = ("quick", "full")
MAX_BYTES = 16 * 1024 * 1024  # of one bundle, before it is compressed
_GRACE_S = 5.0  # from SIGTERM to SIGKILL: MPI's launchers end their children meanwhile
_MAX_SAID = 120  # characters of a failed program's last line


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """How one program ended."""

    program: Program
    # Why it did not pass; empty: it passed, or was not run.
    failed: str = ""
    # Why it was not run; empty: it was.
    not_run: str = ""
    figures: tuple[Figure, ...] = ()
    out: str = ""
    err: str = ""


class NodeAccept(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "node.accept"

    def __init__(self, kit: GpuKit, bundles: BundleFolder) -> None:
        self._kit = kit
        self._bundles = bundles

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus, setup.bundles)

    async def plan(self, params: Params) -> list[str]:
        """Each program with its arguments and its limit."""
        chosen = self._chosen(params)
        await self._check_idle(chosen)
        return [f"run {' '.join(one.argv)}, at most {one.limit_s:g} s" for one in chosen]

    async def run(self, params: Params) -> Done:
        """Runs the suite; NotPassed when a program failed or a figure is not within its limit."""
        chosen = self._chosen(params)
        if not chosen:
            suite = params.get("suite", "quick")
            return Done(
                text="no acceptance program was run",
                untested=(f"bandwidth and all-reduce: `acceptance` of agent.toml has no {suite} program",),
            )
        outcomes = []
        for number, program in enumerate(chosen, 1):
            await self._check_idle([program])
            report_progress(f"{program.name} ({number} of {len(chosen)}), at most {program.limit_s:g} s")
            outcomes.append(await _run(program))
        async with self._bundles.reserved():
            path, _ = await self._bundles.write("acceptance", _members(outcomes), MAX_BYTES)
            size = path.stat().st_size
        done = Done(
            text=_text(outcomes),
            evidence=path.name,
            evidence_bytes=size,
            figures=tuple(figure for one in outcomes for figure in one.figures),
            alike=alike(self._kit.host, self._kit.config.ib_root),
            untested=tuple(f"{one.program.name}: {one.not_run}" for one in outcomes if one.not_run),
        )
        if any(one.failed for one in outcomes):
            raise NotPassed(done)
        return done

    async def recover(self, params: Params) -> None:
        """Nothing to repair: the programs change nothing, and die with the agent's unit."""

    def _chosen(self, params: Params) -> list[Program]:
        suite = params.get("suite", "quick")
        if suite not in SUITES:
            raise Refused(f"suite must be {' or '.join(SUITES)}, not {suite!r}")
        return [one for one in programs(self._kit.config.acceptance) if one.quick or suite == "full"]

    async def _check_idle(self, chosen: list[Program]) -> None:
        if any(one.gpus for one in chosen):
            pids = [pid for gpu in await self._kit.gpus() for pid in gpu.pids]
            try:
                await self._kit.quiesce.check(named=pids)
            except Refused as error:
                # Nothing was done, and it may be possible later: no reason to return the node untested.
                raise Unreachable(str(error)) from error


async def _run(program: Program) -> ProgramResult:
    if not os.access(program.argv[0], os.X_OK):
        return ProgramResult(program=program, not_run=f"{program.argv[0]} is not installed")
    argv = [sys.executable, "-I", str(_LIMITED), *program.argv]
    try:
        ran = await tool.run(argv, deadline_s=program.limit_s, grace_s=_GRACE_S)
    except Refused as error:
        return ProgramResult(program=program, not_run=str(error))
    except tool.Late as error:
        why = f"did not end within {program.limit_s:g} s"
        return ProgramResult(program=program, failed=why, out=error.ran.out, err=error.ran.err)
    figures = await asyncio.to_thread(program.read, ran.out)  # a flood may have millions of lines
    trouble = list(program.shortfalls(figures))
    if ran.status:
        how = f"signal {-ran.status}" if ran.status < 0 else f"status {ran.status}"
        trouble = [f"ended with {how}: {ran.last_line[:_MAX_SAID]}"]
    return ProgramResult(
        program=program, failed="; ".join(trouble), figures=tuple(figures), out=ran.out, err=ran.err
    )


def _members(outcomes: list[ProgramResult]) -> list[Member]:
    """The summary first, then what each program printed; stderr last, which may be long and says little."""
    return [
        ("summary.txt", "\n".join(_line(one) for one in outcomes).encode() + b"\n"),
        *((f"{one.program.name}.out", one.out.encode()) for one in outcomes if not one.not_run),
        *((f"{one.program.name}.err", one.err.encode()) for one in outcomes if one.err),
    ]


def _line(one: ProgramResult) -> str:
    if one.not_run:
        return f"{one.program.name} was not run: {one.not_run}"
    if one.failed:
        return f"{one.program.name} {one.failed}"
    values = ", ".join(f"{figure.name} {figure.value:g}" for figure in one.figures)
    return f"{one.program.name} passed{f' ({values})' if values else ''}"


def _text(outcomes: list[ProgramResult]) -> str:
    """One sentence: what failed first."""
    failed = [one for one in outcomes if one.failed]
    passed = [one for one in outcomes if not one.failed and not one.not_run]
    if failed:
        return f"acceptance failed: {'; '.join(_line(one) for one in failed)}"
    return f"acceptance: {'; '.join(_line(one) for one in passed) or 'no program was run'}"
