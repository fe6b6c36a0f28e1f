"""gpu.diagnose: `dcgmi diag` on an idle node; a failed test is named with its GPU and its first warning.

Both forms of its JSON are read: that of DCGM 3 ("DCGM GPU Diagnostic", a status in each result) and that of DCGM 4
("DCGM Diagnostic", results by entity, with a summary). Where DCGM is not installed nothing is tested: no fault of the node.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params, number, report_progress
from agent.actions.gpus import GpuKit
from agent.contract.errors import ActionError, Refused, Unreachable
from agent.shared import tool

# Seconds for a level; NVIDIA's guide names seconds, 2 minutes, and at most 30 minutes for 8 GPUs.
DEADLINES_S = {1: 300.0, 2: 900.0, 3: 1740.0}
_LOOK_S = 2.0
MAX_NAMED = 10  # failed tests that are named; the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagResult:
    """One test of DCGM."""

    test: str
    # GPU; empty: the test is of the machine.
    entity: str
    # Pass, Fail, Warn, Skip
    status: str
    warning: str


class GpuDiagnose(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "gpu.diagnose"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        return cls(setup.gpus)

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        level = await self._checked(params)
        return [f"run dcgmi diag -r {level}, at most {DEADLINES_S[level]:g} s"]

    async def run(self, params: Params) -> Done:
        """Runs the diagnostics; ActionError when a test failed, or none was run."""
        level = await self._checked(params)
        argv = [self._kit.config.dcgmi, "diag", "-r", str(level), "-j"]
        report_progress(f"dcgmi diag -r {level}")
        try:
            ran, found = await self._diagnosed(argv, DEADLINES_S[level])
        except Refused as error:
            return Done(text="no diagnostics were run", untested=(f"GPU diagnostics: {error}",))
        passed = sum(1 for one in found if one.status == "Pass")
        if failed := [one for one in found if one.status == "Fail"]:
            texts = "; ".join(_text(one) for one in failed[:MAX_NAMED])
            more = f"; and {len(failed) - MAX_NAMED} more" if len(failed) > MAX_NAMED else ""
            raise ActionError(f"diagnostics of level {level} failed: {texts}{more}")
        if not passed:
            raise ActionError(f"no test of level {level} was run (skipped: {len(found)})")
        if ran.status != 0:
            raise ActionError(f"dcgmi ended with status {ran.status} though no test failed: {ran.last_line}")
        warned = [_text(one) for one in found if one.status == "Warn"]
        text = f"diagnostics of level {level}: {passed} passed"
        return Done(text=f"{text}, with warnings: {'; '.join(warned[:MAX_NAMED])}" if warned else text)

    async def recover(self, params: Params) -> None:
        """Nothing to repair: the tests end with their tool, or by themselves."""

    async def _diagnosed(self, argv: list[str], deadline_s: float) -> tuple[tool.Completed, list[DiagResult]]:
        """Runs it; again for a while if DCGM's host engine does not answer, which may just have been started."""
        end_s = self._kit.host.mono_s() + self._kit.settle_s
        while True:
            ran = await tool.run(argv, deadline_s=deadline_s)
            try:
                return ran, results(ran.out, ran.last_line)
            except Unreachable:
                if self._kit.host.mono_s() > end_s:
                    raise
                await asyncio.sleep(_LOOK_S)

    async def _checked(self, params: Params) -> int:
        level = int(number(params, "level", 1, 1, 3))
        pids = [pid for gpu in await self._kit.nvml.gpus() for pid in gpu.pids]
        try:
            await self._kit.quiesce.check(named=pids)
        except Refused as error:
            # Nothing was done, and it may be possible later: no reason to return the node untested.
            raise Unreachable(str(error)) from error
        return level


def results(text: str, last_line: str) -> list[DiagResult]:
    """All results in what `dcgmi diag -j` printed. `last_line` explains, for people, why there are none.

    Unreachable when its host engine does not answer: nothing was done.
    """
    start, end = text.find("{"), text.rfind("}")
    try:
        answer = json.loads(text[start : end + 1])
        diagnostic = next(answer[key] for key in ("DCGM Diagnostic", "DCGM GPU Diagnostic") if key in answer)
        if error := diagnostic.get("runtime_error"):
            raise ActionError(f"dcgmi: {str(error)[:300]}")
        return [
            result
            for category in diagnostic["test_categories"]
            for test in category["tests"]
            for result in _of(test)
        ]
    except (ValueError, StopIteration, KeyError, TypeError, AttributeError):
        if "connect" in f"{text} {last_line}".lower():
            raise Unreachable(f"DCGM's host engine does not answer: {last_line}") from None
        raise ActionError(f"dcgmi printed no result: {last_line}") from None


def _of(test: Mapping[str, Any]) -> Iterator[DiagResult]:
    for result in test.get("results") or [test.get("test_summary") or {}]:
        entity = str(result.get("gpu_id", ""))
        if "entity_id" in result:
            entity = str(result["entity_id"]) if result.get("entity_group", "GPU") == "GPU" else ""
        warnings = result.get("warnings") or []
        first = (warnings[0] if isinstance(warnings, list) else warnings) if warnings else ""
        first = first.get("warning", "") if isinstance(first, dict) else first
        yield DiagResult(
            test=str(test.get("name", "?")),
            entity=entity,
            status=str(result.get("status", "")).capitalize(),
            warning=str(first)[:200],
        )


def _text(one: DiagResult) -> str:
    where = f" on GPU {one.entity}" if one.entity else ""
    return f"{one.test}{where}{f': {one.warning}' if one.warning else ''}"
