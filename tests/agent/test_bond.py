"""Bonds: texts as /proc/net/bonding prints them, and what is reported of them."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collectors.bond import BondCollector
from agent.collectors.samples_node import Bond, BondSlave
from agent.contract import kinds
from agent.contract.messages import Severity, UnsentEvent
from agent.host import Host
from agent.sources.bond import BondSource, bond
from tests.agent.following import following, once

MACHINES = Path(__file__).parents[1] / "fixtures/machines"
PARTNER, NOBODY = "50:6b:4b:aa:00:01", "00:00:00:00:00:00"


def events_of(collector: BondCollector, samples: Iterable[Bond]) -> list[UnsentEvent]:
    unsent_events = [unsent for sample in samples for unsent in collector.feed(sample, 0.0)]
    for unsent in unsent_events:
        kinds.check(unsent)
        assert unsent.kind in BondCollector.kinds
    return unsent_events


def pair(up: str, active: str = "", *, partner: str = "", aggregators: str = "11") -> Bond:
    """`up` names the slaves that are up, of eth0 (a) and eth1 (b); lower case: it is there and down."""
    slaves = tuple(
        BondSlave(
            name=f"eth{number}", up=letter.upper() in up, aggregator=aggregators[number] if partner else ""
        )
        for number, letter in enumerate("ab")
        if letter.upper() in up or letter in up
    )
    return Bond(
        name="bond0",
        mode="x",
        active=active,
        partner=partner,
        aggregator="1" if partner else "",
        slaves=slaves,
    )


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([pair("AB", "eth0")], []),
        ([pair("AB", "eth0"), pair("aB", "eth1")], ["slaves eth0 warning", "active eth1 warning"]),
        ([pair("aB", "eth1")], ["slaves eth0 warning"]),  # so it was made: it is missing at start
        (
            [pair("AB", "eth0"), pair("aB", "eth1"), pair("AB", "eth1")],
            ["slaves eth0 warning", "active eth1 warning", "slaves  info"],
        ),
        ([pair("AB", "eth0"), pair("ab", "")], ["slaves eth0,eth1 error", "active  error"]),
        (
            [pair("AB", "eth0"), pair("B", "eth1")],
            ["slaves eth0 warning", "active eth1 warning"],
        ),  # taken out
        ([pair("AB", "eth0"), pair("AB", "eth1")], ["active eth1 warning"]),  # a person, or a better primary
        ([pair("AB", partner=PARTNER)], []),
        ([pair("AB", partner=NOBODY)], ["lacp False 0 warning"]),
        ([pair("AB", partner=PARTNER), pair("AB", partner=NOBODY)], ["lacp False 0 warning"]),
        (
            [
                pair("AB", partner=PARTNER),
                pair("AB", partner=PARTNER, aggregators="12"),
                pair("AB", partner=PARTNER),
            ],
            ["lacp True 1 warning", "lacp True 0 info"],
        ),
        ([pair("aB", partner=PARTNER, aggregators="21")], ["slaves eth0 warning"]),  # down is not apart
        ([pair("AB"), Bond(name="bond0", mode="", removed=True)], ["removed error"]),
        ([Bond(name="bond0", mode="", removed=True)], []),
    ],
)
def test_what_a_bond_loses_and_gets_is_reported(samples: list[Bond], says: list[str]) -> None:
    """Failovers, slaves that go, a partner that no longer answers; nothing for a bond that is whole."""
    shown = []
    for unsent in events_of(BondCollector(), samples):
        name = unsent.kind.removeprefix("bond.").removesuffix("_slave")
        fields = {"slaves": ("down",), "active": ("active",), "lacp": ("answers", "apart"), "removed": ()}[
            name
        ]
        shown.append(" ".join([name, *(str(unsent.data[field]) for field in fields), unsent.severity.value]))
    assert shown == says


async def test_recorded_bonds_are_read_whole() -> None:
    """Both modes: active slave, link failures, LACP partner, and aggregators behind the LACP detail."""
    (lacp,) = await once(BondSource(Host(root=MACHINES / "a100-node")))
    assert isinstance(lacp, Bond)
    assert (lacp.partner, lacp.aggregator, lacp.active) == (PARTNER, "1", "")
    assert [(slave.name, slave.up, slave.failures, slave.aggregator) for slave in lacp.slaves] == [
        ("eth0", True, 0, "1"),
        ("eth1", True, 1, "1"),
    ]
    (sick,) = await once(BondSource(Host(root=MACHINES / "node-in-trouble")))
    assert isinstance(sick, Bond)
    assert (sick.mode, sick.active) == ("fault-tolerance (active-backup)", "eth1")
    assert [(slave.name, slave.up, slave.failures) for slave in sick.slaves] == [
        ("eth0", False, 3),
        ("eth1", True, 0),
    ]


async def test_a_bond_that_changes_and_goes(tmp_path: Path) -> None:
    """Only a text that changed is a sample; a bond that vanished is reported once."""
    text = (MACHINES / "roce-node/proc/net/bonding/bond0").read_text()
    file = tmp_path / "proc/net/bonding/bond0"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    async with following(BondSource(Host(root=tmp_path), period_s=0.01)) as emitted:
        await emitted.until(lambda emitted: len(emitted) == 1)
        fresh = file.with_name("new")
        fresh.write_text(text.replace("Active Slave: eth0", "Active Slave: eth1"))
        fresh.replace(file)
        await emitted.until(lambda emitted: any(isinstance(r, Bond) and r.active == "eth1" for r in emitted))
        file.unlink()
        await emitted.until(
            lambda emitted: (
                isinstance(emitted[-1], Bond) and emitted[-1].name == "bond0" and emitted[-1].removed
            )
        )
    unsent_events = events_of(
        BondCollector(), [r for r in emitted if isinstance(r, Bond) and r.name == "bond0"]
    )
    assert [unsent.kind for unsent in unsent_events] == ["bond.active_slave", "bond.removed"]
    assert unsent_events[0].severity is Severity.WARNING


@given(st.text(max_size=400))
def test_any_text_is_a_bond(text: str) -> None:
    """An odd kernel's file never ends the source."""
    assert bond("bond0", "Slave Interface: x\n" + text, 0.0).name == "bond0"


