"""What NVIDIA's DCGM says of the GPUs' health, where the site has it watch them: `dcgmi health -c -j` of each group.

dcgmi asks DCGM's host engine, which looks at what it has sampled in the last minute: asking changes nothing there, and takes
nothing from others who ask. What DCGM watches is the site's to say (`dcgmi health -s`, for a group; a program that does so for a
group of its own, such as dcgm-exporter, does it for that one only): gpuward sets it where `dcgm_set_watches` says so, and only
for a group that has no watches. A dcgmi that does not end within its deadline is killed, and asked again in the next turn.

GPUs have numbers of DCGM's own, so that `dcgmi discovery -l` is asked where they are, whenever something new is wrong.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from agent.collectors.samples_node import DcgmFinding, DcgmHealth
from agent.contract.errors import Refused
from agent.host import Host
from agent.options import at_most, option
from agent.shared import tool
from agent.shared.rhythm import pause
from agent.sources.base import Emit, Source, SourceSetup

if TYPE_CHECKING:
    from agent.shared.dcgmi import DcgmIncident

RECORDED = "/recorded"  # of a recorded machine: what dcgmi printed, a file each
_DEADLINE_S = 15.0
_MOST_BYTES = 512 * 1024
# Trouble is told once it has lasted so long: a reset of a GPU stops DCGM, and at a boot it starts after the agent.
_PATIENCE_S = 300.0
_OLDEST = 3
_GROUP = re.compile(r"[0-9a-z][0-9a-z_]{0,31}")
_HOST = re.compile(r"[A-Za-z0-9_.:/\[\]-]{0,200}")
# Arguments → what dcgmi printed; OSError: it did not end, or cannot be started.
Ask = Callable[[Sequence[str]], Awaitable[str]]


def _groups(key: str, values: tuple[str, ...]) -> str:
    wrong = next((one for one in values if not _GROUP.fullmatch(one)), None)
    if wrong is None:
        return "" if values else f"{key} must name a group, such as g"
    return f"{key} must be groups of DCGM, such as g (all GPUs), s (all NVSwitches) or 5, not {wrong!r}"


def _engine(key: str, value: str) -> str:
    fine = _HOST.fullmatch(value) and not value.startswith("-")
    return "" if fine else f"{key} must be an address or unix:///path, not {value!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DcgmSourceOptions:
    """What an operator can set."""

    dcgm_interval_s: float = option(
        0.0,
        "pause between questions to DCGM's health check (dcgmi health -c), e.g. 30; 0: it is not asked",
        unit="s",
        least=0,
        check=at_most(60),  # DCGM looks at its last minute
    )
    dcgm_groups: tuple[str, ...] = option(
        ("g",),
        "groups of DCGM that are asked about: g is all GPUs, s all NVSwitches, a number one of the site's own",
        check=_groups,
    )
    dcgm_host: str = option(
        "",
        "where DCGM's host engine is, as for dcgmi --host; empty: on this machine",
        example="localhost:5555",
        check=_engine,
    )
    dcgm_set_watches: bool = option(
        False, "a group without health watches gets all of them (dcgmi health -s a); false: it is told"
    )


class DcgmSource(Source):
    """Emits DcgmHealth in each turn in which DCGM answers for every group."""

    name: ClassVar[str] = "dcgm"
    needs: ClassVar[str] = (
        "dcgm_interval_s, dcgmi of DCGM 3 or newer, its host engine (nvidia-dcgm.service), and health watches that the site "
        "has set"
    )
    options: ClassVar[tuple[type[Any], ...]] = (DcgmSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: DcgmSourceOptions,
        *,
        dcgmi: str,
        ask: Ask | None = None,
        deadline_s: float = _DEADLINE_S,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """`dcgmi`: its path. For tests: `ask`, `deadline_s`, `patience_s`."""
        # What knows DCGM's words is loaded where it is asked for: the agent's memory is a promise.
        from agent.shared import dcgmi as words

        self._words = words
        self._host, self._options, self._dcgmi = host, options, dcgmi
        self._ask = ask or (self._run if host.live else self._recorded)
        self._deadline_s, self._patience_s = deadline_s, patience_s
        self._turn = asyncio.Lock()
        # Its version was looked at since it answered last.
        self._known = False
        # Number in DCGM → address, and the GPUs that had something when it was asked for.
        self._addresses: dict[int, str] = {}
        self._located: frozenset[int] = frozenset()
        self._since_s: float | None = None

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where it is not asked for."""
        options = setup.options(DcgmSourceOptions)
        return cls(setup.host, options, dcgmi=setup.config.dcgmi) if options.dcgm_interval_s else None

    async def run(self, emit: Emit) -> None:
        """Ask until cancelled. OSError when DCGM could not be asked for `patience_s`."""
        while True:
            why = await self.turn(emit)
            if why and self._host.mono_s() - (self._since_s or 0.0) >= self._patience_s:
                raise OSError(why)
            await pause(self._options.dcgm_interval_s)

    async def look(self, emit: Emit) -> None:
        """See Source."""
        await self.once(emit)

    async def once(self, emit: Emit) -> None:
        """What it says now. OSError when it cannot be asked."""
        if why := await self.turn(emit):
            raise OSError(why)

    async def turn(self, emit: Emit) -> str:
        """One round. Why DCGM could not be asked; empty: it was."""
        async with self._turn:
            try:
                found = await self._checked()
            except OSError as error:
                # Its engine may be another one the next time, with other numbers.
                self._known, self._located, self._addresses = False, frozenset(), {}
                if self._since_s is None:
                    self._since_s = self._host.mono_s()
                return str(error)
            self._since_s = None
            emit(DcgmHealth(findings=tuple(found), mono_s=self._host.mono_s()))
            return ""

    async def _checked(self) -> list[DcgmFinding]:
        if not self._known:
            version = self._words.major(await self._ask(("-v",)))
            if 0 < version < _OLDEST:
                raise OSError(f"this is DCGM {version}: dcgm_interval_s needs {_OLDEST} or newer; upgrade it")
            self._known = True
        incidents = [one for group in self._options.dcgm_groups for one in await self._of_group(group)]
        incidents = [one for one in incidents if not one.error.ordinary]
        await self._locate(frozenset(one.gpu for one in incidents if one.gpu is not None))
        return [
            DcgmFinding(
                bdf="" if one.gpu is None else self._addresses.get(one.gpu, ""),
                entity=one.entity,
                system=one.system,
                failed=one.failed,
                code=one.error.code,
                name=one.error.name,
                told_by=one.error.told_by,
                xid=one.error.xid,
                message=one.message,
            )
            for one in incidents
        ]

    async def _of_group(self, group: str) -> "Sequence[DcgmIncident]":
        state = self._words.DcgmState
        answer = self._words.health(await self._ask(("health", *self._where(), "-g", group, "-c", "-j")))
        if answer.state is state.NO_WATCHES and self._options.dcgm_set_watches:
            await self._ask(("health", *self._where(), "-g", group, "-s", "a"))
            answer = self._words.health(await self._ask(("health", *self._where(), "-g", group, "-c", "-j")))
        if answer.state is state.READ:
            return answer.incidents
        todo = {
            state.NO_WATCHES: f"DCGM has no health watches for its group {group}: set them (dcgmi health -g {group} -s a), or "
            "let the agent (dcgm_set_watches = true)",
            state.NO_ENGINE: "DCGM's host engine does not answer: start nvidia-dcgm.service, or say in dcgm_host where it is",
            state.NO_GROUP: f"DCGM has no group {group}: dcgmi group -l lists them; correct dcgm_groups",
        }
        raise OSError(todo.get(answer.state, f"dcgmi health gave no answer that gpuward knows: {answer.why}"))

    async def _locate(self, numbers: frozenset[int]) -> None:
        """Where these GPUs are, asked again when others have something than before: DCGM numbers them at its start."""
        if numbers and (numbers != self._located or not numbers <= self._addresses.keys()):
            self._addresses = self._words.gpus(await self._ask(("discovery", *self._where(), "-l")))
        self._located = numbers

    def _where(self) -> tuple[str, ...]:
        return ("--host", self._options.dcgm_host) if self._options.dcgm_host else ()

    async def _recorded(self, args: Sequence[str]) -> str:
        return self._host.read(f"{RECORDED}/dcgmi {' '.join(args)}")

    async def _run(self, args: Sequence[str]) -> str:
        try:
            ran = await tool.run((self._dcgmi, *args), deadline_s=self._deadline_s, max_bytes=_MOST_BYTES)
        except tool.Late as error:
            raise OSError(
                f"dcgmi {args[0]} did not end within {self._deadline_s:g} s: look at nvidia-dcgm.service"
            ) from error
        except Refused as error:
            raise OSError(f"{error}; install DCGM, say where dcgmi is, or set dcgm_interval_s = 0") from error
        return ran.out if ran.out.strip() else ran.err
