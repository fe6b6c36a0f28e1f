"""What is fuzzed: each target takes any text, and fails by raising, or by taking too long for one line."""

import contextlib
import time
from collections.abc import Callable

from agent.actions.gpu_diagnose import results
from agent.collectors.joblog import JobLogCollector, JobLogOptions
from agent.collectors.samples import JobLine
from agent.contract import fabric, kernel_text, kinds, subnet
from agent.contract.components import check
from agent.contract.coverage import Coverage
from agent.contract.errors import ActionError
from agent.contract.lines import KernelReader
from agent.contract.owner import owner
from agent.contract.xid import parse, parse_off_bus
from agent.contract.xid_details import details
from agent.host import Host
from agent.shared import dcgmi
from agent.sources.journal import JournalSource, JournalSourceOptions

SLOW_S = 0.25  # for one record, even under the fuzzer's instrumentation

# Beginnings that lead into each parser; the fuzzer finds the rest by coverage.
SEEDS = (
    "NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 31, pid=7, name=a, Ch 1, MMU Fault: ENGINE GRAPHICS GPC3 GPCCLIENT_T1_0 "
    "faulted @ 0x7f12_34567000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    "NVRM: Xid (PCI:0003:00:00): 74, NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
    "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000 0x0 0x0 0x0)",
    "NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
    "mlx5_core 0000:5e:00.0: Port module event[error]: module 0, Cable error, High Temperature",
    "pcieport 0000:80:01.1: AER: Uncorrected (Fatal) error received: 0000:81:00.0",
    "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1 offset:0x940 grain:32)",
    "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: bf80000000100134",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=p,pid=1,uid=0",
    "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:7kB, anon-rss:6kB",
    "I/O error, dev nvme0n1, sector 8 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
    "nvme0n1: Read(0x2) @ LBA 5120, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) MORE DNR",
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
    "XFS (nvme1n1): Log I/O Error Detected.  Shutting down filesystem",
    "nfs: server 10.0.0.5 not responding, still trying",
    "Lustre: work-OST0003-osc-ffff9a: Connection restored to work-OST0003 (at 10.1.0.9@o2ib)",
    'EDAC MC0: CE page 0x3fd1a, offset 0x8c0, grain 0, syndrome 0x94, row 4, channel 1, label "DIMM_B2": amd64_edac',
    "[Hardware Error]: CPU:2 (17:31:0) MC17_STATUS[Over|CE|MiscV|-|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b",
    "mce: Uncorrected hardware memory error in user-access at edbe201400",
    "Out of memory: Kill process 4711 (python3) score 917 or sacrifice child",
    "Killed process 812 ((sd-pam)), UID 1000, total-vm:21kB, anon-rss:3kB",
    "md/raid0md0: Disk failure on nvme2n1 detected, failing array.",
    "device-mapper: multipath: 253:3: Failing path 8:16.",
    "block nvme0n1: no available path - failing I/O",
    "python3: attempt to access beyond end of device\nsda1: rw=2049, sector=39, nr_sectors = 8 limit=30",
    "BTRFS: error (device dm-0: state A) in btrfs_commit_transaction:2494: errno=-5 IO failure",
    "NFS: __nfs4_reclaim_open_state: Lock reclaim failed!",
    "VFS: file-max limit 1048576 reached",
    "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!",
    "igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down",
    "mlx5_core 0000:5e:00.1 ens1f1np1: renamed from eth3",
    "bnx2 0000:17:00.0: eth0: NIC Copper Link is Down",
    "mlx5_core mlx5_core.sf.4 en3f0pf0sf4: Link down",
    "[qede_link_update:3203(ens1f0)]Link is down",
    "atlantic 0000:01:00.0 eth0: atlantic: link change old 10000 new 0",
    "Task in /slurm/uid_1000/job_4711/step_0 killed as a result of limit of /slurm/uid_1000/job_4711",
    "Killed process 9823, UID 0, (java) total-vm:7kB, anon-rss:6kB, file-rss:0kB",
    "pcieport 0000:16:01.0: DPC: containment event, status:0x1f05, ERR_FATAL received from 0000:17:00.0",
    "pcieport 0000:16:01.0: DPC: containment event, status:0x1f05 source:0x1700",
    "device-mapper: multipath: 253:3: queue_if_no_path timeout, failing queued IO",
    "NVRM: Xid (PCI:0018:01:00): 95, Uncontained: GR Unrecoverable. RST: Yes, D-RST: Yes",
    'EDAC MC1: CE row 1, channel-a= 0 channel-b= 1 labels "CPU1_A2": Branch=0',
    "NVRM: Xid (PCI:0018:01:00): 136, NVLink: Link training failed for links 0x30 (0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    "NVRM: Xid (PCI:0018:01:00): 94, Contained: SM (0x1). Physical Address 0x7f00, RST: No, D-RST: Yes",
    "NVRM: GPU at 0000:3b:00.0 has fallen off the bus.",
    "BUG: Bad page map in process Web Content  pte:ffff8881 pmd:12345067",
    "mce: CPU51: Package temperature above threshold, cpu clock throttled (total events = 4711)",
    "[  +0.000012] [  T812] x",
    "[<    1.500000>] x",
    "<3>1 2026-11-20T13:17:35.250000Z gpu-17 kernel - - - x",
    "Nov 20 13:17:35 gpu-17 kern.err kernel: [ 1512.651653] x",
    '{\n   "dmesg": [\n      {\n         "pri": 3,\n         "time":     12.345678,\n         "msg": "x"\n      }\n   ]\n}',
    '{\n\t"_TRANSPORT" : "kernel",\n\t"MESSAGE" : [\n\t\t78,\n\t\t67\n\t],\n\t"__REALTIME_TIMESTAMP" : "1795180655250000"\n}',
    "/var/log/kern.log:12:Nov 20 13:17:35 gpu-17 train[7]: NVRM: Xid (PCI:0000:3b:00): 79, x",
    "> gpu-17: [ 1512.651653] NVRM: API mismatch: the client 'a' (pid 7)\n> NVRM: has the version 1.2, but",
    "[Nov20 13:17] x",
    "[Fr Mär  5 13:17:35 2026] x",
    "[ven. août 20 13:17:35 2026] [  T812] x",
    "ноя 20 13:17:35 gpu-17 kernel: x",
    "févr. 02 13:17:35 gpu-17 kernel: x",
    "1795180655.250000 h kernel: x",
    "Fri 2026-11-20 13:17:35 UTC h kernel: x",
    '{"_TRANSPORT":"kernel","PRIORITY":"4","MESSAGE":"x","__REALTIME_TIMESTAMP":"1795180655250000"}',
    "INFO: task kworker/u256:1:88 blocked for more than 241 seconds.",
    "python3[4711]: segfault at 7f31c0 ip 00007f31 sp 00007ffd error 4 in libnccl.so.2.18.5[7f31d0000000+9a8000]",
    "[Jul 09 2026 18:14:07] [ERROR] [tid 1] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:C1:00.0",
    "3,342,692641414,-;NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\\x0a",
    "kern  :err   : 2026-11-20T13:17:35,651653+00:00 NVRM: Xid (PCI:0000:38:00): 79",
    "<3>[  692.641414][ T1234] x",
    "RuntimeError: CUDA error: an illegal memory access was encountered busId 3b000",
    "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0",
    'Errors for 0x200000 "S1"\n   GUID 0x200000 port 3: [SymbolErrorCounter == 120] [PortXmitWait == 9]\n##  9 ports checked',
    '0x0000000000100007 "    H4"      5    1[  ] ==( 4X           2.5 Gbps Active/  LinkUp)==>  '
    '0x0000000000200000      2    4[  ] "S1" (Could be 12X Could be 10.0 Gbps)',
    '{"body": {"GPU": {"children": {"3": {"children": {"Errors": {"children": {"Memory system": {"overflow": ["Detected XID '
    '48 for GPU 3"], "value": "Failure"}}}}}}}, "Overall Health": {"value": "Failure"}}, "header": ["Health Monitor Report"]}',
    "sminfo: sm lid 1 sm guid 0x100001, activity count 116 priority 10 state 3 SMINFO_MASTER",
    '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": [{"status": "Fail", "entity_id": 1, '
    '"warnings": [{"warning": "x"}]}]}]}]}}',
    '{"_SYSTEMD_UNIT": "docker-a.scope", "MESSAGE": [78, 67], "__CURSOR": "s=1", "__REALTIME_TIMESTAMP": "1795205126223483"}',
)


