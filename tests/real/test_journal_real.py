"""Job output in a real journal, in a systemd container: followed, and taken up again after a pause."""

from pathlib import Path

import pytest

from agent.collectors.readings import JobLine, Mark
from agent.host import Host
from agent.sources.journal import JournalSource
from tests.agent.following import Heard, following
from tests.real import nspawn

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing() or "-"),
]
JOB = "[Service]\nType=oneshot\nExecStart=/bin/echo NCCL WARN line %i\nSyslogIdentifier=train\n"


async def test_what_a_job_says_while_nobody_listens_is_heard_later(tmp_path: Path) -> None:
    """Lines from now on; none from before the first start; after a pause those that were missed, each once."""
    with nspawn.machine(tmp_path / "box", {}) as box:
        (box.root / "etc/systemd/system/job@.service").write_text(JOB)
        box.run("systemctl", "daemon-reload")
        box.run("systemctl", "start", "systemd-journald.service")
        program = tmp_path / "journalctl"
        program.write_text(f'#!/bin/sh\nexec nsenter -t {box.leader} -a journalctl "$@"\n')
        program.chmod(0o755)

        def source(marks: dict[str, str]) -> JournalSource:
            return JournalSource(
                Host(), units=("job@*",), markers=("NCCL",), program=str(program), marks=marks
            )

        box.run("systemctl", "start", "job@1")
        async with following(source({})) as heard:
            await heard.until(lambda h: bool(marks_of(h)), 20)
            box.run("systemctl", "start", "job@2")
            await heard.until(lambda h: bool(texts(h)), 20)
        assert texts(heard) == ["NCCL WARN line 2"]
        box.run("systemctl", "start", "job@3")
        async with following(source(marks_of(heard))) as later:
            await later.until(lambda h: bool(texts(h)), 20)
            box.run("systemctl", "start", "job@4")
            await later.until(lambda h: len(texts(h)) == 2, 20)
        assert texts(later) == ["NCCL WARN line 3", "NCCL WARN line 4"]
        assert {line.file for line in later if isinstance(line, JobLine)} == {
            "journal:job@3.service",
            "journal:job@4.service",
        }


def texts(heard: Heard) -> list[str]:
    """Of the lines."""
    return [reading.text for reading in heard if isinstance(reading, JobLine)]


def marks_of(heard: Heard) -> dict[str, str]:
    """As the agent keeps them."""
    return {reading.key: reading.value for reading in heard if isinstance(reading, Mark)}
