"""UFM's events as inputs: known ones once and at the right cable, unknown ones counted, a sick UFM told once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from brain.adapters.ufm_events import MOST, UfmEvents, listeners
from brain.core.inputs import Reported
from brain.core.lint_symptoms import KINDS
from brain.ufm import Ufm, ufms
from tests.brain.ufm_fake import TOKEN, FakeUfm, ufm


class Listener:
    """One brain's ear."""

    def __init__(self, client: Ufm, store: Path, *, leads: bool = True) -> None:
        self.got: list[Reported] = []
        self.told: list[str] = []
        self.leading = leads
        self.events = UfmEvents(
            client,
            put=self.got.append,
            tell=lambda kind, text: self.told.append(f"{kind}: {text}"),
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
    """Our side of it."""
    (tmp_path / "token").write_text(TOKEN)
    table = {"url": fake.url, "token_file": tmp_path / "token", "timeout_s": 0.5, "every_s": 0.02}
    one = ufms({"a": table | {"nodes": {"gpu-1": "n1"}, "types": {"1300": "hot"}}})["a"]
    yield one
    await one.close()


async def test_what_is_new_is_brought_once_and_at_its_cable(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """The switch's end belongs to the node at the other end; what was there before is no news; repeats are nothing."""
    ear = Listener(client, tmp_path / "last")
    assert await ear.events.look() == 0
    fake.event(2, "329", "Link is Down", "000a1_1")
    fake.event(3, "110", "Symbol Error", "00bb_2", "Minor")
    fake.event(4, "328", "Link is Up", "000a1_1", "Info")
    fake.event(5, "1300", "Something Hot", "00bb_1", "Critical")
    fake.event(6, "0", "SM Failover", "default", "Warning")
    fake.event(7, "907", "Switch is Down", "00bb")
    assert await ear.events.look() == 6
    assert await ear.events.look() == 0
    assert [(one.kind, one.node, one.component, one.severity.value) for one in ear.got] == [
        ("ib.port_state", "n1", "port/mlx5_0.1", "warning"),
        ("ufm.port_errors", "gpu-2", "port/mlx5_0.1", "warning"),
        ("ib.port_state", "n1", "port/mlx5_0.1", "info"),
        ("ufm.module_hot", "n1", "port/mlx5_0.1", "error"),
        ("ufm.sm_changed", "", "node", "warning"),
        ("ufm.switch_down", "", "node", "error"),
    ]
    assert [one.data["state"] for one in (ear.got[0], ear.got[2])] == ["DOWN", "ACTIVE"]
    assert (ear.got[1].data["counter"], ear.got[1].data["side"]) == ("symbol_error", "switch")
    assert ear.got[0].id == "ufm:a:20260101000002:2"
    for one in ear.got:
        assert {field.name for field in KINDS[one.kind].fields} == set(one.data), one.kind


async def test_unknown_events_and_links_between_switches_are_counted_and_noted_once(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """They never become an input."""
    ear = Listener(client, tmp_path / "last")
    await ear.events.look()
    for number in (2, 3, 4):
        fake.event(number, "352", "Network Added", "Grid", "Info")
    fake.event(5, "329", "Link is Down", "00cc_1")
    fake.event(6, "329", "Link is Down", "00bb_33")
    fake.events.append({"id": "x"})
    assert await ear.events.look() == 0
    assert ear.got == []
    assert (dict(ear.events.unknown), ear.events.unplaced) == ({"352": 3}, 2)
    assert [line.partition(":")[0] for line in ear.told] == ["ufm.unknown_event", "ufm.unplaced"]


async def test_a_restart_and_another_leader_go_on_where_it_was(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """From the file, or from the log that every brain reads; the same event has the same id wherever it is brought."""
    first = Listener(client, tmp_path / "one")
    await first.events.look()
    fake.event(2, "329", "Link is Down")
    await first.events.look()
    fake.event(3, "328", "Link is Up")
    again = Listener(client, tmp_path / "one")
    assert await again.events.look() == 1
    assert [one.id for one in again.got] == ["ufm:a:20260101000003:3"]
    other = Listener(client, tmp_path / "two")
    for given in (*first.got, *again.got):
        other.events.heard(given)
    other.events.heard(
        Reported(
            id="ufm:b:1:99", source="ufm", node="", kind="", component="", severity=first.got[0].severity
        )
    )
    fake.event(4, "329", "Link is Down")
    assert await other.events.look() == 1


async def test_a_ufm_that_counts_anew_and_a_storm(fake: FakeUfm, client: Ufm, tmp_path: Path) -> None:
    """Told; of a storm the newest are taken."""
    ear = Listener(client, tmp_path / "last")
    fake.events.clear()
    fake.event(5000, "329", "Link is Down")
    await ear.events.look()
    fake.events.clear()
    fake.event(1, "329", "Link is Down")
    assert await ear.events.look() == 0
    for number in range(2, MOST + 12):
        fake.event(number, "329", "Link is Down")
    assert await ear.events.look() == MOST
    assert [line.partition(":")[0] for line in ear.told] == ["ufm.reset", "ufm.storm"]


async def test_only_the_leader_asks_and_a_sick_ufm_is_told_once(
    fake: FakeUfm, client: Ufm, tmp_path: Path
) -> None:
    """Bad credentials, errors and slowness are told, tried again, and their end is told too."""
    ear = Listener(client, tmp_path / "last", leads=False)
    task = asyncio.create_task(ear.events.run())

    async def until(kinds: list[str]) -> None:
        async with asyncio.timeout(10):
            while [line.partition(":")[0] for line in ear.told] != kinds:
                await asyncio.sleep(0.01)

    await asyncio.sleep(0.1)
    assert fake.asked == []
    ear.leading = True
    fake.status = 401
    await until(["ufm.unreachable"])
    assert "look at token_file" in ear.told[0]
    fake.status, fake.slow_s = 0, 5
    asked = len(fake.asked)
    async with asyncio.timeout(10):
        while len(fake.asked) == asked:
            await asyncio.sleep(0.01)
    fake.slow_s = 0
    await until(["ufm.unreachable", "ufm.reachable"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_listener_for_each_ufm_whose_events_are_wanted(tmp_path: Path) -> None:
    """`every_s = 0` leaves a UFM to the switches alone."""
    (tmp_path / "token").write_text("x")
    table = {"url": "https://u", "token_file": tmp_path / "token"}
    found = listeners(
        {"a": table, "b": table | {"every_s": 0}},
        put=lambda _: None,
        tell=lambda *_: None,
        leads=lambda: True,
        data_dir=tmp_path,
    )
    assert len(found) == 1


def test_a_meaning_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """By its key."""
    (tmp_path / "token").write_text("x")
    table = {"url": "https://u", "token_file": tmp_path / "token", "types": {"9": "hto"}}
    with pytest.raises(ConfigError, match=r"ufm\.a\.types\.9: no meaning 'hto' \(have: link_up, "):
        Listener(ufms({"a": table})["a"], tmp_path / "last")
