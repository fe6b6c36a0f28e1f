"""What an evidence bundle holds of tools: GPU state from NVIDIA's own, firewall and links from the system's."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.actions import tool
from agent.actions.base import say
from agent.contract import components
from agent.contract.errors import ActionError

MAX_OUTPUT_BYTES = 512 * 1024
ANSWER_S = 10.0
_GPU = ("gpu", "nvswitch", "job", "pcie", "node")  # about these the GPUs are asked
_NETWORK = ("nic", "port", "link", "bond", "node")
_REPORT = "nvidia-bug-report"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    tool: str  # its name in the configuration
    args: tuple[str, ...]
    about: tuple[str, ...]  # types of components
    file: str  # in the bundle


_QUESTIONS = (
    _Question(tool="nvidia-smi", args=("-q",), about=_GPU, file="tools/nvidia-smi-q.txt"),
    _Question(tool="nvidia-smi", args=("topo", "-m"), about=_GPU, file="tools/nvidia-smi-topo.txt"),
    _Question(tool="nvidia-smi", args=("nvlink", "-s"), about=_GPU, file="tools/nvlink-state.txt"),
    _Question(tool="nvidia-smi", args=("nvlink", "-e"), about=_GPU, file="tools/nvlink-errors.txt"),
    _Question(tool="nft", args=("list", "ruleset"), about=_NETWORK, file="tools/nft-ruleset.txt"),
    _Question(tool="ip", args=("-s", "-d", "link"), about=_NETWORK, file="tools/ip-link.txt"),
    _Question(tool="ip", args=("address",), about=_NETWORK, file="tools/ip-address.txt"),
    _Question(tool="ip", args=("route", "show", "table", "all"), about=_NETWORK, file="tools/ip-route.txt"),
    _Question(tool="rdma", args=("link",), about=_NETWORK, file="tools/rdma-link.txt"),
)
NAMES = frozenset((*(question.tool for question in _QUESTIONS), _REPORT))


@dataclass(slots=True, kw_only=True)
class Answers:
    """What the tools said."""

    files: list[tuple[str, bytes]] = field(default_factory=list)  # (path in the bundle, content)
    report: Path | None = None  # NVIDIA's bug report, to be copied
    how: dict[str, str] = field(default_factory=dict)  # command -> how it went


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Where the tools are (name -> absolute path; what is empty or missing is not run) and what they may cost."""

    paths: Mapping[str, str] = field(default_factory=dict)
    report_s: float = 60.0  # for the bug report; 0: none is made
    report_bytes: int = 16 * 1024 * 1024

    def argvs(self, component: str) -> Iterator[tuple[_Question, list[str]]]:
        """What would be asked about this component here."""
        for question in _QUESTIONS:
            path = self.paths.get(question.tool, "")
            if path and components.type_of(component) in question.about and Path(path).exists():
                yield question, [path, *question.args]

    def reports(self, component: str) -> bool:
        """Would there be a bug report?"""
        path = self.paths.get(_REPORT, "")
        about_gpu = components.type_of(component) in ("gpu", "nvswitch", "node")
        return bool(path and self.report_s and about_gpu and Path(path).exists())

    async def answers(self, component: str, scratch: Path) -> Answers:
        """Asks all of them at the same time; the bug report is written to `scratch`."""
        found = Answers()
        async with asyncio.TaskGroup() as group:
            for question, argv in self.argvs(component):
                group.create_task(_ask(question, argv, found))
            if self.reports(component):
                group.create_task(self._report(scratch, found))
        return found

    async def _report(self, scratch: Path, found: Answers) -> None:
        say("nvidia-bug-report")
        argv = [
            self.paths[_REPORT],
            "--safe-mode",
            "--output-file",
            str(scratch / "nvidia-bug-report.log"),
        ]
        try:
            ran = await tool.run(argv, deadline_s=self.report_s, max_bytes=65536)
            how = "ok" if ran.status == 0 else f"status {ran.status}: {ran.says}"
        except ActionError as error:
            how = str(error)
        path, size = _newest(scratch)
        if size > self.report_bytes:
            how = f"{size} bytes, more than {self.report_bytes} are not taken along"
        elif path is not None:
            found.report = path
        found.how[_REPORT] = how


def _newest(folder: Path) -> tuple[Path | None, int]:
    """The report and its size: the tool packs it where it can, as `.log.gz`."""
    made = sorted(path for path in folder.iterdir() if path.is_file())
    return (made[-1], made[-1].stat().st_size) if made else (None, 0)


async def _ask(question: _Question, argv: list[str], found: Answers) -> None:
    name = " ".join([question.tool, *question.args])
    try:
        ran = await tool.run(argv, deadline_s=ANSWER_S, max_bytes=MAX_OUTPUT_BYTES)
    except ActionError as error:
        found.how[name] = str(error)
        return
    found.how[name] = "ok" if ran.status == 0 else f"status {ran.status}: {ran.says}"
    if ran.out or ran.status == 0:  # no rules at all is an answer too
        found.files.append((question.file, ran.out.encode()))
