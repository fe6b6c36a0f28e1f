"""Job logs in the journal: `journalctl --follow --output=json` as a child, of the units that the config names.

The checkpoint is the journal's own cursor: what was written while no agent ran is read by the next one.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

from agent.collectors.joblog import JobLogOptions
from agent.collectors.samples import Checkpoint, JobLine
from agent.host import Host
from agent.options import option
from agent.shared import tool
from agent.sources.base import Emit, Source, SourceSetup

MAX_LINE_BYTES = 64 * 1024
_ENTRY_BYTES = 1024 * 1024  # one JSON entry; journalctl itself leaves out fields above a few MiB
_LAST_LINES = 1000  # of this boot, for `once`
_STOP_S = 2.0
_CURSOR_EVERY_S = 60.0  # how often the cursor is stored while no entry is wanted
_FRESH_S = 10.0  # what was written so shortly before it was read counts as new
_CURSOR = "journal cursor"
_NAMES = ("_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_COMM")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSourceOptions:
    """What an operator can set."""

    journal_units: tuple[str, ...] = option(
        (),
        "systemd units (patterns too) whose journal is searched for job output; empty: none",
        example=("slurmd.service", "docker-*.scope", "containerd.service", "kubelet.service"),
    )
    journal_job_field: str = option(
        "", "journal field that holds the job id; empty: the job is not named", example="CONTAINER_NAME"
    )


class JournalSource(Source):
    """Emits JobLine for each message from now on, or since the run that left `checkpoints`; and Checkpoint.

    `markers`: as in LogFiles. OSError when there is no journalctl or when it ends.
    """

    name: ClassVar[str] = "journal"
    needs: ClassVar[str] = "journalctl and the right to read the journal (root or group systemd-journal)"
    options: ClassVar[tuple[type[Any], ...]] = (JournalSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: JournalSourceOptions,
        *,
        markers: tuple[str, ...] = (),
        program: str = "journalctl",
        checkpoints: Mapping[str, str] | None = None,
    ) -> None:
        self._host = host
        units, job_field = options.journal_units, options.journal_job_field
        self._job_field = job_field
        self._markers = tuple(marker.encode() for marker in markers)
        self._cursor = (checkpoints or {}).get(_CURSOR, "")
        self._any_read = self._following = False
        self._stored_s = host.mono_s()
        self._last = (
            program,
            "--output=json",
            "--no-pager",
            "--quiet",
            "--output-fields=MESSAGE",
            "--lines=1",
        )
        full = tuple(unit if "." in unit else f"{unit}.service" for unit in units)  # as journalctl reads them
        self._patterns = full if any(set("*?[") & set(unit) for unit in units) else ()
        fields = ",".join(("MESSAGE", *_NAMES, *((job_field,) if job_field else ())))
        self._argv = (
            *(program, "--output=json", "--no-pager", "--quiet", f"--output-fields={fields}"),
            # journalctl expands a pattern once, to the units that the journal knows at its start, and would miss those of
            # later jobs: so patterns are compared here.
            *(f"--unit={unit}" for unit in units if not self._patterns),
        )

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no unit is named."""
        options = setup.options(JournalSourceOptions)
        if not options.journal_units:
            return None
        markers = setup.options(JobLogOptions).markers
        return cls(setup.host, options, markers=markers, checkpoints=setup.checkpoints(cls.name))

    async def run(self, emit: Emit) -> None:
        """Follow the journal until cancelled."""
        if not self._host.live:
            raise OSError("journal: a recorded machine has none")
        if not self._cursor and (cursor := await self._end()):
            emit(Checkpoint(key=_CURSOR, value=cursor))
        # --no-tail: all that came since, not the last ten. Without any entry yet there is no cursor.
        options = ("--no-tail", f"--after-cursor={self._cursor}") if self._cursor else ("--lines=0",)
        self._any_read = False
        self._following = True
        try:
            await self._read((*self._argv, "--follow", *options), emit, markers=self._markers)
        finally:
            self._following = False
        if not self._any_read:
            self._cursor = ""  # it may be one that the journal no longer has
        raise OSError("journal: journalctl ended")

    async def look(self, emit: Emit) -> None:  # noqa: ARG002  lines are no state: they go their usual way
        """See Source. journalctl is told of each new message, and there is no way to ask whether it has them all."""
        if not self._following:
            raise OSError("journal: journalctl does not run")

    async def _end(self) -> str:
        """The cursor of the journal's last entry; empty when it has none."""
        await self._read(self._last, lambda _: None)
        return self._cursor

    async def once(self, emit: Emit) -> None:
        """The last messages of this boot."""
        if self._host.live:
            options = ("--boot", f"--lines={_LAST_LINES}")
            await self._read((*self._argv, *options), emit, markers=self._markers)

    async def _read(self, argv: tuple[str, ...], emit: Emit, markers: tuple[bytes, ...] = ()) -> None:
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the agent's; the child ends with it
            limit=_ENTRY_BYTES,
        )
        assert child.stdout is not None  # noqa: S101  # PIPE above
        try:
            while True:
                try:
                    line = await child.stdout.readline()
                except ValueError:  # longer than the limit: its head is dropped, the rest is no JSON
                    continue
                if not line:
                    return
                # Most entries are not wanted: they are not even decoded. JSON escapes none of the markers.
                wanted = not markers or any(marker in line for marker in markers)
                now_s = self._host.mono_s()
                if not wanted and now_s - self._stored_s < _CURSOR_EVERY_S:
                    continue
                sample = self._sample(line)
                if self._cursor and (sample is not None or not wanted):
                    self._stored_s = now_s
                    emit(Checkpoint(key=_CURSOR, value=self._cursor))
                if sample is not None and wanted:
                    emit(sample)
        finally:
            await tool.end(child, _STOP_S)

    def _sample(self, line: bytes) -> JobLine | None:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(entry, dict):
            return None
        text = _text(entry.get("MESSAGE"))
        unit = next((name for field in _NAMES if (name := _text(entry.get(field)))), "")
        self._cursor, self._any_read = _text(entry.get("__CURSOR")) or self._cursor, True
        if not text or not self._unit_fits(entry):
            return None
        return JobLine(
            text=text[:MAX_LINE_BYTES],
            file=f"journal:{unit}",
            job=_text(entry.get(self._job_field)) if self._job_field else "",
            mono_s=self._host.mono_s() - self._age_s(entry),
        )

    def _unit_fits(self, entry: dict[str, Any]) -> bool:
        unit = _text(entry.get("_SYSTEMD_UNIT"))
        return not self._patterns or any(fnmatchcase(unit, pattern) for pattern in self._patterns)

    def _age_s(self, entry: dict[str, Any]) -> float:
        written = _text(entry.get("__REALTIME_TIMESTAMP"))  # microseconds
        if not (written.isascii() and written.isdigit()):
            return 0.0
        age_s = self._host.wall().timestamp() - int(written[:20]) / 1e6
        return age_s if age_s > _FRESH_S else 0.0


def _text(value: Any) -> str:
    """A field's text: journalctl writes what is not UTF-8 as a list of bytes, and a repeated field as a list of texts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(item) is int and 0 <= item < 256 for item in value):
        return bytes(value).decode(errors="replace")
    return value[0] if isinstance(value, list) and value and isinstance(value[0], str) else ""
