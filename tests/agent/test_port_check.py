"""port.check: ports, interfaces and the PCIe links of cards, on file trees like those of /sys."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.actions.base import NotPassed
from agent.actions.port_check import PortCheck
from agent.collectors.ibrate import IbRateOptions
from agent.config import IB_ROOT
from agent.contract.errors import Refused
from agent.host import Host
from tests.agent.golden import FIXTURES

NDR, HDR = "400 Gb/sec (4X NDR)", "200 Gb/sec (4X HDR)"


class Tree:
    """Four ConnectX-7 with an active NDR port each, a storage card with a second port without a cable, and two interfaces."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for number in range(4):
            self.card(number, "MT4129", lanes=16)
            self.port(f"mlx5_{number}", 1)
        self.card(4, "MT4125", lanes=8)
        self.port("mlx5_4", 1, rate="100 Gb/sec (4X EDR)", layer="Ethernet")
        self.port("mlx5_4", 2, state="1: DOWN", physical="3: Disabled", layer="Ethernet")
        self.interface("eth0", 4, carrier=1)
        self.interface("eth1", 4, carrier=0)

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def device(self, number: int) -> str:
        """Below the bridge of its slot."""
        return f"/sys/devices/pci0000:{number}0/0000:{number}0:01.0/0000:{number}1:00.0"

    def card(self, number: int, model: str, *, lanes: int, speed: str = "32.0 GT/s PCIe") -> None:
        for folder in (self.device(number), str(Path(self.device(number)).parent)):
            self.write(f"{folder}/max_link_width", "16")
            self.write(f"{folder}/max_link_speed", "32.0 GT/s PCIe")
        self.write(f"{self.device(number)}/current_link_width", str(lanes))
        self.write(f"{self.device(number)}/current_link_speed", speed)
        self.write(f"{self.device(number)}/class", "0x020700")
        self.write(f"{IB_ROOT}/mlx5_{number}/hca_type", model)
        self.link(f"{IB_ROOT}/mlx5_{number}/device", self.device(number))
        self.link(f"/sys/bus/pci/devices/0000:{number}1:00.0", self.device(number))
        (self.root / self.device(number).lstrip("/") / f"infiniband/mlx5_{number}").mkdir(
            parents=True, exist_ok=True
        )

    def port(self, device: str, number: int, **values: str) -> None:
        given = {"state": "4: ACTIVE", "physical": "5: LinkUp", "rate": NDR, "layer": "InfiniBand"} | values
        names = {"physical": "phys_state", "layer": "link_layer"}
        for key, value in given.items():
            self.write(f"{IB_ROOT}/{device}/ports/{number}/{names.get(key, key)}", value)

    def interface(self, name: str, card: int, *, carrier: int, speed: int = 100_000) -> None:
        self.write(f"/sys/class/net/{name}/flags", "0x1003")
        self.write(f"/sys/class/net/{name}/carrier", str(carrier))
        self.write(f"/sys/class/net/{name}/speed", str(speed if carrier else -1))
        self.link(f"/sys/class/net/{name}/device", self.device(card))

    def link(self, path: str, to: str) -> None:
        at = self.root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        if not at.is_symlink():
            at.symlink_to(self.root / to.lstrip("/"))

    def check(self, settle_s: float = 0, **options: Any) -> PortCheck:
        return PortCheck(
            Host(root=self.root), ib_root=IB_ROOT, options=IbRateOptions(**options), settle_s=settle_s
        )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


async def problems(check: PortCheck, component: str = "node") -> str:
    """What the check says; empty: it passed."""
    try:
        await check.run({"component": component})
    except NotPassed as error:
        return str(error)
    return ""


async def test_all_is_well(tree: Tree) -> None:
    """A port and an interface without a cable are no fault, but they are counted for the comparison with other nodes."""
    done = await tree.check().run({})
    assert done.text == "5 of 6 ports active, 1 of 2 interfaces with carrier"
    assert {one.name: one.value for one in done.figures} == {
        "port.mt4129.active": 4, "port.mt4129.gbit_per_s": 400, "port.mt4125.active": 1, "port.mt4125.gbit_per_s": 100,
        "port.mt4129.pcie_lanes": 16, "port.mt4129.pcie_gt_per_s": 32, "port.mt4125.pcie_lanes": 8,
        "port.mt4125.pcie_gt_per_s": 32, "link.carriers": 1, "link.mbit_per_s": 100_000,
    }  # fmt: skip
    assert done.alike == "1 MT4125, 4 MT4129"


