"""Facts of the kernel log that stand in several lines, or mean something by a line before."""

from typing import Any

import pytest

from agent.contract.lines import LineReader
from agent.contract.lines.pcie import pci_drivers
from tests.contract.kernel_lines import KILLED, NVSWITCH, OOM_TASK, OOM_WHERE, OOM_WHY, RENAMED


def test_an_sxid_and_its_further_lines_are_one_fact() -> None:
    """The Severity and Data lines belong to the headline; another code's do not."""
    reader = LineReader()
    said = [
        reader.read(NVSWITCH + rest)
        for rest in (
            "12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
            "12028, Severity 0 Engine instance 32 Sub-engine instance 00",
            "12028, Data {0x00140004, 0x00100000, 0x00140004, 0x00000000}",
            "20034, Severity 1 Engine instance 30 Sub-engine instance 00",
        )
    ]
    assert [len(unsent_events) for unsent_events in said] == [1, 0, 0, 1]
    assert (said[3][0].data["code"], said[3][0].data["said"], said[3][0].data["engine"]) == (
        20034,
        "fatal",
        30,
    )


@pytest.mark.parametrize(
    ("group", "component", "job", "unit"),
    [
        ("/system.slice/slurmstepd.scope/job_815/step_0/user/task_0", "job/815", "815", None),
        ("/system.slice/gpuward-agent.service", "node", None, "gpuward-agent.service"),
        ("/user.slice/user-1000.slice", "node", None, None),
    ],
)
def test_an_oom_kill_knows_whose_process_it_was(
    group: str, component: str, job: str | None, unit: str | None
) -> None:
    """The line before names the control group; the fact is said once."""
    reader = LineReader()
    assert reader.read(OOM_WHERE.format(group=group)) == []
    (unsent,) = reader.read(KILLED)
    assert (unsent.component, unsent.data.get("job"), unsent.data.get("unit")) == (component, job, unit)
    assert "job" not in reader.read(KILLED)[0].data  # another process with that number is not this job's


@pytest.mark.parametrize(
    ("why", "scope", "severity"),
    [
        (OOM_WHY, "machine", "error"),
        ("Memory cgroup out of memory: Kill process 4711 (a b) score 1001 or sacrifice child", "cgroup", "warning"),
    ],
)  # fmt: skip
def test_an_oom_kill_of_an_older_kernel_is_two_lines(why: str, scope: str, severity: str) -> None:
    """Why stands in the first; the second may name a child. The next kill has a reason of its own."""
    reader = LineReader()
    assert reader.read(why) == []
    (unsent,) = reader.read("Killed process 4712 (worker) total-vm:7kB, anon-rss:6kB, file-rss:0kB")
    assert (unsent.data["pid"], unsent.data["scope"], unsent.severity.value) == (4712, scope, severity)
    assert reader.read("Killed process 4713 (x) total-vm:7kB")[0].data["scope"] == "machine"


def test_an_oom_kill_of_an_older_kernel_knows_the_job() -> None:
    """The control group stands in a line without a pid; it is the next kill's, and only one's for a limit."""
    for first, component in ((OOM_TASK, "job/4711"), ("x", "node")):
        reader = LineReader()
        assert (
            reader.read(first)
            == reader.read("Memory cgroup out of memory: Kill process 4711 (a) score 1 or sacrifice child")
            == []
        )
        (unsent,) = reader.read("Killed process 4711 (a) total-vm:7kB, anon-rss:6kB, file-rss:0kB")
        assert (unsent.component, unsent.data["scope"]) == (component, "cgroup")
        assert [one.component for one in reader.read("Killed process 4713 (x) total-vm:7kB")] == ["node"]


def test_a_name_does_not_choose_the_process() -> None:
    """A program whose name looks like the fields that follow it."""
    reader = LineReader()
    reader.read(OOM_WHERE.format(group="/kubepods.slice/x").replace("task=python3", "task=a,pid=12,uid=0"))
    assert reader.read(KILLED.replace("python3", "a,pid=12,uid=0"))[0].data["cgroup"] == "/kubepods.slice/x"


AMD_BANK = "[Hardware Error]: CPU:2 (17:31:0) MC17_STATUS[Over|CE|MiscV|-|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b"


