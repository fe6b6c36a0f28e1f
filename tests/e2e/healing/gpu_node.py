"""A node with two GPUs in a container: a real systemd, the real agent as its unit, and a board of our own below it.

    with gpu_node(whole, tmp_path, library, "gpu1") as node:
        node.nvml.change(0, {RECOVERY: RESET})     # the driver wants a reset: only one mends it
        node.box.run("systemctl", "kill", "-sKILL", "nvidia-dcgm")

The board is the fake NVML library, a recorded PCI bus, which the agent's unit sees in the place of the real one, and
NVIDIA's services and tools: what they do to the board is what they do to a GPU. A GPU is well again after a reset, which
nvidia-smi refuses while a process holds a device, and after a boot, when the driver is loaded again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.agent.gpu_kit import FIRST, H100, SECOND, Tool
from tests.agent.nvml_kit import plug
from tests.e2e.stack import BIN, ROOT, Stack
from tests.fixtures.nvml_fake import FakeNvml
from tests.real import nspawn

RECOVERY, RESET, REBOOT = (230, 0), 1, 2  # NVML's field, and what the driver may want there
DCGM, EXPORTER, FABRIC, PERSISTENCED = (
    "nvidia-dcgm.service", "dcgm-exporter.service", "nvidia-fabricmanager.service", "nvidia-persistenced.service",
)  # fmt: skip
ALLOWED = (
    *("evidence.collect", "service.restart", "fabricmanager.restart"),
    *("node.reboot", "gpu.reset", "gpu.power_limit"),
    *("gpu.links_check", "port.check", "gpu.diagnose", "node.accept"),
)
_PASSED = """{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "memory", "results": [
{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}]}]}]}}"""
_BUS = r"Avg bus bandwidth\s*:\s*(?P<bus_gb_per_s>[0-9.]+)"
_HOLDER = "[Service]\nType=exec\nExecStart=/bin/sh -c 'exec 9>>/dev/nvidia0; exec sleep infinity'\n"
_HELD = "if ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q /dev/nvidia; then echo in use; exit 255; fi"
# A GPU's own state after it was reset: `fields` as they were when it was plugged in.
_FRESH = 'cp "$gpu/fresh" "$gpu/fields.new"; mv "$gpu/fields.new" "$gpu/fields"'


class GpuNode:
    """See the module's docstring. `box` is there inside of `gpu_node`, until it reboots."""

    box: nspawn.Machine

    def __init__(self, whole: Stack, folder: Path, library: Path, name: str) -> None:
        self.name = name
        self.lab = folder / name
        self.lab.mkdir(parents=True)
        self.socket = self.lab / "check.sock"
        self.nvml = FakeNvml(self.lab / "nvml", library)
        for index, bdf in enumerate((FIRST, SECOND)):
            self.nvml.well(index)
            self.nvml.set(index, arch=H100, power_least_mw=200_000, power_most_mw=700_000)
            fields = self.lab / f"nvml/gpu{index}/fields"
            fields.with_name("fresh").write_text(fields.read_text())
            plug(self.lab, bdf)
        switch = self.lab / "sys/bus/pci/devices/0000:c0:00.0"
        switch.mkdir()
        (switch / "vendor").write_text("0x10de\n")
        (switch / "class").write_text("0x068000\n")
        self.smi, self.boots = Tool(self.lab / "nvidia-smi"), Tool(self.lab / "boot")
        self.dcgmi, self.all_reduce = Tool(self.lab / "dcgmi"), Tool(self.lab / "all_reduce")
        self.dcgmi.does(f"cat <<'X'\n{_PASSED}\nX")
        self.all_reduce.does("echo '# Avg bus bandwidth    : 371.25'")
        self.fabric, self.exporter = Tool(self.lab / "fabricmanager"), Tool(self.lab / "exporter")
        self._tools()
        whole.nats.add(name)
        config = whole.write_agent_config(
            f"allow = {list(ALLOWED)}\nservices = ['{DCGM}', '{EXPORTER}']\nwatch_services = ['{FABRIC}']\n"
            f"dcgmi = '{self.dcgmi.path}'\n"
            f"nvidia_smi = '{self.smi.path}'\nnvml_interval_s = 0.5\nidle_window_s = 2\n"
            f"sm_interval_s = 0\ndisk_full_percent = 0\ncheck_socket = '{self.socket}'\n"
            f"[acceptance.all_reduce]\nargv = ['{self.all_reduce.path}', '-g', '2']\nlimit_s = 60\nquick = true\n"
            f"figures = '{_BUS}'\nfloors = {{bus_gb_per_s = 150}}\n"
        ).read_text()
        config = config.replace(f'node = "{whole.node}"', f'node = "{name}"')
        config = config.replace(whole.nats.node_url(whole.node), whole.nats.node_url(name))
        (self.lab / "agent.toml").write_text(
            config.replace(f'data_dir = "{whole.folder}/agent"', f'data_dir = "{self.lab}/data"')
        )

    def _tools(self) -> None:
        """What NVIDIA's tools and the kernel's do to the board."""
        nvml = self.lab / "nvml"
        self.smi.does(
            f'[ "$1 $2" = "--gpu-reset -i" ] || exit 2\n{_HELD}\n'
            f'for gpu in {nvml}/gpu*; do [ "$(cat $gpu/uuid)" = "$3" ] && {{ {_FRESH}; }}; done; exit 0'
        )
        self.boots.does(f"for gpu in {nvml}/gpu*; do {_FRESH}; done")
        # It registers every GPU with the fabric, which takes a moment.
        self.fabric.does(
            f'for gpu in {nvml}/gpu*; do echo "2 0 170" > $gpu/fabric; done; sleep 0.5\n'
            f'for gpu in {nvml}/gpu*; do echo "3 0 170" > $gpu/fabric; done; exec sleep infinity'
        )
        # Its fault: on SIGUSR1 it opens the second GPU and forgets it. What a process has ends with it.
        self.exporter.does(
            f"trap 'echo \"$$ 400\" > {nvml}/gpu1/processes' USR1\nwhile :; do sleep 0.2; done"
        )

    @property
    def units(self) -> dict[str, str]:
        """What its systemd runs."""
        held = self.lab / "nvml/gpu1/processes"
        env = " ".join(f"{name}={value}" for name, value in self.nvml.env.items())
        return {
            DCGM: _HOLDER,
            PERSISTENCED: _HOLDER,
            EXPORTER: f"[Service]\nType=exec\nExecStart={self.exporter.path}\nExecStopPost=/bin/rm -f {held}\n",
            FABRIC: f"[Service]\nType=exec\nExecStart={self.fabric.path}\n",
            "gpu-driver.service": f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={self.boots.path}\n",
            "agent.service": (
                f"[Unit]\nAfter=gpu-driver.service\n[Service]\nEnvironment=PYTHONDONTWRITEBYTECODE=1 {env}\n"
                f"WorkingDirectory={ROOT}\nBindPaths={self.lab}/sys/bus/pci:/sys/bus/pci\n"
                f"ExecStart={BIN}/gpuward-agent run --config {self.lab}/agent.toml\nStandardError=append:{self.lab}/agent.log\n"
            ),
        }

    def pid(self, unit: str) -> str:
        """Its main process; "0" when it does not run."""
        return self.box.run("systemctl", "show", "-P", "MainPID", unit).stdout.strip()


