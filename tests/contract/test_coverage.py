"""What could not be read of a log, and why: a kernel's cry that nobody understood is never an all-clear."""

import pytest

from agent.contract import kernel_text
from agent.contract.coverage import Coverage
from agent.contract.lines import KernelReader
from agent.contract.messages import Severity
from tests.contract.kernel_lines import ORDINARY, TABLE

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
    list(coverage.records(lines))
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


PROBE = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330)",
    "NVRM: installed in this system has",
    REST,
)
# What stands before and behind each of its lines where nobody reads it as the kernel's.
FOREIGN = {
    "kernel-pid": "Nov 20 13:15:47 gpu-17 kernel[0]: {}",
    "kern": "Nov 20 13:15:47 gpu-17 kern: {}",
    "klogd": "Nov 20 13:15:47 gpu-17 klogd: {}",
    "relayed twice": "Nov 20 13:15:47 relay Nov 20 13:15:46 gpu-17 kernel: {}",
    "logfmt": 'ts=2026-11-20T13:15:47Z host=gpu-17 level=err msg="{}"',
    "fluent": '2026-11-20 13:15:47.000000000 +0000 kernel.log: {{"message":"{}"}}',
    "fluent-text": "2026-11-20 13:15:47 +0000 kernel.log: {}",
    "esxi": "2026-11-20T13:15:47.123Z cpu3:2098765){}",
    "conserver": "[Fri Nov 20 13:15:47 2026][2026-11-20 13:15:47] {}",
    "level behind": "[  160.000000] <3> {}",
    "ellipsis": "\u2026{}",
    "dots": "... {}",
    "prose": 'the console says "{}" and then nothing',
}


@pytest.mark.parametrize("form", FOREIGN)
def test_a_message_of_several_lines_is_missed_in_any_form(form: str) -> None:
    """None of its lines means anything alone, so each form must be noticed by the message's last line."""
    coverage = coverage_of("[ 1.0] usb 1-1: new device", *(FOREIGN[form].format(line) for line in PROBE))
    assert coverage.unread > 0
    assert "could not be read" in coverage.blind
    assert coverage_of(FOREIGN[form].format(REST)).unread == 1


@pytest.mark.parametrize(
    "host", ["10.1.2.3/gpu-17", "s_src@gpu-17", "relay/gpu-17", "fe80::1", "2001:db8::17"]
)
def test_a_host_may_be_an_address_or_a_way(host: str) -> None:
    """As relays of syslog write it: the kernel's own lines are read, and a program's never as the kernel's."""
    head = f"Nov 20 13:15:47 {host}"
    found = [line.text for _, line in kernel_text.records(f"{head} kernel: {line}" for line in PROBE)]
    assert found == ["\n".join(PROBE)]
    for said in (
        f"{head} train[7]: {XID}",
        f"Nov 20 13:15:47 train[7]: kernel: {XID}",
        f"{head} train: kernel: {XID}",
    ):
        for _, line in kernel_text.records([said]):
            assert KernelReader(kept=True).read(line.text) == [] or line.facility != kernel_text.KERNEL
        assert coverage_of(said).unread == 1


@pytest.mark.parametrize(
    "cut",
    [
        ("NVRM: Xid (PCI:0000:3b", ":00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."[:18],),
        ("NVRM: Xid (PCI:0000:3b:00): 7",),
        ("NVRM: Xid (PCI:0000:3b:00): 11",),
        ("NVRM: Xid (PCI:0000:3b:00):",),
        ("NVRM: GPU 0000:3b: GPU has fallen off the bus.",),
        ("NVRM: GPU 0000", ":3b:00.0: GPU has fallen off the bus."),
    ],
)
@pytest.mark.parametrize("head", ["[  160.000000] ", "Nov 20 13:17:35 gpu-17 kernel: ", ""])
def test_a_line_that_was_cut_is_no_all_clear(head: str, cut: tuple[str, ...]) -> None:
    """At the width of a terminal, or in the middle of a number: what is left of 79 is no XID 7."""
    lines = [head + cut[0], *cut[1:]]
    assert coverage_of(*lines).unread >= 1
    assert [
        one.data.get("code")
        for _, line in kernel_text.records(lines)
        for one in KernelReader().read(line.text)
    ] == []
    assert (
        coverage_of(f"{head}NVRM: GPU at PCI:0000:3b:00: GPU-b4f3d1c2-0000-1111-2222-333344445555").unread
        == 0
    )


