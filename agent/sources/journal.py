"""Job logs in the journal: `journalctl --follow --output=json` as a child, of the units that the config names."""

import asyncio
import json
from contextlib import suppress
from typing import Any, ClassVar

from agent.collectors.readings import JobLine
from agent.host import Host
from agent.sources.base import Emit

MAX_LINE_BYTES = 64 * 1024
_ENTRY_BYTES = 1024 * 1024  # one JSON entry; journalctl itself leaves out fields above a few MiB
_LAST_LINES = 1000  # of this boot, for `once`
_STOP_S = 2.0
_NAMES = ("_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_COMM")


class JournalSource:
    """Emits JobLine for each message from now on. `units` may hold patterns (`slurmd.service`, `docker-*.scope`).

    `job_field`: the journal field whose value is the job id, e.g. CONTAINER_NAME; empty: no job is named.
    `markers`: as in JobLogSource. OSError when there is no journalctl or when it ends.
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
    ) -> None:
        self._host = host
        self._job_field = job_field
        self._markers = tuple(marker.encode() for marker in markers)
        fields = ",".join(("MESSAGE", *_NAMES, *((job_field,) if job_field else ())))
        self._argv = (
            *(program, "--output=json", "--no-pager", "--quiet", f"--output-fields={fields}"),
            *(f"--unit={unit}" for unit in units),
        )

    async def run(self, emit: Emit) -> None:
        """Follow the journal until cancelled."""
        if not self._host.live:
            raise OSError("journal: a recorded machine has none")
        await self._read(("--follow", "--lines=0"), emit)
        raise OSError("journal: journalctl ended")

    async def once(self, emit: Emit) -> None:
        """The last messages of this boot."""
        if self._host.live:
            await self._read(("--boot", f"--lines={_LAST_LINES}"), emit)

    async def _read(self, options: tuple[str, ...], emit: Emit) -> None:
        child = await asyncio.create_subprocess_exec(
            *self._argv,
            *options,
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
                if self._markers and not any(marker in line for marker in self._markers):
                    continue
                if (reading := self._reading(line)) is not None:
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
        if not text:
            return None
        return JobLine(
            text=text[:MAX_LINE_BYTES],
            file=f"journal:{unit}",
            job=_text(entry.get(self._job_field)) if self._job_field else "",
            mono_s=self._host.mono_s(),
        )


def _text(value: Any) -> str:
    """A field's text: journalctl writes what is not UTF-8 as a list of bytes, and repeated fields as a list."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(item) is int and 0 <= item < 256 for item in value):
        return bytes(value).decode(errors="replace")
    return value[0] if isinstance(value, list) and value and isinstance(value[0], str) else ""
