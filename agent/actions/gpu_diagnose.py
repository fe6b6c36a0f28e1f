"""gpu.diagnose: `dcgmi diag` on an idle node; a failed test is named with its GPU and its first warning.

The JSON of DCGM 3 ("DCGM GPU Diagnostic", a status in each result) and of DCGM 4 ("DCGM Diagnostic", results by
entity, with a summary) are both understood.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agent.actions import tool
from agent.actions.base import Done, Params, number, say
from agent.actions.gpus import GpuKit
from agent.contract.errors import ActionError, Unreachable

# Seconds for a level; NVIDIA's guide says seconds, 2 minutes, 30 minutes at most for 8 GPUs.
DEADLINES_S = {1: 300.0, 2: 900.0, 3: 1740.0}
MAX_NAMED = 10  # failed tests that are told; the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One test on one GPU (or on the machine: `entity` is empty)."""

    test: str
    entity: str
    status: str  # Pass, Fail, Warn, Skip
    warning: str


class GpuDiagnose:
    """See the module's docstring."""

    name: ClassVar[str] = "gpu.diagnose"

    def __init__(self, kit: GpuKit) -> None:
        self._kit = kit

    async def plan(self, params: Params) -> list[str]:
        """One line."""
        level = await self._checked(params)
        return [f"run dcgmi diag -r {level}, at most {DEADLINES_S[level]:g} s"]

    async def run(self, params: Params) -> Done:
        """Runs it."""
        level = await self._checked(params)
        argv = [self._kit.config.dcgmi, "diag", "-r", str(level), "-j"]
        say(f"dcgmi diag -r {level}")
        ran = await tool.run(argv, deadline_s=DEADLINES_S[level])
        found = results(ran.out, ran.says)
        passed = sum(1 for one in found if one.status == "Pass")
        if failed := [one for one in found if one.status == "Fail"]:
            texts = "; ".join(_text(one) for one in failed[:MAX_NAMED])
            more = f"; and {len(failed) - MAX_NAMED} more" if len(failed) > MAX_NAMED else ""
            raise ActionError(f"diagnostics of level {level} failed: {texts}{more}")
        if not passed:
            raise ActionError(f"no test of level {level} was run (skipped: {len(found)})")
        if ran.status != 0:
            raise ActionError(f"dcgmi ended with status {ran.status} though no test failed: {ran.says}")
        warned = [_text(one) for one in found if one.status == "Warn"]
        text = f"diagnostics of level {level}: {passed} passed"
        return Done(text=f"{text}, with warnings: {'; '.join(warned[:MAX_NAMED])}" if warned else text)

    async def recover(self, params: Params) -> None:
        """Nothing: the tests end with their tool, or by themselves."""

    async def _checked(self, params: Params) -> int:
        level = int(number(params, "level", 1, 1, 3))
        pids = [pid for card in await self._kit.nvml.look() for pid in card.pids]
        await self._kit.quiet.check(named=pids)
        return level


def results(text: str, says: str) -> list[Result]:
    """All results in what `dcgmi diag -j` printed; `says` is told when it printed none.

    Unreachable when its host engine does not answer: nothing was done.
    """
    start, end = text.find("{"), text.rfind("}")
    try:
        said = json.loads(text[start : end + 1])
        diagnostic = next(said[key] for key in ("DCGM Diagnostic", "DCGM GPU Diagnostic") if key in said)
        if error := diagnostic.get("runtime_error"):
            raise ActionError(f"dcgmi: {str(error)[:300]}")
        return [
            result
            for category in diagnostic["test_categories"]
            for test in category["tests"]
            for result in _of(test)
        ]
    except (ValueError, StopIteration, KeyError, TypeError, AttributeError):
        if "connect" in f"{text} {says}".lower():
            raise Unreachable(f"DCGM's host engine does not answer: {says}") from None
        raise ActionError(f"dcgmi printed no result: {says}") from None


def _of(test: Mapping[str, Any]) -> Iterator[Result]:
    for result in test.get("results") or [test.get("test_summary") or {}]:
        entity = str(result.get("gpu_id", ""))
        if "entity_id" in result:
            entity = str(result["entity_id"]) if result.get("entity_group", "GPU") == "GPU" else ""
        warnings = result.get("warnings") or []
        first = (warnings[0] if isinstance(warnings, list) else warnings) if warnings else ""
        first = first.get("warning", "") if isinstance(first, dict) else first
        yield Result(
            test=str(test.get("name", "?")),
            entity=entity,
            status=str(result.get("status", "")).capitalize(),
            warning=str(first)[:200],
        )


def _text(one: Result) -> str:
    where = f" on GPU {one.entity}" if one.entity else ""
    return f"{one.test}{where}{f': {one.warning}' if one.warning else ''}"
