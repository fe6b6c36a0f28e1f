"""What NVML reports, over time: each change is one event."""

from dataclasses import replace

import pytest

from agent.collectors.gpu import REASONS, STEADY_SAMPLES, GpuCollector
from agent.collectors.samples import Gpu, NvmlState, Sample
from agent.contract import kinds
from agent.contract.kinds import KINDS

GPU = Gpu(index=3, bdf="0000:3b:00", uuid="GPU-1", utilization=5, mono_s=1.0)


def events_of(*samples: Sample) -> list[tuple[str, dict[str, object]]]:
    """Kind and data of the events of a fresh collector."""
    collector = GpuCollector()
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, sample.mono_s)]
    return [(unsent.kind, dict(kinds.check(unsent).data)) for unsent in unsent_events]


def test_a_lost_gpu_is_reported_once_for_each_reason_and_its_return_too() -> None:
    """Lost, then not found at all, then back."""
    lost, gone = replace(GPU, lost="lost"), replace(GPU, lost="not_found")
    assert events_of(GPU, lost, lost, gone, gone, *[GPU] * 2 * STEADY_SAMPLES) == [
        ("gpu.lost", {"reason": "lost", "index": 3, "uuid": "GPU-1"}),
        ("gpu.lost", {"reason": "not_found", "index": 3, "uuid": "GPU-1"}),
        ("gpu.returned", {"by": "nvml"}),
    ]


def test_a_gpu_that_is_lost_from_the_start_is_reported() -> None:
    """The agent may start after the fault."""
    assert events_of(replace(GPU, lost="reset_required"))[0][1]["reason"] == "reset_required"


@pytest.mark.parametrize("odd", [replace(GPU, lost="unknown_error"), replace(GPU, answers=False)])
def test_a_gpu_that_answers_now_and_then_has_not_returned(odd: Gpu) -> None:
    """It must answer in several samples in a row; each pair of loss and return would open the incident and page again."""
    nearly = [GPU] * (STEADY_SAMPLES - 1)
    dying = (GPU, replace(GPU, lost="unknown_error"), *nearly, odd, *nearly, odd, *nearly)
    assert [kind for kind, _ in events_of(*dying)] == ["gpu.lost"]
    assert [kind for kind, _ in events_of(*dying, GPU, GPU)] == ["gpu.lost", "gpu.returned"]


def test_a_gpu_that_an_earlier_run_reported_lost_has_not_returned_at_the_first_sample() -> None:
    """The agent starts again, and the GPU still answers nothing: NVML shows that after a few samples."""
    collector = GpuCollector(lost_before=[GPU.bdf])
    silent, lost = replace(GPU, answers=False), replace(GPU, answers=False, lost="unknown_error")
    kinds_of = [unsent.kind for sample in (silent, silent, lost) for unsent in collector.feed(sample, 1.0)]
    assert kinds_of == ["gpu.lost"]


def test_hangs_are_counted_and_the_answer_reports_how_long_it_took() -> None:
    """Two hangs in a row are one time without an answer."""
    hung = NvmlState(state="hung", call="nvmlDeviceGetTemperature", waited_s=10.0, mono_s=110.0)
    answers = NvmlState(state="answers", gpus=8, mono_s=131.5)
    assert events_of(
        NvmlState(state="ready", gpus=8, mono_s=1.0), hung, replace(hung, mono_s=125.0), answers
    ) == [
        ("nvml.hung", {"call": "nvmlDeviceGetTemperature", "waited_s": 10.0, "times": 1}),
        ("nvml.hung", {"call": "nvmlDeviceGetTemperature", "waited_s": 10.0, "times": 2}),
        ("nvml.answers", {"after_s": 31.5}),
    ]


def test_no_library_is_reported() -> None:
    """As information, with the library's words."""
    absent = NvmlState(state="absent", reason="NVML Shared Library Not Found", mono_s=1.0)
    assert events_of(absent) == [("nvml.absent", {"reason": "NVML Shared Library Not Found"})]


def test_a_hang_that_ends_with_another_driver_has_ended() -> None:
    """A person unloads the driver that hung, and loads it again: what the hang had opened must close."""
    hung = NvmlState(state="hung", call="nvmlInit", waited_s=10.0, mono_s=110.0)
    absent = NvmlState(state="absent", reason="Driver Not Loaded", mono_s=120.0)
    told = events_of(hung, absent, NvmlState(state="ready", gpus=8, mono_s=160.0))
    assert told[-1] == ("nvml.answers", {"after_s": 60.0})


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (999, "driver"),
        (15, "driver"),
        (4, "no_permission"),
        (9, "no_device_files"),
        (12, "no_library"),
        (18, "other_version"),
    ],
)
def test_why_nvml_cannot_be_opened(code: int, what: str) -> None:
    """The driver's fault, the agent's own trouble, or an upgrade: each is for somebody else. Its end says how long it took."""
    refused = NvmlState(state="refused", reason="says NVML", code=code, gpus=8, waited_s=30.0, mono_s=110.0)
    assert events_of(refused, NvmlState(state="ready", gpus=8, mono_s=130.0)) == [
        ("nvml.refused", {"what": what, "code": code, "reason": "says NVML", "gpus": 8}),
        ("nvml.answers", {"after_s": 50.0}),
    ]


def test_the_declared_reasons_are_those_that_it_reports() -> None:
    """tests/brain/test_pack.py demands a rule for each declared one."""
    (reason,) = [field for field in KINDS["gpu.lost"].fields if field.name == "reason"]
    assert set(reason.values) == set(REASONS)
