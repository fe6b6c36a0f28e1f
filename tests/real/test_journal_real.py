"""Job output in a real journal, in a systemd container: followed, and taken up again after a pause."""

from pathlib import Path

import pytest

from agent.collectors.samples import Checkpoint, JobLine
from agent.host import Host
from agent.sources.journal import JournalSource, JournalSourceOptions
from tests.agent.following import Emitted, following
from tests.real import nspawn

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("systemd-nspawn"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing() or "-"),
]
JOB = "[Service]\nType=oneshot\nExecStart=/bin/echo NCCL WARN line %i\nSyslogIdentifier=train\n"
# nsenter forks, and what ends nsenter leaves its child behind, for which the container's end would wait.
JOURNALCTL = """#!/bin/sh
nsenter -t {leader} -a journalctl "$@" &
trap 'kill $(cat /proc/$!/task/$!/children)' TERM
wait $!
wait $!
"""


async def test_what_a_job_reports_while_nobody_listens_is_emitted_later(tmp_path: Path) -> None:
    """Lines from now on; none from before the first start; after a pause those that were missed, each once."""
    with nspawn.machine(tmp_path / "box", {}) as box:
        (box.root / "etc/systemd/system/job@.service").write_text(JOB)
        box.run("systemctl", "daemon-reload")
        box.run("systemctl", "start", "systemd-journald.service")
        program = tmp_path / "journalctl"
        program.write_text(JOURNALCTL.format(leader=box.leader))
        program.chmod(0o755)

        def source(checkpoints: dict[str, str]) -> JournalSource:
            return JournalSource(
                Host(),
                JournalSourceOptions(journal_units=("job@*",)),
                markers=("NCCL",),
                program=str(program),
                checkpoints=checkpoints,
            )

        box.run("systemctl", "start", "job@1")
        async with following(source({})) as emitted:
            await emitted.until(lambda h: bool(marks_of(h)))
            box.run("systemctl", "start", "job@2")
            await emitted.until(lambda h: bool(texts(h)))
        assert texts(emitted) == ["NCCL WARN line 2"]
        box.run("systemctl", "start", "job@3")
        async with following(source(marks_of(emitted))) as later:
            await later.until(lambda h: bool(texts(h)))
            box.run("systemctl", "start", "job@4")
            await later.until(lambda h: len(texts(h)) == 2)
        assert texts(later) == ["NCCL WARN line 3", "NCCL WARN line 4"]
        assert {line.file for line in later if isinstance(line, JobLine)} == {
            "journal:job@3.service",
            "journal:job@4.service",
        }


def texts(emitted: Emitted) -> list[str]:
    """Of the lines."""
    return [sample.text for sample in emitted if isinstance(sample, JobLine)]


def marks_of(emitted: Emitted) -> dict[str, str]:
    """As the agent keeps them."""
    return {sample.key: sample.value for sample in emitted if isinstance(sample, Checkpoint)}