def kernel_line(text: str) -> None:
    """One record as each reader gets it: the facts are declared ones about parts that exist."""
    reader = KernelReader(kept=True)
    for _ in range(2):
        for unsent in reader.read(text):
            kinds.check(unsent)
            check(unsent.component)


def kernel_log(text: str) -> None:
    """A log of several lines in any mix of encodings; joining what belongs together never runs away."""
    coverage = Coverage()
    for _, line in coverage.records(text.split("\n")):
        if len(line.text) > kernel_text.MAX_TEXT * 3:
            raise AssertionError("a record grew beyond its lines")


def xid(text: str) -> None:
    """The parsers below the reader, and every XID's details with any message."""
    parse(text)
    parse_off_bus(text)
    for code in (13, 31, 48, 63, 64, 74, 94, 95):
        details(code, text)


def job_line(text: str) -> None:
    """A line that a job wrote."""
    for unsent in JobLogCollector(JobLogOptions()).feed(JobLine(text=text, file="a.log"), 1.0):
        kinds.check(unsent)
        check(unsent.component)


def cgroup(text: str) -> None:
    """A control group's path and an environment."""
    owner(text, text)


def tools(text: str) -> None:
    """What tools print: of a fabric, of subnet managers, of GPU diagnostics, of DCGM's health check."""
    errors, cables = fabric.errors(text), fabric.links(text)
    list(fabric.findings(errors, errors, cables, fabric.to_remember(errors, cables[:1], "2026-01-01"), 60))
    fabric.count(text)
    subnet.sminfo(text)
    subnet.read(text)
    with contextlib.suppress(ActionError):
        results(text, "")
    for incident in dcgmi.health(text).incidents:
        assert incident.system in dcgmi.SYSTEMS
    dcgmi.gpus(text)
    dcgmi.major(text)


def journal(text: str) -> None:
    """An entry that journalctl printed."""
    JournalSource(
        Host(), JournalSourceOptions(journal_units=("docker-*.scope",), journal_job_field="JOB")
    )._sample(text.encode())


TARGETS: dict[str, Callable[[str], None]] = {
    "kernel_line": kernel_line,
    "kernel_log": kernel_log,
    "xid": xid,
    "job_line": job_line,
    "cgroup": cgroup,
    "tools": tools,
    "journal": journal,
}


def attempt(target: Callable[[str], None], text: str) -> None:
    """Runs one input, and fails when it takes too long."""
    began = time.process_time()
    target(text)
    if time.process_time() - began > SLOW_S:
        raise TimeoutError(f"{len(text)} characters took too long")
