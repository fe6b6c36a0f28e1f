"""Job logs: what lines mean, whom they accuse, and how repeats are bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.joblog import JobLogCollector, JobLogOptions
from agent.collectors.samples import JobLine, Sample, Tick
from agent.contract import kinds
from agent.contract.messages import Severity, UnsentEvent


def line(text: str, job: str = "4711", file: str = "/var/log/jobs/4711.log") -> JobLine:
    return JobLine(text=text, job=job, file=file)


def events_of(*timeline: tuple[float, Sample]) -> list[UnsentEvent]:
    collector = JobLogCollector(JobLogOptions())
    unsent_events = [unsent for at_s, sample in timeline for unsent in collector.feed(sample, at_s)]
    for unsent in unsent_events:
        kinds.check(unsent)
    return unsent_events


@pytest.mark.parametrize(
    ("text", "name", "component"),
    [
        ("cuInit failed: CUDA_ERROR_DEVICE_REMOVED", "CUDA_ERROR_DEVICE_REMOVED", "job/4711"),
        (
            "[rank3] CUDA_ERROR_DEVICE_REMOVED on GPU 0000:3B:00.0",
            "CUDA_ERROR_DEVICE_REMOVED",
            "gpu/0000:3b:00",
        ),
        ("cudaErrorDevicesUnavailable: busy", "cudaErrorDevicesUnavailable", "job/4711"),
        (
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            "cudaErrorECCUncorrectable",
            "job/4711",
        ),
        (
            "CUDA error: all CUDA-capable devices are busy or unavailable",
            "cudaErrorDevicesUnavailable",
            "job/4711",
        ),
        ("CUDA error: something that no table knows", "unknown", "job/4711"),
        ("NCCL WARN Cuda failure 719 'unspecified launch failure'", "cudaErrorLaunchFailure", "job/4711"),
        ("x: cudaErrorECCUncorrectable busId 3b000", "cudaErrorECCUncorrectable", "gpu/0000:3b:00"),
        (
            "12:34:56 PCI:00000000:C1:00.0 CUDA error: hardware stack error",
            "cudaErrorHardwareStackError",
            "gpu/0000:c1:00",
        ),
        (
            "on 2026:11:20 (a date: 0x20 is no PCI device) cudaErrorUnknown at 10:11:12.5",
            "cudaErrorUnknown",
            "job/4711",
        ),
    ],
)
def test_cuda_errors(text: str, name: str, component: str) -> None:
    """Names and texts are recognised, and a PCI address in the line makes it a fact about that GPU."""
    found = [unsent for unsent in events_of((0.0, line(text))) if unsent.kind == "job.cuda_error"]
    assert [(d.data["name"], d.component, d.evidence) for d in found] == [(name, component, text)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Failed to initialize NVML: Unknown Error", "access_lost"),
        ("Failed to initialize NVML: Driver/library version mismatch", "version_mismatch"),
        ("Failed to initialize NVML: Driver Not Loaded", "driver_not_loaded"),
        (
            "failed to create shim task: OCI runtime create failed: error running hook #0: exit status 1, stderr: Auto-detected "
            "mode as 'legacy'\\nnvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
            "driver_not_loaded",
        ),
        (
            "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch",
            "version_mismatch",
        ),
        ("nvidia-container-cli: device error: 7: unknown device: unknown", "toolkit"),
        (
            "nvidia-container-cli: ldcache error: open failed: /run/nvidia/driver/sbin/ldconfig.real",
            "toolkit",
        ),
        (
            'level=error msg="failed" error="CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=3"',
            "cdi",
        ),
        ('could not select device driver "" with capabilities: [[gpu]].', "toolkit"),
        (r"failed to get sandbox runtime: no runtime for \"nvidia\" is configured", "toolkit"),
    ],
)
def test_containers_without_gpus(text: str, what: str) -> None:
    """Of the job, if the log is a job's; else of the node."""
    (found,) = events_of((0.0, line(text)))
    assert (found.kind, found.component, found.data["what"]) == ("job.gpu_access", "job/4711", what)
    (found,) = events_of((0.0, line(text, job="", file="journal:containerd.service")))
    assert (found.component, found.data["file"]) == ("node", "journal:containerd.service")


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver",
        "unresolvable CDI devices vendor.com/nic=1",
        'could not select device driver "" with capabilities: [[tpu]].',
        'no runtime for "gvisor" is configured',
        "Failed to initialize NVML",
    ],
)
def test_what_a_container_lacks_otherwise(text: str) -> None:
    """An image that asks for too much, and devices of others."""
    assert events_of((0.0, line(text))) == []