PROC = """\
Ethernet Channel Bonding Driver: v6.1.0

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
MII Status: up
MII Polling Interval (ms): 100

802.3ad info
Active Aggregator Info:
\tAggregator ID: 1
\tPartner Mac Address: 50:6b:4b:aa:00:01

Slave Interface: eth0
MII Status: up
Link Failure Count: 3
Aggregator ID: 1

Slave Interface: eth1
MII Status: down
Link Failure Count: 0
Aggregator ID: 2
"""


async def test_a_bond_says_the_same_in_sysfs(tmp_path: Path) -> None:
    """Where /proc/net/bonding is not to be seen: a file for each value, of the bond and of its slaves."""
    (tmp_path / "proc/net/bonding").mkdir(parents=True)
    (tmp_path / "proc/net/bonding/bond0").write_text(PROC)
    (from_proc,) = await once(BondSource(Host(root=tmp_path)))
    (tmp_path / "proc/net/bonding/bond0").unlink()
    net = tmp_path / "sys/class/net"
    for path, text in {
        "bonding_masters": "bond0\n",
        "bond0/bonding/mode": "802.3ad 4\n",
        "bond0/bonding/active_slave": "\n",
        "bond0/bonding/mii_status": "up\n",
        "bond0/bonding/slaves": "eth0 eth1\n",
        "bond0/bonding/ad_aggregator": "1\n",
        "bond0/bonding/ad_partner_mac": "50:6b:4b:aa:00:01\n",
        "eth0/bonding_slave/mii_status": "up\n",
        "eth0/bonding_slave/link_failure_count": "3\n",
        "eth0/bonding_slave/ad_aggregator_id": "1\n",
        "eth1/bonding_slave/mii_status": "down\n",
        "eth1/bonding_slave/link_failure_count": "0\n",
        "eth1/bonding_slave/ad_aggregator_id": "2\n",
    }.items():
        (net / path).parent.mkdir(parents=True, exist_ok=True)
        (net / path).write_text(text)
    source = BondSource(Host(root=tmp_path))
    (from_sys,) = await once(source)
    assert isinstance(from_proc, Bond)
    assert isinstance(from_sys, Bond)
    assert replace(from_sys, mode=from_proc.mode, mono_s=0.0) == replace(from_proc, mono_s=0.0)
    assert from_sys.mode == "802.3ad 4"
    assert await once(source) == [], "nothing has changed"
    (net / "bonding_masters").write_text("\n")
    (gone,) = await once(source)
    assert isinstance(gone, Bond)
    assert gone.removed
