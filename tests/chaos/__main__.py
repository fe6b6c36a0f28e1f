"""Chaos on a cell of real processes: `python -m tests.chaos --seed 1 --minutes 10` (as root: the broker's disk is filled).

The same seed gives the same troubles in the same order; when exactly they meet which step is the machine's. Exit 1 when a law
was broken; the folder with all logs is then kept and named.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brain.leader.leader_watch import DISCONNECTED, NOBODY_LEADS
from simulations.drills import DRILLS
from tests.chaos import verdict
from tests.chaos.cell import BRAINS, LIAR, Cell
from tests.chaos.faults import FAULTS, LONG_S, Doing, Fault
from tests.chaos.verdict import Injected, Look

NODES = 16
LOOK_S = 0.25
BACK_WITHIN_S = 60.0  # after a trouble a brain leads again
CALM_LOOKS = (
    15  # one after the other, 2 s apart: a node that was just restarted may be told of a moment later
)
SETTLED_WITHIN_S = 420.0  # the longest ladders, one after the other on a node
CAUSES = (DISCONNECTED, NOBODY_LEADS)
SLOW = ("driver-hung", "ib-congested", "memory-error")  # their rules wait for minutes


@dataclass(slots=True, kw_only=True)
class Report:
    """What was done, and what is wrong."""

    faults: list[str] = field(default_factory=list)
    injected: list[Injected] = field(default_factory=list)
    refused: int = 0  # drills that could not be begun
    wrong: list[str] = field(default_factory=list)


class Watch:
    """Asks each brain all the time whether it leads, in threads."""

    def __init__(self, cell: Cell) -> None:
        self.looks: list[Look] = []
        self._cell = cell
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._look, args=(name,), daemon=True) for name in BRAINS]

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends."""
        self._over.set()
        for thread in self._threads:
            thread.join(10)

    def _look(self, name: str) -> None:
        while not self._over.wait(LOOK_S):
            at = time.monotonic()
            leads = bool(self._cell.status(name).get("leads"))
            self.looks.append(Look(at=at, brain=name, leads=leads))