def test_a_machine_check_of_amd_is_one_fact() -> None:
    """A headline, the bank, the address: the headline says it; where it was filtered out the bank does."""
    block = [
        "[Hardware Error]: Corrected error, no action required.",
        AMD_BANK,
        "[Hardware Error]: Error Addr: 0x00000003fd1a8c00",
        "[Hardware Error]: Unified Memory Controller Ext. Error Code: 0, DRAM ECC error.",
    ]
    reader = LineReader()
    assert [len(reader.read(text)) for text in block] == [1, 0, 0, 0]
    assert [len(reader.read(text)) for text in block[1:]] == [1, 0, 0]
    logged = "mce: [Hardware Error]: Machine check events logged"
    assert [len(reader.read(text)) for text in (logged, *block)] == [1, 0, 0, 0, 0]
    worse = "[Hardware Error]: Uncorrected, software restartable error."
    assert [len(reader.read(text)) for text in (logged, worse, *block[1:])] == [1, 1, 0, 0, 0]
    assert [len(reader.read(text)) for text in (block[0], "mlx5_core: something", *block[1:])] == [
        1,
        0,
        0,
        0,
        0,
    ]


def test_a_port_without_a_cable_is_no_fact() -> None:
    """A driver says at boot that it has no link; a port that had one, or of which the log shows no boot, has lost it."""
    down, up = "mlx5_core 0000:5e:00.1 ens1f1np1: Link down", "mlx5_core 0000:5e:00.1 ens1f1np1: Link up"
    reader = LineReader(kept=True)
    said = [[one.data["up"] for one in reader.read(text)] for text in (RENAMED, down, down, up, down)]
    assert said == [[], [], [], [True], [False]]
    assert [one.data["up"] for one in LineReader(kept=True).read(down)] == [False]
    assert LineReader().read(down) == [], "the agent hears rtnetlink"


@pytest.mark.parametrize(
    ("driver", "up", "down"),
    [
        ("ice", "NIC Link is up 100 Gbps Full Duplex, Requested FEC: RS-FEC", "NIC Link is Down"),
        ("bnxt_en", "NIC Link is Up, 25000 Mbps full duplex", "NIC Link is Down"),
        ("i40e", "NIC Link is Up, 10 Gbps Full Duplex", "NIC Link is Down"),
        ("mlx5_core", "Link up", "Link down"),
    ],
)
def test_a_port_keeps_its_link_when_it_is_renamed(driver: str, up: str, down: str) -> None:
    """However long after that it loses it. A port of the same name on another address is another port."""
    renamed = f"{driver} 0000:31:00.0 ens3f0: renamed from eth0"
    for lines in (
        [f"{driver} 0000:31:00.0 eth0: {up}", renamed, f"{driver} 0000:31:00.0 ens3f0: {down}"],
        [renamed, f"{driver} 0000:31:00.0 ens3f0: {up}", f"{driver} 0000:31:00.0 ens3f0: {down}"],
        [renamed, f"{driver} 0000:b1:00.0 ens3f0: {down}"],
    ):
        reader = LineReader(kept=True)
        told = [one for text in lines for one in reader.read(text) if not one.data["up"]]
        assert [one.component for one in told] == ["link/ens3f0"]


PROBED = "nvidia: probe of 0000:3b:00.0 failed with error -1"
FAILED, NONE_LEFT = (
    "NVRM: The NVIDIA probe routine failed for 1 device(s).",
    "NVRM: None of the NVIDIA devices were initialized.",
)


@pytest.mark.parametrize(
    ("lines", "components"),
    [
        ((PROBED, FAILED, NONE_LEFT), ["gpu/0000:3b:00"]),
        ((PROBED, FAILED.replace("1", "2"), NONE_LEFT), ["gpu/0000:3b:00", "node"]),
        ((FAILED, NONE_LEFT), ["node"]),
        ((NONE_LEFT,), ["node"]),
        ((PROBED, FAILED, NONE_LEFT, FAILED, NONE_LEFT), ["gpu/0000:3b:00", "node"]),
    ],
)
def test_the_sum_of_gpus_that_did_not_start_is_told_where_not_all_were_named(
    lines: tuple[str, ...], components: list[str]
) -> None:
    """What the driver says when it has tried all of them is news of those only of which no line was about."""
    reader = LineReader()
    assert [one.component for text in lines for one in reader.read(text)] == components


