"""The part of an evidence bundle that comes from tools: GPU state from NVIDIA's, firewall and links from the system's."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.actions.base import report_progress
from agent.contract import components
from agent.contract.errors import ActionError
from agent.shared import tool

MAX_OUTPUT_BYTES = 512 * 1024
TOOL_S = 10.0
# Types of components about which a tool has something to tell.
_GPU = ("gpu", "nvswitch", "job", "pcie", "node")
_NETWORK = ("nic", "port", "link", "bond", "node")
_REPORT = "nvidia-bug-report"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    # The tool's name in the configuration.
    tool: str
    args: tuple[str, ...]
    # Types of components that it is run for.
    about: tuple[str, ...]
    # In the bundle.
    file: str


_CALLS = (
    _Call(tool="nvidia-smi", args=("-q",), about=_GPU, file="tools/nvidia-smi-q.txt"),
    _Call(tool="nvidia-smi", args=("topo", "-m"), about=_GPU, file="tools/nvidia-smi-topo.txt"),
    _Call(tool="nvidia-smi", args=("nvlink", "-s"), about=_GPU, file="tools/nvlink-state.txt"),
    _Call(tool="nvidia-smi", args=("nvlink", "-e"), about=_GPU, file="tools/nvlink-errors.txt"),
    _Call(tool="nft", args=("list", "ruleset"), about=_NETWORK, file="tools/nft-ruleset.txt"),
    _Call(tool="ip", args=("-s", "-d", "link"), about=_NETWORK, file="tools/ip-link.txt"),
    _Call(tool="ip", args=("address",), about=_NETWORK, file="tools/ip-address.txt"),
    _Call(tool="ip", args=("route", "show", "table", "all"), about=_NETWORK, file="tools/ip-route.txt"),
    _Call(tool="rdma", args=("link",), about=_NETWORK, file="tools/rdma-link.txt"),
)
NAMES = frozenset((*(call.tool for call in _CALLS), _REPORT))


@dataclass(slots=True, kw_only=True)
class ToolOutputs:
    """What the tools printed."""

    # (path in the bundle, content)
    files: list[tuple[str, bytes]] = field(default_factory=list)
    # NVIDIA's bug report, to be copied.
    report: Path | None = None
    # Command → how it went.
    how: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTools:
    """Where the tools are, and what they may cost."""

    # Name → absolute path; a tool that is empty or missing is not run.
    paths: Mapping[str, str] = field(default_factory=dict)
    # Time for the bug report; 0: none is made.
    report_s: float = 60.0
    # A larger report is left out.
    report_bytes: int = 16 * 1024 * 1024

    def argvs(self, component: str) -> Iterator[tuple[_Call, list[str]]]:
        """The calls that this component needs, of tools that are installed here."""
        for call in _CALLS:
            path = self.paths.get(call.tool, "")
            if path and components.type_of(component) in call.about and Path(path).exists():
                yield call, [path, *call.args]

    def reports(self, component: str) -> bool:
        """Would there be a bug report?"""
        path = self.paths.get(_REPORT, "")
        about_gpu = components.type_of(component) in ("gpu", "nvswitch", "node")
        return bool(path and self.report_s and about_gpu and Path(path).exists())

    async def run(self, component: str, scratch: Path) -> ToolOutputs:
        """Runs all of them at the same time; the bug report is written to `scratch`."""
        outputs = ToolOutputs()
        async with asyncio.TaskGroup() as group:
            for call, argv in self.argvs(component):
                group.create_task(_run(call, argv, outputs))
            if self.reports(component):
                group.create_task(self._report(scratch, outputs))
        return outputs

    async def _report(self, scratch: Path, outputs: ToolOutputs) -> None:
        report_progress("nvidia-bug-report")
        argv = [
            self.paths[_REPORT],
            "--safe-mode",
            "--output-file",
            str(scratch / "nvidia-bug-report.log"),
        ]
        try:
            ran = await tool.run(argv, deadline_s=self.report_s, max_bytes=65536)
            how = "ok" if ran.status == 0 else f"status {ran.status}: {ran.last_line}"
        except ActionError as error:
            how = str(error)
        path, size = _newest(scratch)
        if size > self.report_bytes:
            how = f"{size} bytes, more than {self.report_bytes} are left out"
        elif path is not None:
            outputs.report = path
        outputs.how[_REPORT] = how


def _newest(folder: Path) -> tuple[Path | None, int]:
    """The report and its size; the tool compresses it where it can, to `.log.gz`."""
    made = sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())
    return (made[-1], made[-1].stat().st_size) if made else (None, 0)


async def _run(call: _Call, argv: list[str], outputs: ToolOutputs) -> None:
    name = " ".join([call.tool, *call.args])
    try:
        ran = await tool.run(argv, deadline_s=TOOL_S, max_bytes=MAX_OUTPUT_BYTES)
    except ActionError as error:
        outputs.how[name] = str(error)
        return
    outputs.how[name] = "ok" if ran.status == 0 else f"status {ran.status}: {ran.last_line}"
    if (
        ran.out or ran.status == 0
    ):  # an empty output tells something too, e.g. that there are no firewall rules
        outputs.files.append((call.file, ran.out.encode()))
