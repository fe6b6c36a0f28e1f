"""State and error counters of the InfiniBand and RoCE ports, from /sys/class/infiniband.

Files stay open and are read again in place: with nine devices a poll is some 300 reads. Traffic counters are not read.
Congestion counters are read in each tenth poll; rate and link layer then, and when the port's state has changed. The device's
own counters (`hw_counters/`, of retransmissions and refused requests) are read in each fifth poll of a port on which nothing
has changed for sixty. A port that is as it was is not emitted; when it changes, its last reading is emitted before the new one,
which is compared with it.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from agent.collectors.infiniband import CONGESTION_COUNTERS, ERROR_COUNTERS
from agent.collectors.samples import IbDevices, IbPort, Sample
from agent.config import IB_ROOT
from agent.host import Host
from agent.options import option
from agent.sources.base import Emit, Source, SourceSetup
from agent.sources.poll import Poller

_STATE_FILES = ("state", "phys_state", "lid", "sm_lid", "sm_sl")
_SLOW_POLLS = 10  # what changes slowly is read once in so many polls
_CALM_POLLS = 60  # without a change: then the device's own counters are read once in
_CALM_EVERY = 5
_FILE_BYTES = 64
_LOOKS = 3
_OF_RDMA = ("driver", "infiniband_verbs", "infiniband_mad")


@dataclass(frozen=True, slots=True, kw_only=True)
class InfinibandSourceOptions:
    """What an operator can set."""

    ib_interval_s: float = option(
        1.0, "pause between readings of InfiniBand state and counters", unit="s", least=0.05
    )


class InfinibandSource(Source):
    """Emits IbPort for every port, and IbDevices.

    `counters` names the files of `counters/` and `hw_counters/` that are read; `root` is the folder of the devices.
    """

    name: ClassVar[str] = "infiniband"
    needs: ClassVar[str] = "/sys/class/infiniband (reports no devices where it is missing)"
    options: ClassVar[tuple[type[Any], ...]] = (InfinibandSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: InfinibandSourceOptions,
        *,
        counters: frozenset[str] = ERROR_COUNTERS,
        root: str = IB_ROOT,
        hang_s: float = 30.0,
    ) -> None:
        self._host = host
        self._counters = counters
        self._root = root
        self._ports: dict[str, list[_Port]] = {}
        # Devices that are listed, and those in another namespace, as they were emitted last.
        self._devices: tuple[list[str], tuple[str, ...]] | None = None
        # Device → folder of its PCI function, of all that were ever seen.
        self._functions: dict[str, Path] = {}
        # The same → what its function had when the device was listed: see `_parts`.
        self._had: dict[str, frozenset[str]] = {}
        self._poller = Poller(
            self._poll,
            what=self.name,
            period_s=options.ib_interval_s,
            hang_s=hang_s,
            forget=self._forget,
            watching=lambda: bool(self._functions),
        )

    @classmethod
    def of(cls, setup: SourceSetup) -> Self:
        """See Source."""
        return cls(setup.host, setup.options(InfinibandSourceOptions), root=setup.config.ib_root)

    async def run(self, emit: Emit) -> None:
        """Follow the ports until cancelled."""
        await self._poller.run(emit)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self._poller.look(emit)

    async def once(self, emit: Emit) -> None:
        """The ports as they are now."""
        for sample in self._poll():
            emit(sample)
        for ports in self._ports.values():
            for port in ports:
                port.close()
        self._ports = {}

    def _poll(self) -> list[Sample]:
        names = self._host.listdir(self._root)
        for name in [name for name in self._ports if name not in names]:
            self._drop(name)
        moved = tuple(
            name for name in self._functions if name not in names and self._in_another_namespace(name)
        )
        samples: list[Sample] = []
        # How long a device is missing is counted in samples.
        if self._devices != (names, moved) or self._functions.keys() - set(names):
            self._devices = (names, moved)
            samples.append(IbDevices(names=tuple(names), moved=moved, mono_s=self._host.mono_s()))
        for name in names:
            if not self._ports.get(name):  # the ports may come a moment after their device
                self._ports[name] = self._open(name)
            try:
                for port in self._ports[name]:
                    samples.extend(port.news(self._host.mono_s()))
            except (
                OSError
            ):  # it vanished meanwhile; if it is still listed, it is opened again at the next poll
                self._drop(name)
        return samples

    def _forget(self) -> None:
        self._devices = None
        for ports in self._ports.values():
            for port in ports:
                port.forget()

    def _in_another_namespace(self, device: str) -> bool:
        """Whether a device that is not listed here still exists: all that its PCI function had beside it is there.

        A container's namespace takes the device out of our list and nothing else. A driver that gives up removes the device, and
        with it what depends on it.
        """
        had = self._had[device]
        return "driver" in had and had <= _parts(self._functions[device])

    def _open(self, device: str) -> list["_Port"]:
        function = self._functions[device] = self._host.path(f"{self._root}/{device}/device").resolve()
        self._had[device] = _parts(function)
        ports = []
        for number in self._host.listdir(f"{self._root}/{device}/ports"):
            if number.isascii() and number.isdigit():
                folder = self._host.path(f"{self._root}/{device}/ports/{number}")
                ports.append(_Port(folder, device, int(number), self._counters))
        return ports

    def _drop(self, device: str) -> None:
        for port in self._ports.pop(device):
            port.close()


class _Port:
    """Open files of one port, and what they held last."""

    def __init__(self, folder: Path, device: str, number: int, counters: frozenset[str]) -> None:
        self._folder, self._device, self._number = folder, device, number
        self._state_files = [(name, _open(folder / name)) for name in _STATE_FILES]
        # Those of the port come first, then the device's own; so many are the port's.
        self._counter_files = self._counters_in(folder / "counters", counters)
        self._first = len(self._counter_files)
        self._counter_files += self._counters_in(folder / "hw_counters", counters)
        self._slow_files = [
            (name, fd)
            for group in ("counters", "hw_counters")
            for name in sorted(CONGESTION_COUNTERS)
            if (fd := _open(folder / group / name)) >= 0
        ]
        self._model = _file(folder.parent.parent / "hca_type")
        self._polls = 0
        # Polls since anything has changed.
        self._calm = 0
        self._congestion: dict[str, int] = {}
        self._congestion_s = 0.0
        # What the files held: those of the state, and those of the counters, in their order.
        self._state_texts = [b""] * len(self._state_files)
        self._counter_texts = [b""] * len(self._counter_files)
        self._values: dict[str, int] = {}
        self._text: dict[str, str] = {}
        # The newest reading, when all of it was taken last, and whether it was emitted.
        self._last: IbPort | None = None
        self._last_s = 0.0
        self._emitted = False

    def news(self, mono_s: float) -> list[IbPort]:
        """The port now if it has changed, after the reading before if that was not emitted; OSError when it is gone."""
        before, before_s, congestion_s = self._last, self._last_s, self._congestion_s
        slow = self._polls % _SLOW_POLLS == 0
        changed, whole = self._read(mono_s, slow=slow)
        if whole:
            self._last_s = mono_s
        if not changed and before is not None:
            self._emitted = False
            return []
        now = self._last = self._port(mono_s)
        unseen = (
            []
            if before is None or self._emitted
            else [replace(before, mono_s=before_s, congestion_s=congestion_s)]
        )
        self._emitted = True
        return [*unseen, now]

    def _read(self, mono_s: float, *, slow: bool) -> tuple[bool, bool]:
        """Reads the files: has anything changed since the last time, and were all counters read?"""
        if self._state_files[0][1] < 0:
            raise OSError(f"{self._folder}/state: not there yet")
        # The port may change between two of its files: until they are as they were at the last look.
        looks, changed = 0, False
        while self._changed() and looks < _LOOKS:
            looks, changed = looks + 1, True
        if slow:
            changed = self._read_slow(mono_s) or changed
        self._polls += 1
        end = len(self._counter_files)
        whole = self._calm < _CALM_POLLS or self._polls % _CALM_EVERY == 0
        changed = self._read_counters(0, end if whole else self._first) or changed
        if changed and not whole:  # what came in the same seconds belongs together
            whole = True
            self._read_counters(self._first, end)
        self._calm = 0 if changed else self._calm + 1
        return changed, whole

    def _read_counters(self, start: int, end: int) -> bool:
        """Reads these counters; has any of them changed?"""
        values, texts, read = self._values, self._counter_texts, os.pread
        for number, (name, fd) in enumerate(self._counter_files[start:end], start):
            try:
                raw = read(fd, _FILE_BYTES, 0)
            except OSError:
                raw = b""  # a counter that the device does not provide now
            if raw != texts[number]:
                texts[number] = raw
                if values is self._values:
                    values = dict(values)  # the last sample keeps its own
                if raw.strip().isdigit():
                    values[name] = int(raw)
                else:
                    values.pop(name, None)  # "N/A (no PMA)"
        changed, self._values = values is not self._values, values
        return changed

    @staticmethod
    def _counters_in(folder: Path, wanted: frozenset[str]) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        with suppress(OSError):
            for name in sorted(path.name for path in folder.iterdir()):
                if name in wanted and (fd := _open(folder / name)) >= 0:
                    found.append((name, fd))
        return found

    def _port(self, mono_s: float) -> IbPort:
        text = self._text
        return IbPort(
            device=self._device,
            port=self._number,
            state=text.get("state", ""),
            phys_state=text.get("phys_state", ""),
            rate=text.get("rate", ""),
            lid=_number(text.get("lid", "")),
            sm_lid=_number(text.get("sm_lid", "")),
            link_layer=text.get("link_layer", ""),
            model=self._model,
            sm_sl=_number(text.get("sm_sl", "")),
            congestion=self._congestion,
            congestion_s=self._congestion_s,
            counters=self._values,
            mono_s=mono_s,
        )

    def forget(self) -> None:
        """The next reading is one of everything, and is emitted however it is."""
        self._polls = self._calm = 0
        self._last = None

    def _changed(self) -> bool:
        """Reads the files of the port's state; has any of them changed?"""
        changed, texts = False, self._state_texts
        for number, (name, fd) in enumerate(self._state_files):
            if fd >= 0:
                raw = os.pread(fd, _FILE_BYTES, 0)
                if raw != texts[number]:
                    changed = True
                    texts[number] = raw
                    self._text[name] = _text(raw)
        if changed:
            self._text["rate"] = _file(self._folder / "rate")
            self._text["link_layer"] = _file(self._folder / "link_layer")
        return changed

    def _read_slow(self, mono_s: float) -> bool:
        """Reads what changes slowly; has it changed? A port's rate can change without its state, after a retraining."""
        rate, values = _file(self._folder / "rate"), {}
        for name, fd in self._slow_files:
            with suppress(OSError):
                if (raw := os.pread(fd, _FILE_BYTES, 0).strip()).isdigit():
                    values[name] = int(raw)
        changed = rate != self._text.get("rate") or values != self._congestion
        self._text["rate"], self._congestion, self._congestion_s = rate, values, mono_s
        return changed

    def close(self) -> None:
        """Closes its files."""
        for _, fd in (*self._state_files, *self._counter_files, *self._slow_files):
            if fd >= 0:
                os.close(fd)


def _parts(function: Path) -> frozenset[str]:
    """What shows in every namespace of a PCI function that has an RDMA device: its driver, the auxiliary devices with theirs
    (`mlx5_core.rdma.0`, `ice.roce.0`, ...; not every card has any), and the device's files for programs (uverbs, umad).
    """
    parts = set()
    with suppress(OSError):
        parts = {
            path.name for path in function.iterdir() if path.name in _OF_RDMA or (path / "driver").exists()
        }
    return frozenset(parts)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _file(path: Path) -> str:
    try:
        return _text(path.read_bytes())
    except OSError:
        return ""


def _text(raw: bytes) -> str:
    """`4: ACTIVE` → `ACTIVE`."""
    text = raw.decode(errors="replace").strip()
    number, colon, name = text.partition(": ")
    return name.strip() if colon and number.isdigit() else text


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0
