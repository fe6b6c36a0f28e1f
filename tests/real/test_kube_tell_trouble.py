"""What cannot be shown of our drain in `kubectl describe node`, and who writes at once, on a real API server."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agent.contract.errors import ActionError
from brain import fence
from brain.actions import scheduler as actions
from brain.actions import telling
from brain.actions.kube_tell import BEGUN, ENDED
from brain.actions.marks import Mark
from tests.real import kube_plane
from tests.real.kube_plane import Plane
from tests.real.kube_told import BOTH, ROLES, Site, cleaned, events, order, ours

pytestmark = [
    pytest.mark.component("kubernetes"),
    pytest.mark.skipif(bool(kube_plane.missing()), reason=kube_plane.missing() or "-"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """One control plane for all."""
    with kube_plane.plane() as made:
        yield made


@pytest.fixture
def clean(plane: Plane) -> Plane:
    """Nothing of an earlier test on nodes, and both rights."""
    return cleaned(plane)


async def test_a_server_that_hangs_holds_up_neither_drain_nor_return(
    clean: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the taint stands, and once it is gone: what cannot be shown is said after a while, and shown by the next step."""
    monkeypatch.setattr(telling, "TELL_S", 1.0)
    site = Site(clean, *BOTH)
    request = site.kube._api.request
    answers = asyncio.Event()

    async def hangs(method: str, path: str, **more: Any) -> Any:
        if not answers.is_set() and ("/events" in path or "/status" in path):
            await answers.wait()
        return await request(method, path, **more)

    monkeypatch.setattr(site.kube._api, "request", hangs)
    assert (
        await site.drain("inc-1")
    ).text == "gpu1 is drained by us; no jobs; k8s does not show it: no answer within 1 s"
    assert (
        await site.resume("inc-1")
    ).text == "gpu1 takes jobs again; k8s does not show it: no answer within 1 s"
    assert events(clean) == {}
    assert ours(clean) == {}
    answers.set()
    await site.drain("inc-2")
    assert set(events(clean)) == {BEGUN}
    assert ours(clean)["status"] == "True"
    site.later()
    await site.resume("inc-2")
    assert ours(clean)["status"] == "False"
    await site.kube.close()


async def test_two_brains_at_once_write_one_event_and_one_that_has_just_expired_is_written_anew(
    clean: Plane,
) -> None:
    """The second finds that it stands. The server forgets events after an hour, also between our look and our write."""
    first, second = Site(clean, *BOTH), Site(clean, *BOTH)
    await first.kube.drain("gpu1", Mark(incident="inc-1", why="dead"))
    await asyncio.gather(*(one.kube.tell("gpu1", {"inc-1"}) for one in (first, second)))
    assert [count for _, count, _ in events(clean)[BEGUN]] == [1]

    first.later()
    await first.resume("inc-1")
    await first.kube.drain("gpu1", Mark(incident="inc-1", why="dead again"))
    first.later()
    request, expired = first.kube._api.request, list[str]()

    async def forgets(method: str, path: str, **more: Any) -> Any:
        if method == "PATCH" and "/events/" in path and not expired:
            expired.append(path)
            clean.kubectl("delete", "event", "-n", "default", path.rpartition("/")[2])
        return await request(method, path, **more)

    first.kube._api.request = forgets  # type: ignore[method-assign]  # its server does
    await first.kube.tell("gpu1", {"inc-1"})
    assert len(expired) == 1
    assert [(count, text) for _, count, text in events(clean)[BEGUN]] == [
        (1, "gpuward drains the node: dead again [inc-1]")
    ]
    for one in (first, second):
        await one.kube.close()


class Deposing:
    """The fence of a brain whose lease is taken by another one as soon as it has changed one thing."""

    left = 1

    async def confirm(self) -> bool:
        """As in Fence."""
        self.left -= 1
        return self.holds()

    def holds(self) -> bool:
        """As in Fence."""
        return self.left >= 0


async def test_a_brain_that_leads_no_longer_shows_nothing(clean: Plane) -> None:
    """It was deposed once the taint stood. The next leader, which repeats the step, shows it."""
    site = Site(clean, *BOTH)
    with fence.around(Deposing()), pytest.raises(fence.Deposed):
        await site.drain("inc-1")
    assert clean.taints("gpu1") == ["gpuward/drained"]
    assert events(clean) == {}
    assert ours(clean) == {}
    await site.drain("inc-1")
    assert set(events(clean)) == {BEGUN}
    assert ours(clean)["status"] == "True"
    await site.kube.close()


async def test_two_that_write_at_once_leave_what_is_true(clean: Plane) -> None:
    """Each write is decided on what it was read from: one that is late does not put back what is over."""
    site, late = Site(clean, *BOTH), Site(clean, *BOTH)
    await site.drain("inc-1")
    request, once = late.kube._api.request, [True]

    async def overtaken(method: str, path: str, **more: Any) -> Any:
        if once and path.endswith("/status"):
            once.clear()
            site.later()
            await site.resume("inc-1")
        return await request(method, path, **more)

    late.kube._api.request = overtaken  # type: ignore[method-assign]  # by another brain
    await late.kube.tell("gpu1", {"inc-1"})
    assert once == []
    assert ours(clean)["status"] == "False"
    for one in (site, late):
        await one.kube.close()


async def test_a_failed_drain_says_so_on_its_way(clean: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is that of the pods; what is not shown stands in its progress."""
    clean.kubectl("delete", "-f", str(ROLES["events"]))
    await asyncio.to_thread(clean.pods, "train", "gpu1")
    site, said = Site(clean, "events"), list[str]()
    drain = actions.Drain(lambda _: site.kube)
    with pytest.raises(ActionError, match="there still run"):
        await drain.run(replace(order("inc-1"), progress=said.append))
    assert any(text.startswith("k8s does not show it: ") for text in said)
    await site.kube.close()


@pytest.mark.parametrize("lacking", BOTH)
async def test_without_the_right_it_is_said_and_the_drain_goes_on(clean: Plane, lacking: str) -> None:
    """The other half is shown all the same; what is missing is named by the doctor, and only where it is switched on."""
    clean.kubectl("delete", "-f", str(ROLES[lacking]))
    site, silent = Site(clean, *BOTH), Site(clean)
    names = {
        "events": ["get events", "create events", "patch events"],
        "conditions": ["patch nodes/status", "list nodes"],
    }
    assert await site.kube.lacking() == names[lacking]
    assert await silent.kube.lacking() == []
    drained, returned = (await site.drain("inc-1")).text, (await site.resume("inc-1")).text
    assert drained.startswith("gpu1 is drained by us; no jobs; k8s does not show it: ")
    assert f" to {names[lacking][0]}: " in drained
    # Of a condition that was never written there is nothing to take back.
    assert ("; k8s does not show it: " in returned) == (lacking == "events")
    assert returned.startswith("gpu1 takes jobs again")
    assert clean.taints("gpu1") == []
    if lacking == "events":
        assert events(clean) == {}
        assert ours(clean)["status"] == "False"
    else:
        assert BEGUN in events(clean)
        assert ENDED in events(clean)
        assert ours(clean) == {}
    for one in (site, silent):
        await one.kube.close()
