"""BMCs by Redfish: a fake that misbehaves as BMCs in the field do, over real TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ActionError, Refused, TimedOut, Unreachable
from brain.actions.base import Action, Unwell
from tests.real.bmc_kit import QUICK, built, certificate, order, password_file, perform, server_tls
from tests.real.redfish_fake import RedfishFake
from tests.real.redfish_resources import resources

pytestmark = pytest.mark.component("openssl")
Actions = dict[str, Action]


@pytest.fixture(name="tls", scope="module")
def _tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    cert, key = certificate(tmp_path_factory.mktemp("tls"))
    return cert, server_tls(cert, key)


@pytest.fixture(name="bmc")
async def _bmc(tls: tuple[Path, ssl.SSLContext]) -> AsyncIterator[RedfishFake]:
    async with RedfishFake(tls[1]) as fake:
        yield fake


@pytest.fixture(name="site")
def _site(bmc: RedfishFake, tls: tuple[Path, ssl.SSLContext], tmp_path: Path) -> Callable[..., Actions]:
    def make(**changes: Any) -> Actions:
        table = {
            "type": "redfish",
            "address": bmc.url,
            "nodes": "gpu01",
            "user": "admin",
            "password_file": str(password_file(tmp_path)),
            "ca_file": str(tls[0]),
            **QUICK,
            **changes,
        }
        return built({"racks": {key: value for key, value in table.items() if value is not None}})

    return make


async def test_off_and_on_are_done_seen_and_the_session_is_closed(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """The hardware takes its time after "accepted"; asking again for what is so already does nothing."""
    bmc.settle_s = 0.2
    done = await perform(site()["bmc.power_off"])
    assert (bmc.power, bmc.asked) == ("Off", ["ForceOff"])
    assert "is off" in done.text
    assert "already" in (await perform(site()["bmc.power_off"])).text
    await perform(site()["bmc.power_on"])
    assert (bmc.power, bmc.asked) == ("On", ["ForceOff", "On"])
    assert not bmc.open_sessions, "sessions are few; who leaves them open locks everybody out"
    assert bmc.logins == 3


async def test_a_plan_says_what_would_be_done_and_does_nothing(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """For every action; refused where it would be refused."""
    for name, action in site().items():
        lines = await action.plan(order())
        assert lines, name
        assert "gpu01 is on" in lines[0], name
    assert bmc.asked == []
    assert not bmc.open_sessions
    bmc.allowed = ("On",)
    for name in ("bmc.power_off", "bmc.power_cycle", "bmc.restart", "bmc.nmi", "node.isolate"):
        with pytest.raises(Refused, match="offers no"):
            await site()[name].plan(order())
    bmc.power = "Off"
    bmc.allowed = ("GracefulRestart", "Nmi")
    for name in ("bmc.restart", "bmc.nmi"):
        with pytest.raises(Refused, match="gpu01 is off"):
            await site()[name].plan(order())


async def test_a_bmc_that_lies_is_found_out(bmc: RedfishFake, site: Callable[..., Actions]) -> None:
    """204 and nothing happens: a failure, so that the ladder goes on; asked once only."""
    bmc.lies = True
    with pytest.raises(ActionError, match="did not carry it out") as caught:
        await perform(site(settle_s=0.4)["bmc.power_off"])
    assert type(caught.value) is ActionError
    assert bmc.asked == ["ForceOff"]
    with pytest.raises(TimedOut, match="never seen off"):
        await perform(site(unseen_s=0.3)["bmc.power_cycle"])
    bmc.last_reset = "2026-01-01T00:00:00Z"
    with pytest.raises(ActionError, match="last reset still 2026") as caught:
        await perform(site(unseen_s=0.3)["bmc.power_cycle"])
    assert type(caught.value) is ActionError
    assert bmc.asked == ["ForceOff", "PowerCycle", "PowerCycle"]


async def test_a_node_that_was_not_seen_off_is_not_isolated(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """Nobody may take a node for fenced because its BMC said "accepted"; and without a BMC nothing is begun."""
    bmc.lies = True
    with pytest.raises(ActionError, match="did not carry it out"):
        await perform(site(settle_s=0.4)["node.isolate"], timeout_s=300.0, shutdown_s=0.2)
    assert bmc.asked == ["GracefulShutdown", "ForceOff"]
    await bmc.gone()
    with pytest.raises(Unreachable, match="NOT isolated"):
        await perform(site()["node.isolate"], timeout_s=300.0)


async def test_a_power_cycle_by_the_bmc_is_proved_by_seeing_it_off(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """Or, when it was off too shortly to be seen, by the time of the last reset."""
    assert "seen off" in (await perform(site()["bmc.power_cycle"])).text
    bmc.cycle_off_s, bmc.last_reset = -1.0, "2026-01-01T00:00:00Z"
    assert "last reset is new" in (await perform(site()["bmc.power_cycle"])).text
    assert bmc.asked == ["PowerCycle", "PowerCycle"]


async def test_without_a_power_cycle_it_is_off_seen_off_and_on(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """The order matters: `On` is asked for only when the node was seen off."""
    bmc.allowed, bmc.by_action_info, bmc.settle_s = ("On", "ForceOff"), True, 0.2
    await perform(site()["bmc.power_cycle"])
    assert bmc.asked == ["ForceOff", "On"]
    assert bmc.asked_while == ["On", "Off"]
    assert bmc.power == "On"
    bmc.allowed, bmc.asked, bmc.lies = ("ForceOff",), [], True
    with pytest.raises(Refused, match="neither"):
        await perform(site()["bmc.power_cycle"])
    assert bmc.asked == [], "who cannot give it back does not take it"


async def test_a_node_that_is_off_gets_its_power_instead_of_a_cycle(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """The half that is left."""
    bmc.power = "Off"
    await perform(site()["bmc.power_cycle"])
    assert bmc.asked == ["On"]


async def test_a_request_without_an_answer_is_unknown_and_never_sent_twice(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """The client library would repeat it three times; a power cycle of a node that has just come up is a second fault."""
    bmc.answers_reset.clear()
    bmc.lies = True
    with pytest.raises(TimedOut, match="may or may not"):
        await perform(site(answer_s=2.0, unseen_s=0.6)["bmc.power_cycle"])
    assert bmc.asked == ["PowerCycle"]
    assert bmc.logins == 1


async def test_a_lost_answer_to_off_is_made_good_by_looking(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """Off is off, whoever heard of it."""
    bmc.answers_reset.clear()
    assert "is off" in (await perform(site(answer_s=2.0)["bmc.power_off"])).text
    assert bmc.asked == ["ForceOff"]


async def test_what_was_not_sent_yet_is_not_sent_after_a_cancellation(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """Cancelled while the BMC is slow with a reading: the reset that would follow must not come minutes later."""
    bmc.hold_reading = 3  # after the login's and the action's own: the last look before the request
    task = asyncio.create_task(perform(site()["bmc.power_off"]))
    async with asyncio.timeout(60):
        while bmc.samples < 3:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0)
    bmc.release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bmc.asked == []
    assert bmc.log[-1].startswith("DELETE"), "the session was closed all the same"


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (503, Unreachable, "is busy"),
        (400, Refused, "self-test"),
        (409, Refused, "self-test"),
        (501, Refused, "self-test"),
        (403, Refused, "rights"),
        (500, TimedOut, "may or may not"),
        (302, Refused, "302"),
    ],
)
async def test_what_a_bmc_answers_decides_who_must_act(
    bmc: RedfishFake,
    site: Callable[..., Actions],
    answer: int,
    error: type[ActionError],
    says: str,
) -> None:
    """ "Not now" may be asked again, "no" not, and after an internal error nobody knows."""
    bmc.reset_answer = answer
    with pytest.raises(error, match=says) as caught:
        await perform(site(unseen_s=0.6)["bmc.power_cycle"])
    assert type(caught.value) is error
    assert bmc.asked == ["PowerCycle"]


async def test_a_wrong_password_is_tried_once(
    bmc: RedfishFake, site: Callable[..., Actions], tmp_path: Path
) -> None:
    """BMCs lock accounts: one attempt, and none again with the same password; a new one is tried at once."""
    bmc.password = "changed"
    actions = site()
    for _ in range(3):
        with pytest.raises(Refused, match="password"):
            await perform(actions["bmc.power_off"])
    assert bmc.logins == 1
    (tmp_path / "password-secret").write_text("changed")
    await perform(actions["bmc.power_off"])
    assert bmc.power == "Off"
    assert bmc.logins == 2


@pytest.mark.parametrize("how", ["not offered", "404", "503"])
async def test_basic_login_where_there_are_no_sessions(
    bmc: RedfishFake, site: Callable[..., Actions], how: str
) -> None:
    """Not offered, switched off, or all taken."""
    bmc.sessions_offered = how != "not offered"
    bmc.session_answer = int(how) if how.isdigit() else 201
    await perform(site()["bmc.power_off"])
    assert bmc.power == "Off"
    bmc.password, bmc.logins = "changed", 0
    with pytest.raises(Refused, match="password"):
        await perform(site()["bmc.power_on"])
    assert bmc.logins == 1


async def test_urls_of_a_bmc_do_not_lead_elsewhere(bmc: RedfishFake, site: Callable[..., Actions]) -> None:
    """BMCs give absolute URLs under names that only they know; our token must not go to any other host."""
    bmc.absolute_urls = True
    await perform(site()["bmc.power_off"])
    assert bmc.power == "Off"
    assert not bmc.open_sessions


async def test_a_certificate_that_is_not_trusted_is_the_operators(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """Refused before any password is sent; going without must be asked for by name."""
    with pytest.raises(Refused, match=r"certificate is not trusted.*ca_file"):
        await perform(site(ca_file=None)["bmc.power_off"])
    assert bmc.log == []
    await perform(site(ca_file=None, insecure=True)["bmc.power_off"])
    assert bmc.power == "Off"


async def test_a_bmc_that_is_gone_slow_or_busy_is_unreachable(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """Nothing was done; and each is over within its time: one that drips would last for ever."""
    bmc.busy = 1
    with pytest.raises(Unreachable, match="is busy"):
        await perform(site()["bmc.power_cycle"])
    bmc.drips = True
    with pytest.raises(Unreachable, match="an answer of more than"):
        await perform(site(answer_s=1.0)["bmc.power_cycle"])
    bmc.drips = False
    bmc.answers.clear()
    with pytest.raises(Unreachable, match="no answer in time"):
        await perform(site(answer_s=1.0)["bmc.power_cycle"])
    await bmc.gone()
    with pytest.raises(Unreachable, match="nothing listens there"):
        await perform(site()["bmc.power_cycle"])
    assert bmc.asked == []


async def test_a_bmc_that_is_busy_after_the_request_is_asked_until_it_answers(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """503 while it switches power is no reason to despair."""
    bmc.settle_s, bmc.busy_after = 0.1, 3
    await perform(site()["bmc.power_off"])
    assert bmc.power == "Off"
    assert bmc.busy == 0


async def test_a_bmc_that_restarts_forgets_our_session_and_is_asked_on(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """After the request a lost session must not read as "refused, nothing was done"."""
    bmc.settle_s, bmc.hold_reading = 0.2, 5
    task = asyncio.create_task(perform(site(settle_s=0.8)["bmc.power_off"]))
    async with asyncio.timeout(60):
        while bmc.samples < 5:
            await asyncio.sleep(0.01)
    bmc.open_sessions.clear()
    bmc.password = "changed"
    bmc.release.set()
    with pytest.raises(TimedOut, match="cannot be read"):
        await task
    assert bmc.asked == ["ForceOff"]
    assert bmc.logins == 2, "one for the lost session, whatever it brings"


async def test_restart_and_interrupt(bmc: RedfishFake, site: Callable[..., Actions]) -> None:
    """Orderly where the BMC can, hard where not; nothing of it for a node that is off."""
    await perform(site()["bmc.restart"])
    bmc.allowed = ("ForceRestart", "Nmi")
    await perform(site()["bmc.restart"])
    await perform(site()["bmc.nmi"])
    assert bmc.asked == ["GracefulRestart", "ForceRestart", "Nmi"]
    bmc.allowed = ("On",)
    for name in ("bmc.restart", "bmc.nmi"):
        with pytest.raises(Refused, match="offer"):
            await perform(site()[name])
    bmc.power = "Off"
    for name in ("bmc.restart", "bmc.nmi"):
        with pytest.raises(Refused, match="is off"):
            await perform(site()[name])
    assert len(bmc.asked) == 3


async def test_evidence_tells_what_is_unwell_first_and_the_newest_events(
    bmc: RedfishFake, site: Callable[..., Actions]
) -> None:
    """The step fails. Old and new kinds of chassis, a failed power supply, two logs with more entries than a page; bounded."""
    bmc.extra = resources()
    with pytest.raises(Unwell, match="unhealthy: PSU 2") as found:
        await perform(site()["bmc.evidence"])
    data = found.value.data
    assert data["power"] == "on"
    assert data["SerialNumber"] == "S123"
    sensors = [name for name in data if name.startswith("sensor ")]
    assert sensors[0] == "sensor PSU 2"
    assert data["sensor PSU 2"] == "no reading (Critical)"
    assert len(sensors) == 24
    assert "°C" in str(data["sensor Inlet"])
    assert str(data["event 1"]).startswith("2026-05-30"), "the newest, from the last page"
    assert "event 11" not in data
    assert "sensor Empty slot" not in data
    assert "Chassis/gone" in str(data["not read"])
    assert sum(len(f"{key}{value}") for key, value in data.items()) < 16_000


async def test_nodes_without_a_bmc_and_bmcs_with_two_systems_are_refused(
    bmc: RedfishFake, site: Callable[..., Actions], tmp_path: Path
) -> None:
    """Nothing is guessed. A file of addresses is read again when it has changed."""
    with pytest.raises(Refused, match="no BMC"):
        await perform(site(nodes="cpu*", address="https://{node}")["bmc.power_off"])
    book = tmp_path / "bmcs.toml"
    book.write_text('gpu02 = "https://nowhere.invalid"')
    actions = site(address=None, addresses=str(book))
    with pytest.raises(Refused, match="no BMC address of gpu01"):
        await perform(actions["bmc.power_off"])
    book.write_text(f'gpu02 = "https://nowhere.invalid"\ngpu01 = "{bmc.url}"')
    bmc.systems = ["/redfish/v1/Systems/1", "/redfish/v1/Systems/HGX"]
    with pytest.raises(Refused, match=r"2 systems \(1, HGX\)"):
        await perform(actions["bmc.power_off"])
    await perform(site(system="1")["bmc.power_off"])
    assert bmc.power == "Off"