ANNOUNCED = "pcieport 0000:80:01.1: AER: Uncorrected (Fatal) error received: 0000:81:00.0"
OWN = "nvidia 0000:81:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"


def said(*texts: str, **how: Any) -> list[tuple[str, str, str]]:
    """Kind, component and class of what a log's lines say."""
    reader = LineReader(**how)
    found = [one for text in texts for one in reader.read(text)]
    return [(one.kind, one.component, str(one.data.get("class", ""))) for one in found]


APEI = "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 512"


@pytest.mark.parametrize(
    ("severity", "section", "device", "want"),
    [
        ("recoverable", "PCIe error", "0000:3b:00.0", [("pcie.error", "gpu/0000:3b:00", "nonfatal")]),
        ("fatal", "PCIe error", "0000:3b:00.0", [("pcie.error", "gpu/0000:3b:00", "fatal")]),
        ("corrected", "PCIe error", "0000:80:01.1", [("pcie.error", "pcie/0000:80:01", "corrected")]),
        ("info", "PCIe error", "0000:3b:00.0", []),
        ("corrected", "memory error", "", [("cpu.machine_check", "node", "corrected")]),
        ("fatal", "general processor error", "", [("cpu.machine_check", "node", "fatal")]),
        ("recoverable", "unknown, 81212a96-09ed-4996-9471-8d729c8e69ed", "", [("cpu.machine_check", "node", "recoverable")]),
        ("info", "memory error", "", []),
    ],
)  # fmt: skip
def test_a_report_of_the_firmware_is_about_what_its_section_says(
    severity: str, section: str, device: str, want: list[tuple[str, str, str]]
) -> None:
    """APEI: a PCI Express device is no memory. One report is one fact."""
    lines = [
        APEI,
        f"{{1}}[Hardware Error]: event severity: {severity}",
        f"{{1}}[Hardware Error]:  Error 0, type: {severity}",
        f"{{1}}[Hardware Error]:   section_type: {section}",
        "{1}[Hardware Error]:   port_type: 4, root port",
        *([f"{{1}}[Hardware Error]:   device_id: {device}"] if device else ()),
        "{1}[Hardware Error]:   slot: 0",
    ]
    assert said(*lines, drivers={"0000:3b:00.0": "nvidia"}) == want
    assert said(*lines, *lines, drivers={"0000:3b:00.0": "nvidia"}) == 2 * want


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("Fatal", [("pcie.error", "gpu/0000:81:00", "fatal")]),
        ("Non-Fatal", [("pcie.error", "gpu/0000:81:00", "nonfatal"), ("pcie.error", "gpu/0000:81:00", "recovery_failed")]),
    ],
)  # fmt: skip
def test_a_failed_recovery_is_the_devices(word: str, want: list[tuple[str, str, str]]) -> None:
    """The port speaks of the device whose error it announced: after a fatal error that is nothing new."""
    lines = (ANNOUNCED.replace("Fatal", word), "pcieport 0000:80:01.1: AER: device recovery failed")
    assert said(*lines, drivers={"0000:81:00.0": "nvidia"}) == want


@pytest.mark.parametrize(
    ("said_first", "want"),
    [
        ("status:0x1f01 source:0x0000", "pcie/0000:16:01"),
        ("status:0x1f01: unmasked uncorrectable error detected", "pcie/0000:16:01"),
        ("status:0x1f05 source:0x1700", "gpu/0000:17:00"),
        ("status:0x1f05, ERR_FATAL received from 0000:17:00.0", "gpu/0000:17:00"),
    ],
)
@pytest.mark.parametrize("word", ["Fatal", "Non-Fatal"])
def test_a_containment_is_one_fact(said_first: str, word: str, want: str) -> None:
    """The port cuts off what is below it, reports what it saw, and says that nothing recovered; what comes later is new."""
    lines = [
        f"pcieport 0000:16:01.0: DPC: containment event, {said_first}",
        "pcieport 0000:16:01.0: DPC: unmasked uncorrectable error detected",
        f"pcieport 0000:16:01.0: PCIe Bus Error: severity=Uncorrectable ({word}), type=Transaction Layer, (Receiver ID)",
        "pcieport 0000:16:01.0:   device [8086:352a] error status/mask=00004000/00100000",
        "nvidia 0000:17:00.0: AER: can't recover (no error_detected callback)",
        "pcieport 0000:16:01.0: AER: device recovery failed",
    ]
    drivers = {"0000:17:00.0": "nvidia"}
    assert said(*lines, drivers=drivers) == [("pcie.error", want, "contained")]
    assert said(*lines, *lines, drivers=drivers) == [("pcie.error", want, "contained")] * 2


