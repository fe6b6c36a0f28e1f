"""Facts about the subnet manager's answers: it is silent, or does not call itself master any more."""

from collections.abc import Iterator
from typing import ClassVar

from agent.collectors.readings import Reading, SmAnswer
from agent.contract import subnet
from agent.contract.messages import Draft, Severity

SILENT_READINGS = 2  # so many in a row: one lost question is no fault
AGAIN_S = 300.0  # a silence that lasts is said again: whoever heard of it forgets it after a while


class SubnetCollector:
    """Says when the manager that a port knows answers as master no more, and when one does again."""

    name: ClassVar[str] = "subnet"
    wants: ClassVar[tuple[type, ...]] = (SmAnswer,)
    kinds: ClassVar[tuple[str, ...]] = ("ib.sm_answer",)

    def __init__(self) -> None:
        self._silent: dict[tuple[str, int], int] = {}  # port -> readings in a row without a master
        self._said_s: dict[tuple[str, int], float] = {}  # port -> when its silence was last said

    def feed(self, reading: Reading, now_s: float) -> Iterator[Draft]:  # noqa: ARG002  the port of collectors
        """See agent.collectors.base."""
        if not isinstance(reading, SmAnswer):
            return
        key = (reading.device, reading.port)
        if reading.state == subnet.MASTER:
            self._silent.pop(key, None)
            if self._said_s.pop(key, None) is not None:
                yield _draft(reading, answers=True)
            return
        self._silent[key] = self._silent.get(key, 0) + 1
        said_s = self._said_s.get(key)
        if self._silent[key] >= SILENT_READINGS and (said_s is None or reading.mono_s - said_s >= AGAIN_S):
            self._said_s[key] = reading.mono_s
            yield _draft(reading, answers=False)


def _draft(reading: SmAnswer, *, answers: bool) -> Draft:
    port = f"{reading.device} port {reading.port}"
    said = f"answers as {reading.state}" if reading.state else "does not answer"
    return Draft(
        kind="ib.sm_answer",
        component=f"port/{reading.device}.{reading.port}",
        severity=Severity.INFO if answers else Severity.ERROR,
        data={"answers": answers, "state": reading.state, "sm_lid": reading.sm_lid},
        evidence=f"{port}: the subnet manager at LID {reading.sm_lid} {said}",
    )
