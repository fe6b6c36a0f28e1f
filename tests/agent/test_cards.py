"""Network cards in a recorded /sys: which one is meant, and which ways to reset it would cut the control path."""

from pathlib import Path

import pytest

from agent.actions.driver_modules import DriverModules
from agent.actions.modules import Modules
from agent.actions.network_cards import ControlPath, NetworkCards
from agent.contract.errors import ActionError, Refused
from agent.host import Host

IB = "/sys/class/infiniband"
NO, CARD, SECOND = "0000:86:00.0", "0000:5e:00.0", "0000:5e:00.1"
VIRTUAL, HALF, VIRTIO = "0000:5e:00.2", "0000:3b:00.0", "0000:00:03.0"


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """A card with two functions and a virtual one, its other half in another slot (one firmware), a card of the same
    driver, a virtio card, a VLAN and an SSD.
    """
    pci = tmp_path / "sys/bus/pci"
    devices = {
        CARD: ("mlx5_core", "eth0", "mlx5_0", "b83f:d203:0012:3456"),
        SECOND: ("mlx5_core", "eth1", "mlx5_1", "b83f:d203:0012:3456"),
        VIRTUAL: ("mlx5_core", "eth2", "", ""),
        HALF: ("mlx5_core", "eth3", "mlx5_3", "b83f:d203:0012:3456"),
        NO: ("mlx5_core", "eth4", "mlx5_4", "b83f:d203:0099:0000"),
        VIRTIO: ("virtio-pci", "", "", ""),
        "0000:01:00.0": ("nvme", "", "", ""),
    }
    for bdf, (driver, interface, device, image) in devices.items():
        folder = tmp_path / f"sys/devices/pci0000:00/{bdf}"
        folder.mkdir(parents=True)
        (folder / "class").write_text("0x010802" if driver == "nvme" else "0x020000")
        (pci / "devices").mkdir(parents=True, exist_ok=True)
        (pci / "devices" / bdf).symlink_to(folder)
        (pci / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        (pci / "drivers" / driver / bdf).symlink_to(folder)
        (folder / "driver").symlink_to(pci / "drivers" / driver)
        if interface:
            link(tmp_path, interface, folder)
            (folder / "net" / interface).mkdir(parents=True)
        if device:
            (folder / "infiniband" / device).mkdir(parents=True)
            port = tmp_path / f"sys/class/infiniband/{device}/ports/1"
            port.mkdir(parents=True)
            (port / "phys_state").write_text("5: LinkUp\n")
            (port.parents[1] / "sys_image_guid").write_text(f"{image}\n")
            (port.parents[1] / "device").symlink_to(folder)
    (tmp_path / f"sys/devices/pci0000:00/{VIRTUAL}/physfn").symlink_to(pci / "devices" / CARD)
    virtio = tmp_path / f"sys/devices/pci0000:00/{VIRTIO}/virtio0"
    virtio.mkdir()
    link(tmp_path, "ens3", virtio)
    (tmp_path / "sys/class/net/vlan7").mkdir()
    return tmp_path


def link(root: Path, interface: str, device: Path) -> None:
    """/sys/class/net/<interface>/device."""
    folder = root / "sys/class/net" / interface
    folder.mkdir(parents=True)
    (folder / "device").symlink_to(device)


@pytest.mark.parametrize(
    ("component", "bdf", "wanted"),
    [
        ("nic/0000:5e:00.0", CARD, ""),
        ("nic/mlx5_1", SECOND, ""),
        ("port/mlx5_1.1", SECOND, "port 1"),
        ("link/eth4", NO, "eth4"),
        ("link/ens3", VIRTIO, "ens3"),
    ],
)
def test_a_card_is_found_by_any_of_its_names(sys: Path, component: str, bdf: str, wanted: str) -> None:
    """The PCI function, and what the look afterwards must see."""
    card = NetworkCards(Host(root=sys), IB).find(component)
    assert (card.bdf, card.wanted) == (bdf, wanted)


@pytest.mark.parametrize(
    "component",
    [
        *("nic/0000:01:00.0", "nic/0000:ff:00.0", "nic/mlx5_9", "port/mlx5_9.1", "link/vlan7", "link/nope"),
        *("nic/../../etc", "gpu/0000:5e:00", "node"),
    ],
)
def test_what_is_no_card_is_refused(sys: Path, component: str) -> None:
    """An SSD, what is not there, what is only software, what is no name of a card."""
    with pytest.raises(Refused):
        NetworkCards(Host(root=sys), IB).find(component)


@pytest.mark.parametrize(
    ("carrier", "function", "card", "driver"),
    [
        ("eth0", True, True, True),
        ("eth1", False, True, True),  # another function of it
        ("eth2", True, True, True),  # a virtual function goes with the one that made it
        ("eth3", False, True, True),  # another slot, but the same firmware
        ("eth4", False, False, True),
        ("ens3", False, False, False),
        ("vlan7", False, False, False),  # what it is built on is a carrier too
    ],
)
def test_what_a_reset_would_cut(sys: Path, carrier: str, function: bool, card: bool, driver: bool) -> None:
    """Seen from the first function of the card; the control path is on `carrier`."""
    cards = NetworkCards(Host(root=sys), IB)
    control_path = cards.control_path(cards.find(f"nic/{CARD}"), {carrier, "lo"})
    assert control_path == ControlPath(
        function=carrier if function else "", card=carrier if card else "", driver=carrier if driver else ""
    )


def test_the_modules_of_a_driver_in_the_order_of_loading(tmp_path: Path) -> None:
    """A module's users come after it; a user that is not part of the driver closes this way."""
    for module, holders in {
        "mlx5_core": ("mlx5_ib", "mlx5_vdpa"),
        "mlx5_ib": ("mlx5_vdpa",),
        "mlx5_vdpa": (),
    }.items():
        for holder in holders:
            (tmp_path / f"sys/module/{module}/holders/{holder}").mkdir(parents=True)
        (tmp_path / f"sys/module/{module}").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/modules").write_text(
        "mlx5_core 81920 2 mlx5_ib, Live 0x0\nvirtio_net 81920 0 - Live 0x0\n"
    )
    host = Host(root=tmp_path)
    modules = DriverModules(host, Modules(host, modprobe="/x", rmmod="/x"))
    assert modules.loaded("mlx5_core") == ["mlx5_core", "mlx5_ib", "mlx5_vdpa"]
    with pytest.raises(ActionError, match="virtio_net is not one"):
        modules.loaded("virtio_net")
    (tmp_path / "sys/module/mlx5_ib/holders/lustre").mkdir()
    with pytest.raises(ActionError, match="used by the module lustre"):
        modules.loaded("mlx5_core")
