"""ib.inspect: looks over the whole InfiniBand fabric from this node, with infiniband-diags and, where there is one, NVIDIA's
`ibdiagnet`. Nothing is cleared and nothing is changed.

Error counters are read twice with a pause: what grows meanwhile, and what has grown since this node's last inspection, are
findings (agent/contract/fabric.py). Links between switches are seen by nobody else. Everything that the tools printed is
in the bundle.
"""

import asyncio
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar

import orjson

from agent.actions import tool
from agent.actions.base import Done, Params, number, say
from agent.actions.bundle import BundleFolder, Member
from agent.actions.subnet import ports
from agent.contract import fabric
from agent.contract.errors import ActionError
from agent.contract.fabric import Last
from agent.host import Host

WATCH_S = 60.0
MAX_FABRICS = 4  # a node's ports may be in several
MAX_FINDINGS = 200  # in the bundle; a text has room for fewer
MAX_BYTES = 64 * 1024 * 1024  # of one bundle, before it is compressed
_TOOL_S = 120.0  # 256 adapters and 24 switches: 0.2 s; a lost switch costs each tool its time-outs
_DIAGNET_S = 900.0
_MOST_BYTES = 32 * 1024 * 1024  # of a tool's output; a line is 200 characters
_STAGE = re.compile(r"^-I-\s+(?P<stage>\S.*?)\s{2,}(?P<warnings>\d+)\s+(?P<errors>\d+)\b", re.MULTILINE)
_ERROR = re.compile(r"^-E-\s*(?P<text>\S.*)$", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class _Look:
    """What was seen of one fabric."""

    links: int
    ports: int
    findings: list[str]
    files: list[Member] = field(default_factory=list)


class IbInspect:
    """See the module's docstring. `tools`: folder of infiniband-diags; `ibdiagnet`: its absolute path, or empty; `root`:
    folder of the devices; `folder`: where the last inspection is kept.
    """

    name: ClassVar[str] = "ib.inspect"

    def __init__(
        self, host: Host, bundles: BundleFolder, *, tools: Path, ibdiagnet: str, root: str, folder: Path
    ) -> None:
        self._host = host
        self._bundles = bundles
        self._tools = tools
        self._ibdiagnet = ibdiagnet
        self._root = root
        self._memory = folder / "last.json"
        self._scratch = folder / "scratch"
        self._one_at_a_time = asyncio.Lock()

    async def plan(self, params: Params) -> list[str]:
        """The commands, for each fabric."""
        watch_s = number(params, "watch_s", WATCH_S, 0, 600)
        lines = []
        for name, _, _ in ports(self._host, self._root)[:MAX_FABRICS]:
            lines += [" ".join(self._argv(tool, name)) for tool in ("ibqueryerrors", "iblinkinfo")]
            lines.append(f"ibqueryerrors again after {watch_s:g} s")
            if self._ibdiagnet:
                lines.append(" ".join(self._diagnet_argv(name, "FOLDER")))
        return lines

    async def run(self, params: Params) -> Done:
        """Looks. Findings are an answer, no failure; ActionError when a fabric could not be looked over."""
        watch_s = number(params, "watch_s", WATCH_S, 0, 600)
        names = [name for name, _, _ in ports(self._host, self._root)[:MAX_FABRICS]]
        async with self._one_at_a_time:
            memory = self._read()
            try:
                self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
                looks = [await self._look(name, watch_s, memory) for name in names]
                findings = [text for look in looks for text in look.findings][:MAX_FINDINGS]
                text = fabric.text(
                    sum(look.links for look in looks), sum(look.ports for look in looks), findings
                )
                members = [("findings.txt", text.encode()), *(one for look in looks for one in look.files)]
                async with self._bundles.turn():
                    path, _ = await self._bundles.write("fabric", members, MAX_BYTES)
                    size = path.stat().st_size
                self._keep(memory)
            except OSError as error:
                raise ActionError(f"{self._scratch.parent} cannot be written: {error}") from error
            finally:
                shutil.rmtree(self._scratch, ignore_errors=True)
        return Done(text=text, evidence=path.name, evidence_bytes=size)

    async def recover(self, params: Params) -> None:
        """Nothing: it only asks, and what it kept was replaced as a whole or not at all."""

    async def _look(self, name: str, watch_s: float, memory: dict[str, Last]) -> _Look:
        say(f"asking the fabric of {name}")
        before = await self._ask("ibqueryerrors", name)
        link_text = await self._ask("iblinkinfo", name)
        say(f"watching the fabric's error counters for {watch_s:g} s")
        await asyncio.sleep(watch_s)
        after = await self._ask("ibqueryerrors", name)
        errors, cables = fabric.errors(after), fabric.links(link_text)
        if not errors.ports or not cables:
            raise ActionError(
                f"the tools see no fabric from {name}: {errors.ports} ports, {len(cables)} links"
            )
        found = list(
            fabric.findings(fabric.errors(before), errors, cables, memory.get(name, Last()), watch_s)
        )
        memory[name] = fabric.keep(errors, cables, f"{self._host.wall():%Y-%m-%d}")
        look = _Look(links=len(cables), ports=errors.ports, findings=found)
        look.files = [
            (f"{name}/ibqueryerrors-before.txt", before.encode()),
            (f"{name}/ibqueryerrors.txt", after.encode()),
            (f"{name}/iblinkinfo.txt", link_text.encode()),
        ]
        if self._ibdiagnet:
            await self._diagnet(name, look)
        return look

    async def _diagnet(self, name: str, look: _Look) -> None:
        """NVIDIA's tool has its own judgement: each stage with errors is a finding, with its first error."""
        say(f"ibdiagnet on the fabric of {name}")
        folder = self._scratch / name
        folder.mkdir()
        argv = self._diagnet_argv(name, str(folder))
        try:
            ran = await tool.run(argv, deadline_s=_DIAGNET_S, max_bytes=_MOST_BYTES)
        except ActionError as error:
            look.findings.append(f"ibdiagnet on {name}: {error}")
            return
        look.files.append((f"{name}/ibdiagnet.txt", ran.out.encode()))
        look.files += [(f"{name}/{path.name}", path) for path in _smallest(folder)]
        stages = {hit["stage"]: int(hit["errors"]) for hit in _STAGE.finditer(ran.out)}
        if not stages:
            look.findings.append(f"ibdiagnet on {name} did not come to its summary: {ran.says}")
        bad = {stage: count for stage, count in stages.items() if count}
        if bad:
            said = ", ".join(f"{stage} {count}" for stage, count in bad.items())
            first = "".join(f"; first: {hit['text']}" for hit in islice(_ERROR.finditer(ran.out), 1))
            look.findings.append(f"ibdiagnet has errors: {said}{first}")

    async def _ask(self, name: str, port: str) -> str:
        ran = await tool.run(self._argv(name, port), deadline_s=_TOOL_S, max_bytes=_MOST_BYTES)
        if ran.status not in (0, 1):  # 1: there are errors above the threshold
            raise ActionError(f"{name} on {port} ended with status {ran.status}: {ran.says}")
        return ran.out

    def _argv(self, name: str, port: str) -> list[str]:
        device, _, number = port.rpartition(".")
        more = {"iblinkinfo": ["--line"]}.get(name, [])
        return [str(self._tools / name), "-C", device, "-P", number, *more]

    def _diagnet_argv(self, port: str, folder: str) -> list[str]:
        device, _, number = port.rpartition(".")
        return [self._ibdiagnet, "-i", device, "-p", number, "-o", folder]

    def _read(self) -> dict[str, Last]:
        try:
            raw = orjson.loads(self._memory.read_bytes())
            return {name: Last(**last) for name, last in raw.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}  # there was none, or it is none of ours: compared with nothing

    def _keep(self, memory: dict[str, Last]) -> None:
        draft = self._memory.with_suffix(".part")
        draft.write_bytes(orjson.dumps(memory))
        draft.replace(self._memory)


def _smallest(folder: Path) -> Iterator[Path]:
    """What ibdiagnet wrote, the small files first, until the bundle's room is used up."""
    room = MAX_BYTES
    for size, path in sorted((path.stat().st_size, path) for path in folder.iterdir() if path.is_file()):
        room -= size
        if room < 0:
            return
        yield path
