"""The broker is away for ten minutes while the node has 300 facts a second; and the wall clock is stepped."""

from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from agent.contract.messages import Severity, decode_event
from agent.uplink.publisher import Publisher
from agent.uplink.spool import Spool
from tests.agent.uplink_kit import Clock, FakeHost, fact, waiting
from tests.real.intake_kit import intake
from tests.real.nats import nats_server, whole_log
from tests.real.test_uplink import running, until

NODE = "gpu-1"
KEPT = 20_000
FACTS = 600 * 300
EVERY = 200  # one fact in so many is an error; the others are mild


@pytest.mark.slow
@pytest.mark.component("nats-server")
async def test_ten_minutes_without_a_broker_keep_what_matters(tmp_path: Path) -> None:
    """The bound holds, every error survives, the mild ones that are dropped are the oldest, and people are told."""
    clock = Clock()
    spool = Spool(tmp_path / "spool.db", FakeHost(clock), NODE, max_events=KEPT, max_bytes=64 * 1024 * 1024)
    errors = 0
    for start in range(0, FACTS, 300):  # a second's facts come in one go: this is no test of the disk's speed
        clock.mono_s += 1.0
        batch = [
            fact(number, Severity.ERROR if number % EVERY == 0 else Severity.INFO)
            for number in range(start, start + 300)
        ]
        errors += sum(unsent.severity is Severity.ERROR for unsent in batch)
        spool.put_all(batch, clock.mono_s)
    assert spool.spooled <= KEPT
    assert spool.dropped == FACTS - spool.spooled
    with nats_server(tmp_path, nodes=[NODE]) as server:
        expected = waiting(spool)
        async with (
            intake(server.url),
            running(server.node_url(NODE), Publisher(spool, "default", NODE).serve),
        ):
            await until(lambda: spool.spooled == 0, 200)
        events = [decode_event(orjson.loads(body), NODE) for body in await whole_log(server.url)]
    assert [event.id for event in events] == [message["id"] for message in expected], "in order, once each"
    assert sum(event.severity is Severity.ERROR for event in events) == errors == FACTS // EVERY
    mild = [int(event.data["lost"]) for event in events if event.severity is Severity.INFO]
    assert mild == sorted(mild)
    assert mild[0] > FACTS - KEPT - errors - 2000, "of the mild ones the newest are kept"
    assert events[0].age_s > 500, "an old fact says how old it is"
    spool.report_dropped()
    assert [message["data"]["dropped"] for message in waiting(spool)] == [FACTS - len(events)]
    spool.close()


def test_a_wall_clock_that_is_stepped_changes_no_order_and_no_age(tmp_path: Path) -> None:
    """NTP steps the node's clock back by an hour between two facts: only the explaining time of day shows it."""
    clock = Clock()
    spool = Spool(tmp_path / "spool.db", FakeHost(clock), NODE)
    spool.put(fact(1), clock.mono_s)
    clock.mono_s += 1.0
    clock.wall -= timedelta(hours=1)
    spool.put(fact(2), clock.mono_s)
    clock.mono_s += 1.0
    first, second = waiting(spool)
    assert (first["data"]["lost"], second["data"]["lost"]) == (1, 2)
    assert (first["age_s"], second["age_s"]) == (2.0, 1.0)
    assert first["at"] > second["at"]
    spool.close()
