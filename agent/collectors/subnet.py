"""Facts about the subnet manager's answers: it does not answer, or no longer as the master."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.base import Collector
from agent.collectors.samples import Sample, SmAnswer
from agent.contract import subnet
from agent.contract.messages import Severity, UnsentEvent

MISSED_ANSWERS = 2  # so many in a row: one lost query is no fault
REPEAT_S = 300.0  # as long as it lasts it is reported again: the brain forgets what is not repeated


class SubnetCollector(Collector):
    """Reports when the manager that a port knows no longer answers as the master, and when one does again."""

    name: ClassVar[str] = "subnet"
    wants: ClassVar[tuple[type, ...]] = (SmAnswer,)
    kinds: ClassVar[tuple[str, ...]] = ("ib.sm_answer",)

    def __init__(self) -> None:
        # Port → samples in a row without an answer of a master.
        self._missed: dict[tuple[str, int], int] = {}
        # Port → when that was reported last.
        self._reported_s: dict[tuple[str, int], float] = {}

    def feed(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector."""
        if not isinstance(sample, SmAnswer):
            return
        key = (sample.device, sample.port)
        if sample.state == subnet.MASTER:
            self._missed.pop(key, None)
            if self._reported_s.pop(key, None) is not None:
                yield _unsent(sample, answers=True)
            return
        self._missed[key] = self._missed.get(key, 0) + 1
        reported_s = self._reported_s.get(key)
        if self._missed[key] >= MISSED_ANSWERS and (
            reported_s is None or sample.mono_s - reported_s >= REPEAT_S
        ):
            self._reported_s[key] = sample.mono_s
            yield _unsent(sample, answers=False)

    def restate(self, sample: Sample, now_s: float) -> Iterator[UnsentEvent]:  # noqa: ARG002  the port of collectors
        """See Collector. A single query without an answer is no condition."""
        if isinstance(sample, SmAnswer):
            answers = sample.state == subnet.MASTER
            if answers or (sample.device, sample.port) in self._reported_s:
                yield _unsent(sample, answers=answers)


def _unsent(sample: SmAnswer, *, answers: bool) -> UnsentEvent:
    port = f"{sample.device} port {sample.port}"
    answer = f"answers as {sample.state}" if sample.state else "does not answer"
    return UnsentEvent(
        kind="ib.sm_answer",
        component=f"port/{sample.device}.{sample.port}",
        severity=Severity.INFO if answers else Severity.ERROR,
        data={"answers": answers, "state": sample.state, "sm_lid": sample.sm_lid},
        evidence=f"{port}: the subnet manager at LID {sample.sm_lid} {answer}",
    )
