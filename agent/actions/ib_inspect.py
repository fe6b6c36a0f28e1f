"""ib.inspect: inspects the whole InfiniBand fabric from this node, with infiniband-diags and, where it is installed,
NVIDIA's `ibdiagnet`. It clears and changes nothing.

Error counters are read twice with a pause: what grows in that time, and what has grown since this node's last inspection,
are findings (agent/contract/fabric.py). Links between switches can be seen in no other way. The bundle has everything
that the tools printed.
"""

import asyncio
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar, Self

from agent.actions.action_setup import ActionSetup
from agent.actions.base import Done, NodeAction, Params, number, report_progress
from agent.actions.bundle_folder import BundleFolder, Member
from agent.actions.ib_ports import fabric_ports
from agent.contract import fabric
from agent.contract.errors import ActionError
from agent.contract.fabric import LastInspection
from agent.host import Host
from agent.shared import files, tool

WATCH_S = 60.0
MAX_FABRICS = 4  # a node's ports may be in several
MAX_FINDINGS = 200  # in the bundle; a text has room for fewer
MAX_BYTES = 64 * 1024 * 1024  # of one bundle, before it is compressed
_TOOL_S = 120.0  # 256 adapters and 24 switches take 0.2 s; a lost switch costs each tool its time-outs
_DIAGNET_S = 900.0
_MOST_BYTES = 32 * 1024 * 1024  # of a tool's output; a line has 200 characters
_STAGE = re.compile(r"^-I-\s+(?P<stage>\S.*?)\s{2,}(?P<warnings>\d+)\s+(?P<errors>\d+)\b", re.MULTILINE)
_ERROR = re.compile(r"^-E-\s*(?P<text>\S.*)$", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class _Inspection:
    """What was seen of one fabric."""

    links: int
    ports: int
    findings: list[str]
    files: list[Member] = field(default_factory=list)


class IbInspect(NodeAction):
    """See the module's docstring."""

    name: ClassVar[str] = "ib.inspect"

    def __init__(
        self, host: Host, bundles: BundleFolder, *, tools: Path, ibdiagnet: str, root: str, folder: Path
    ) -> None:
        """`tools`: folder of infiniband-diags; `ibdiagnet`: its absolute path, or empty; `root`: folder of the devices;
        `folder`: where the last inspection is kept.
        """
        self._host = host
        self._bundles = bundles
        self._tools = tools
        self._ibdiagnet = ibdiagnet
        self._root = root
        self._memory = folder / "last.json"
        self._scratch = folder / "scratch"
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def of(cls, setup: ActionSetup) -> Self:
        """See NodeAction."""
        config = setup.config
        return cls(
            setup.host,
            setup.bundles,
            tools=config.ib_tools,
            ibdiagnet=config.ibdiagnet,
            root=config.ib_root,
            folder=config.data_dir / "fabric",
        )

    async def plan(self, params: Params) -> list[str]:
        """The commands, for each fabric."""
        watch_s = number(params, "watch_s", WATCH_S, 0, 600)
        lines = []
        for name in self._ports():
            lines += [" ".join(self._argv(tool, name)) for tool in ("ibqueryerrors", "iblinkinfo")]
            lines.append(f"ibqueryerrors again after {watch_s:g} s")
            if self._ibdiagnet:
                lines.append(" ".join(self._diagnet_argv(name, "FOLDER")))
        return lines

    async def run(self, params: Params) -> Done:
        """Inspects. Findings are a result, not a failure; ActionError when a fabric could not be inspected."""
        watch_s = number(params, "watch_s", WATCH_S, 0, 600)
        names = self._ports()
        async with self._one_at_a_time:
            memory = self._read()
            try:
                self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
                inspections = [await self._inspect(name, watch_s, memory) for name in names]
                findings = [text for one in inspections for text in one.findings][:MAX_FINDINGS]
                text = fabric.text(
                    sum(one.links for one in inspections), sum(one.ports for one in inspections), findings
                )
                members = [
                    ("findings.txt", text.encode()),
                    *(file for one in inspections for file in one.files),
                ]
                async with self._bundles.reserved():
                    path, _ = await self._bundles.write("fabric", members, MAX_BYTES)
                    size = path.stat().st_size
                files.write_json(self._memory, memory)
            except OSError as error:
                raise ActionError(f"{self._scratch.parent} cannot be written: {error}") from error
            finally:
                shutil.rmtree(self._scratch, ignore_errors=True)
        return Done(text=text, evidence=path.name, evidence_bytes=size)

    async def recover(self, params: Params) -> None:
        """Nothing to repair: it only queries, and what it keeps is replaced as a whole or not at all."""

    def _ports(self) -> list[str]:
        return [name for name, _, _ in fabric_ports(self._host, self._root)[:MAX_FABRICS]]

    async def _inspect(self, name: str, watch_s: float, memory: dict[str, LastInspection]) -> _Inspection:
        report_progress(f"asking the fabric of {name}")
        before = await self._run("ibqueryerrors", name)
        link_text = await self._run("iblinkinfo", name)
        report_progress(f"watching the fabric's error counters for {watch_s:g} s")
        await asyncio.sleep(watch_s)
        after = await self._run("ibqueryerrors", name)
        errors, cables = fabric.errors(after), fabric.links(link_text)
        if not errors.ports or not cables:
            raise ActionError(
                f"the tools see no fabric from {name}: {errors.ports} ports, {len(cables)} links"
            )
        found = list(
            fabric.findings(
                fabric.errors(before), errors, cables, memory.get(name, LastInspection()), watch_s
            )
        )
        memory[name] = fabric.to_remember(errors, cables, f"{self._host.wall():%Y-%m-%d}")
        inspection = _Inspection(links=len(cables), ports=errors.ports, findings=found)
        inspection.files = [
            (f"{name}/ibqueryerrors-before.txt", before.encode()),
            (f"{name}/ibqueryerrors.txt", after.encode()),
            (f"{name}/iblinkinfo.txt", link_text.encode()),
        ]
        if self._ibdiagnet:
            await self._diagnet(name, inspection)
        return inspection

    async def _diagnet(self, name: str, inspection: _Inspection) -> None:
        """NVIDIA's tool judges by itself: each of its stages with errors is a finding, with its first error."""
        report_progress(f"ibdiagnet on the fabric of {name}")
        folder = self._scratch / name
        folder.mkdir()
        argv = self._diagnet_argv(name, str(folder))
        try:
            ran = await tool.run(argv, deadline_s=_DIAGNET_S, max_bytes=_MOST_BYTES)
        except ActionError as error:
            inspection.findings.append(f"ibdiagnet on {name}: {error}")
            return
        inspection.files.append((f"{name}/ibdiagnet.txt", ran.out.encode()))
        inspection.files += [(f"{name}/{path.name}", path) for path in _smallest(folder)]
        stages = {hit["stage"]: int(hit["errors"]) for hit in _STAGE.finditer(ran.out)}
        if not stages:
            inspection.findings.append(f"ibdiagnet on {name} did not come to its summary: {ran.last_line}")
        bad = {stage: count for stage, count in stages.items() if count}
        if bad:
            counts = ", ".join(f"{stage} {count}" for stage, count in bad.items())
            first = "".join(f"; first: {hit['text']}" for hit in islice(_ERROR.finditer(ran.out), 1))
            inspection.findings.append(f"ibdiagnet has errors: {counts}{first}")

    async def _run(self, name: str, port: str) -> str:
        ran = await tool.run(self._argv(name, port), deadline_s=_TOOL_S, max_bytes=_MOST_BYTES)
        if ran.status not in (0, 1):  # 1: there are errors above the threshold
            raise ActionError(f"{name} on {port} ended with status {ran.status}: {ran.last_line}")
        return ran.out

    def _argv(self, name: str, port: str) -> list[str]:
        device, _, port_number = port.rpartition(".")
        more = {"iblinkinfo": ["--line"]}.get(name, [])
        return [str(self._tools / name), "-C", device, "-P", port_number, *more]

    def _diagnet_argv(self, port: str, folder: str) -> list[str]:
        device, _, port_number = port.rpartition(".")
        return [self._ibdiagnet, "-i", device, "-p", port_number, "-o", folder]

    def _read(self) -> dict[str, LastInspection]:
        try:
            return {name: LastInspection(**last) for name, last in files.read_json(self._memory).items()}
        except (TypeError, AttributeError):
            return {}  # there is none, or it is none of ours: compared with nothing


def _smallest(folder: Path) -> Iterator[Path]:
    """The files that ibdiagnet wrote, smallest first, until the bundle's room is used up."""
    room = MAX_BYTES
    for size, path in sorted((path.stat().st_size, path) for path in folder.iterdir() if path.is_file()):
        room -= size
        if room < 0:
            return
        yield path
