"""The journal as journalctl prints it (systemd.journal-fields, JSON): a stand-in program prints recorded entries."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.joblog import JobLogCollector, JobLogOptions
from agent.collectors.samples import Checkpoint, JobLine
from agent.contract import kinds
from agent.host import Host
from agent.sources.journal import JournalSource, JournalSourceOptions
from tests.agent.following import following, once

ENTRIES = r"""{"_SYSTEMD_UNIT":"docker.service","CONTAINER_NAME":"train-7","MESSAGE":"NCCL WARN Call to ibv_modify_qp failed"}
{"_SYSTEMD_UNIT":"docker.service","CONTAINER_NAME":"train-7","MESSAGE":"step 12 loss 2.1","__CURSOR":"s=2"}
{"_SYSTEMD_UNIT":"docker.service","MESSAGE":[27,91,51,49,109,67,85,68,65,32,101,114,114,111,114,58,32,111,111,109]}
{"_SYSTEMD_UNIT":"docker.service","MESSAGE":null,"NOTE":"NCCL"}
not json, but NCCL
{"_SYSTEMD_UNIT":"slurmd.service","SYSLOG_IDENTIFIER":"slurmstepd","MESSAGE":"RDMA_CM_EVENT_CONNECT_ERROR"}
{"_SYSTEMD_UNIT":"sshd.service","MESSAGE":"NCCL said by somebody else"}
["NCCL"]
"""


@pytest.fixture
def journalctl(tmp_path: Path) -> Path:
    """Prints the entries; writes its arguments beside itself; with --follow it stays."""
    (tmp_path / "entries").write_text(ENTRIES)
    program = tmp_path / "journalctl"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/args\ncat {tmp_path}/entries\n'
        'case "$*" in *--follow*) exec sleep 60 ;; esac\n'
    )
    program.chmod(0o755)
    return program


async def test_the_journal_is_followed(journalctl: Path) -> None:
    """Entries with a marker become lines with unit and job; a message of bytes too; what is no entry is passed over."""
    source = JournalSource(
        Host(),
        JournalSourceOptions(journal_units=("docker.service", "slurm*"), journal_job_field="CONTAINER_NAME"),
        markers=("NCCL", "RDMA_CM_EVENT_"),
        program=str(journalctl),
    )
    async with following(source) as emitted:
        await emitted.until(lambda emitted: sum(isinstance(r, JobLine) for r in emitted) == 2)
    assert [(r.text, r.file, r.job) for r in emitted if isinstance(r, JobLine)] == [
        ("NCCL WARN Call to ibv_modify_qp failed", "journal:docker.service", "train-7"),
        ("RDMA_CM_EVENT_CONNECT_ERROR", "journal:slurmd.service", ""),
    ]
    args = (journalctl.parent / "args").read_text()
    assert "--follow --no-tail --after-cursor=s=2" in args, "from the journal's present end on"
    assert "--unit" not in args, "a pattern is ours to compare: journalctl does so once only"
    assert "CONTAINER_NAME" in args


async def test_a_restarted_agent_goes_on_behind_the_last_entry(journalctl: Path) -> None:
    """By the journal's cursor; a message that waited is as old as the journal records; a cursor that is gone is dropped."""
    hour_ago = int((time.time() - 3600) * 1e6)
    entry = {"MESSAGE": "NCCL WARN x", "__CURSOR": "s=9;i=1", "__REALTIME_TIMESTAMP": str(hour_ago)}
    (journalctl.parent / "entries").write_text(json.dumps(entry) + "\n")
    args = journalctl.parent / "args"
    source = JournalSource(
        Host(),
        JournalSourceOptions(journal_units=("x",)),
        markers=("NCCL",),
        program=str(journalctl),
        checkpoints={"journal cursor": "s=8;i=7"},
    )
    async with following(source) as emitted:
        await emitted.until(lambda emitted: len(emitted) == 2)
        assert "--no-tail --after-cursor=s=8;i=7" in args.read_text()
    mark, line = emitted
    assert isinstance(mark, Checkpoint)
    assert isinstance(line, JobLine)
    assert (mark.key, mark.value) == ("journal cursor", "s=9;i=1")
    assert 3590 < time.monotonic() - line.mono_s < 3700
    journalctl.write_text(f'#!/bin/sh\necho "$@" > {args}\nexit 1\n')
    for wanted in ("--after-cursor=s=9;i=1", "--lines=0"):  # then from its end, which is not printed here
        with pytest.raises(OSError, match="journalctl ended"):
            await source.run(lambda _: None)
        assert wanted in args.read_text()


