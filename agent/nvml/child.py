"""Samples NVML in a process of its own that the agent can kill: a call into a sick driver may never return.

agent/nvml/start.py runs it. It imports little: of the agent only what lies beside it, of the standard library no json,
typing, re or enum (2 MB). Before each call it writes the call's name and start on the board, a page of memory that it
shares with the agent; that costs no system call. On stdout it writes one JSON object per line:

    {"absent": why, "code": n}         NVML cannot be opened: mostly there is no library or driver; the process ends
    {"at": s, "gpus": [GPU, ...], "skipped": [...], "look": n}
                                       one sample; see SampledGpu.sample (sampled_gpu.py); look: the latest one that was asked for
    {"at": s, "event": [bdf, type, data, count]}

`at` is CLOCK_MONOTONIC. A value that this driver or card does not report is null. It only reads: no allocation, no CUDA
context. An ordinary sample has what changes from second to second; each SLOW_EVERY-th also the counters, most of them
read in one call; each RARE_EVERY-th what hardly ever changes. After an event its GPU's counters are in the next sample.
While all is calm (agent/nvml/pace.py) samples without news are not written; `util` and `least` are then the highest and
the lowest utilisation since the last line.
When the agent has raised the number of its look on the board, the next sample has everything, of lost GPUs too.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time

import pynvml

from agent.nvml.calls import LOST, GoneError, Nvml, address_of
from agent.nvml.pace import Pace
from agent.nvml.sampled_gpu import SampledGpu
from agent.nvml.wire import BOARD_BYTES, SAMPLED, SAMPLED_AT, json_text

TYPE_CHECKING = False  # typing itself would cost 0.6 MB
if TYPE_CHECKING:
    from typing import Any

_REOPEN_S = 30.0  # NVML sees a returned GPU only after it was opened again
_SIGKILL, _PR_SET_PDEATHSIG = 9, 1
_XID = 0x8
_LOOK_S = 5.0  # how often a long pause is interrupted to see whether the agent wants a look
# nvmlEventType*. Clock and P-state events are left out: a busy GPU sends dozens of them per second; the reasons of a
# slowdown are sampled instead. ECC single and double, XID, power source, MIG, ECC storm, retirement and its failure,
# poison (non-fatal, fatal), GPU unavailable, recovery action.
_EVENTS = 0x1 | 0x2 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x8000


class NvmlSession:
    """NVML from opening to closing: all GPUs and their events."""

    def __init__(self, nvml: Nvml) -> None:
        self.nvml = nvml
        self.opened_s = time.monotonic()
        nvml.open()
        self.count = nvml.call(-1, "nvmlDeviceGetCount") or 0
        self.gpus = [SampledGpu(nvml, index) for index in range(self.count)]
        self._events = self._subscribe()

    def stale(self, *, asked: bool) -> bool:
        """Must NVML be opened again: has the number of GPUs changed, or may a lost one have returned? `asked`: for a look."""
        count = self.nvml.call(-1, "nvmlDeviceGetCount")
        lost = any(gpu.sample["lost"] or gpu.handle is None for gpu in self.gpus)
        may_return = asked or time.monotonic() - self.opened_s > _REOPEN_S
        return count not in (self.count, None) or (lost and may_return)

    def close(self) -> None:
        """Frees what NVML holds, before it is opened again."""
        if self._events is not None:
            self.nvml.call(-1, "nvmlEventSetFree", self._events)
        self.nvml.call(-1, "nvmlShutdown")

    def wait(self, until_s: float, look: int) -> None:
        """Sends events until then, or until another look than this is asked for. Of an event that repeats only the first is
        sent at once, and the number of the others at the end.
        """
        repeats: dict[tuple[str, int, int], int] = {}
        while (left_s := min(until_s - time.monotonic(), _LOOK_S)) > 0 and self.nvml.look() == look:
            slice_s = time.monotonic() + left_s
            event = None
            if self._events is not None:
                try:
                    event = self.nvml.call(
                        -1, "nvmlEventSetWait", self._events, int(left_s * 1000) + 1, allowed_s=left_s
                    )
                except pynvml.NVMLError:  # a lost GPU ends the wait at once, again and again
                    event = None
            if event is not None:
                gpu = self._by_address.get(address_of(event.device))
                if gpu is not None:
                    gpu.slow_due = True
                what = (gpu.sample["bdf"] if gpu else "", event.eventType, event.eventData)
                if what not in repeats:
                    send(event=[*what, 1])
                repeats[what] = repeats.get(what, -1) + 1
            elif (left_s := slice_s - time.monotonic()) > 0:
                time.sleep(left_s)
        for what, count in repeats.items():
            if count:
                send(event=[*what, count])

    def _subscribe(self) -> Any:
        self._by_address = {address_of(gpu.handle): gpu for gpu in self.gpus if gpu.handle is not None}
        events = self.nvml.call(-1, "nvmlEventSetCreate")
        if events is None:
            return None
        for gpu in self._by_address.values():
            try:
                types_ = self.nvml.call(gpu.index, "nvmlDeviceGetSupportedEventTypes", gpu.handle)
                wanted = _XID if types_ is None else types_ & _EVENTS
                try:
                    self._register(gpu, wanted, events)
                except pynvml.NVMLError as error:
                    if error.value in LOST:
                        raise
                    self._register(gpu, _XID, events)
            except pynvml.NVMLError as error:
                gpu.sample["lost"] = LOST.get(error.value, "")
        return events

    def _register(self, gpu: SampledGpu, wanted: int, events: Any) -> None:
        if wanted:
            self.nvml.call(gpu.index, "nvmlDeviceRegisterEvents", gpu.handle, wanted, events, strict=True)


def send(**values: Any) -> None:
    """Writes one line to the agent; BrokenPipeError, which ends this process, when the agent is gone."""
    sys.stdout.write(json_text({"at": time.monotonic(), **values}) + "\n")
    sys.stdout.flush()


def main(
    board_fd: int, interval_s: float, pace: Pace, answered: str, skips: list[str], *, clocks: bool
) -> None:
    """The arguments of start.py. `answered`: addresses with commas, of GPUs that have answered an earlier child; `skips`:
    `NVML_INDEX:CALL:SECONDS`, calls that hung and are not made for this time; `clocks`: the SM clock is read too.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # no orphan keeps the driver open
    calls = [skip.split(":") for skip in skips]
    nvml = Nvml(
        mmap.mmap(board_fd, BOARD_BYTES),
        [(int(index), name, float(for_s)) for index, name, for_s in calls],
        answered.split(",") if answered else [],
        clocks=clocks,
    )
    try:
        session = NvmlSession(nvml)
        looked, look = 0, nvml.look()
        while True:
            asked = look != looked
            news = asked or bool(nvml.skips) or any(gpu.slow_due for gpu in session.gpus)
            slow, rare = pace.tiers(time.monotonic())
            SAMPLED.pack_into(nvml.board, SAMPLED_AT, time.monotonic_ns())
            for gpu in session.gpus:
                gpu.update(slow=asked or slow, rare=asked or rare)
            samples = [gpu.sample for gpu in session.gpus]
            if pace.send(time.monotonic(), samples, asked=news, full=slow or rare):
                send(gpus=samples, skipped=list(nvml.skips), look=look)
                for gpu in session.gpus:
                    gpu.sent = True
            # At whole multiples of the pause, like the agent's own work; where sampling takes longer than the pause, events
            # have their turn all the same.
            now_s = time.monotonic()
            next_s = (now_s // interval_s + 1) * interval_s
            session.wait(max(next_s, now_s + interval_s / 10), looked := look)
            look = nvml.look()
            if session.stale(asked=look != looked):
                session.close()
                session = NvmlSession(nvml)
                pace.restart()
    except GoneError as error:
        send(absent=str(error), code=error.code)
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # there is nothing to flush