@pytest.mark.parametrize(
    ("port", "says"),
    [
        ({"rate": HDR}, "mlx5_2.1 has 200 of 400 Gb/s"),
        ({"state": "1: DOWN", "physical": "2: Polling"}, "mlx5_2.1 is DOWN/Polling"),
        ({"state": "2: INIT"}, "mlx5_2.1 is INIT/LinkUp"),
    ],
)
async def test_a_port_that_differs_from_its_kind(tree: Tree, port: dict[str, str], says: str) -> None:
    """Three others of its kind are active at 400 Gb/s. An exempt port is left out."""
    tree.port("mlx5_2", 1, **port)
    assert says in await problems(tree.check())
    assert await problems(tree.check(ib_exempt=("mlx5_2",))) == ""
    assert await problems(tree.check(ib_exempt=("mlx5_2.1",))) == ""


async def test_the_configured_rate(tree: Tree) -> None:
    """It is what every InfiniBand port must have, also if all ports are equal."""
    assert "mlx5_0.1 has 400 of 800 Gb/s" in await problems(tree.check(ib_expected_gbps=800))


async def test_a_card_with_a_narrow_or_slow_pcie_link(tree: Tree) -> None:
    """Compared with its model: the storage card's slot may be wired for 8 lanes."""
    tree.card(1, "MT4129", lanes=8)
    assert "mlx5_1 has PCIe x8 of x16" in await problems(tree.check())
    tree.card(1, "MT4129", lanes=16, speed="8.0 GT/s PCIe")
    assert "mlx5_1 has PCIe at 8 of 32 GT/s" in await problems(tree.check())


@pytest.mark.parametrize(
    ("component", "says"),
    [
        ("link/eth1", "eth1 has no carrier"),
        ("link/eth7", "eth7 is not there"),
        ("port/mlx5_4.2", "mlx5_4.2 is DOWN/Disabled"),
        ("port/mlx5_9.1", "mlx5_9.1 is not there"),
        ("link/eth0", ""),
        ("nic/mlx5_0", ""),
        ("nic/0000:01:00.0", ""),
        ("gpu/0000:3b:00", ""),
    ],
)
async def test_what_is_named_must_have_its_link(tree: Tree, component: str, says: str) -> None:
    """Nobody needs to compare it; a component that is no part of the network means all."""
    assert says in await problems(tree.check(), component)
    assert bool(says) == bool(await problems(tree.check(), component))


async def test_the_only_port_of_a_card_that_was_reset(tree: Tree) -> None:
    """It must be active, whatever its peers are."""
    for number in range(4):
        tree.port(f"mlx5_{number}", 1, state="1: DOWN", physical="2: Polling")
    assert await problems(tree.check()) == ""
    assert "mlx5_0.1 is DOWN/Polling" in await problems(tree.check(), "nic/mlx5_0")
    with pytest.raises(Refused, match="is no network card"):
        await tree.check().run({"component": "nic/mlx5_7"})


async def test_a_link_may_take_a_while_to_train(tree: Tree) -> None:
    """After a reset the check waits until all is well."""
    tree.port("mlx5_2", 1, state="2: INIT")
    check = asyncio.create_task(tree.check(settle_s=60).run({}))
    await asyncio.wait([check], timeout=0.3)
    assert not check.done()
    tree.port("mlx5_2", 1)
    assert (await check).text.startswith("5 of 6 ports active")


@pytest.mark.parametrize(
    ("machine", "says", "rates"),
    [
        ("h100-node", "9 of 10 ports active", {"port.mt4129.gbit_per_s": 400, "port.mt4125.gbit_per_s": 100}),
        ("roce-node", "4 of 4 ports active", {"port.mt4129.gbit_per_s": 400}),
        ("ib-node", "1 of 2 ports active", {"port.unknown.gbit_per_s": 400}),
        ("cpu-node", "0 of 0 ports active", {}),
    ],
)
async def test_recorded_machines(machine: str, says: str, rates: dict[str, float]) -> None:
    """As real trees have it. A lone port without a link shows only against other nodes."""
    host = Host(root=FIXTURES / "machines" / machine)
    done = await PortCheck(host, ib_root=IB_ROOT, options=IbRateOptions(), settle_s=0).run({})
    assert done.text.startswith(says)
    assert {one.name: one.value for one in done.figures if one.name.endswith("gbit_per_s")} == rates
    assert bool(done.untested) == (machine == "cpu-node")
