"""Facts in job logs: CUDA, NCCL and RDMA errors, containers without their GPUs, and results that are not a finite number."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors import not_finite
from agent.collectors.base import Collector, CollectorSetup
from agent.collectors.bursts import Bursts
from agent.collectors.samples import JobLine, Sample, Tick
from agent.collectors.step_times import StepTimes
from agent.contract import components, container_lines
from agent.contract.errors import ContractError
from agent.contract.messages import MAX_EVIDENCE, Scalar, Severity, UnsentEvent, clip
from agent.options import option

# A line without any of these is not looked at any further.
_MARKERS = (
    "CUDA_ERROR_",
    "cudaError",
    "CUDA error",
    "CUDA Error",
    "Cuda failure",
    "NCCL",
    "nccl",
    "Watchdog caught",
    "RDMA_CM_EVENT_",
    *container_lines.MARKERS,
)
REPEAT_S = 10.0  # the same error in the same file is one event in so many seconds
_LINE = 4096  # characters of a line that are looked at

# What the runtime's cudaGetErrorString returns → the error's name.
_TEXTS = {
    "all cuda-capable devices are busy or unavailable": "cudaErrorDevicesUnavailable",
    "an illegal instruction was encountered": "cudaErrorIllegalInstruction",
    "an illegal memory access was encountered": "cudaErrorIllegalAddress",
    "device-side assert triggered": "cudaErrorAssert",
    "driver shutting down": "cudaErrorCudartUnloading",
    "hardware stack error": "cudaErrorHardwareStackError",
    "initialization error": "cudaErrorInitializationError",
    "invalid device ordinal": "cudaErrorInvalidDevice",
    "invalid program counter": "cudaErrorInvalidPc",
    "misaligned address": "cudaErrorMisalignedAddress",
    "no cuda-capable device is detected": "cudaErrorNoDevice",
    "out of memory": "cudaErrorMemoryAllocation",
    "system has unsupported display driver / cuda driver combination": "cudaErrorSystemDriverMismatch",
    "system not yet initialized": "cudaErrorSystemNotReady",
    "the launch timed out and was terminated": "cudaErrorLaunchTimeout",
    "uncorrectable ecc error encountered": "cudaErrorECCUncorrectable",
    "uncorrectable nvlink error detected during the execution": "cudaErrorNvlinkUncorrectable",
    "unknown error": "cudaErrorUnknown",
    "unspecified launch failure": "cudaErrorLaunchFailure",
}
# Errors that a program causes by itself: worth a warning, and by themselves no sign of a sick GPU.
_PROGRAMS_OWN = frozenset(
    (
        *("cudaErrorAssert", "cudaErrorMemoryAllocation", "cudaErrorInvalidValue", "cudaErrorInvalidDevice"),
        *("cudaErrorCudartUnloading", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE"),
        *("CUDA_ERROR_ASSERT", "CUDA_ERROR_DEINITIALIZED", "CUDA_ERROR_INVALID_DEVICE"),
    )
)
_NO_ERRORS = frozenset(("cudaErrorNotReady", "CUDA_ERROR_NOT_READY"))  # an answer to a question, not an error

_NAME = re.compile(r"CUDA_ERROR_[A-Z0-9_]{2,60}|cudaError[A-Z][A-Za-z0-9]{1,60}")
_TEXT = re.compile(r"CUDA [Ee]rror:? |Cuda failure (?:[0-9]{1,4} )?'?")
_NCCL: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Watchdog caught collective operation timeout|NCCL.{0,80}\b[Tt]imed? ?out"), "timeout"),
    (re.compile(r"NET/IB ?:.{0,200}(?:error|Error|fail|Fail)|NCCL WARN.{0,80}\bibv_"), "ib_error"),
    (re.compile(r"ncclRemoteError|remote process exited or there was a network error"), "remote_error"),
    (re.compile(r"ncclSystemError|unhandled system error"), "system_error"),
    (re.compile(r"NCCL WARN"), "warning"),
)
_WORSE = frozenset(("timeout", "system_error", "remote_error", "ib_error"))
# Events of librdmacm (rdma_event_str) that end a connection or an attempt.
_RDMA = re.compile(
    r"RDMA_CM_EVENT_(?:CONNECT_ERROR|UNREACHABLE|REJECTED|ADDR_ERROR|ROUTE_ERROR|DEVICE_REMOVAL"
    r"|MULTICAST_ERROR)"
)
# An RDMA device as the kernel or udev names it, with its port where the line has one: `mlx5_3:1`, `on mlx5_3 port 2`.
_RDMA_DEVICE = re.compile(
    r"\b((?:mlx[45]_(?:bond_)?|bnxt_re(?:_bond)?|irdma|hns_|qedr|rxe|siw)[0-9]{1,3}|(?:roce|ib)p[0-9]{1,5}s[0-9]{1,3}(?:f[0-9]+)?)\b"
    r"(?:(?::|[ ,/]+port[ :=]+)([0-9]{1,2})\b)?"
)
_PCI = re.compile(
    r"(?:(?<=PCI:)|(?<![\w:.]))"
    r"([0-9a-fA-F]{4}|[0-9a-fA-F]{8}):([0-9a-fA-F]{2}):([01][0-9a-fA-F])(?:\.[0-7])?(?![\w:])"
)
# NCCL: domain, bus, device and function in one number.
_BUS_ID = re.compile(r"busId (?:0x)?([0-9a-fA-F]{4,12})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLogOptions:
    """What an operator can set."""

    # A loss may be NaN on purpose, and trainers print it in many ways: hence not by default.
    job_nan_loss: bool = option(
        False,
        "report when a job's log shows a loss that is not a number, or a result that its trainer found to be wrong",
    )
    job_step_text: str = option(
        "",
        "words that stand before the time of a step in the logs of jobs (in s unless they, or it, say ms); empty: none is read",
        example="elapsed time per iteration (ms)",
    )

    @property
    def markers(self) -> tuple[str, ...]:
        """A source may leave out all lines without any of these."""
        steps = (self.job_step_text,) if self.job_step_text else ()
        return (*_MARKERS, *(not_finite.MARKERS if self.job_nan_loss else ()), *steps)


class JobLogCollector(Collector):
    """Reports the errors that lines name.

    Repeats are bounded: the same error in the same file is one event in REPEAT_S, with the number of lines since the
    last one.
    """

    name: ClassVar[str] = "joblog"
    wants: ClassVar[tuple[type, ...]] = (JobLine, Tick)
    kinds: ClassVar[tuple[str, ...]] = (
        "job.cuda_error",
        "job.nccl_error",
        "job.rdma_error",
        "job.gpu_access",
        "job.nan_loss",
        "job.steps",
    )
    one_off: ClassVar[str] = "lines of a job's log"
    options: ClassVar[tuple[type[Any], ...]] = (JobLogOptions,)

    def __init__(self, options: JobLogOptions, *, hostname: str = "") -> None:
        """`hostname`: this machine's; empty: no line is about it."""
        self._hostname = hostname
        self._nan_loss = options.job_nan_loss
        self._steps = StepTimes(options.job_step_text)
        self._bursts = Bursts(window_s=REPEAT_S)

    @classmethod
    def of(cls, setup: CollectorSetup) -> Self:
        """See Collector."""
        return cls(setup.options(JobLogOptions), hostname=setup.hostname)

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:
        """See Collector."""
        if isinstance(sample, Tick):
            yield from self._bursts.flush(now_s)
        if not isinstance(sample, JobLine):
            return
        text = sample.text[:_LINE]
        if (step := self._steps.read(text, sample.file, sample.mono_s or now_s)) is not None:
            yield _stepped(sample, step, now_s)
        if self._nan_loss and any(marker in text for marker in not_finite.MARKERS):
            yield from self._not_finite(text, sample, now_s)
        if not any(marker in text for marker in _MARKERS):
            return
        if name := _cuda_error(text):
            mild = name in _PROGRAMS_OWN
            yield from self._limited(
                "job.cuda_error", {"name": name}, Severity.WARNING if mild else Severity.ERROR, sample, now_s
            )
        if what := next((what for pattern, what in _NCCL if pattern.search(text)), ""):
            severity = Severity.ERROR if what in _WORSE else Severity.WARNING
            yield from self._limited("job.nccl_error", {"what": what}, severity, sample, now_s)
        if (event := _RDMA.search(text)) is not None:
            data: dict[str, Scalar] = {"name": event[0]}
            if (device := _RDMA_DEVICE.search(text)) is not None:
                data["port"] = f"port/{device[1]}.{int(device[2] or 1)}"
            yield from self._limited("job.rdma_error", data, Severity.ERROR, sample, now_s)
        if what := container_lines.no_gpu(text):
            yield from self._limited("job.gpu_access", {"what": what}, Severity.ERROR, sample, now_s)

    def _not_finite(self, text: str, line: JobLine, now_s: float) -> Iterator[UnsentEvent]:
        found = not_finite.read(text)
        if found is None:
            return
        own = found.what in (not_finite.LOCAL, not_finite.NOT_REPRODUCIBLE)
        here = own and not_finite.same_host(found.node, self._hostname)
        data: dict[str, Scalar] = {"what": found.what, "here": here}
        fact = str(data)  # a thousand ranks that say it in one file are one fact; the first is named
        if found.rank is not None:
            data["rank"] = found.rank
        if found.device is not None:
            data["device"] = found.device
        mild = found.what in (not_finite.GRADIENT, not_finite.REPRODUCED)
        severity = Severity.INFO if mild else Severity.WARNING
        yield from self._limited("job.nan_loss", data, severity, line, now_s, fact=fact)

    def _limited(
        self,
        kind: str,
        data: dict[str, Scalar],
        severity: Severity,
        line: JobLine,
        now_s: float,
        *,
        fact: str = "",
    ) -> Iterator[UnsentEvent]:
        gpu = _gpu(line.text[:_LINE]) if kind == "job.cuda_error" else ""
        # Two GPUs that fail in one file are two facts.
        key = (line.file, f"{kind} {fact or data} {gpu}")
        unsent = UnsentEvent(
            kind=kind,
            component=gpu or _job(line.job),
            severity=severity,
            data={**data, "job": clip(line.job), "file": clip(line.file)},
            evidence=clip(line.text, MAX_EVIDENCE),
            age_s=max(0.0, now_s - line.mono_s),
        )
        yield from self._bursts.offer(key, unsent, now_s)


