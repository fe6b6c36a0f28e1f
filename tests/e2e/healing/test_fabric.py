"""Two InfiniBand fabrics of one simulator, with real subnet managers, real diagnostic tools and a real systemd."""

import contextlib
import functools
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.healing.kit import AUTO, healed
from tests.e2e.healing.nodes import agents, brain, causes
from tests.real import ibsim_fabric, nspawn
from tests.real.ibsim_fabric import FILES, Fabric

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.component("ibsim opensm systemd-nspawn"),
    pytest.mark.skipif(bool(ibsim_fabric.missing()), reason=ibsim_fabric.missing() or "-"),
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing() or "-"),
    pytest.mark.timeout(400),
]
WHERE = "opensm and infiniband-diags on ibsim"
SERVICE = f"{WHERE}, systemd in a container"
FABRIC = ("H1", "H2", "H3", "H4")  # of the fabric whose manager dies
SECOND = {"H6": "2", "H7": "3"}  # of the other one, whose manager runs on H5 → its port of the switch
UNIT = "opensm.service"


def test_a_subnet_manager_that_died_and_ports_that_lost_their_link(tmp_path: Path) -> None:
    """The master of one fabric dies while the standby's service does not run: it is started, and the nodes are answered
    again. In the other one a person has disabled a node's port: it stays so. And the switch's end of another one hangs: no
    reset of the node's end helps, the switch's is bounced. Nothing else is touched."""
    with ibsim_fabric.fabric(tmp_path, "two.topo") as net, standby(net, tmp_path / "box") as box:
        master = net.subnet_manager("H2", priority=5)
        net.subnet_manager("H5", priority=5)
        for node in ("H3", *SECOND):
            net.until(functools.partial(active, net, node), f"{node} did not become active")
        first = f'topology = "{_places(tmp_path)}"\n'
        with Wires(net) as wires, brain(tmp_path, _config(net), first=first) as whole:
            configs = dict.fromkeys(FABRIC, 'allow = ["evidence.collect", "ib.sm_state"]')
            configs |= dict.fromkeys(SECOND, 'allow = ["evidence.collect", "ib.port_reset", "port.check"]')
            configs["H1"] = (
                f'allow = ["ib.sm_state", "service.start"]\nservices = ["{UNIT}"]\ndbus_address = "{box.bus_address}"'
            )
            with agents(whole, {node: f"{on(net, node)}{more}" for node, more in configs.items()}):
                began = time.time()
                master.kill()
                net.ask("H6", "ibportstate", "-C", "ibsim0", "-P", "1", "-D", "0", "1", "disable")
                wires.hangs("H7")
                heals = functools.partial(healed, whole, began=began, within_s=300)
                manager = heals("no-working-sm", component="fabric/default", counterpart=SERVICE)
                far = heals(
                    "ib-port-down", component="port/H7/ibsim0.1", counterpart=f"{WHERE}, its switch's end"
                )
                assert manager.actions == ("sm.status", "sm.start_standby")
                assert far.actions == (
                    *("evidence.collect", "ib.port_reset", "switch.port_bounce", "port.check"),
                    "scheduler.resume",
                )
                assert [active(net, node) for node in SECOND] == [False, True]
                assert "sm guid 0x100001," in net.ask("H3", "sminfo")
                assert box.run("systemctl", "is-active", UNIT).stdout == "active\n"
                assert {scope: cause for scope, cause in causes(whole).items() if cause != "clock-off"} == {
                    "port/H7/ibsim0.1": "ib-port-down",
                    "fabric/default": "no-working-sm",
                }


def _places(folder: Path) -> Path:
    path = folder / "places.yaml"
    path.write_text(
        "".join(f"{node}: {{fabric: default}}\n" for node in FABRIC)
        + "".join(f"{node}: {{fabric: second}}\n" for node in SECOND)
    )
    return path


def _config(net: Fabric) -> str:
    cables = net.folder / "cables.yaml"
    cables.write_text(
        "".join(f'{node}: {{ibsim0.1: {{switch: S2, port: "{port}"}}}}\n' for node, port in SECOND.items())
    )
    command = json.dumps([str(switch_tool(net)), "{switch}", "{port}", "{do}"])
    return (
        f"{AUTO}[settings]\nshared_small_share = 2\n[subnet_managers.default]\n"
        'ask = ["H3", "H4"]\nlook_s = 0.5\nhosts = [{node = "H1"}, {node = "H2"}]\n'
        f'[switches.site]\ntype = "command"\ncommand = {command}\ncables = "{cables}"\n'
        "disabled = 'PhysLinkState:[.]+Disabled'\nup = 'PhysLinkState:[.]+LinkUp'\ndown = 'PhysLinkState:'\n"
    )


