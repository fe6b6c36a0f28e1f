"""UFM's events as inputs: known ones once and at the right cable, unknown ones counted, a failing UFM noted once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from agent.contract.messages import Severity
from brain.core.inputs import Reported
from brain.core.pack.lint_symptoms import KINDS
from brain.ufm.client import Ufm, ufms
from brain.ufm.events import MOST, UfmListener, listeners
from tests.brain.ufm_fake import TOKEN, FakeUfm, ufm


class Listener:
    """The listener of one brain, and what it published and noted."""

    def __init__(self, client: Ufm, store: Path, *, leads: bool = True) -> None:
        self.got: list[Reported] = []
        self.notified: list[str] = []
        self.leading = leads
        self.events = UfmListener(
            client,
            put=self.got.append,
            note=lambda kind, text: self.notified.append(f"{kind}: {text}"),
            leads=lambda: self.leading,
            store=store,
        )


@pytest.fixture
async def fake() -> AsyncIterator[FakeUfm]:
    """A UFM that remembers one old event."""
    async with ufm() as found:
        found.event(1, "329", "Link is Down")
        yield found


@pytest.fixture
async def client(fake: FakeUfm, tmp_path: Path) -> AsyncIterator[Ufm]:
    """Our client of it."""
    (tmp_path / "token").write_text(TOKEN)
    table = {"url": fake.url, "token_file": tmp_path / "token", "timeout_s": 2, "every_s": 0.02}
    one = ufms({"a": table | {"nodes": {"gpu-1": "n1"}, "types": {"1300": "hot"}}})["a"]
    yield one
    await one.close()


async def test_a_new_event_is_published_once_and_at_its_cable(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """The switch's end belongs to the node at the other end; events from before the first poll and repeats are dropped."""
    listener = Listener(client, tmp_path / "last")
    assert await listener.events.poll() == 0
    fake.event(2, "329", "Link is Down", "000a1_1")
    fake.event(3, "110", "Symbol Error", "00bb_2", "Minor")
    fake.event(4, "328", "Link is Up", "000a1_1", "Info")
    fake.event(5, "1300", "Something Hot", "00bb_1", "Critical")
    fake.event(6, "0", "SM Failover", "default", "Warning")
    fake.event(7, "907", "Switch is Down", "00bb")
    assert await listener.events.poll() == 6
    assert await listener.events.poll() == 0
    assert [(one.kind, one.node, one.component, one.severity.value) for one in listener.got] == [
        ("ib.port_state", "n1", "port/mlx5_0.1", "warning"),
        ("ufm.port_errors", "gpu-2", "port/mlx5_0.1", "warning"),
        ("ib.port_state", "n1", "port/mlx5_0.1", "info"),
        ("ufm.module_hot", "n1", "port/mlx5_0.1", "error"),
        ("ufm.sm_changed", "", "node", "warning"),
        ("ufm.switch_down", "", "node", "error"),
    ]
    assert [one.data["state"] for one in (listener.got[0], listener.got[2])] == ["DOWN", "ACTIVE"]
    assert (listener.got[1].data["counter"], listener.got[1].data["side"]) == ("symbol_error", "switch")
    assert listener.got[0].id == "ufm:a:20260101000002:2"
    for one in listener.got:
        assert {field.name for field in KINDS[one.kind].fields if field.always} == set(one.data), one.kind


@pytest.mark.parametrize(
    ("name", "severity", "hot"),
    [
        ("Cable Temperature High", "Critical", True),
        ("Cable Temperature Low", "Critical", False),
        ("Cable Temperature Low", "Info", False),
        ("Low Module Temperature", "Warning", False),
    ],
)
async def test_a_module_that_is_too_cold_is_not_hot(
    fake: FakeUfm, client: Ufm, tmp_path: Path, name: str, severity: str, hot: bool
) -> None:
    """UFM's alarm of it may be critical."""
    listener = Listener(client, tmp_path / "last")
    await listener.events.poll()
    fake.event(2, "920", name, "00bb_1", severity)
    await listener.events.poll()
    (told,) = listener.got
    assert (told.kind, told.severity is not Severity.INFO) == ("ufm.module_hot", hot)


