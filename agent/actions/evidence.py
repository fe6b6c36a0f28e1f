"""evidence.collect: one bounded bundle about what this machine says now, for the person who reads the
page.
"""

import asyncio
import contextlib
import io
import os
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, ClassVar

import orjson

from agent.actions.base import CALL, Done, Params, number, say
from agent.actions.evidence_files import files
from agent.actions.evidence_tools import Answers, Tools, forget_reports
from agent.contract import components
from agent.contract.errors import ActionError, ContractError, Refused
from agent.host import Host
from agent.tasks import abandonable

MAX_BYTES = 8 * 1024 * 1024  # of one bundle, before it is compressed, and without NVIDIA's bug report
MAX_BUNDLES = 20  # the oldest go first
MAX_WINDOW_S = 86_400.0


class EvidenceCollect:
    """See the module's docstring. Bundles are `<folder>/<time>-<component>.tar.gz`, readable by root only.

    Reading may hang where the machine does (a process in the kernel, a file system): the thread that reads is
    left behind then.
    """

    name: ClassVar[str] = "evidence.collect"

    def __init__(self, host: Host, folder: Path, tools: Tools | None = None) -> None:
        self._host = host
        self._folder = folder
        self._tools = tools if tools is not None and host.live else Tools()
        self._one_at_a_time = asyncio.Lock()

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
        stop = threading.Event()
        try:
            async with self._one_at_a_time:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._forget()
                say("asking the tools")
                async with self._tools.answers(component, self._folder) as answers:
                    say("writing the bundle")
                    path, count = await abandonable(
                        lambda: self._write(component, window_s, answers, stop.is_set), "evidence"
                    )
                self._forget()
        except OSError as error:
            raise ActionError(f"the bundle cannot be written to {self._folder}: {error}") from error
        finally:
            stop.set()
        return Done(
            text=f"{path.name} with {count} files in {self._folder} on {self._host.hostname()}",
            evidence=path.name,
            evidence_bytes=path.stat().st_size,
        )

    async def recover(self, params: Params) -> None:
        """Nothing: half a bundle has another name and is removed by the next one."""

    def _write(
        self, component: str, window_s: float, answers: Answers, stopped: Callable[[], bool]
    ) -> tuple[Path, int]:
        stamp = self._host.wall().strftime("%Y%m%dT%H%M%S.%f")[:-3]
        name = f"{stamp}-{re.sub(r'[^A-Za-z0-9.-]+', '-', component)[:80]}.tar.gz"
        draft = self._folder / f"{name}.part"
        room, count = MAX_BYTES, 0
        try:
            with _private(draft) as sink, tarfile.open(fileobj=sink, mode="w:gz", compresslevel=6) as bundle:
                for path, content in self._files(component, window_s, answers):
                    if stopped():
                        raise OSError("it was cancelled")
                    content = content[:room]
                    bundle.addfile(self._member(path, len(content)), io.BytesIO(content))
                    room, count = room - len(content), count + 1
                    if room <= 0:
                        break
                if answers.report is not None:
                    with answers.report.open("rb") as source:
                        size = os.fstat(source.fileno()).st_size
                        bundle.addfile(self._member(answers.report.name, size), source)
                    count += 1
            if stopped():
                raise OSError("it was cancelled")
            draft.rename(self._folder / name)
        finally:
            draft.unlink(missing_ok=True)
        return self._folder / name, count

    def _member(self, path: str, size: int) -> tarfile.TarInfo:
        info = tarfile.TarInfo(path.lstrip("/"))
        info.size, info.mtime, info.mode = size, int(self._host.wall().timestamp()), 0o600
        return info

    def _files(self, component: str, window_s: float, answers: Answers) -> Iterator[tuple[str, bytes]]:
        """(path in the bundle, content), what matters most first."""
        call = CALL.get()
        about = {
            "component": component,
            "command": call.command if call else "",
            "node": self._host.hostname(),
            "kernel": self._host.kernel(),
            "boot": self._host.boot_id(),
            "wall": self._host.wall().isoformat(),
            "mono_s": self._host.mono_s(),
            "window_s": window_s,
            "tools": answers.how,
        }
        yield "about.json", orjson.dumps(about, option=orjson.OPT_INDENT_2)
        found = files(self._host, window_s)
        yield next(found)  # the kernel's log
        yield from answers.files
        yield from found

    def _forget(self) -> None:
        """Keeps the newest MAX_BUNDLES bundles, and nothing half done of a former run."""
        names = sorted(path.name for path in self._folder.iterdir())
        bundles = [name for name in names if name.endswith(".tar.gz")]
        for name in [*bundles[:-MAX_BUNDLES], *(name for name in names if name.endswith(".part"))]:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        forget_reports(self._folder)


def _private(path: Path) -> IO[bytes]:
    """A new file that only root can read: command lines may hold secrets."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _checked(params: Params) -> tuple[str, float]:
    try:
        component = components.check(str(params["component"]))
    except ContractError as error:
        raise Refused(str(error)) from error
    return component, number(params, "window_s", 600.0, 1.0, MAX_WINDOW_S)