def switch_tool(net: Fabric) -> Path:
    """The site's own way to a port of the switch: by the real ibportstate, from H5, beside it.

    What a port that was disabled forgets, its simulator does not know: a file says that it was."""
    path = net.folder / "switch-port"
    path.write_text(
        '#!/bin/sh\ndo=$3; [ "$do" = state ] && do=query\n'
        f'{net.tools("H5")}/ibportstate -C ibsim0 -P 1 -D 0,1 "$2" "$do" || exit\n'
        f'if [ "$do" = disable ]; then : > "{net.folder}/disabled-$2"; fi\n'
    )
    path.chmod(0o755)
    return path


@contextlib.contextmanager
def standby(net: Fabric, folder: Path) -> Iterator[nspawn.Machine]:
    """The systemd of H1, whose subnet manager is installed as a service that nobody has started."""
    home = net.folder / "sm-H1"
    home.mkdir()
    words = {**net.environment("H1"), "OSM_CACHE_DIR": str(home), "OSM_TMP_DIR": str(home)}
    unit = "[Unit]\nDescription=subnet manager\n[Service]\n" + "".join(
        f"Environment={name}={value}\n" for name, value in words.items()
    )
    unit += (
        f"WorkingDirectory={home}\nExecStart=/usr/sbin/opensm -F {FILES}/opensm.conf -p 5 -f {home}/osm.log\n"
    )
    with nspawn.machine(folder, {}, binds=[str(net.folder)], host_network=True) as box:
        (box.root / "etc/systemd/system" / UNIT).write_text(unit)
        box.run("systemctl", "daemon-reload")
        yield box


def on(net: Fabric, node: str) -> str:
    """The part of an agent's configuration that says where its devices and tools are."""
    devices = net.mirror(node) / "sys/class/infiniband"
    tools = net.tools(node)
    return (
        f'ib_root = "{devices}"\nib_tools = "{tools}"\nibportstate = "{tools}/ibportstate"\n'
        "sm_interval_s = 2\nkmsg_facilities = [23]\n"
    )


class Wires:
    """The hosts' /sys follows the fabric; and what the simulator lacks: a cable with both ends polling trains, unless the
    switch's end hangs, which begins again when it has been disabled."""

    def __init__(self, net: Fabric) -> None:
        self._net, self._end = net, threading.Event()
        self._hang: set[str] = set()
        self._tool = str(switch_tool(net))
        self._thread = threading.Thread(target=self._live)

    def hangs(self, node: str) -> None:
        """The link of `node` goes down, and its switch port does not train any more."""
        self._hang.add(node)
        self._net.console(f'Unlink "{node}"[1]')

    def _live(self) -> None:
        rounds = itertools.count()
        while not self._end.wait(0.4):
            for node in FABRIC if next(rounds) % 4 == 0 else ():
                self._net.mirror(node)
            for node, port in SECOND.items():
                if "Polling" in _port(self._net, node, "phys_state"):
                    self._train(node, port)

    def _train(self, node: str, port: str) -> None:
        # In this order: an end that is disabled now was asked after that, and is left alone.
        if (self._net.folder / f"disabled-{port}").exists():
            self._hang.discard(node)
        far = self._net.ask("H5", self._tool, "S2", port, "state")
        if node not in self._hang and far and "Disabled" not in far:
            self._net.console(f'Unlink "{node}"[1]')
            self._net.console(f'Relink "{node}"[1]')

    def __enter__(self) -> "Wires":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def _port(net: Fabric, node: str, name: str) -> str:
    return (net.mirror(node) / "sys/class/infiniband/ibsim0/ports/1" / name).read_text()


def active(net: Fabric, node: str) -> bool:
    """Has its port a link, and did a subnet manager configure it?"""
    return "ACTIVE" in _port(net, node, "state") and "LinkUp" in _port(net, node, "phys_state")
