"""What could not be read of a log, and why: a kernel's cry that nobody understood is never an all-clear."""

import pytest

from agent.contract import kernel_text
from agent.contract.coverage import Coverage
from agent.contract.messages import Severity
from tests.contract.test_lines import ORDINARY, TABLE

XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
REST = "NVRM: fallen off the bus and is not responding to commands."
# Forms that are not read, and some that nobody has thought of.
FORMS = [
    "20/11/2026 13:17:35 gpu-17: {}",
    "2026 Nov 20 13:17:35 gpu-17 kernel: {}",
    '"2026-11-20T13:17:35.000+0000","gpu-17","kernel: {}"',
    '{{"line": "[  160.000000] {}"}}',
    "gpu-17 > {}",
    "** {}",
    "gpu-17: {}",
    "[  160.000000] gpu-17 said {}",
    "2026-11-20T13:17:35Z gpu-17 [  160.000000] {}",
    "Nov 20 13:17:35 gpu-17 kernel[0]: {}",
    "Nov 20 13:17:35 gpu-17 node-problem-detector[77]: seen: {}",
    '{{"SYSLOG_IDENTIFIER":"kernel","MESSAGE":"{}","__REALTIME_TIMESTAMP":"1795180655250000"}}',
    '\t"MESSAGE" : "{}",',
]


def coverage_of(*lines: str) -> Coverage:
    """Of a log."""
    coverage = Coverage()
    for _ in kernel_text.records(lines, coverage.see):
        pass
    return coverage


@pytest.mark.parametrize("form", FORMS)
def test_a_cry_that_is_not_read_is_noticed(form: str) -> None:
    """Each line of TABLE that is worse than news, between lines that can be read."""
    for text, *_, severity, _ in TABLE:
        if severity == Severity.INFO.value or "\n" in text or '"' in text:
            continue
        if not (
            "segfault" in text and form in ("** {}", "gpu-17: {}")
        ):  # a program may be called `** python3`
            coverage = coverage_of("[    1.0] usb 1-1: new device", form.format(text), "[  2.0] x")
            assert (coverage.unread, coverage.first) == (1, 2), text
            assert "1 of 3 lines could not be read (line 2: " in coverage.blind


def test_it_says_why() -> None:
    """A form, words behind others, a program."""
    for number, why in ((0, "its form is not known"), (7, "stand behind others"), (9, "a program says")):
        assert why in coverage_of(FORMS[number].format(XID)).blind


@pytest.mark.parametrize(
    "form",
    [
        "[    1.0] {}",
        "Nov 20 13:17:35 gpu-17 kernel: {}",
        "6,1,1,-;{}",
        "Nov 20 13:17:35 gpu-17 train[7]: {}",
    ],
)
def test_what_is_read_is_covered(form: str) -> None:
    """Ordinary lines, and those that mean something, where the kernel says them."""
    texts = [text for text in ORDINARY if not text.startswith("job 1 says")]
    if "train" not in form:
        texts += [row[0] for row in TABLE if "\n" not in row[0]]
    assert coverage_of(*(form.format(text) for text in texts)).blind == ""


def test_the_rest_of_a_message_is_no_message() -> None:
    """`dmesg | grep fallen` leaves the last of three lines: which GPU it is about is not said."""
    lines = (
        "NVRM: The NVIDIA GPU 0000:3b:00.0",
        "NVRM: (PCI ID: 10de:2330) installed in this system has",
        REST,
    )
    assert "the lines of this message before it are missing" in coverage_of(f"[ 1.0] {REST}").blind
    assert coverage_of(*(f"[ 1.0] {line}" for line in lines)).blind == ""


def test_a_log_without_lines() -> None:
    """Says nothing at all."""
    assert coverage_of("", "\n").blind.startswith("it holds no lines")
