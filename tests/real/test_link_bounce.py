"""link.bounce on real interfaces, in a network namespace of the test's own."""

import itertools
import json
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import netns

pytestmark = [
    pytest.mark.root,
    pytest.mark.component("network namespace"),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "-"),
]

REPO = Path(__file__).parents[2]
LOOPBACK, BROKER = "127.0.0.1:4222", "10.77.0.2:4222"


@pytest.fixture
def lab() -> Iterator[netns.Namespace]:
    """`fast0` with its peer; `ctl0` under a bridge `br0` that has the address by which the broker is
    reached.
    """
    with netns.namespace() as space:
        space.ip("link", "set", "lo", "up")
        for name in ("fast", "ctl"):
            space.ip("link", "add", f"{name}0", "type", "veth", "peer", "name", f"{name}1")
            space.ip("link", "set", f"{name}0", "up")
            space.ip("link", "set", f"{name}1", "up")
        space.ip("link", "add", "br0", "type", "bridge")
        space.ip("link", "set", "ctl0", "master", "br0")
        space.ip("link", "set", "br0", "up")
        space.ip("addr", "add", "10.77.0.1/24", "dev", "br0")
        yield space


def probe(
    space: netns.Namespace, what: str, component: str, peer: str = LOOPBACK, down_s: float = 0.1
) -> Any:
    """What link_probe says inside the namespace."""
    command = ["ip", "netns", "exec", space.name, sys.executable, "-m", "tests.real.link_probe"]
    ended = subprocess.run(
        [*command, what, component, peer, str(down_s)], cwd=REPO, capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def flags(space: netns.Namespace, name: str) -> list[str]:
    """Flags of an interface, as `ip` names them."""
    said = subprocess.run(
        ["ip", "-n", space.name, "-j", "link", "show", name], capture_output=True, text=True
    )
    found: list[str] = json.loads(said.stdout)[0]["flags"]
    return found


def test_a_link_goes_down_and_comes_up(lab: netns.Namespace) -> None:
    """The kernel says down and then up again."""
    watch = subprocess.Popen(
        ["ip", "-n", lab.name, "monitor", "link"], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert watch.stdout is not None
        for mtu in itertools.cycle((1400, 1450)):
            lab.ip("link", "set", "fast1", "mtu", str(mtu))
            if select.select([watch.stdout], [], [], 0.05)[0]:
                break  # it listens
        assert probe(lab, "run", "link/fast0") == {
            "done": "fast0 was down for 0.1 s and has its carrier again"
        }
    finally:
        watch.terminate()
    seen = [line for line in watch.stdout if "fast0" in line]
    down = next(number for number, line in enumerate(seen) if "state DOWN" in line)
    assert any("state UP" in line for line in seen[down:])


def test_an_interface_that_somebody_set_down_stays_down(lab: netns.Namespace) -> None:
    """Whoever did that has a reason that we do not know."""
    lab.ip("link", "set", "fast0", "down")
    for verb in ("plan", "run"):
        said = probe(lab, verb, "link/fast0")
        assert (said["error"], "is set down" in said["why"]) == ("Refused", True)
    assert "UP" not in flags(lab, "fast0")


def test_a_link_whose_other_side_is_dead(lab: netns.Namespace) -> None:
    """It is set up again and the failure says that the carrier is missing."""
    lab.ip("link", "set", "fast1", "down")
    said = probe(lab, "run", "link/fast0")
    assert said["error"] == "ActionError"
    assert "no carrier" in said["why"]
    assert "UP" in flags(lab, "fast0")


def test_a_plan_changes_nothing(lab: netns.Namespace) -> None:
    """It says the steps and the state now."""
    assert probe(lab, "plan", "link/fast0")["plan"][:3] == [
        "set fast0 down (now up)",
        "wait 0.1 s",
        "set fast0 up",
    ]
    assert "LOWER_UP" in flags(lab, "fast0")


def test_cancelled_in_the_pause(lab: netns.Namespace) -> None:
    """At the time limit, and when the agent is stopped, the interface is up again at once."""
    assert probe(lab, "cancel", "link/fast0", down_s=10) == {"cancelled in the pause": True}
    assert "LOWER_UP" in flags(lab, "fast0")


def test_the_agent_died_in_the_pause(lab: netns.Namespace) -> None:
    """What it left down is set up at its next start."""
    lab.ip("link", "set", "fast0", "down")
    assert probe(lab, "recover", "link/fast0") == {"recovered": True}
    assert "LOWER_UP" in flags(lab, "fast0")


@pytest.mark.parametrize(
    ("component", "peer", "why"),
    [
        ("link/br0", BROKER, "carries the control path"),
        ("link/ctl0", BROKER, "carries the control path"),
        ("link/fast0", "192.0.2.1:4222", "cannot tell which interface"),
        ("link/fast0", "no-such-host.invalid:4222", "cannot tell which interface"),
        ("link/fast0", ":0", "no connection to the broker yet"),
        ("link/lo", LOOPBACK, "loopback"),
        ("link/nope", LOOPBACK, "no interface nope"),
        ("link/fast0-and-more-letters", LOOPBACK, "no interface"),
        ("port/mlx5_9.1", LOOPBACK, "no network interface of its own"),
        ("gpu/0000:3b:00", LOOPBACK, "link must be"),
        ("link/../x y", LOOPBACK, "not a component"),
    ],
)
def test_what_is_refused(lab: netns.Namespace, component: str, peer: str, why: str) -> None:
    """The way to the broker (and what it stands on) is never cut, nor anything when that way is not known."""
    for what in ("plan", "run"):
        said = probe(lab, what, component, peer)
        assert said["error"] == "Refused"
        assert why in said["why"]


def test_another_link_may_be_bounced_while_the_broker_is_elsewhere(lab: netns.Namespace) -> None:
    """The refusal is about the control path, not about every interface of a machine with a remote broker."""
    assert "done" in probe(lab, "run", "link/fast0", BROKER)
