"""Probes between network namespaces: agents of three nodes on a switch, whose firewall drops packets by chance and whose port to
one of them can hold packets back. Source, sockets and collector are the agent's own.
"""

import array
import fcntl
import json
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.real import netns

REPO = Path(__file__).parents[2]
MISSING = netns.missing() or ("" if shutil.which("iptables") else "needs apt-get install iptables")
pytestmark = [
    pytest.mark.root,
    pytest.mark.component("network namespace"),
    pytest.mark.skipif(bool(MISSING), reason=MISSING or "-"),
]
NODES = ("a", "b", "c")
INTERVAL_S = 0.4
_ETH_ALL = 3
_SIOCETHTOOL, _SET_TX_CHECKSUMS = 0x8946, 0x17


def whole_checksums(space: netns.Namespace, name: str) -> None:
    """Packets leave the interface with their checksums, which the kernel leaves to the card else: frames that are read and sent
    on by a program would carry half of one.
    """
    value = array.array("I", (_SET_TX_CHECKSUMS, 0))
    request = struct.pack("16sP16x", name.encode(), value.buffer_info()[0])
    with space.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCETHTOOL, request)


class Cable(threading.Thread):
    """Frames between two interfaces of the switch's namespace, each held for `delay_s` and dropped by chance."""

    def __init__(self, switch: netns.Namespace, one: str, other: str) -> None:
        super().__init__(daemon=True)
        self.delay_s = 0.0
        self.lost = 0.0
        self.over = threading.Event()
        self._chance = random.Random(7)
        with switch.inside():
            self._ends = [self._end(name) for name in (one, other)]

    @staticmethod
    def _end(name: str) -> socket.socket:
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_ALL))
        end.bind((name, _ETH_ALL))
        return end

    def run(self) -> None:
        """Until `over`."""
        held: deque[tuple[float, socket.socket, bytes]] = deque()
        while not self.over.is_set():
            wait_s = max(0.0, held[0][0] - time.monotonic()) if held else 0.05
            readable, _, _ = select.select(self._ends, [], [], min(wait_s, 0.05))
            for end in readable:
                frame, (_, _, kind, *_) = end.recvfrom(65536)
                if kind != socket.PACKET_OUTGOING and self._chance.random() >= self.lost:
                    other = self._ends[1 - self._ends.index(end)]
                    held.append((time.monotonic() + self.delay_s, other, frame))
            while held and held[0][0] <= time.monotonic():
                _, other, frame = held.popleft()
                other.send(frame)
        for end in self._ends:
            end.close()


class Agent:
    """What one node's agent says."""

    def __init__(self, space: netns.Namespace, node: str, folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.real.probe_agent",
            node,
            str(folder / "hosts"),
            str(folder / "key"),
        ]
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", space.name, *command, str(INTERVAL_S)],
            cwd=REPO, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.said: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(json.loads(line))

    def events(self) -> list[tuple[Any, ...]]:
        """Kind, whether it began, and of which peers."""
        return [
            (one["kind"], one["active"], one["near_ill"], one["far_ill"], one.get("silent", ""))
            for one in list(self.said)
            if "kind" in one
        ]

    def rounds(self) -> list[dict[str, list[float]]]:
        """Peer → round trips, of each round."""
        return [one["answered"] for one in list(self.said) if "answered" in one]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(30)


def until(true: Callable[[], bool], why: Callable[[], object] = str) -> None:
    """Fails after two minutes: a window of 30 rounds is twelve seconds here, on a machine that may be busy."""
    end_s = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end_s, why()
        time.sleep(0.05)  # before it looks again, until the deadline


