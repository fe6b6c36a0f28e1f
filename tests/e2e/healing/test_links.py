"""Links of a network namespace: a real rtnetlink, a real broker, brain and agent."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.healing.kit import AUTO, healed
from tests.e2e.stack import stack
from tests.real.kernel_log import HEARD
from tests.real.netns import Namespace, missing, namespace

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("iproute2"),
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]
ALLOWED = f'{HEARD}\nallow = ["evidence.collect", "link.bounce", "mtu.set"]'
WHERE = "veth in a network namespace"


@pytest.fixture(name="lab")
def _lab() -> Iterator[Namespace]:
    """`lo`, va and vc; their peers vb and vd in a second namespace stand for the switch."""
    with namespace() as lab, namespace() as switch:
        lab.ip("link", "set", "lo", "up")
        for near, far in (("va", "vb"), ("vc", "vd")):
            lab.ip(
                "link", "add", near, "mtu", "9000", "type", "veth", "peer", "name", far, "netns", switch.name
            )
            lab.ip("link", "set", near, "up")
            switch.ip("link", "set", far, "up")
        with lab.inside():
            yield lab


def test_a_link_that_was_set_down_and_an_mtu_that_was_lost(tmp_path: Path, lab: Namespace) -> None:
    """Two faults at once on two links of a node: link.bounce and mtu.set, each verified, and nobody else is touched."""
    with stack(tmp_path, brain=AUTO, agent=ALLOWED) as whole:
        began = time.time()
        lab.ip("link", "set", "va", "down")
        lab.ip("link", "set", "vc", "mtu", "1500")
        down = healed(whole, "link-down", component="link/va", counterpart=WHERE, began=began, within_s=100)
        assert down.actions == ("link.bounce",)
        small = healed(whole, "mtu-drift", component="link/vc", counterpart=WHERE, began=began, within_s=100)
        assert small.actions == ("mtu.set",)
        assert "mtu 9000" in lab.ip("link", "show", "vc")
        assert "UP" in lab.ip("link", "show", "va").partition("<")[2].partition(">")[0].split(",")
        assert len(whole.incidents(over=True)) == 2