def test_a_bond_counts_the_slaves_that_its_log_names() -> None:
    """From their start to the loss of the last one, and back."""
    reader = LineReader(kept=True)
    lines = [
        *(f"bond0: (slave eth{n}): Enslaving as a backup interface with an up link" for n in range(3)),
        "bond0: (slave eth1): link status definitely down, disabling slave",
        "bond0: (slave eth2): making interface the new active one",
        "bond0: now running without any active interface!",
        *(f"bond0: (slave eth{n}): link status definitely up, 100000 Mbps full duplex" for n in range(3)),
    ]
    told = [one.data for line in lines for one in reader.read(line)]
    assert [(data["up"], data["slaves"], data["down"]) for data in told] == [
        (2, 3, "eth1"), (0, 3, "eth0,eth1,eth2"), (1, 3, "eth1,eth2"), (2, 3, "eth2"), (3, 3, ""),
    ]  # fmt: skip
    assert LineReader().read(lines[3]) == [], "the agent reads /proc/net/bonding"


def test_a_slave_that_is_released_is_no_slave_any_more() -> None:
    """On purpose, or with its card: what its link was says nothing of the bond, which is whole without it."""
    reader = LineReader(kept=True)
    lines = [
        *(f"bond0: (slave eth{n}): Enslaving as a backup interface with an up link" for n in range(3)),
        "bond0: (slave eth2): link status definitely down, disabling slave",
        "bond0: (slave eth2): Releasing backup interface",
        "bond0 (unregistering): (slave eth1): Releasing active interface",
        "bond0 (unregistering): Released all slaves",
        "bond0: (slave eth1): link status definitely down, disabling slave",
    ]
    told = [one.data for line in lines for one in reader.read(line)]
    assert [(data["up"], data["slaves"], data["down"]) for data in told] == [
        (2, 3, "eth2"), (2, 2, ""), (2, 2, ""), (2, 2, ""), (1, 2, "eth1"),
    ]  # fmt: skip


def test_an_aer_report_is_one_fact() -> None:
    """The port announces it, the device reports it. Whose it is is known from the machine, or from the log."""
    for reader, component in (
        (LineReader(), "pcie/0000:81:00"),
        (LineReader(drivers={"0000:81:00.0": "nvidia"}), "gpu/0000:81:00"),
        (LineReader(drivers=pci_drivers(["[ 1.0] nvidia 0000:81:00.0: enabling device (0000 -> 0002)", "x"])), "gpu/0000:81:00"),
    ):  # fmt: skip
        said = [[one.component for one in reader.read(text)] for text in (ANNOUNCED, OWN)]
        assert said == [[component], []]
        assert [one.component for one in reader.read(OWN)] == ["gpu/0000:81:00"], "one that was not announced"
        assert [one.component for one in reader.read(ANNOUNCED)] == ["gpu/0000:81:00"], "it has learnt"
        assert [len(reader.read(text)) for text in (OWN.replace("Fatal", "Non-Fatal"), OWN)] == [1, 0]


def test_only_so_many_announcements_are_remembered() -> None:
    """Of devices that never report anything."""
    reader = LineReader()
    for number in range(200):
        reader.read(ANNOUNCED.replace("81:00.0", f"{number:02x}:00.0"))
    assert len(reader.read(OWN.replace("0000:81:00.0", "0000:01:00.0"))) == 1
    assert reader.read(OWN.replace("0000:81:00.0", "0000:c7:00.0")) == []