class Lab:
    """Three nodes: a and b behind one leaf switch, c behind another whose cable can be bad."""

    def __init__(self, folder: Path, undo: ExitStack) -> None:
        self.switch = undo.enter_context(netns.namespace())
        self.spaces = {node: undo.enter_context(netns.namespace()) for node in NODES}
        switch = self.switch
        for name in ("br1", "br2"):
            switch.ip("link", "add", name, "type", "bridge")
            switch.ip("link", "set", name, "up")
        for number, (node, space) in enumerate(self.spaces.items(), 1):
            switch.ip(
                "link", "add", f"to-{node}", "type", "veth", "peer", "name", "eth2", "netns", space.name
            )
            switch.ip("link", "set", f"to-{node}", "master", "br2" if node == "c" else "br1")
            switch.ip("link", "set", f"to-{node}", "up")
            space.ip("addr", "add", f"10.79.0.{number}/24", "dev", "eth2")
            space.ip("link", "set", "eth2", "up")
            whole_checksums(space, "eth2")
        for name, master in (("up1", "br1"), ("up2", "br2")):
            switch.ip("link", "add", name, "type", "veth", "peer", "name", f"{name}x")
            switch.ip("link", "set", name, "master", master)
            for one in (name, f"{name}x"):
                switch.ip("link", "set", one, "up")
        self.cable = Cable(switch, "up1x", "up2x")
        self.cable.start()
        undo.callback(self.cable.join, 30)
        undo.callback(self.cable.over.set)
        lines = [
            f"{node} 10.79.0.{number} leaf-{2 if node == 'c' else 1}" for number, node in enumerate(NODES, 1)
        ]
        (folder / "hosts").write_text("\n".join(lines), encoding="utf-8")
        (folder / "key").write_text("a secret of some length", encoding="utf-8")
        (folder / "key").chmod(0o600)
        self.agents = {node: Agent(space, node, folder) for node, space in self.spaces.items()}
        for agent in self.agents.values():
            undo.callback(agent.stop)

    def firewall(self, node: str, *rule: str) -> None:
        """As `iptables` of the node does."""
        command = ["ip", "netns", "exec", self.spaces[node].name, "iptables", "-w", "30", *rule]
        subprocess.run(command, check=True, capture_output=True, timeout=100)


@contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    """All of it gone at the end."""
    with ExitStack() as undo:
        yield Lab(folder, undo)


def test_loss_silence_and_delay_are_told_at_the_ends_that_see_them(tmp_path: Path) -> None:
    """Nothing while all is well; then a firewall that drops by chance, one that refuses all, a cable that holds packets back."""
    with lab(tmp_path) as made:
        a, b = made.agents["a"], made.agents["b"]
        until(lambda: len(a.rounds()) > 32 and len(b.rounds()) > 32)
        assert all(len(times) == 5 for times in a.rounds()[-10:][0].values())
        assert set(a.rounds()[-1]) == {"b", "c"}
        assert a.events() == []

        made.firewall("b", "-A", "INPUT", "-p", "udp", "-s", "10.79.0.1", "-m", "statistic", "--mode", "random",
                      "--probability", "0.25", "-j", "DROP")  # fmt: skip
        until(lambda: ("probe.loss", True, "b", "", "") in a.events(), a.events)
        found = next(one for one in a.said if one.get("kind") == "probe.loss")
        assert found["component"] == "link/eth2"
        assert 5 <= found["lost_percent"] <= 60
        assert "c: 0.0 % lost" in found["text"]
        made.firewall("b", "-F", "INPUT")
        until(lambda: a.events()[-1][:2] == ("probe.loss", False), a.events)

        made.firewall("c", "-A", "INPUT", "-p", "udp", "-s", "10.79.0.1", "-j", "REJECT")
        until(lambda: a.events()[-1] == ("probe.loss", True, "", "c", "c"), a.events)
        made.firewall("c", "-F", "INPUT")
        until(lambda: a.events()[-1][:2] == ("probe.loss", False), a.events)

        before = len(a.rounds())
        until(lambda: len(a.rounds()) > before + 30)
        made.cable.delay_s = 0.01
        until(lambda: a.events()[-1] == ("probe.slow", True, "", "c", ""), a.events)
        slow = next(one for one in a.said if one.get("kind") == "probe.slow")
        assert 20_000 <= slow["median_us"] < 150_000
        assert slow["usual_us"] < 10_000
        made.cable.delay_s = 0.0
        until(lambda: a.events()[-1][:2] == ("probe.slow", False), a.events)
