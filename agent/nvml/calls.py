"""Calls of NVML in the child: each is on the board before it is made, and what came of it is remembered (agent/nvml/child.py)."""

from __future__ import annotations

import ctypes
import mmap
import time

import pynvml

from agent.nvml.wire import BOARD, LOOK

TYPE_CHECKING = False  # typing itself would cost 0.6 MB
if TYPE_CHECKING:
    from typing import Any

LOST = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "reset_required",
    pynvml.NVML_ERROR_GPU_NOT_FOUND: "not_found",
}
# After these a call that is supported did not work. After any other code it is not supported, unless it worked before. A GPU
# of which nothing works for MUTE samples is lost; it is back when more of all that it is asked works than fails. One that
# never answered anything may support nothing: nothing is claimed of it.
_FAILED = (
    pynvml.NVML_ERROR_UNKNOWN,
    pynvml.NVML_ERROR_TIMEOUT,
    pynvml.NVML_ERROR_IRQ_ISSUE,
    pynvml.NVML_ERROR_OPERATING_SYSTEM,
    pynvml.NVML_ERROR_INSUFFICIENT_POWER,
)
# After these no call works any more: the driver was unloaded or replaced.
_GONE = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)
_LIBRARY = "libnvidia-ml.so.1"


class GoneError(Exception):
    """There is no NVML here, or no longer."""

    def __init__(self, error: pynvml.NVMLError) -> None:
        super().__init__(_why_absent(error))
        self.code: int = error.value


class Nvml:
    """Calls into the library, each announced on the board."""

    def __init__(
        self,
        board: mmap.mmap,
        skips: list[tuple[int, str, float]] | None = None,
        answered: list[str] | None = None,
        *,
        clocks: bool = False,
    ) -> None:
        """`skips`: calls that are not made for a while: NVML index, name, seconds. `answered`: addresses, as NVML writes them,
        of GPUs that have answered something; `clocks`: their SM clock and model are asked for.
        """
        now_s = time.monotonic()
        self.skips = {(index, name): now_s + for_s for index, name, for_s in skips or ()}
        self.board = board
        self.clocks = clocks
        self.answered = set(answered or ())
        self.shown: set[str] = set()  # those that are found since NVML was opened
        # Calls about a GPU, see `watch`.
        self.asked: set[str] = set()
        self.worked: set[str] = set()
        self.failed: set[str] = set()
        self.lost_by: set[str] = set()

    def watch(self) -> None:
        """From now on `asked`, `worked` and `failed` have the calls about a GPU that were made and did, and `lost_by` those that
        answered that it is lost. What is not supported is in `asked` alone.
        """
        self.asked, self.worked, self.failed, self.lost_by = set(), set(), set(), set()

    def note(self, name: str, error: int) -> None:
        """That call, or a field of it, did not work."""
        if error in LOST:
            self.lost_by.add(name)
        elif error in _FAILED:
            self.failed.add(name)

    def look(self) -> int:
        """The number of the latest look that the agent has asked for."""
        number: int = LOOK.unpack_from(self.board, BOARD.size)[0]
        return number

    def open(self) -> None:
        """nvmlInit; any error of it is a GoneError."""
        self.shown = set()
        try:
            self.call(-1, "nvmlInit", strict=True)
        except pynvml.NVMLError as error:
            raise GoneError(error) from error

    def call(self, index: int, name: str, *args: Any, allowed_s: float = 0.0, strict: bool = False) -> Any:
        """`pynvml.<name>(*args)`; None where the driver does not support it, or NVMLError when `strict`.

        NVMLError for a lost GPU, GoneError for a lost driver. `allowed_s`: how long the call may wait by design.
        """
        if self.skips and self._skipped(index, name):
            return None
        started = time.monotonic_ns() + int(allowed_s * 1e9)
        BOARD.pack_into(self.board, 0, started, index, name.encode())
        if index >= 0:
            self.asked.add(name)
        try:
            answer = getattr(pynvml, name)(*args)
            if index >= 0:
                self.worked.add(name)
            return answer
        except pynvml.NVMLError as error:
            if error.value in _GONE:
                raise GoneError(error) from error
            self.note(name, error.value)
            unknown = (
                error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
            )  # an older driver's library; some GPUs say so as well
            if error.value in LOST or (strict and not unknown):
                raise
            return None
        finally:
            BOARD.pack_into(self.board, 0, 0, -1, b"")

    def _skipped(self, index: int, name: str) -> bool:
        until_s = self.skips.get((index, name))
        if until_s is None or time.monotonic() < until_s:
            return until_s is not None
        del self.skips[index, name]  # it is tried again; if it hangs again, the agent notices
        return False


def address_of(handle: Any) -> int | None:
    """The pointer of a handle; None: it is null."""
    return ctypes.cast(handle, ctypes.c_void_p).value


def _why_absent(error: pynvml.NVMLError) -> str:
    """NVML's word. pynvml takes a library that cannot be loaded for one that is not there: of that one, the loader's word."""
    if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        try:
            ctypes.CDLL(_LIBRARY)
        except OSError as broken:
            if not str(broken).startswith(f"{_LIBRARY}: cannot open shared object file: No such file"):
                return f"{_LIBRARY} is there and cannot be loaded: {broken}"
    return str(error)