class Run:
    """One chaos run."""

    def __init__(self, cell: Cell, rng: random.Random, seconds: float, only: Sequence[str]) -> None:
        self.cell = cell
        self.rng = rng
        self.seconds = seconds
        self.report = Report()
        self.faults = [fault for fault in FAULTS if not only or fault.do.__name__ in only]
        self._long = False  # a long time without a leader was there

    def go(self) -> Report:
        """Troubles until the time is over, then the verdict."""
        watch = Watch(self.cell)
        watch.start()
        over = time.monotonic() + self.seconds
        deck: list[Fault] = []
        while time.monotonic() < over:
            if not deck:
                deck = self.rng.sample(self.faults, len(self.faults))
            self._trouble(deck.pop())
        self._settle()
        watch.stop()
        self._judge(watch.looks)
        return self.report

    def _trouble(self, fault: Fault) -> None:
        for _ in range(self.rng.choice([1, 1, 2])):
            self._inject()
        time.sleep(self.rng.uniform(0, 4))
        lasts_s = self.rng.uniform(fault.least_s, fault.most_s)
        if fault.leaderless and not self._long:
            lasts_s, self._long = LONG_S, True
        doing = Doing(cell=self.cell, rng=self.rng, lasts_s=lasts_s)
        began = time.monotonic()
        fault.do(doing)
        line = f"{began - self.cell.began:6.1f} s  {fault.name} for {time.monotonic() - began:.1f} s"
        self._say("; ".join([line, *doing.said]))
        self.report.faults.append(fault.name)
        back = time.monotonic() + BACK_WITHIN_S
        while not self.cell.leader():
            if time.monotonic() > back:
                self.report.wrong.append(f"nobody leads {BACK_WITHIN_S:.0f} s after: {fault.name}")
                return
            time.sleep(0.3)
        time.sleep(self.rng.uniform(0.5, 4))

    def _inject(self) -> None:
        drills = [
            name
            for name, drill in DRILLS.items()
            if drill.nodes == "one" and drill.breaks and not drill.approval and name not in SLOW
        ]
        drill, node = self.rng.choice(drills), self.rng.choice(self.cell.nodes)
        why = self.cell.inject(drill, node)
        if why:
            self.report.refused += 1
            return
        at, passes = time.monotonic() - self.cell.began, DRILLS[drill].ends.startswith("by itself")
        self.report.injected.append(Injected(drill=drill, node=node, at=at, passes=passes))

    def _settle(self) -> None:
        deadline, calm = time.monotonic() + SETTLED_WITHIN_S, 0
        while calm < CALM_LOOKS and time.monotonic() < deadline:
            time.sleep(2)
            leader = self.cell.leader()
            calm = calm + 1 if leader and not self._open(leader) else 0

    def _open(self, leader: str) -> list[str]:
        """What is neither decided nor told yet."""
        incidents = self._incidents(leader)
        return verdict.undecided(self.report.injected, incidents, self._runs(leader)) or verdict.pages_lost(
            self._told(leader, incidents), list(self.cell.outside.pages)
        )

    def _runs(self, brain: str) -> Callable[[str], list[dict[str, Any]]]:
        """The runs of an incident, oldest first."""
        return lambda incident: self.cell.get(brain, f"/api/v1/explain/{incident}").get("runs", [])

    def _told(self, brain: str, incidents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The pages of all incidents."""
        return [
            page
            for incident in incidents
            for page in self.cell.get(brain, f"/api/v1/explain/{incident['id']}").get("pages", [])
        ]

    def _incidents(self, brain: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cell.get(brain, "/api/v1/incidents?all=1").get("incidents", [])
        return found

    def _judge(self, looks: Sequence[Look]) -> None:
        cell, report, wrong = self.cell, self.report, self.report.wrong
        leader = cell.leader()
        incidents = self._incidents(leader or BRAINS[0])
        received = list(cell.outside.pages)
        told = self._told(leader or BRAINS[0], incidents)
        nobody = verdict.windows(looks, BRAINS)
        record = cell.record.read_text().splitlines()
        wrong += verdict.steps_twice(record)
        wrong += verdict.undecided(report.injected, incidents, self._runs(leader or BRAINS[0]))
        wrong += verdict.pages_lost(told, received)
        wrong += verdict.pages_doubled(received)
        wrong += verdict.in_the_dark(nobody, received, [at for at, _ in cell.outside.calls], CAUSES)
        other = next(name for name in BRAINS if name != leader)
        agree = time.monotonic() + 30
        while (found := verdict.differ(self._incidents(leader or BRAINS[0]), self._incidents(other))) and (
            time.monotonic() < agree
        ):
            time.sleep(1)
        wrong += found
        if any(name in ("lie", "flood") for name in report.faults):
            about = [one for one in incidents if one["node"] == LIAR]
            self._say(
                f"about the node with the stolen credential: {', '.join(one['cause'] for one in about) or 'nothing'}"
            )
        long = [window for window in nobody if window.lasted_s > verdict.TOLD_WITHIN_S]
        for line in (
            f"{len(report.faults)} troubles of {len(set(report.faults))} kinds; {len(report.injected)} faults injected, "
            f"{report.refused} times nobody was there to begin one",
            f"{len(incidents)} incidents; {len(record)} steps performed, none twice"
            if not verdict.steps_twice(record)
            else f"{len(record)} steps performed",
            f"{len(received)} pages received, {verdict.repeated(received)} of them again with the same id; "
            f"{len(told)} about incidents were sent, alone or with others",
            f"nobody led {len(nobody)} times, {sum(window.lasted_s for window in nobody):.0f} s in all, the longest "
            f"{max((window.lasted_s for window in nobody), default=0):.1f} s; {len(long)} times longer than "
            f"{verdict.TOLD_WITHIN_S:.0f} s",
        ):
            self._say(line)

    def _say(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def main() -> int:
    """Entry point; 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long new trouble comes")
    parser.add_argument("--only", nargs="*", default=[], help="names of functions in tests/chaos/faults.py")
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.stderr.write("make chaos: needs root, as it fills a file system of its own\n")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="gpuward-chaos-"))
    cell = Cell(folder, NODES)
    report = Report(wrong=["it did not come to an end"])
    try:
        cell.start()
        report = Run(cell, random.Random(given.seed), given.minutes * 60, given.only).go()
    finally:
        cell.end()
        if not report.wrong:
            shutil.rmtree(folder)
    for line in report.wrong:
        sys.stdout.write(f"WRONG: {line}\n")
    sys.stdout.write(f"seed {given.seed}: {'nothing wrong' if not report.wrong else f'see {folder}'}\n")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
