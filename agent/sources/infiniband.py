"""State and error counters of the InfiniBand and RoCE ports, from /sys/class/infiniband.

Files stay open and are read again in place: with nine devices a poll is some 250 reads. Traffic counters are not read.
Congestion counters are read in each tenth poll; rate and link layer then, and when the port's state has changed. A port that is
as it was is not emitted; when it changes, its last reading is emitted before the new one, which is compared with it.
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
_FILE_BYTES = 64
_LOOKS = 3


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
        self._poller = Poller(
            self._poll, what=self.name, period_s=options.ib_interval_s, hang_s=hang_s, forget=self._forget
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
        moved = tuple(name for name in self._functions if name not in names and self._has_driver(name))
        samples: list[Sample] = []
        # How long a device is missing is counted in samples.
        if self._devices != (names, moved) or self._functions.keys() - set(names):
            self._devices = (names, moved)
            samples.append(IbDevices(names=tuple(names), moved=moved, mono_s=self._host.mono_s()))
        for name in names:
            if name not in self._ports:
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

    def _has_driver(self, device: str) -> bool:
        """Whether the device's driver has it, although it is not listed: the RDMA parts of a PCI function (auxiliary
        devices such as mlx5_core.rdma.0, shown in every namespace) are bound as long as it has an InfiniBand device.
        """
        function = self._functions[device]
        with suppress(OSError):
            return any((part / "driver").exists() for part in function.glob("*.rdma.*"))
        return False

    def _open(self, device: str) -> list["_Port"]:
        self._functions[device] = self._host.path(f"{self._root}/{device}/device").resolve()
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
        self._counter_files: list[tuple[str, int]] = []
        for group in ("counters", "hw_counters"):
            with suppress(OSError):
                for name in sorted(path.name for path in (folder / group).iterdir()):
                    if name in counters and (fd := _open(folder / group / name)) >= 0:
                        self._counter_files.append((name, fd))
        self._slow_files = [
            (name, fd)
            for group in ("counters", "hw_counters")
            for name in sorted(CONGESTION_COUNTERS)
            if (fd := _open(folder / group / name)) >= 0
        ]
        self._model = _file(folder.parent.parent / "hca_type")
        self._polls = 0
        self._congestion: dict[str, int] = {}
        self._congestion_s = 0.0
        self._raw: dict[str, bytes] = {}
        self._values: dict[str, int] = {}
        self._text: dict[str, str] = {}
        # The newest reading, and whether it was emitted.
        self._last: IbPort | None = None
        self._emitted = False

    def news(self, mono_s: float) -> list[IbPort]:
        """The port now if it has changed, after the reading before if that was not emitted; OSError when it is gone."""
        before, now = self._last, self._read(mono_s)
        self._last = now
        same = replace(now, mono_s=0.0, congestion_s=0.0)
        if before is not None and same == replace(before, mono_s=0.0, congestion_s=0.0):
            self._emitted = False
            return []
        unseen = [] if before is None or self._emitted else [before]
        self._emitted = True
        return [*unseen, now]

    def _read(self, mono_s: float) -> IbPort:
        if self._state_files[0][1] < 0:
            raise OSError(f"{self._folder}/state: not there yet")
        # The port may change between two of its files: until they are as they were at the last look.
        looks = 0
        while self._changed() and looks < _LOOKS:
            looks += 1
        if self._polls % _SLOW_POLLS == 0:
            self._read_slow(mono_s)
        self._polls += 1
        values = self._values
        for name, fd in self._counter_files:
            try:
                raw = os.pread(fd, _FILE_BYTES, 0)
            except OSError:
                raw = b""  # a counter that the device does not provide now
            if raw != self._raw.get(name):
                self._raw[name] = raw
                if values is self._values:
                    values = dict(values)  # the last sample keeps its own
                if raw.strip().isdigit():
                    values[name] = int(raw)
                else:
                    values.pop(name, None)  # "N/A (no PMA)"
        self._values = values
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
            counters=values,
            mono_s=mono_s,
        )

    def forget(self) -> None:
        """The next reading is also one of what changes slowly, and is emitted however it is."""
        self._polls = 0
        self._last = None

    def _changed(self) -> bool:
        """Reads the files of the port's state; has any of them changed?"""
        changed = False
        for name, fd in self._state_files:
            if fd >= 0:
                raw = os.pread(fd, _FILE_BYTES, 0)
                if raw != self._raw.get(name):
                    changed = True
                    self._raw[name] = raw
                    self._text[name] = _text(raw)
        if changed:
            self._text["rate"] = _file(self._folder / "rate")
            self._text["link_layer"] = _file(self._folder / "link_layer")
        return changed

    def _read_slow(self, mono_s: float) -> None:
        """Reads what changes slowly. A port's rate can change without its state, after a retraining."""
        self._text["rate"] = _file(self._folder / "rate")
        values = {}
        for name, fd in self._slow_files:
            with suppress(OSError):
                if (raw := os.pread(fd, _FILE_BYTES, 0).strip()).isdigit():
                    values[name] = int(raw)
        self._congestion, self._congestion_s = values, mono_s

    def close(self) -> None:
        """Closes its files."""
        for _, fd in (*self._state_files, *self._counter_files, *self._slow_files):
            if fd >= 0:
                os.close(fd)


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
