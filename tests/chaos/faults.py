"""What is done to the cell: one function for each trouble. Each begins it, waits its time, and ends it."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.chaos.cell import BRAINS, LIAR, ROOT, Cell

BALLAST = "ballast"
HEALTH_S = 90.0  # its pause after a restart, and some more
KEPT = ("signing", "tokens", "lock")  # names of files that are no state
FLOODS = ("flood-event", "flood-beat", "flood-answer", "flood-evidence")
LIES = ("replies", "headers", "elsewhere", "foreign")


@dataclass(slots=True, kw_only=True)
class Doing:
    """One trouble under way."""

    cell: Cell
    rng: random.Random
    lasts_s: float
    # What was found out on the way, for the report.
    said: list[str] = field(default_factory=list)

    def wait(self) -> None:
        """Its time."""
        time.sleep(self.lasts_s)

    def leader(self) -> str:
        """The leading brain, or any."""
        return self.cell.leader() or self.rng.choice(BRAINS)


def leader_killed(doing: Doing) -> None:
    """SIGKILL; it is started again after a while, as a service manager does."""
    name = doing.leader()
    doing.cell.parts[name].kill()
    doing.wait()
    doing.cell.parts[name].start()


def standby_killed(doing: Doing) -> None:
    """The same for the other one."""
    name = next(one for one in BRAINS if one != doing.leader())
    doing.cell.parts[name].kill()
    doing.wait()
    doing.cell.parts[name].start()


def leader_stopped(doing: Doing) -> None:
    """SIGSTOP: it goes on later, with a lease that it no longer has."""
    part = doing.cell.parts[doing.leader()]
    part.send(signal.SIGSTOP)
    doing.wait()
    part.send(signal.SIGCONT)


def both_killed(doing: Doing) -> None:
    """Nobody leads."""
    for name in BRAINS:
        doing.cell.parts[name].kill()
    doing.wait()
    for name in BRAINS:
        doing.cell.parts[name].start()


def both_stopped(doing: Doing) -> None:
    """Nobody leads, and two brains wake up that both may think they do."""
    for name in BRAINS:
        doing.cell.parts[name].send(signal.SIGSTOP)
    doing.wait()
    for name in BRAINS:
        doing.cell.parts[name].send(signal.SIGCONT)


def fleet_killed(doing: Doing) -> None:
    """The agents of all nodes die while they act."""
    doing.cell.parts["fleet"].kill()
    doing.wait()
    doing.cell.parts["fleet"].start()


def fleet_stopped(doing: Doing) -> None:
    """All agents hang."""
    doing.cell.parts["fleet"].send(signal.SIGSTOP)
    doing.wait()
    doing.cell.parts["fleet"].send(signal.SIGCONT)


def broker_killed(doing: Doing) -> None:
    """SIGKILL, and started again."""
    doing.cell.broker.kill()
    doing.wait()
    doing.cell.broker.start()


def broker_stopped(doing: Doing) -> None:
    """It hangs with open connections."""
    doing.cell.broker.pause()
    doing.wait()
    doing.cell.broker.resume()


def leader_cut_off(doing: Doing) -> None:
    """The network between the leader and the broker loses everything, or breaks its connections."""
    _cut(doing, doing.leader())


def fleet_cut_off(doing: Doing) -> None:
    """The same between all nodes and the broker."""
    _cut(doing, "fleet")


def _cut(doing: Doing, name: str) -> None:
    proxy = doing.cell.proxies[name]
    doing.rng.choice([proxy.hold, proxy.sever])()
    doing.wait()
    proxy.heal()


def disk_full(doing: Doing) -> None:
    """The broker's file system has no byte left. It stores nothing afterwards until deploy/nats/health.sh ends it."""
    broker, ballast = doing.cell.broker, doing.cell.folder / "nats" / BALLAST
    with suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
    doing.wait()
    ballast.unlink()
    deadline = time.monotonic() + HEALTH_S
    while not (broker.died or broker.well) and time.monotonic() < deadline:
        time.sleep(0.3)
    if broker.died:
        doing.said.append("the broker was started again")
        broker.kill()
        broker.start()


def clock_stepped(doing: Doing) -> None:
    """A brain's wall clock jumps, forwards or back, and back again."""
    name = doing.rng.choice(BRAINS)
    step_s = doing.rng.choice([-86_400, -3600, -60, 60, 3600, 86_400])
    doing.said.append(f"brain {name}: {step_s:+d} s")
    doing.cell.set_clock(name, step_s)
    doing.wait()
    doing.cell.set_clock(name, 0)


