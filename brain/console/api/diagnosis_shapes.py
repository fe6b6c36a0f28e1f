"""What a pasted kernel log means: the verdict of `gpuward diagnose`."""

from pydantic import Field

from brain.console.api.base import Asked, Shape, TwoLanguagesShape

MOST_CHARACTERS = 1024 * 1024
LARGEST_BODY = 2 * MOST_CHARACTERS  # bytes: what JSON escapes takes more than one


class ExplainedFaultShape(Shape):
    """A fault that an incident explains: it is paged and remedied with it."""

    cause: str
    scope: str
    shown: list[str] = Field(description="`log:<line>: <text>`")


class DiagnosedShape(Shape):
    """An incident that gpuward would open."""

    id: str
    state: str = Field(description='One of "States of an incident" in reference.md.')
    cause: str
    severity: str = Field(description="P0 to P3.")
    scope: str
    because: str
    because_zh: str = Field(description="The same in Chinese; empty: there is only the English.")
    symptoms: list[str]
    runs: list[str] = Field(description="Ids.")
    opened_at: float = Field(description="Seconds since the first record.")
    sure: str = Field(description="How sure that is, as a sentence.")
    lasted_s: float = Field(description="A line says that it ended after so long; 0: none does.")
    silent_s: float = Field(
        description="Its last sign is so long before the end of the log; 0: less than an hour."
    )
    booted: str = Field(description="Where the machine started again after its last sign; empty: it did not.")
    shown: list[str] = Field(
        description="`log:<line>: <text>`; of lines that differ in numbers only the first."
    )
    explains: int
    explained: list[ExplainedFaultShape]
    advice: dict[str, TwoLanguagesShape] = Field(description="`cause` and `todo`; empty: no rule has any.")
    links: list[str]
    runbook: str = Field(description="Empty: none, people must act.")
    plan: list[str] = Field(description="What gpuward would run, a line for each rung.")


class DiagnosisShape(Shape):
    """The verdict on a log."""

    ok: bool = Field(description="It could be read, and nothing is wrong.")
    incidents: list[DiagnosedShape] = Field(description="What has not ended first; of these the most severe.")
    lines: int
    meaningful: int
    unread: int = Field(description="Lines that could not be read.")
    foreign: int = Field(description="Lines that look like no kernel's.")
    blind: dict[str, str] = Field(
        description="`log` -> which line could not be read, and why: silence about it is no all-clear."
    )
    aside: dict[str, str] = Field(description="`log` -> of which of its lines an all-clear does not speak.")
    other: list[str] = Field(description="Lines with a meaning on which no rule acts.")


class WantedDiagnosis(Asked):
    """A kernel log, as `dmesg`, /dev/kmsg or journalctl shows it."""

    log: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    driver: str = Field(
        default="",
        max_length=40,
        pattern=r"^(\d+(\.\d+)*)?$",
        description="Version of the NVIDIA driver, e.g. 580.82; empty: as the log says.",
    )
