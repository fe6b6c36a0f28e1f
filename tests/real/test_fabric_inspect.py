"""A look over a whole fabric with the real infiniband-diags, from the node that does it to what people are told."""

import asyncio
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.actions.base import RUNNING_COMMAND, RunningCommand
from agent.actions.bundle_folder import BundleFolder
from agent.actions.ib_inspect import IbInspect
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, Refused, Unreachable
from agent.contract.messages import Scalar
from agent.host import Host
from brain.actions.base import Order
from brain.actions.fabric_inspect import FabricInspect
from brain.actions.fabrics import Fabrics, ManagersOptions
from brain.core.inputs import StepResult
from tests.real import ibsim_fabric

pytestmark = [pytest.mark.root, pytest.mark.component("ibsim opensm"), pytest.mark.slow]

# The form of ibdiagnet 2's summary; NVIDIA's tool itself cannot be had here.
DIAGNET = """#!/bin/sh
echo "asked $@" > "$6/ibdiagnet2.log"
echo "-E- Links Check finished with errors"
echo "-I- Stage                     Warnings   Errors     Comment"
echo "-I- Discovery                 0          0"
echo "-I- Links Check               0          2"
"""


@pytest.fixture
def net(tmp_path: Path) -> Iterator[ibsim_fabric.Fabric]:
    """Four hosts on a switch, all of them active."""
    if why := ibsim_fabric.missing():
        pytest.skip(why)
    with ibsim_fabric.fabric(tmp_path) as net:
        net.subnet_manager("H1", priority=10)
        net.until(lambda: net.ask("H3", "iblinkinfo", "--line").count("Active/") == 8, "the links are active")
        yield net


def action(net: ibsim_fabric.Fabric, folder: Path, ibdiagnet: str = "") -> IbInspect:
    """As it is on H3."""
    host = Host(root=net.mirror("H3"))
    return IbInspect(
        host, BundleFolder(host, folder / "evidence"), tools=net.tools("H3"), ibdiagnet=ibdiagnet,
        root="/sys/class/infiniband", folder=folder / "fabric",
    )  # fmt: skip


def bundle(path: Path) -> dict[str, str]:
    """What is in it."""
    with tarfile.open(path) as tar:
        return {name: tar.extractfile(name).read().decode() for name in tar.getnames()}  # type: ignore[union-attr]  # files only


async def test_what_grows_while_it_looks_and_what_went_since_the_last_look(
    net: ibsim_fabric.Fabric, tmp_path: Path
) -> None:
    """Old counts are none; a port whose errors grow is, with both ends; so is a link that was there last time."""
    net.console('PerformanceSet "H4"[1] PortCounters.LinkDownedCounter=200')
    net.until(lambda: "200" in net.ask("H4", "perfquery"), "the counter is set")
    look = action(net, tmp_path)
    assert (await look.plan({}))[-1] == "ibqueryerrors again after 60 s"
    first = await look.run({"watch_s": 0})
    assert first.text == "4 links, 12 ports, 0 findings"
    files = bundle(tmp_path / "evidence" / first.evidence)
    assert "LinkDownedCounter == 200" in files["ibsim0.1/ibqueryerrors.txt"]
    assert '"H2"' in files["ibsim0.1/iblinkinfo.txt"]

    net.console('PerformanceSet "S1"[2] PortCounters.SymbolErrorCounter=12')
    net.until(lambda: "SymbolErrorCounter == 12" in _errors(net), "the counter is set")
    net.console('Unlink "H4"')
    net.until(lambda: '"H4"' not in net.ask("H3", "iblinkinfo", "--line"), "H4 is gone")
    lines = (await look.run({"watch_s": 0})).text.splitlines()
    assert lines[0] == "3 links, 11 ports, 2 findings:"
    assert any(line.startswith("S1 port 2 (to H2 port 1): SymbolErrorCounter +12 since 20") for line in lines)
    assert any("H4 port 1" in line and line.endswith("is gone") for line in lines)

    watching = asyncio.Event()
    RUNNING_COMMAND.set(
        RunningCommand(id="c1", report_progress=lambda text: watching.set() if "watching" in text else None)
    )
    task = asyncio.create_task(look.run({"watch_s": 2}))
    async with asyncio.timeout(60):
        await watching.wait()
    net.console('PerformanceSet "S1"[3] PortCounters.LinkDownedCounter=1')
    assert "S1 port 3 (to H3 port 1): LinkDownedCounter +1 within 2 s" in (await task).text
    assert not (tmp_path / "fabric/scratch").exists()


