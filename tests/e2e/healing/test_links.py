"""Links of a network namespace: a real rtnetlink, a real broker, brain and agent."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.healing.kit import AUTO, healed
from tests.e2e.stack import stack
from tests.real.kernel_log import HEARD
from tests.real.netns import Namespace, hung_port, is_up, missing, namespace

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("iproute2"),
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]
ALLOWED = f'{HEARD}\nallow = ["evidence.collect", "link.bounce", "mtu.set"]'
WHERE = "veth in a network namespace"


@pytest.fixture(name="ends")
def _ends() -> Iterator[tuple[Namespace, Namespace]]:
    """`lo`, va, vc and ve; their peers vb, vd and vg in a second namespace stand for the switch."""
    with namespace() as lab, namespace() as switch:
        lab.ip("link", "set", "lo", "up")
        for near, far in (("va", "vb"), ("vc", "vd"), ("ve", "vg")):
            lab.ip(
                "link", "add", near, "mtu", "9000", "type", "veth", "peer", "name", far, "netns", switch.name
            )
            lab.ip("link", "set", near, "up")
            switch.ip("link", "set", far, "up")
        with lab.inside():
            yield lab, switch


@contextmanager
def timed() -> Iterator[float]:
    """The wall clock before the fault."""
    yield time.time()


def test_a_link_that_hung_and_an_mtu_that_was_lost(tmp_path: Path, ends: tuple[Namespace, Namespace]) -> None:
    """Two faults at once on two links of a node: link.bounce and mtu.set, each verified. A third link, which a person
    set down, stays down.
    """
    lab, switch = ends
    with stack(tmp_path, brain=AUTO, agent=ALLOWED) as whole, timed() as began, hung_port(lab, switch):
        lab.ip("link", "set", "ve", "down")
        lab.ip("link", "set", "vc", "mtu", "1500")
        down = healed(whole, "link-down", component="link/va", counterpart=WHERE, began=began, within_s=100)
        assert down.actions == ("link.bounce",)
        small = healed(whole, "mtu-drift", component="link/vc", counterpart=WHERE, began=began, within_s=100)
        assert small.actions == ("mtu.set",)
        assert "mtu 9000" in lab.ip("link", "show", "vc")
        assert (is_up(lab, "va"), is_up(lab, "ve")) == (True, False)
        assert len(whole.incidents(over=True)) == 2
