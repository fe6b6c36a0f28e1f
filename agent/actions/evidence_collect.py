"""evidence.collect: makes one bounded bundle of this machine's present state, for the person who reads the page."""

from collections.abc import Iterator
from typing import ClassVar, Self

import orjson

from agent.actions.action_setup import ActionSetup
from agent.actions.base import RUNNING_COMMAND, Done, NodeAction, Params, number, report_progress
from agent.actions.bundle_folder import BundleFolder, Member
from agent.actions.evidence_files import files
from agent.actions.evidence_tools import EvidenceTools, ToolOutputs
from agent.contract import components
from agent.contract.errors import ContractError, Refused
from agent.host import Host

MAX_BYTES = 8 * 1024 * 1024  # of one bundle, before it is compressed, and without NVIDIA's bug report
MAX_WINDOW_S = 86_400.0


class EvidenceCollect(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "evidence.collect"

    def __init__(self, host: Host, bundles: BundleFolder, tools: EvidenceTools | None = None) -> None:
        """`tools` are run on a live machine only."""
        self._host = host
        self._bundles = bundles
        self._tools = tools if tools is not None and host.live else EvidenceTools()

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        config = setup.config
        found = EvidenceTools(
            paths=config.evidence_tools, report_s=config.bug_report_s, report_bytes=config.bug_report_bytes
        )
        return cls(setup.host, setup.bundles, found)

    async def plan(self, params: Params) -> list[str]:
        """What is read, and the tools that would be run."""
        component, window_s = _checked(params)
        lines = [
            f"collect evidence about {component}: "
            f"{window_s:g} s of kernel log, links, InfiniBand, GPU processes, jobs"
        ]
        lines += [" ".join(argv) for _, argv in self._tools.argvs(component)]
        if self._tools.reports(component):
            lines.append(f"nvidia-bug-report --safe-mode, for at most {self._tools.report_s:g} s")
        return lines

    async def run(self, params: Params) -> Done:
        """Collects and writes the bundle."""
        component, window_s = _checked(params)
        async with self._bundles.reserved() as scratch:
            report_progress("asking the tools")
            outputs = await self._tools.run(component, scratch)
            report_progress("writing the bundle")
            path, count = await self._bundles.write(
                component, self._files(component, window_s, outputs), MAX_BYTES
            )
            size = path.stat().st_size
        return Done(
            text=f"{path.name} with {count} files in {path.parent} on {self._host.hostname()}",
            evidence=path.name,
            evidence_bytes=size,
        )

    async def recover(self, params: Params) -> None:
        """Nothing to repair: half a bundle has another name and is removed by the next one."""

    def _files(self, component: str, window_s: float, outputs: ToolOutputs) -> Iterator[Member]:
        """(path in the bundle, content), the most important first."""
        command = RUNNING_COMMAND.get()
        about = {
            "component": component,
            "command": command.id if command else "",
            "node": self._host.hostname(),
            "kernel": self._host.kernel(),
            "boot": self._host.boot_id(),
            "wall": self._host.wall().isoformat(),
            "mono_s": self._host.mono_s(),
            "window_s": window_s,
            "tools": outputs.how,
        }
        yield "about.json", orjson.dumps(about, option=orjson.OPT_INDENT_2)
        found = files(self._host, window_s)
        yield next(found)  # the kernel's log
        if outputs.report is not None:
            yield outputs.report.name, outputs.report
        yield from outputs.files
        yield from found


def _checked(params: Params) -> tuple[str, float]:
    try:
        component = components.check(str(params["component"]))
    except ContractError as error:
        raise Refused(str(error)) from error
    return component, number(params, "window_s", 600.0, 1.0, MAX_WINDOW_S)