@pytest.mark.parametrize(
    ("text", "what", "severity"),
    [
        (
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)",
            "timeout",
            Severity.ERROR,
        ),
        ("n1:1:9 [0] NCCL WARN NET/IB : Got completion from peer with error 12", "ib_error", Severity.ERROR),
        ("ncclRemoteError: A call failed possibly due to a network error", "remote_error", Severity.ERROR),
        (
            "torch.distributed.DistBackendError: NCCL error: unhandled system error",
            "system_error",
            Severity.ERROR,
        ),
        ("n1:1:9 [0] proxy.cc:12 NCCL WARN Call to bind failed", "warning", Severity.WARNING),
    ],
)
def test_nccl_trouble(text: str, what: str, severity: Severity) -> None:
    """The gravest meaning of a line wins."""
    assert [(d.kind, d.data["what"], d.severity) for d in events_of((0.0, line(text)))] == [
        ("job.nccl_error", what, severity)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "step 17 loss 2.31",
        "NCCL INFO Bootstrap : Using eth0",
        "NCCL version 2.21",
        "cudaErrorNotReady",
        "",
        "CUDA 12.8",
    ],
)
def test_ordinary_lines_are_nothing(text: str) -> None:
    """Progress, information and questions are no errors."""
    assert events_of((0.0, line(text))) == []


def test_a_line_of_an_unknown_job_is_about_the_node() -> None:
    """Without a job id, or with one that no component can have, the node is the component."""
    assert [d.component for d in events_of((0, line("cudaErrorUnknown", job="")))] == ["node"]
    assert [d.component for d in events_of((0, line("cudaErrorUnknown", job="a b")))] == ["node"]


def test_repeats_are_bounded_and_counted() -> None:
    """A thousand equal errors in a file are one event now and one with their number ten seconds later."""
    flood: list[tuple[float, Sample]] = [(n / 100, line(f"cudaErrorUnknown {n}")) for n in range(900)]
    other: list[tuple[float, Sample]] = [(9.5, line("cudaErrorUnknown", file="/var/log/jobs/5.log"))]
    ticks: list[tuple[float, Sample]] = [(float(n), Tick(mono_s=n)) for n in range(10, 40)]
    unsent_events = events_of(*flood, *other, *ticks)
    assert [(d.data["file"], d.count) for d in unsent_events] == [
        ("/var/log/jobs/4711.log", 1),
        ("/var/log/jobs/5.log", 1),
        ("/var/log/jobs/4711.log", 899),
    ]
    assert unsent_events[-1].evidence == "cudaErrorUnknown 899"


def test_a_later_repeat_brings_the_count() -> None:
    """Nothing is counted twice or left out: five lines are five in all."""
    lines = [(t, line("cudaErrorUnknown")) for t in (0.0, 1.0, 2.0, 10.5, 30.0)]
    unsent_events = events_of(*lines, (41.0, Tick(mono_s=41.0)))
    assert [d.count for d in unsent_events] == [1, 2, 1, 1]


def test_two_gpus_in_one_file_are_two_facts() -> None:
    """The same error of another GPU is not swallowed."""
    unsent_events = events_of(
        *((0.0, line(f"cudaErrorUnknown 0000:{bus}:00.0")) for bus in ("3b", "5e", "3b"))
    )
    assert [d.component for d in unsent_events] == ["gpu/0000:3b:00", "gpu/0000:5e:00"]


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*JobLogOptions().markers, " 0000:3b:00.0 ", "busId ", "'"]), st.text(max_size=20)
        )
    )
)
def test_no_line_can_break_it(pieces: list[str]) -> None:
    """Whatever a job prints: no exception, and a draft that fits the contract."""
    events_of((0.0, line("".join(pieces))), (1.0, line("".join(pieces))))


def test_a_trainer_s_line_accuses_this_node_only_where_it_names_it() -> None:
    """A log on a file server is read by many nodes; what all ranks share accuses nobody; a thousand ranks are one fact."""
    log = JobLogCollector(JobLogOptions(job_nan_loss=True), hostname="gpu-0042.example.com")
    lines = {
        "Rank 7: found NaN in local forward loss calculation. Device: 3, node: gpu-0042": (
            "local",
            True,
            7,
            3,
        ),
        "Rank 8: found NaN in local forward loss calculation. Device: 3, node: gpu-0043": (
            "local",
            False,
            8,
            3,
        ),
        "Rank 9, node gpu-0042, device 1: Possible transient error!!": ("not_reproducible", True, 9, 1),
        "Rank 9, node gpu-0042, device 1: Possible persistent error!!": ("other_gpu_differs", False, 9, 1),
        "step 12 | lm loss: nan on node gpu-0042": ("loss", False, None, None),
    }
    for text, (what, here, rank, device) in lines.items():
        (unsent,) = log.feed(JobLine(text=text, file="/home/x/4711.out", job="4711"), 0.0)
        kinds.check(unsent)
        data = unsent.data
        assert (data["what"], data["here"], data.get("rank"), data.get("device")) == (
            what,
            here,
            rank,
            device,
        )
    for rank in range(1000):
        text = f"Rank {rank}: found NaN in local forward loss calculation. Device: 0, node: gpu-0042"
        assert not list(log.feed(JobLine(text=text, file="/home/x/4711.out", job="4711"), 1.0))


def test_without_a_host_name_no_line_is_about_this_node() -> None:
    """As of a recorded machine that has none."""
    log = JobLogCollector(JobLogOptions(job_nan_loss=True))
    text = "Rank 7: found NaN in local forward loss calculation. Device: 3, node: gpu-0042"
    (unsent,) = log.feed(JobLine(text=text, file="x", job="4711"), 0.0)
    assert unsent.data["here"] is False