# The end of a log is where it was cut: at the width of a screen, or at the size of a file.
BEGUN = (
    "NVRM: RmInitAdapter fai",
    "NVRM: GPU 0000:3b:00.0: RmInitAdapter faile",
    "general protection fau",
    "Memory cgroup out of memory: Killed pr",
    "nvidia 0000:3b:00.0: probe with driver nv",
    "Kernel pani",
)


@pytest.mark.parametrize("text", BEGUN)
@pytest.mark.parametrize("head", ["[  160.000000] ", "Nov 20 13:17:35 gpu-17 kernel: ", ""])
def test_a_message_that_was_cut_within_its_mark_is_no_all_clear(head: str, text: str) -> None:
    """Whether or not its line has an end: what marks the message is not whole."""
    coverage = coverage_of("[ 1.0] usb 1-1: new device", head + text)
    assert (coverage.unread, coverage.first, coverage.why) == (1, 2, "a part of this message is missing")


@pytest.mark.parametrize("lines", [1, 2])
def test_a_message_of_several_lines_without_its_rest_is_no_all_clear(lines: int) -> None:
    """At the end of a log, and where other lines follow; what goes on as another message is that one, and no fault."""
    for after in ((), ("[ 2.0] usb 1-1: new device",) * 6):
        coverage = coverage_of(*(f"[ 1.0] {line}" for line in PROBE[:lines]), *after)
        assert (coverage.unread, coverage.why) == (1, "the lines of this message behind it are missing")
    other = "NVRM: installed in this system is not supported by open"
    assert coverage_of(f"[ 1.0] {PROBE[0]}", f"[ 1.0] {other}").blind == ""


@pytest.mark.parametrize(
    "text", ["NVRM:", "NVRM: The NVIDIA GP", "EDAC MC0: 1 U", "mlx5_core 0000:5e:00.0 ib3: Link d", "Kern"]
)
def test_a_log_that_ends_within_a_line_that_may_matter_is_no_all_clear(text: str) -> None:
    """Where that line has no end; with one it says what it says, and no more."""
    coverage = Coverage(unended=True)
    list(coverage.records(["[ 1.0] usb 1-1: new device", f"[ 2.0] {text}"]))
    assert (coverage.unread, coverage.first, coverage.why) == (1, 2, "the log ends within this line")
    assert coverage_of("[ 1.0] usb 1-1: new device", f"[ 2.0] {text}").unread == 0


def test_a_log_that_ends_within_an_ordinary_line_says_so() -> None:
    """Who pastes lines often leaves out the end of the last one: an all-clear, but for that line."""
    coverage = Coverage(unended=True)
    list(coverage.records(["[ 1.0] usb 1-1: new device", "[ 2.0] usb 1-1: new hi"]))
    assert coverage.blind == ""
    assert coverage.aside == "The log ends within line 2, which may go on: '[ 2.0] usb 1-1: new hi'."
    whole = Coverage(unended=True)
    list(whole.records([f"[ 2.0] {XID}"]))
    assert (whole.blind, whole.aside) == ("", "")


@pytest.mark.parametrize("glue", ["de", "\u5f20", "7", "_", "x9"])
def test_words_that_are_glued_to_others_are_no_all_clear(glue: str) -> None:
    """A console that lost a line's end, a program that writes between: whatever stands before them."""
    for text, *_, severity, _ in TABLE:
        if (
            severity != Severity.INFO.value
            and "\n" not in text
            and '"' not in text
            and "segfault" not in text
        ):
            line = f"[ 1.0] {glue}{text}"
            if glue != "\u5f20" and not text[0].isupper() and not text.startswith("NVRM"):
                continue  # `dewatchdog` is a word like any other
            # Of some the kernel's own form has a free word in front.
            read = KernelReader(kept=True).read(f"{glue}{text}")
            assert read or coverage_of(line).unread == 1, line


@pytest.mark.parametrize("head", ["[  160.000000] ", "Nov 20 13:17:35 gpu-17 kernel: "])
def test_prose_between_lines_with_times_is_told(head: str) -> None:
    """It has no time of its own, and does not become a kernel's by standing behind one."""
    quiet = [f"{head}usb 1-1: new device"] * 3
    coverage = coverage_of(*quiet, "milk and bread", "and butter")
    assert (coverage.told, coverage.foreign, coverage.blind, coverage.no_log) == (3, 2, "", "")
    assert coverage.aside == "2 lines look like no kernel lines (line 4: 'milk and bread')."
    coverage = coverage_of(quiet[0], "milk and bread", "and butter")
    assert coverage.no_log.startswith("only 1 of 3 lines look like kernel lines.")


def test_a_log_without_lines() -> None:
    """Says nothing at all."""
    assert coverage_of("", "\n").blind.startswith("it holds no lines")