def _stepped(line: JobLine, step_s: float, now_s: float) -> UnsentEvent:
    return UnsentEvent(
        kind="job.steps",
        component=_job(line.job),
        severity=Severity.INFO,
        data={"step_s": round(step_s, 6), "job": clip(line.job), "file": clip(line.file)},
        evidence=clip(line.text, MAX_EVIDENCE),
        age_s=max(0.0, now_s - (line.mono_s or now_s)),
    )


def _cuda_error(text: str) -> str:
    """Name of the CUDA error in the line; empty if none."""
    for match in _NAME.finditer(text):
        if match[0] not in _NO_ERRORS:
            return match[0]
    start = _TEXT.search(text)
    if start is None:
        return ""
    rest = text[start.end() : start.end() + 200].lower()
    # The longest text first: `out of memory` must not hide a longer one that contains it.
    found = [(rest.find(words), -len(words), name) for words, name in _TEXTS.items() if words in rest]
    return min(found)[2] if found else "unknown"


def _gpu(text: str) -> str:
    """The GPU whose PCI address is in the line; empty if there is none."""
    if (address := _PCI.search(text)) is not None:
        return components.gpu(address[0])
    if (bus := _BUS_ID.search(text)) is not None:
        number = int(bus[1], 16)
        return components.gpu(f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}")
    return ""


def _job(job: str) -> str:
    try:
        return components.check(f"job/{job}")
    except ContractError:
        return components.NODE