def journals_torn(doing: Doing) -> None:
    """A power cut while agents wrote: the last lines of their journals are half there."""
    doing.cell.parts["fleet"].kill()
    for path in sorted((doing.cell.folder / "fleet").rglob("*.journal")):
        if doing.rng.random() < 0.5:
            with path.open("ab") as file:
                file.write(b'{"accepted": {"id": "inc-torn.r1.s1.a1", "action": "no')
    doing.wait()
    doing.cell.parts["fleet"].start()


def brain_files_torn(doing: Doing) -> None:
    """A brain dies, and its files have lost their ends."""
    name = doing.leader()
    doing.cell.parts[name].kill()
    files = [
        path
        for path in sorted((doing.cell.folder / f"brain-{name}").rglob("*"))
        if path.is_file() and path.stat().st_size and not any(kept in path.name for kept in KEPT)
    ]
    for path in doing.rng.sample(files, min(len(files), 3)):
        size = path.stat().st_size
        left = max(0, size - doing.rng.choice([1, 7, 100, 4096, size]))
        doing.said.append(f"{path.name}: {size} → {left} bytes")
        with path.open("ab") as file:
            file.truncate(left)
    doing.wait()
    doing.cell.parts[name].start()


def channel_broken(doing: Doing) -> None:
    """Whoever takes the pages answers 503."""
    doing.cell.outside.broken = True
    doing.wait()
    doing.cell.outside.broken = False
    doing.said.append(f"{doing.cell.outside.refused} pages refused so far")


def flood(doing: Doing) -> None:
    """One node with a stolen credential sends as fast as it can."""
    _attack(doing, doing.rng.choice(FLOODS), f"{doing.lasts_s:.0f}")


def lie(doing: Doing) -> None:
    """One node says what only others may say: results of their steps, answers to whom it should not, other subjects."""
    attack = doing.rng.choice(LIES)
    steps = doing.cell.record.read_text().split() if doing.cell.record.exists() else []
    newest = [word for word in steps if ".s" in word and ".a" in word]
    _attack(doing, attack, newest[-1] if newest else "inc-1.r1.s1.a1")
    doing.wait()


def _attack(doing: Doing, attack: str, more: str) -> None:
    url = doing.cell.broker.node_url(LIAR)
    argv = [sys.executable, "-m", "tests.security.attacker", url, "", LIAR, "default", attack, more]
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    except subprocess.SubprocessError as error:
        doing.said.append(f"{attack}: {type(error).__name__}")
        return
    found = json.loads(done.stdout)
    doing.said.append(f"{attack}: tried {found['tried']:,}, refused by the server {found['refused']:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One trouble of the table."""

    do: Callable[[Doing], None]
    # How long it may last, in seconds.
    least_s: float
    most_s: float
    # Nobody leads meanwhile, so it may last longer than people may be left in the dark.
    leaderless: bool = False

    @property
    def name(self) -> str:
        """For people."""
        return self.do.__name__.replace("_", " ")


LONG_S = 22.0  # longer than the 15 s within which somebody must be told
FAULTS = (
    Fault(do=leader_killed, least_s=2, most_s=8),
    Fault(do=standby_killed, least_s=2, most_s=6),
    Fault(do=leader_stopped, least_s=1, most_s=12),
    Fault(do=both_killed, least_s=2, most_s=LONG_S, leaderless=True),
    Fault(do=both_stopped, least_s=2, most_s=LONG_S, leaderless=True),
    Fault(do=fleet_killed, least_s=1, most_s=8),
    Fault(do=fleet_stopped, least_s=1, most_s=10),
    Fault(do=broker_killed, least_s=1, most_s=LONG_S, leaderless=True),
    Fault(do=broker_stopped, least_s=1, most_s=LONG_S, leaderless=True),
    Fault(do=leader_cut_off, least_s=2, most_s=15),
    Fault(do=fleet_cut_off, least_s=2, most_s=12),
    Fault(do=disk_full, least_s=3, most_s=LONG_S, leaderless=True),
    Fault(do=journals_torn, least_s=1, most_s=4),
    Fault(do=brain_files_torn, least_s=1, most_s=4),
    Fault(do=channel_broken, least_s=3, most_s=12),
    Fault(do=flood, least_s=2, most_s=6),
    Fault(do=lie, least_s=1, most_s=3),
    Fault(do=clock_stepped, least_s=4, most_s=12),
)
