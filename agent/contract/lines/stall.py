"""A kernel that hangs or fails: hung tasks, lockups, stalls, oopses, panics, pages whose bookkeeping is damaged.

Formats: Linux, kernel/hung_task.c, kernel/watchdog.c, kernel/watchdog_perf.c, kernel/workqueue.c, kernel/rcu/tree_stall.h,
kernel/panic.c, arch/x86/mm/fault.c, arch/x86/kernel/traps.c, arch/arm64/mm/fault.c and
kernel/traps.c, lib/bug.c, mm/page_alloc.c (bad_page) and mm/memory.c (print_bad_pte).
"""

import re
from typing import ClassVar

from agent.contract.components import NODE
from agent.contract.lines.base import number, unsent
from agent.contract.messages import Severity, UnsentEvent

# A process name may hold a colon (kworker/u256:1).
_HUNG = re.compile(
    r"\s*INFO: task (.{1,64}):([0-9]{1,10}) (?:<\w{1,40}> )?blocked (?:in I/O wait )?for more than ([0-9]{1,8}) seconds"
)
_SOFT = re.compile(
    r"\s*(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#([0-9]{1,5}) stuck for ([0-9]{1,8})s!(?: \[(.{1,64}):([0-9]{1,10})\])?"
)
_WORKQUEUE = re.compile(r"\s*BUG: workqueue lockup - pool\b[^\n]{0,200}? stuck for ([0-9]{1,8})s!")
_HARD = re.compile(
    r"\s*(?:NMI )?watchdog: (?:CPU[0-9]{1,5}: )?Watchdog detected hard LOCKUP on cpu ([0-9]{1,5})"
)
_RCU = re.compile(
    r"\s*(?:rcu: )?INFO: rcu_\w{1,20} (?:detected (?:expedited )?stalls on CPUs|self-detected stall on CPU)"
)
_BAD_PAGE = re.compile(
    r"\s*BUG: Bad page (state|map|cache) in process (.{1,64}?)\s{1,4}(?:pfn|pte):([0-9a-f]{1,16})\b",
    re.DOTALL,
)
# Whoever runs a program chooses the first 15 characters of lines like `train[4711]: segfault at 0` (its `comm`): a form that is
# as short must go on as the kernel's own does.
_OOPS = re.compile(
    r"\s*(?:(?P<panic>Kernel panic - not syncing)|(?P<bug>kernel BUG at [^\s:\[]{1,200}:[0-9]{1,7}!|BUG: unable to handle"
    r"|BUG: kernel NULL pointer|(?:Oops: )?general protection fault, probably"
    r"|general protection fault: [0-9a-f]{4} \[#[0-9]{1,5}\]"
    r"|Unable to handle kernel [^\n]{3,60} at virtual address|Internal error: Oops"
    r"|Internal error: [^\n]{1,80}: [0-9a-f]{1,16} \[#[0-9]{1,5}\]|SError Interrupt on CPU[0-9]{1,5}, code 0x[0-9a-f]{1,16} -- "
    r"|(?:divide error|invalid opcode|stack segment|segment not present|invalid TSS|alignment check|double fault|machine check"
    r"|bounds|overflow|control protection fault|coprocessor segment overrun|SIMD exception|fpu exception): [0-9a-f]{4}"
    r" \[#[0-9]{1,5}\]"
    r"|Oops: [^\n]{0,100}\[#[0-9]{1,5}\](?: [A-Z][A-Z_]{1,20}){0,10}\s*$))(.{0,200})",
    re.DOTALL,
)
ERROR, FATAL = Severity.ERROR, Severity.FATAL


class StallArea:
    """kernel.stall, kernel.oops and kernel.bad_page."""

    markers: ClassVar[tuple[str, ...]] = (
        "blocked ",
        "lockup",
        "LOCKUP",
        "stall",
        "Kernel panic",
        "BUG",
        *("general protection fault, p", "general protection fault: ", "Unable to handle kernel "),
        *("Oops: ", "Internal error: ", "SError Interrupt on CPU", " [#"),
    )
    kinds: ClassVar[tuple[str, ...]] = ("kernel.stall", "kernel.oops", "kernel.bad_page")
    distinguishing: ClassVar[tuple[str, ...]] = ("what",)

    def read(self, text: str) -> UnsentEvent | None:
        """See Area."""
        if match := _HUNG.match(text):
            data = {
                "what": "hung_task",
                "process": match[1],
                "pid": number(match[2]),
                "for_s": float(match[3]),
            }
            return unsent("kernel.stall", NODE, ERROR, data, text)
        if match := _SOFT.match(text):
            data = {
                "what": "soft_lockup",
                "cpu": number(match[1]),
                "for_s": float(match[2]),
                "process": match[3],
                "pid": number(match[4]),
            }
            return unsent("kernel.stall", NODE, ERROR, data, text)
        if match := _WORKQUEUE.match(text):
            data = {"what": "workqueue_lockup", "for_s": float(match[1])}
            return unsent("kernel.stall", NODE, ERROR, data, text)
        if match := _HARD.match(text):
            return unsent("kernel.stall", NODE, FATAL, {"what": "hard_lockup", "cpu": number(match[1])}, text)
        if _RCU.match(text):
            return unsent("kernel.stall", NODE, ERROR, {"what": "rcu_stall"}, text)
        if match := _BAD_PAGE.match(text):
            page = match[3] if match[1] != "map" else None  # of a page table only an entry is named
            data = {"what": match[1], "process": match[2], "page": page and f"0x{page}"}
            return unsent("kernel.bad_page", NODE, ERROR, data, text)
        if match := _OOPS.match(text):
            data = {"what": "panic" if match["panic"] else "oops", "message": text.strip()}
            return unsent("kernel.oops", NODE, FATAL, data, text)
        return None