async def test_ibdiagnets_judgement_is_a_finding_and_its_files_are_kept(
    net: ibsim_fabric.Fabric, tmp_path: Path
) -> None:
    """A stage with errors, a tool that says nothing, a tool that is not there: each is said, and the look goes on."""
    script = tmp_path / "ibdiagnet"
    script.write_text(DIAGNET)
    script.chmod(0o755)
    done = await action(net, tmp_path, str(script)).run({"watch_s": 0})
    assert done.text.splitlines() == [
        "4 links, 12 ports, 1 finding:",
        "ibdiagnet has errors: Links Check 2; first: Links Check finished with errors",
    ]
    files = bundle(tmp_path / "evidence" / done.evidence)
    assert files["ibsim0.1/ibdiagnet2.log"].startswith("asked -i ibsim0 -p 1 -o ")
    assert "Discovery" in files["ibsim0.1/ibdiagnet.txt"]
    script.write_text("#!/bin/sh\necho no umad >&2; exit 4\n")
    assert (
        "did not come to its summary: no umad"
        in (await action(net, tmp_path, str(script)).run({"watch_s": 0})).text
    )
    assert "cannot be started" in (await action(net, tmp_path, "/nowhere/ibdiagnet").run({"watch_s": 0})).text


async def test_one_node_looks_and_what_it_finds_fails_the_step(
    net: ibsim_fabric.Fabric, tmp_path: Path
) -> None:
    """The first that can: one that refuses or cannot be reached is passed over; without any the step says why."""
    asked: list[tuple[str, str]] = []

    class Nodes:
        """H3 looks; H1 may not, H2 is away."""

        async def perform(
            self, node: str, name: str, params: Mapping[str, Scalar], *, of: Order, part: str
        ) -> StepResult:
            command = f"{of.id}.{part}"
            asked.append((node, command))
            if node == "H1":
                why = "ib.inspect is not allowed here"
                return StepResult(id="r", step=command, outcome=Outcome.REFUSED, why=why)
            if node == "H2":
                raise Unreachable("no agent listens there")
            assert (name, dict(params)) == ("ib.inspect", {})
            text = (await action(net, tmp_path).run({"watch_s": 0})).text
            return StepResult(id="r", step=command, outcome=Outcome.OK, why=text)

    def inspect(*nodes: str) -> FabricInspect:
        return FabricInspect(Fabrics({"default": ManagersOptions(inspect=nodes)}, Nodes()), Nodes())

    order = Order(
        id="r1.s1.a1", incident="inc-1", node="", params={"fabric": "fabric/default"}, timeout_s=60, why="-"
    )
    done = await inspect("H1", "H2", "H3").run(order)
    assert done.text == (
        "seen by H3 (gpuward evidence H3/r1.s1.a1.inspect-H3): 4 links, 12 ports, 0 findings"
    )
    assert dict(done.data) == {"inspected_by": "H3"}
    assert asked[-1] == ("H3", "r1.s1.a1.inspect-H3")
    net.console('Unlink "H4"')
    net.until(lambda: '"H4"' not in net.ask("H3", "iblinkinfo", "--line"), "H4 is gone")
    with pytest.raises(ActionError, match=r"inspect-H3\): 3 links, 11 ports, 1 finding:\n.*H4 port 1"):
        await inspect("H3").run(order)
    with pytest.raises(Unreachable, match=r"no node could inspect it: H1: .* H2: no agent"):
        await inspect("H1", "H2").run(order)
    with pytest.raises(Refused, match="not allowed"):
        await inspect("H1").run(order)


def _errors(net: ibsim_fabric.Fabric) -> str:
    # Its exit status is 1 when there are errors, which `ask` takes for a failure.
    return net.ask("H3", "sh", "-c", "ibqueryerrors; true")