async def test_bytes_are_text_too(journalctl: Path) -> None:
    """journalctl writes a message with a colour code as a list of bytes."""
    emitted = await once(
        JournalSource(
            Host(), JournalSourceOptions(journal_units=("docker.service",)), program=str(journalctl)
        )
    )
    assert any(isinstance(r, JobLine) and r.text.endswith("CUDA error: oom") for r in emitted)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(("MESSAGE", "_SYSTEMD_UNIT", "JOB")), inner)
    ),
)


@given(st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_entry_is_taken(line: bytes) -> None:
    """What is no entry is none; nothing raises."""
    sample = JournalSource(
        Host(), JournalSourceOptions(journal_units=("x",), journal_job_field="JOB")
    )._sample(line)
    assert sample is None or sample.text


async def test_a_journal_that_ends_at_the_moment_at_which_it_is_stopped(
    journalctl: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its process is reaped once: asyncio warned of every seventh one, and made up a status."""
    journalctl.write_text("#!/bin/sh\nexit 0\n")
    source = JournalSource(Host(), JournalSourceOptions(journal_units=("x",)), program=str(journalctl))
    for _ in range(100):
        with pytest.raises(OSError, match="journalctl ended"):
            await source.run(lambda _: None)
    assert caplog.messages == []


async def test_a_journal_that_ends_is_reported(journalctl: Path) -> None:
    """The supervisor opens it again; a machine without journalctl is an OSError too."""
    journalctl.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(OSError, match="journalctl ended"):
        await JournalSource(Host(), JournalSourceOptions(journal_units=("x",)), program=str(journalctl)).run(
            lambda _: None
        )
    with pytest.raises(OSError, match="No such file"):
        await JournalSource(Host(), JournalSourceOptions(journal_units=("x",)), program="/nonexistent").run(
            lambda _: None
        )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("rdma_get_cm_event: unexpected event RDMA_CM_EVENT_CONNECT_ERROR, status -110", "job.rdma_error"),
        ("cma event RDMA_CM_EVENT_UNREACHABLE, error -22", "job.rdma_error"),
        ("RDMA_CM_EVENT_DEVICE_REMOVAL", "job.rdma_error"),
        ("RDMA_CM_EVENT_ESTABLISHED", ""),
        ("RDMA_CM_EVENT_DISCONNECTED", ""),
        ("RDMA_CM_EVENT_TIMEWAIT_EXIT", ""),
        ("step 1201 | lm loss: nan | grad norm: 1.0", "job.nan_loss"),
        ("{'loss': nan, 'epoch': 0.1}", "job.nan_loss"),
        ('{"train_loss": NaN}', "job.nan_loss"),
        ("loss=-nan", "job.nan_loss"),
        ("lm loss: 2.0133 | nan checks on", ""),
        ("loss: nanny", ""),
        ("glossy nan", ""),
        ("lossless", ""),
    ],
)
def test_what_job_lines_tell(text: str, kind: str) -> None:
    """Failed RDMA connections, and a loss that is not a number where the operator wants it."""
    line = JobLine(text=text, file="/var/log/jobs/1.log", job="1")
    unsent_events = list(JobLogCollector(JobLogOptions(job_nan_loss=True)).feed(line, 0.0))
    for unsent in unsent_events:
        kinds.check(unsent)
    assert [unsent.kind for unsent in unsent_events] == ([kind] if kind else [])
    silent = list(JobLogCollector(JobLogOptions()).feed(line, 0.0))
    assert [unsent.kind for unsent in silent] == ([kind] if kind == "job.rdma_error" else [])


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("mlx5_3: RDMA_CM_EVENT_UNREACHABLE, error -110", "port/mlx5_3.1"),
        ("RDMA_CM_EVENT_CONNECT_ERROR on mlx5_bond_0:1 to 10.0.0.7", "port/mlx5_bond_0.1"),
        ("device rocep23s0f1, port 2: RDMA_CM_EVENT_ROUTE_ERROR", "port/rocep23s0f1.2"),
        ("UCX mlx5_11 port 1 RDMA_CM_EVENT_REJECTED", "port/mlx5_11.1"),
        ("rdma_get_cm_event: unexpected event RDMA_CM_EVENT_CONNECT_ERROR, status -110", None),
        ("RDMA_CM_EVENT_REJECTED from libmlx5_9x", None),
    ],
)
def test_the_port_of_a_failed_connection(text: str, port: str | None) -> None:
    """Only where the line names the device."""
    (unsent,) = JobLogCollector(JobLogOptions()).feed(
        JobLine(text=text, file="/var/log/jobs/1.log", job="1"), 0.0
    )
    kinds.check(unsent)
    assert unsent.data.get("port") == port


def test_the_markers_pass_what_the_collector_knows() -> None:
    """The source drops lines without a marker: none of them may be wanted."""
    assert any(marker in "RDMA_CM_EVENT_CONNECT_ERROR" for marker in JobLogOptions().markers)
