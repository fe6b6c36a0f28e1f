"""A guest with a kernel of its own: real cards with devlink, a real bond, real modules, real netlink; a real Slurm.

It is a node of a gpuward on the host, and its faults are made at the same time. The network to the broker is an
interface of the guest as any other (virtio): that no remedy touches it is part of the story.
"""

import base64
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.healing.kit import AUTO, healed
from tests.e2e.stack import BIN, Stack
from tests.real import qemu_guest, slurm_cluster
from tests.real.qemu_live import HOST, LiveGuest, live_guest
from tests.real.slurm_cluster import Cluster

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("qemu-system-x86 slurm"),
    pytest.mark.skipif(bool(qemu_guest.missing()), reason=qemu_guest.missing() or "-"),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "-"),
    pytest.mark.timeout(600),
]
ALLOWED = """
allow = ["evidence.collect", "link.bounce", "mtu.set", "nic.reset", "bond.failover", "module.load"]
kernel_modules = ["rdma_cm"]
node_interval_s = 1.0
"""
CARD = "a card with devlink in a guest (QEMU)"
BROKEN = "/sys/bus/pci/devices/0000:00:1{}.0/broken"
# One repair of the node after the other: an emulated processor may need more than the usual two minutes for those before
# it, and the change of an MTU, which a look does not tell again, would need an approval then.
NO_OLD_NEWS = "[settings]\nstale_s = 900\n"
WITHIN_S = 250.0  # each is well within 70 s on two cores
# The agent hears the kernel: from here on nothing that changes is taken for the first state.
LISTENS = (
    "while ! { awk '$2 == 0 && $4 ~ /1$/ {found = 1} END {exit !found}' /proc/net/netlink"
    " && ls -l /proc/[0-9]*/fd | grep -q /dev/kmsg; }; do sleep 0.1; done"
)
CONTROL = (
    "cat /sys/class/net/eth0/carrier_changes; ip -o link show eth0; ss -Htn dst 10.0.2.2 | awk '{print $4}'"
)


@contextlib.contextmanager
def site(folder: Path) -> Iterator[tuple[Stack, Cluster]]:
    """A running gpuward without nodes yet; a Slurm knows gpu1."""
    whole = Stack(folder, "gpu1")
    with contextlib.ExitStack() as undo:
        undo.callback(whole.end)
        slurm = undo.enter_context(slurm_cluster.cluster())
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config(
            f'{AUTO}{NO_OLD_NEWS}[schedulers.slurm]\ntype = "slurm"\nnodes = "gpu*"\nconf = "{slurm.conf}"\n'
        )
        whole.start_brain()
        yield whole, slurm


@contextlib.contextmanager
def node(folder: Path, name: str, *, cards: int) -> Iterator[LiveGuest]:
    """A guest that boots; what it said last is shown when the test fails."""
    with live_guest(folder / name, cards=cards) as guest:
        try:
            yield guest
        except AssertionError:
            print(f"--- console of {name}\n{guest.console()}")
            print(f"--- agent of {name}\n{guest.sh('tail -c 4000 /run/agent.log')}")
            raise


def start_agent(whole: Stack, name: str, guest: LiveGuest) -> None:
    """As on a node: without aiohttp, which nats-py would load where it is, in four seconds there."""
    whole.nats.add(name)
    text = whole.write_agent_config(ALLOWED).read_text()
    for before, now in (
        (f'node = "{whole.node}"', f'node = "{name}"'),
        (whole.nats.node_url(whole.node), whole.nats.node_url(name).replace("127.0.0.1", HOST)),
        (f"{whole.folder}/agent", "/run/agent"),
    ):
        assert before in text
        text = text.replace(before, now)
    config = base64.b64encode(text.encode()).decode()
    guest.sh(f"hostname {name}; echo {config} | base64 -d >/run/agent.toml")
    guest.sh("mkdir /run/absent && echo 'raise ImportError' >/run/absent/aiohttp.py")
    guest.sh(
        "PYTHONPATH=/run/absent PYTHONDONTWRITEBYTECODE=1 "
        f"setsid {BIN}/gpuward-agent run --config /run/agent.toml >/run/agent.log 2>&1 &"
    )


def heard(whole: Stack, name: str, guest: LiveGuest) -> None:
    """Waits until the brain hears the agent, and the agent the kernel."""

    def known() -> bool:
        nodes: list[dict[str, Any]] = whole.get("/api/v1/nodes").get("nodes", [])
        return any(one["name"] == name and one["boot"] for one in nodes)

    whole.wait_for(known, f"{name} is heard", within_s=200)
    guest.sh(LISTENS)


