"""Switch ports by UFM: asked what it allows, set, read back; cables that are not sure are left alone."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Unreachable
from brain.actions.base import Action, Order
from brain.actions.switch import port_actions
from brain.actions.switch_ufm import build
from brain.ufm.client import Ufm, ufms
from tests.brain.ufm_fake import PASSWORD, TOKEN, USER, FakeUfm, ufm


@pytest.fixture
async def fake() -> AsyncIterator[FakeUfm]:
    """A UFM with three nodes."""
    async with ufm() as found:
        yield found


@pytest.fixture
async def client(fake: FakeUfm, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Ufm]:
    """Our side of it, with a token; patient, unless a test says for how many seconds only."""
    (tmp_path / "token").write_text(TOKEN + "\n")
    names = {f"gpu-{n}": f"n{n}" for n in (1, 2, 3)}
    table = {
        "url": fake.url,
        "token_file": tmp_path / "token",
        "timeout_s": getattr(request, "param", 30),
        "nodes": names,
    }
    one = ufms({"a": table})["a"]
    yield one
    await one.close()


def actions(client: Ufm, **more: Any) -> dict[str, Action]:
    """The three."""
    backend = build({"type": "ufm", "ufm": "a"} | more, "switches.a", {"a": client})
    return {action.name: action for action in port_actions([backend], poll_s=0.02, pause_s=0.02)}


def order(node: str = "n1", component: str = "port/mlx5_0.1", timeout_s: float = 60) -> Order:
    """About a port."""
    return Order(
        id="s1",
        incident="i1",
        node=node,
        params={"component": component},
        timeout_s=timeout_s,
        why="errors at n1",
    )


async def test_a_port_goes_down_and_up_and_twice_is_nothing(fake: FakeUfm, client: Ufm) -> None:
    """The switch's end of the node's cable, by the job's end and the port's own state."""
    act = actions(client)
    assert await act["switch.port_disable"].plan(order()) == ["disable leaf-1 port 1 (now up)"]
    assert fake.actions == []
    done = await act["switch.port_disable"].run(order())
    assert (done.text, done.data) == ("leaf-1 port 1 is disabled", {"switch": "leaf-1", "switch_port": "1"})
    assert fake.ports["00bb_1"]["physical_state"] == "Disabled"
    assert await act["switch.port_disable"].plan(order()) == ["nothing: leaf-1 port 1 is disabled"]
    await act["switch.port_disable"].run(order())
    with pytest.raises(Refused, match="would enable what someone has disabled"):
        await act["switch.port_bounce"].plan(order())
    assert (await act["switch.port_enable"].run(order())).text == "leaf-1 port 1 is up"
    await act["switch.port_enable"].run(order())
    assert (
        await act["switch.port_bounce"].run(order())
    ).text == "leaf-1 port 1 was down and has its link again"
    assert fake.actions == [("disable", "00bb_1"), ("enable", "00bb_1")] * 2
    assert "GET /ufmRestV3/jobs/17" in fake.asked


async def test_what_is_not_sure_is_refused(fake: FakeUfm, client: Ufm) -> None:
    """Unknown ports, links between switches, ends that disagree, and what the port does not allow."""
    act = actions(client)["switch.port_disable"]
    for node, component, why in (
        ("n1", "port/mlx5_7.1", r"knows 0 ports mlx5_7\.1 of gpu-1"),
        ("n9", "port/mlx5_0.1", "knows 0 ports"),
        ("n1", "link/eth0", "UFM knows InfiniBand ports"),
        ("n1", "gpu/0000:3b:00", "component must be port/"),
        ("", "port/mlx5_0.1", "names no node"),
    ):
        with pytest.raises(Refused, match=why):
            await act.run(order(node, component))
    fake.ports["000a2_1"]["peer"] = "00bb_1"
    with pytest.raises(Refused, match="00bb_1 names another port at its other end: '000a1_1'"):
        await act.run(order("n2"))
    fake.ports["000a2_1"]["peer"] = "000a3_1"
    with pytest.raises(Refused, match="is no switch port"):
        await act.run(order("n2"))
    fake.ports["000a3_1"]["description"] = "Switch IB Port"
    with pytest.raises(Refused, match="link between switches"):
        await act.run(order("n3"))
    fake.ports["00bb_1"]["capabilities"] = ["reset"]
    with pytest.raises(Refused, match=r"does not allow disable on leaf-1 port 1 \(allows: reset\)"):
        await act.run(order())
    with pytest.raises(Refused, match=r"no table of \[switches\] has the node n1"):
        await actions(client, nodes="m*")["switch.port_disable"].run(order())
    assert fake.actions == []


async def test_a_switch_that_reports_falsely_or_fails(fake: FakeUfm, client: Ufm) -> None:
    """Read back: a port that stays up was not disabled. A job that fails says so."""
    act = actions(client)
    fake.lies = True
    with pytest.raises(ActionError, match="was disabled and is still up"):
        await act["switch.port_disable"].run(order(timeout_s=3.2))
    fake.lies = False
    fake.job = "Completed With Errors"
    with pytest.raises(ActionError, match="disable 00bb_1: job 17 Completed With Errors a summary"):
        await act["switch.port_disable"].run(order())


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, Refused), (403, Refused), (500, Unreachable), (429, Unreachable), (302, Refused)],
)
async def test_answers_say_who_must_act(
    fake: FakeUfm, client: Ufm, status: int, error: type[ActionError]
) -> None:
    """The operator, or the network later."""
    fake.status = status
    with pytest.raises(error, match=f"GET /resources/ports: {status}"):
        await actions(client)["switch.port_disable"].run(order())


@pytest.mark.parametrize("client", [0.5], indirect=True)
async def test_a_slow_answer_to_an_action_is_unknown_and_to_a_question_nothing(
    fake: FakeUfm, client: Ufm
) -> None:
    """Nobody knows whether the POST was done; a GET changes nothing."""
    fake.slow_s = 60
    with pytest.raises(TimedOut, match="did not answer POST /actions"):
        await client.act("disable", "00bb_1", "x")
    with pytest.raises(Unreachable, match="did not answer GET"):
        await client.port("00bb_1")


async def test_a_cancelled_bounce_sets_the_port_up_again(fake: FakeUfm, client: Ufm) -> None:
    """Cancelled in its pause."""
    backend = build({"type": "ufm", "ufm": "a"}, "switches.a", {"a": client})
    (bounce, *_) = port_actions([backend], poll_s=0.02, pause_s=30)
    task = asyncio.create_task(bounce.run(order(timeout_s=60)))
    async with asyncio.timeout(60):
        while fake.ports["00bb_1"]["physical_state"] != "Disabled":
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert fake.ports["00bb_1"]["physical_state"] == "Link Up"
    assert fake.actions[-1] == ("enable", "00bb_1")


async def test_user_and_password_use_the_other_path(fake: FakeUfm, tmp_path: Path) -> None:
    """Basic authentication lives below /ufmRest; a wrong password is for the operator to correct."""
    (tmp_path / "good").write_text(PASSWORD)
    (tmp_path / "bad").write_text("no")
    tables = {
        name: {"url": fake.url, "user": USER, "password_file": tmp_path / name} for name in ("good", "bad")
    }
    both = ufms(tables)
    assert len(await both["good"].ports()) == len(fake.ports)
    with pytest.raises(Refused, match="check token_file, or user and password_file"):
        await both["bad"].ports()
    assert fake.asked[0] == "GET /ufmRest/resources/ports"
    for one in both.values():
        await one.close()


@pytest.mark.component("openssl")
async def test_a_certificate_that_is_not_the_sites_is_not_trusted(tmp_path: Path) -> None:
    """Nothing is sent to a UFM whose certificate the CA file does not vouch for."""
    if shutil.which("openssl") is None:
        pytest.skip("needs apt-get install openssl")
    for name in ("own", "other"):
        argv = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]
        argv += ["-subj", "/CN=ufm", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
        argv += ["-keyout", f"{tmp_path}/{name}.key", "-out", f"{tmp_path}/{name}.pem"]
        subprocess.run(argv, check=True, capture_output=True, timeout=20)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "own.pem", tmp_path / "own.key")
    (tmp_path / "token").write_text(TOKEN)
    async with ufm(tls) as fake:
        table = {"url": fake.url, "token_file": tmp_path / "token"}
        both = ufms({name: table | {"ca_file": tmp_path / f"{name}.pem"} for name in ("own", "other")})
        assert len(await both["own"].ports()) == len(fake.ports)
        asked = len(fake.asked)
        with pytest.raises(Unreachable, match="certificate"):
            await both["other"].ports()
        assert len(fake.asked) == asked
        for one in both.values():
            await one.close()


def test_a_wrong_table_is_refused_by_name(tmp_path: Path) -> None:
    """Table and key stand in the error."""
    (tmp_path / "token").write_text("x")
    for table, why in (
        ({"url": "ufm"}, r"ufm\.a\.url: must begin with https"),
        ({"url": "http://ufm.example.com"}, r"ufm\.a\.url: must begin with https"),
        ({"url": "https://u"}, r"ufm\.a: give token_file, or user and password_file"),
        ({"url": "https://u", "tokn": "x"}, r"ufm\.a\.tokn: is not an option here"),
        ({"url": "https://u", "token_file": tmp_path / "none"}, r"ufm\.a\.token_file: .* cannot be read"),
        (
            {"url": "https://u", "token_file": tmp_path / "token", "ca_file": tmp_path / "none"},
            r"ufm\.a\.ca_file: ",
        ),
    ):
        with pytest.raises(ConfigError, match=why):
            ufms({"a": table})
    with pytest.raises(ConfigError, match=r"switches\.s\.ufm: there is no \[ufm\.b\]"):
        build({"ufm": "b"}, "switches.s", {})
