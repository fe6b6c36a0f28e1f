"""Asks NVML, in a process of its own that the agent can kill: a call into a sick driver may never return.

Run as a file (`python -I agent/nvml_child.py BOARD_FD INTERVAL_S SLOW_EVERY`), so that it imports nothing of
the agent: the standard library and pynvml. Before each call it writes the call's name and start on the board,
a page of memory that it shares with the agent; that costs no system call. On stdout it says one JSON object
a line:

    {"absent": why}                    there is no library or driver; the process ends
    {"at": s, "gpus": [GPU, ...]}      one sample; see Card.says
    {"at": s, "event": [bdf, type, data]}

`at` is CLOCK_MONOTONIC. A value that this driver or card does not say is null.
"""

import ctypes
import json
import mmap
import os
import signal
import struct
import sys
import time
from typing import Any

import pynvml

BOARD = struct.Struct("=Qi52s")  # start of the call in ns (0: none), NVML index (-1: none), name
_LOST = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "reset_required",
    pynvml.NVML_ERROR_GPU_NOT_FOUND: "not_found",
}
# After these nothing can be asked any more: the driver was unloaded or replaced.
_GONE = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)
_MIB = 1024 * 1024
_REOPEN_S = 30.0  # NVML sees a returned GPU only after it was opened anew


class GoneError(Exception):
    """There is no NVML here (any more)."""


class Nvml:
    """Calls with their name on the board."""

    def __init__(self, board: mmap.mmap) -> None:
        self._board = board
        self._missing: set[str] = set()  # functions that this driver's library does not have

    def open(self) -> None:
        """nvmlInit; GoneError whatever it answers."""
        try:
            self.call(-1, "nvmlInit", strict=True)
        except pynvml.NVMLError as error:
            raise GoneError(str(error)) from error

    def call(self, index: int, name: str, *args: Any, allowed_s: float = 0.0, strict: bool = False) -> Any:
        """`pynvml.<name>(*args)`; None where the driver cannot, or NVMLError when `strict`.

        NVMLError for a lost GPU, GoneError for a lost driver. `allowed_s`: how long the call waits by itself.
        """
        if name in self._missing:
            return None
        started = time.monotonic_ns() + int(allowed_s * 1e9)
        BOARD.pack_into(self._board, 0, started, index, name.encode())
        try:
            return getattr(pynvml, name)(*args)
        except pynvml.NVMLError as error:
            if error.value in _GONE:
                raise GoneError(str(error)) from error
            if error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                self._missing.add(name)
            elif strict or error.value in _LOST:
                raise
            return None
        finally:
            BOARD.pack_into(self._board, 0, 0, -1, b"")


