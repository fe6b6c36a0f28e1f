"""Job logs in the journal: `journalctl --follow --output=json` as a child, of the units that the config names.

Where a former run ended is kept as the journal's own cursor, so that what was written while no agent ran is read.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from agent.collectors.readings import JobLine, Mark
from agent.host import Host
from agent.sources.base import Emit

MAX_LINE_BYTES = 64 * 1024
_ENTRY_BYTES = 1024 * 1024  # one JSON entry; journalctl itself leaves out fields above a few MiB
_LAST_LINES = 1000  # of this boot, for `once`
_STOP_S = 2.0
_CURSOR_EVERY_S = 60.0  # how often the cursor is kept where no entry is wanted
_FRESH_S = 10.0  # what was written so shortly before it was read is as good as new
_CURSOR = "journal cursor"
_NAMES = ("_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_COMM")


class JournalSource:
    """Emits JobLine for each message from now on, or since the run that left `marks`; and Mark.

    `units` may hold patterns (`slurmd.service`, `docker-*.scope`). `job_field`: the journal field whose value is the job id,
    e.g. CONTAINER_NAME; empty: no job is named. `markers`: as in JobLogSource. OSError when there is no journalctl or when
    it ends.
    """

    name: ClassVar[str] = "journal"
    needs: ClassVar[str] = "journalctl and the right to read the journal (root or group systemd-journal)"

    def __init__(
        self,
        host: Host,
        *,
        units: tuple[str, ...],
        job_field: str = "",
        markers: tuple[str, ...] = (),
        program: str = "journalctl",
        marks: Mapping[str, str] | None = None,
    ) -> None:
        self._host = host
        self._job_field = job_field
        self._markers = tuple(marker.encode() for marker in markers)
        self._cursor = (marks or {}).get(_CURSOR, "")
        self._heard = False
        self._kept_s = host.mono_s()
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
            # journalctl compares a pattern once, with the units that the journal knows at its start: those of later jobs
            # would never be heard. So it is our own to compare.
            *(f"--unit={unit}" for unit in units if not self._patterns),
        )

    async def run(self, emit: Emit) -> None:
        """Follow the journal until cancelled."""
        if not self._host.live:
            raise OSError("journal: a recorded machine has none")
        if not self._cursor and (cursor := await self._end()):
            emit(Mark(key=_CURSOR, value=cursor))
        # --no-tail: all that came since, not the last ten. Without any entry yet there is no cursor.
        options = ("--no-tail", f"--after-cursor={self._cursor}") if self._cursor else ("--lines=0",)
        self._heard = False
        await self._read((*self._argv, "--follow", *options), emit, markers=self._markers)
        if not self._heard:
            self._cursor = ""  # it may be one that the journal has no more
        raise OSError("journal: journalctl ended")

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
                if not wanted and now_s - self._kept_s < _CURSOR_EVERY_S:
                    continue
                reading = self._reading(line)
                if self._cursor and (reading is not None or not wanted):
                    self._kept_s = now_s
                    emit(Mark(key=_CURSOR, value=self._cursor))
                if reading is not None and wanted:
                    emit(reading)
        finally:
            if child.returncode is None:
                child.terminate()
                try:
                    async with asyncio.timeout(_STOP_S):
                        await child.wait()
                except TimeoutError:
                    child.kill()
                    with suppress(ProcessLookupError):
                        await child.wait()

    def _reading(self, line: bytes) -> JobLine | None:
        try:
            entry = json.loads(line)
        except ValueError:
            return None
        if not isinstance(entry, dict):
            return None
        text = _text(entry.get("MESSAGE"))
        unit = next((name for field in _NAMES if (name := _text(entry.get(field)))), "")
        self._cursor, self._heard = _text(entry.get("__CURSOR")) or self._cursor, True
        if not text or not self._named(entry):
            return None
        return JobLine(
            text=text[:MAX_LINE_BYTES],
            file=f"journal:{unit}",
            job=_text(entry.get(self._job_field)) if self._job_field else "",
            mono_s=self._host.mono_s() - self._age_s(entry),
        )

    def _named(self, entry: dict[str, Any]) -> bool:
        unit = _text(entry.get("_SYSTEMD_UNIT"))
        return not self._patterns or any(fnmatchcase(unit, pattern) for pattern in self._patterns)

    def _age_s(self, entry: dict[str, Any]) -> float:
        written = _text(entry.get("__REALTIME_TIMESTAMP"))  # microseconds
        if not (written.isascii() and written.isdigit()):
            return 0.0
        age_s = self._host.wall().timestamp() - int(written[:20]) / 1e6
        return age_s if age_s > _FRESH_S else 0.0


def _text(value: Any) -> str:
    """A field's text: journalctl writes what is not UTF-8 as a list of bytes, and repeated fields as a list."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(item) is int and 0 <= item < 256 for item in value):
        return bytes(value).decode(errors="replace")
    return value[0] if isinstance(value, list) and value and isinstance(value[0], str) else ""