async def test_unknown_events_and_links_between_switches_are_counted_and_noted_once(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """They never become an input."""
    listener = Listener(client, tmp_path / "last")
    await listener.events.poll()
    for number in (2, 3, 4):
        fake.event(number, "352", "Network Added", "Grid", "Info")
    fake.event(5, "329", "Link is Down", "00cc_1")
    fake.event(6, "329", "Link is Down", "00bb_33")
    fake.events.append({"id": "x"})
    assert await listener.events.poll() == 0
    assert listener.got == []
    assert (dict(listener.events.unknown), listener.events.unplaced) == ({"352": 3}, 2)
    assert [line.partition(":")[0] for line in listener.notified] == ["ufm.unknown_event", "ufm.unplaced"]


async def test_a_restarted_brain_and_another_leader_continue_at_the_last_event(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """By the file, or by the log that every brain reads; an event has the same id whichever brain publishes it."""
    first = Listener(client, tmp_path / "one")
    await first.events.poll()
    fake.event(2, "329", "Link is Down")
    await first.events.poll()
    fake.event(3, "328", "Link is Up")
    assert await first.events._kept.settled()
    again = Listener(client, tmp_path / "one")
    assert await again.events.poll() == 1
    assert [one.id for one in again.got] == ["ufm:a:20260101000003:3"]
    other = Listener(client, tmp_path / "two")
    for given in (*first.got, *again.got):
        other.events.mark_published(given)
    other.events.mark_published(
        Reported(
            id="ufm:b:1:99", source="ufm", node="", kind="", component="", severity=first.got[0].severity
        )
    )
    fake.event(4, "329", "Link is Down")
    assert await other.events.poll() == 1


async def test_a_ufm_that_starts_to_number_its_events_again_and_a_storm(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """Both are noted; of a storm the newest events are published."""
    listener = Listener(client, tmp_path / "last")
    fake.events.clear()
    fake.event(5000, "329", "Link is Down")
    await listener.events.poll()
    fake.events.clear()
    fake.event(1, "329", "Link is Down")
    assert await listener.events.poll() == 0
    for number in range(2, MOST + 12):
        fake.event(number, "329", "Link is Down")
    assert await listener.events.poll() == MOST
    assert [line.partition(":")[0] for line in listener.notified] == ["ufm.reset", "ufm.storm"]


async def test_only_the_leader_polls_and_a_failing_ufm_is_noted_once(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """Bad credentials, errors and slowness are noted and retried, and their end is noted too."""
    listener = Listener(client, tmp_path / "last", leads=False)
    task = asyncio.create_task(listener.events.run())

    async def until(kinds: list[str]) -> None:
        async with asyncio.timeout(60):
            while [line.partition(":")[0] for line in listener.notified] != kinds:
                await asyncio.sleep(0.01)

    await asyncio.sleep(0.1)
    assert fake.asked == []
    listener.leading = True
    fake.status = 401
    await until(["ufm.unreachable"])
    assert "check token_file" in listener.notified[0]
    fake.status, fake.slow_s = 0, 60
    asked = len(fake.asked)
    async with asyncio.timeout(60):
        while len(fake.asked) == asked:
            await asyncio.sleep(0.01)
    fake.slow_s = 0
    await until(["ufm.unreachable", "ufm.reachable"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_listener_for_each_ufm_whose_events_are_wanted(tmp_path: Path) -> None:
    """With `every_s = 0` a UFM is only used to set switch ports."""
    (tmp_path / "token").write_text("x")
    table = {"url": "https://u", "token_file": tmp_path / "token"}
    found = listeners(
        {"a": table, "b": table | {"every_s": 0}},
        put=lambda _: None,
        note=lambda *_: None,
        leads=lambda: True,
        data_dir=tmp_path,
    )
    assert len(found) == 1


def test_an_unknown_meaning_is_refused(tmp_path: Path) -> None:
    """The error names its key."""
    (tmp_path / "token").write_text("x")
    table = {"url": "https://u", "token_file": tmp_path / "token", "types": {"9": "hto"}}
    with pytest.raises(ConfigError, match=r"ufm\.a\.types\.9: no meaning 'hto' \(have: link_up, "):
        Listener(ufms({"a": table})["a"], tmp_path / "last")