def test_cards_a_bond_a_module_and_an_mtu(tmp_path: Path) -> None:
    """A slave of a bond and a dead card are reset, a link is bounced, a module loaded, jumbo frames are given
    back; the job on the node ends in peace; a fault of the interface to the broker itself is left to people.
    """
    with node(tmp_path, "gpu1", cards=6) as guest, site(tmp_path) as (whole, slurm):
        guest.booted()
        guest.sh("modprobe rdma_cm && ip link add bond0 mtu 9000 type bond mode active-backup miimon 100")
        guest.sh("for card in card0 card1 card2; do ip link set $card master bond0 || exit 1; done")
        guest.sh("ip link set bond0 up && ip link set card3 mtu 9000 up")
        guest.sh("ip link set card4 up && ip link set card5 up && ip link set eth0 mtu 9000")
        start_agent(whole, "gpu1", guest)
        heard(whole, "gpu1", guest)
        control = guest.sh(CONTROL)
        began = time.time()
        guest.sh(f"rmmod rdma_cm; echo 3 >{BROKEN.format(0)}; echo 1 >{BROKEN.format(5)}")
        guest.sh("ip link set card3 mtu 1500; ip link set eth0 mtu 1500")
        job = slurm.submit("gpu1", seconds=4)
        card_began = time.time()
        guest.sh(f"echo -2 >{BROKEN.format(4)}")

        the_bond(whole, guest, began)
        the_module_and_the_mtus(whole, guest, began)
        the_cards(whole, guest, began, card_began)
        slurm.until(lambda: "DRAIN" not in slurm.node("gpu1"), "gpu1 is not back in service")
        assert slurm.job(job)[0] == "COMPLETED"
        assert guest.sh(CONTROL) == control.replace("mtu 9000", "mtu 1500")
        own = {
            (incident["cause"], incident["scope"])
            for incident in whole.incidents(over=True)
            if incident["runs"]  # not the blink of a link that we reset, nor the guest's clock
        }
        assert own == {
            ("nic-broken", "nic/gpu1/0000:00:14.0"),
            ("mtu-drift", "link/gpu1/card3"),
            ("mtu-drift", "link/gpu1/eth0"),
            ("link-down", "link/gpu1/card5"),
            ("bond-degraded", "bond/gpu1/bond0"),
            ("module-missing", "node/gpu1"),
        }


def the_cards(whole: Stack, guest: LiveGuest, link_began: float, card_began: float) -> None:
    """A link that needs no more than a bounce; the card whose firmware died: its link is there, only its driver tells."""
    bounced = healed(
        whole, "link-down", component="link/card5", counterpart=CARD, began=link_began, within_s=WITHIN_S
    )
    assert bounced.actions == ("link.bounce",)
    card = healed(
        whole,
        "nic-broken",
        component="nic/0000:00:14.0",
        counterpart=CARD,
        began=card_began,
        within_s=WITHIN_S,
    )
    assert card.actions == ("evidence.collect", "scheduler.drain", "nic.reset", "scheduler.resume")
    assert guest.sh(f"cat {BROKEN.format(4)} {BROKEN.format(5)}").split() == ["0", "0"]
    assert "state error" not in guest.sh("devlink health show")


def the_bond(whole: Stack, guest: LiveGuest, began: float) -> None:
    """Its slave is no incident of its own."""
    bond = healed(
        whole,
        "bond-degraded",
        component="bond/bond0",
        counterpart="a bond of cards with devlink in a guest (QEMU)",
        began=began,
        within_s=WITHIN_S,
    )
    assert bond.actions == ("evidence.collect", "nic.reset"), "no failover from a slave that is well"
    assert guest.sh(f"cat {BROKEN.format(0)}").strip() == "0"
    shown = guest.sh("cat /proc/net/bonding/bond0; ip -o link show card0")
    assert "Currently Active Slave: card1" in shown
    assert shown.count("MII Status: up") == 4
    assert "mtu 9000" in shown


def the_module_and_the_mtus(whole: Stack, guest: LiveGuest, began: float) -> None:
    """The control path's MTU is left to people."""
    module = healed(
        whole,
        "module-missing",
        component="node/gpu1",
        counterpart="the kernel of a guest (QEMU)",
        began=began,
        within_s=WITHIN_S,
    )
    assert module.actions == ("module.load",)
    assert guest.sh("grep ^rdma_cm /proc/modules")
    small = healed(
        whole, "mtu-drift", component="link/card3", counterpart=CARD, began=began, within_s=WITHIN_S
    )
    assert small.actions == ("mtu.set",)
    assert "mtu 9000" in guest.sh("ip link show card3")

    def left() -> dict[str, Any]:
        for incident in whole.incidents("mtu-drift"):
            if incident["scope"].endswith("/eth0") and incident["state"] == "needs_human":
                told: dict[str, Any] = whole.get(f"/api/v1/explain/{incident['id']}")
                return told
        return {}

    told = whole.wait_for(left, "people are told of the control path", within_s=WITHIN_S)
    refused, paged = (step for run in told["runs"] for step in run["steps"])
    assert (refused["action"], refused["outcome"]) == ("mtu.set", "refused")
    assert "carries the control path" in refused["why"]
    assert paged["action"] == "page"
