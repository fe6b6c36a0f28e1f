"""A wider fault takes an incident over that people were called for: what they are told, in the shipped rules."""

from dataclasses import replace
from functools import cache
from typing import Any

from brain.core.effects import SendPage
from brain.core.pack.spec import Mode, ModeSetting, Pack, Paging, Runbook, Rung
from brain.core.state import IncidentState
from tests.brain.world import GPU, Story, pack, rule
from tests.shipped import shipped_pack


@cache
def shipped(mode: Mode = Mode.OBSERVE) -> Pack:
    """The shipped rules at a site with one channel group."""
    given = shipped_pack()
    quiet = replace(given.settings, modes=(ModeSetting(mode=mode),), groups=("oncall",))
    return replace(given, settings=quiet)


def pages(of: Story, **wanted: Any) -> list[SendPage]:
    """The pages whose subject has these fields."""
    return [
        page
        for page in of.time.pages
        if all(getattr(page.subject, key) == value for key, value in wanted.items())
    ]


def test_a_gpu_that_falls_off_the_bus_takes_its_xid_over() -> None:
    """The XID's alert does not end: in the same moment it goes on as that of the loss, as news."""
    it = Story(shipped())
    it.event(10, "gpu.xid", GPU, code=119, name="GSP_RPC_TIMEOUT", action="RESET_GPU")
    it.event(10.1, "gpu.lost", GPU, reason="reset_required")
    it.event(100, "gpu.xid", GPU, code=79, name="GPU_OFF_BUS")
    it.run(300)
    fatal, lost = it.incidents("gpu-fatal-xid")[0], it.incidents("gpu-lost")[0]
    assert fatal.state is IncidentState.EXPLAINED
    assert "resolve" not in [page.what for page in pages(it, cause="gpu-fatal-xid")]
    first = pages(it, cause="gpu-lost")[0]
    assert (first.what, first.subject.id, first.subject.key) == ("update", lost.id, fatal.id)
    assert "which explains gpu-fatal-xid on" in first.text


def test_whoever_was_called_hears_of_what_took_it_over() -> None:
    """Also where the wider fault's own rule calls people only when its remedy has failed; nobody called, nobody told."""
    given = pack()
    rules = (
        rule("link-down", "link", {"symptom": "link_down"}, page=Paging.OPEN),
        rule("node-sick", "node", {"symptom": "device_removed"}, inhibits=("link-down",), runbook="collect"),
    )
    evidence = Rung(name="collect", do="evidence.collect", params={"component": "$component"})
    books = (Runbook(name="collect", summary="collect", rungs=(evidence,)),)
    for link_first, told in ((True, ["open link-down", "update node-sick"]), (False, [])):
        it = Story(replace(given, rules=rules, runbooks=books))
        it.event(10 if link_first else 50.2, "link.state", "link/eth1", up=False)
        it.event(50, "job.cuda_error", "node", name="CUDA_ERROR_DEVICE_REMOVED")
        it.run(50.6)  # its run has not ended
        assert [f"{page.what} {page.subject.cause}" for page in it.time.pages] == told


def test_without_a_network_group_those_on_call_get_one_end() -> None:
    """A fault of the fabric pages them, and its runbook the network's people, whom this site does not have: one alert."""
    it = Story(shipped(Mode.AUTO))
    for node in range(1, 13):
        it.event(10, "ib.port_state", "port/mlx5_0.1", f"n{node}", state="DOWN", before="ACTIVE")
    it.run(200)
    for node in range(1, 13):
        it.event(300, "ib.port_state", "port/mlx5_0.1", f"n{node}", state="ACTIVE", before="DOWN")
    it.run(3000)
    told = [(page.what, page.to) for page in pages(it, cause="fabric-suspected")]
    assert told.count(("resolve", "oncall")) == 1
    assert {to for _, to in told} == {"oncall"}
