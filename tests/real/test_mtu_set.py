"""mtu.set on real interfaces, in a network namespace of the test's own."""

import json
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
LOOPBACK, BROKER = "127.0.0.1:4222", "10.78.0.2:4222"


@pytest.fixture(scope="module")
def lab() -> Iterator[netns.Namespace]:
    """`fast0` with its peer; `ctl0` under a bridge `br0` that has the address by which the broker is reached."""
    with netns.namespace() as space:
        space.ip("link", "set", "lo", "up")
        for name in ("fast", "ctl"):
            space.ip("link", "add", f"{name}0", "type", "veth", "peer", "name", f"{name}1")
            space.ip("link", "set", f"{name}0", "up")
            space.ip("link", "set", f"{name}1", "up")
        space.ip("link", "add", "br0", "type", "bridge")
        space.ip("link", "set", "ctl0", "master", "br0")
        space.ip("link", "set", "br0", "up")
        space.ip("addr", "add", "10.78.0.1/24", "dev", "br0")
        yield space


def ask(space: netns.Namespace, *stories: tuple[str, str, str, object]) -> list[Any]:
    """What mtu_probe says inside the namespace, story by story."""
    command = ["ip", "netns", "exec", space.name, sys.executable, "-m", "tests.real.mtu_probe"]
    ended = subprocess.run(
        [*command, json.dumps(stories)], cwd=REPO, capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr
    found: list[Any] = json.loads(ended.stdout)
    return found


def mtu(space: netns.Namespace, name: str) -> int:
    """As `ip` sees it."""
    said = subprocess.run(
        ["ip", "-n", space.name, "-j", "link", "show", name], capture_output=True, text=True, check=True
    )
    return int(json.loads(said.stdout)[0]["mtu"])


def test_an_mtu_is_set_and_read_back(lab: netns.Namespace) -> None:
    """Only by `run`; one that is right already is left alone; the broker may be elsewhere."""
    (planned,) = ask(lab, ("plan", "link/fast0", LOOPBACK, 4200))
    assert planned == {"plan": ["set the MTU of fast0 from 1500 to 4200, and read it back"]}
    assert mtu(lab, "fast0") == 1500
    first, second = ask(lab, *[("run", "link/fast0", BROKER, 4200)] * 2)
    assert first == {"done": "the MTU of fast0 is 4200, was 1500"}
    assert second == {"done": "the MTU of fast0 is 4200 already"}
    assert (mtu(lab, "fast0"), mtu(lab, "fast1")) == (4200, 1500)


def test_what_is_refused(lab: netns.Namespace) -> None:
    """The way to the broker and what it stands on, sizes that nobody takes, what is no link. (A driver's own limits: in
    test_guest.)
    """
    refused: dict[tuple[str, str, object], str] = {
        ("link/br0", BROKER, 9000): "carries the control path",
        ("link/ctl0", BROKER, 9000): "carries the control path",
        ("link/fast0", ":0", 9000): "no connection to the broker yet",
        ("link/fast0", LOOPBACK, 575): "mtu must be 576 to 65520",
        ("link/fast0", LOOPBACK, 65521): "mtu must be 576 to 65520",
        ("link/lo", LOOPBACK, 9000): "loopback",
        ("link/nope", LOOPBACK, 9000): "no interface nope",
        ("port/mlx5_0.1", LOOPBACK, 9000): "link must be link/...",
    }
    for what in ("plan", "run"):
        answers = ask(lab, *((what, *key) for key in refused))
        assert [answer["error"] for answer in answers] == ["Refused"] * len(refused)
        assert all(why in answer["why"] for answer, why in zip(answers, refused.values(), strict=True))
    assert [mtu(lab, name) for name in ("br0", "ctl0")] == [1500, 1500]


def test_what_the_kernel_does_not_take(lab: netns.Namespace) -> None:
    """An interface on another one cannot have a larger MTU than that: the failure says so, and nothing has changed."""
    lab.ip("link", "add", "mac0", "link", "fast1", "type", "macvlan")
    (answer,) = ask(lab, ("run", "link/mac0", LOOPBACK, 9000))
    assert answer["error"] == "ActionError"
    assert "cannot be set to 9000: rtnetlink: Invalid argument" in answer["why"]
    assert mtu(lab, "mac0") == 1500
