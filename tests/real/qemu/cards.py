"""Runs in the guest: nic.reset on cards that are broken on purpose (card/gwcard.c). One JSON line a story."""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from agent.actions.base import Params
from agent.actions.devlink import Devlink
from agent.actions.driver_modules import DriverModules
from agent.actions.modules import Modules
from agent.actions.mtu_set import MtuSet
from agent.actions.network_cards import NetworkCards
from agent.actions.nic_reset import NicReset, NicTools
from agent.actions.nic_saved import SavedInterfaces
from agent.contract.errors import ActionError
from agent.host import Host

ONE, TWIN, OTHER = (
    "0000:00:05.0",
    "0000:00:05.1",
    "0000:00:06.0",
)  # two functions of one card, and another card
PCI = Path("/sys/bus/pci/devices")
ELSEWHERE, BROKER = ("127.0.0.1", 4222), ("10.9.0.2", 4222)


def sh(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=20)


def interface(bdf: str) -> str:
    """The one interface of a function; empty while there is none."""
    folder = PCI / bdf / "net"
    return next((path.name for path in folder.iterdir()), "") if folder.exists() else ""


def state(bdf: str) -> dict[str, object]:
    """What `ip` says of it."""
    argv = ["ip", "-j", "link", "show", interface(bdf)]
    said = json.loads(subprocess.run(argv, check=True, capture_output=True, timeout=20).stdout)[0]
    return {"up": "UP" in said["flags"], "link": "LOWER_UP" in said["flags"], "mtu": said["mtu"]}


class Lab:
    """The action over the guest's own machine, with little patience."""

    def __init__(self) -> None:
        host = Host()
        self.peer = ELSEWHERE
        cards = NetworkCards(host, "/sys/class/infiniband")
        modules = DriverModules(
            host, Modules(host, modprobe="/usr/sbin/modprobe", rmmod="/usr/sbin/rmmod"), {"gwcard": "gw"}
        )
        self.folder = Path(tempfile.mkdtemp())
        self.saved = SavedInterfaces(host, cards, self.folder, patience_s=0.5)
        tools = NicTools(cards=cards, devlink=Devlink("/usr/sbin/devlink"), modules=modules, saved=self.saved)
        self.action = NicReset(host, lambda: self.peer, tools, settle_s=0.2, down_s=0.1)

    async def outcome(self, params: Params) -> str:
        try:
            return (await self.action.run(params)).text
        except ActionError as error:
            return f"{type(error).__name__}: {error}"


def tell(story: str, **values: object) -> None:
    print(json.dumps({"story": story, **values}), flush=True)


async def main() -> None:
    sh("modprobe", "gwcard")
    lab = Lab()
    for bdf, mtu in ((ONE, "5000"), (OTHER, "1500")):
        sh("ip", "link", "set", interface(bdf), "mtu", mtu, "up")

    for broken, at_most in ((1, "reload"), (2, "reload"), (3, "reload"), (4, "driver")):
        (PCI / ONE / "broken").write_text(str(broken))
        if broken == 3:  # nobody gives this address back
            sh("ip", "addr", "add", "10.8.0.1/24", "dev", interface(ONE))
        said = await lab.outcome({"nic": f"nic/{ONE}", "at_most": at_most})
        tell(f"needs {broken}", said=said, after=state(ONE), other=state(OTHER))

    async def cut_short(broken: int, at_most: str, when: Callable[[], bool]) -> None:
        """Cancelled as soon as `when()` holds."""
        (PCI / ONE / "broken").write_text(str(broken))
        task = asyncio.create_task(lab.outcome({"nic": f"link/{interface(ONE)}", "at_most": at_most}))
        while not when() and not task.done():
            await asyncio.sleep(0.005)
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        tell(
            f"cancelled at {at_most}",
            cancelled=isinstance(ended, asyncio.CancelledError),
            after=state(ONE),
            other=state(OTHER),
            left=len(list(lab.folder.iterdir())),
        )

    for size in (9001, 9000):  # the driver takes at most 9000
        try:
            text = (
                await MtuSet(Host(), lambda: ELSEWHERE).run({"link": f"link/{interface(ONE)}", "mtu": size})
            ).text
        except ActionError as error:
            text = f"{type(error).__name__}: {error}"
        tell(f"mtu {size}", said=text, after=state(ONE))
    sh("ip", "link", "set", interface(ONE), "mtu", "5000")

    flags = Path(f"/sys/class/net/{interface(ONE)}/flags")
    await cut_short(0, "link", lambda: not int(flags.read_text(), 0) & 1)
    await cut_short(4, "driver", lambda: not Path("/sys/module/gwcard").exists())

    # The agent dies with the driver unloaded.
    lab.saved.save(ONE, [ONE, TWIN, OTHER], ["gwcard"])
    sh("rmmod", "gwcard")
    fresh = Lab()
    await fresh.action.recover({"nic": f"nic/{ONE}"})
    untouched = Path("/sys/module/gwcard").exists()
    fresh = Lab()
    fresh.saved._folder = lab.folder  # the folder of the one that died
    await fresh.action.recover({"nic": f"nic/{ONE}"})
    tell(
        "died",
        untouched=untouched,
        after=state(ONE),
        other=state(OTHER),
        left=len(list(lab.folder.iterdir())),
    )

    # The control path on a card: it, its twin function, another card of the driver.
    sh("ip", "addr", "add", "10.9.0.1/24", "dev", interface(TWIN))
    sh("ip", "link", "set", interface(TWIN), "up")
    lab.peer = BROKER
    plans = {
        "twin": f"nic/{TWIN}",
        "one": f"nic/{ONE}",
        "other": f"nic/{OTHER}",
        "unknown": "nic/0000:7f:00.0",
        "bridge": "nic/0000:00:00.0",
        "loopback": "link/lo",
    }
    for name, component in plans.items():
        try:
            steps = await lab.action.plan({"nic": component, "at_most": "driver"})
        except ActionError as error:
            steps = [f"{type(error).__name__}: {error}"]
        tell(f"plan {name}", plan=steps)
    (PCI / ONE / "broken").write_text("2")
    tell("beside", said=await lab.outcome({"nic": f"nic/{ONE}", "at_most": "health"}), twin=state(TWIN))


asyncio.run(main())