class Card:
    """One GPU as it answered last."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self.nvml, self.index = nvml, index
        self.handle: Any = None
        self.says: dict[str, Any] = {
            "index": index, "bdf": "", "uuid": "", "lost": "", "util": None, "mem": None, "power": None,
            "temp": None, "procs": [],
        }  # fmt: skip
        try:
            self.handle = nvml.call(index, "nvmlDeviceGetHandleByIndex", index)
            if self.handle is not None:
                pci = nvml.call(index, "nvmlDeviceGetPciInfo", self.handle)
                self.says["bdf"] = _text(pci.busId) if pci is not None else ""
                self.says["uuid"] = _text(nvml.call(index, "nvmlDeviceGetUUID", self.handle))
        except pynvml.NVMLError as error:
            self.says["lost"] = _LOST[error.value]

    def sample(self, slow: bool) -> None:
        """Asks again; the slow values only where `slow`."""
        if self.handle is None:
            return
        try:
            self._sample(slow)
            self.says["lost"] = ""
        except pynvml.NVMLError as error:
            self.says |= {"lost": _LOST[error.value], "util": None, "power": None, "temp": None, "procs": []}

    def _sample(self, slow: bool) -> None:
        def ask(name: str, *args: Any) -> Any:
            return self.nvml.call(self.index, name, self.handle, *args)

        rates = ask("nvmlDeviceGetUtilizationRates")
        self.says["util"] = rates.gpu if rates is not None else None
        memory = ask("nvmlDeviceGetMemoryInfo")
        self.says["mem"] = memory.used // _MIB if memory is not None else None
        if not slow:
            return
        power_mw = ask("nvmlDeviceGetPowerUsage")
        self.says["power"] = power_mw / 1000 if power_mw is not None else None
        self.says["temp"] = ask("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU)
        held = ask("nvmlDeviceGetComputeRunningProcesses_v3")
        if held is None:  # drivers before 510 have the second version only
            held = ask("nvmlDeviceGetComputeRunningProcesses_v2")
        self.says["procs"] = [[one.pid, (one.usedGpuMemory or 0) // _MIB] for one in held or ()]


class Watch:
    """All GPUs of one opening of NVML, with their events."""

    def __init__(self, nvml: Nvml) -> None:
        self.nvml = nvml
        self.opened_s = time.monotonic()
        nvml.open()
        self.count = nvml.call(-1, "nvmlDeviceGetCount") or 0
        self.cards = [Card(nvml, index) for index in range(self.count)]
        self._events = self._subscribe()

    def stale(self) -> bool:
        """Is NVML to be opened anew: is the number of GPUs another, or may a lost one have returned?"""
        count = self.nvml.call(-1, "nvmlDeviceGetCount")
        lost = any(card.says["lost"] for card in self.cards)
        return count not in (self.count, None) or (lost and time.monotonic() - self.opened_s > _REOPEN_S)

    def close(self) -> None:
        """Before NVML is opened anew."""
        if self._events is not None:
            self.nvml.call(-1, "nvmlEventSetFree", self._events)
        self.nvml.call(-1, "nvmlShutdown")

    def wait(self, until_s: float) -> None:
        """Says events until then."""
        while (left_s := until_s - time.monotonic()) > 0:
            event = None
            if self._events is not None:
                try:
                    event = self.nvml.call(
                        -1, "nvmlEventSetWait", self._events, int(left_s * 1000) + 1, allowed_s=left_s
                    )
                except pynvml.NVMLError:  # a lost GPU ends the wait at once, again and again
                    event = None
            if event is not None:
                card = self._by_address.get(_address(event.device))
                say(event=[card.says["bdf"] if card else "", event.eventType, event.eventData])
            elif (left_s := until_s - time.monotonic()) > 0:
                time.sleep(left_s)

    def _subscribe(self) -> Any:
        self._by_address = {_address(card.handle): card for card in self.cards if card.handle is not None}
        events = self.nvml.call(-1, "nvmlEventSetCreate")
        if events is None:
            return None
        for card in self._by_address.values():
            try:
                self.nvml.call(
                    card.index,
                    "nvmlDeviceRegisterEvents",
                    card.handle,
                    pynvml.nvmlEventTypeXidCriticalError,
                    events,
                )
            except pynvml.NVMLError as error:
                card.says["lost"] = _LOST[error.value]
        return events


def say(**what: Any) -> None:
    """One line to the agent. It ends this process when the agent is gone (BrokenPipeError)."""
    sys.stdout.write(json.dumps({"at": time.monotonic(), **what}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def main(board_fd: int, interval_s: float, slow_every: int) -> None:
    """See the module's docstring."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no orphan stays with the driver
    nvml = Nvml(mmap.mmap(board_fd, BOARD.size))
    try:
        watch = Watch(nvml)
        turn = 0
        while True:
            next_s = time.monotonic() + interval_s
            for card in watch.cards:
                card.sample(slow=turn % slow_every == 0)
            say(gpus=[card.says for card in watch.cards])
            turn += 1
            watch.wait(next_s)
            if watch.stale():
                watch.close()
                watch = Watch(nvml)
                turn = 0
    except GoneError as error:
        say(absent=str(error))
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # nothing to flush, and nobody to tell


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