@contextmanager
def gpu_node(whole: Stack, folder: Path, library: Path, name: str) -> Iterator[GpuNode]:
    """The node, booted; the brain has not heard it yet."""
    node = GpuNode(whole, folder, library, name)
    binds = [str(node.lab), f"{library}:ro", f"{ROOT}:ro"]
    with nspawn.machine(folder / f"{name}-box", node.units, binds=binds, host_network=True, name=name) as box:
        node.box = box
        yield node


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """How warm a GPU with full load gets by the power that it may draw: its fan is broken."""

    room_c: float = 30.0
    per_w_c: float = 0.1  # 700 W: 100 °C, 490 W: 79 °C
    most_c: float = 90.0
    moves: float = 0.05  # of the way to that temperature in one turn


@contextmanager
def hot(node: GpuNode, index: int, card: Card | None = None, *, turn_s: float = 0.1) -> Iterator[None]:
    """Meanwhile that GPU's fan is broken; it warms up and cools down as physics wants, and slows down by heat."""
    card, over = card or Card(), threading.Event()

    def live() -> None:
        now_c = 85.0
        while not over.wait(turn_s):
            limit_w = int((node.nvml.folder / f"gpu{index}/power_limit_mw").read_text() or 0) / 1000
            now_c += (card.room_c + card.per_w_c * limit_w - now_c) * card.moves
            left_c = card.most_c - now_c
            node.nvml.set(index, temp=int(now_c), margin=int(left_c), reasons=0x20 if left_c <= 0 else 0)

    thread = threading.Thread(target=live, name="heat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
