"""Every key of a cell is exchanged while a real brain, broker and agents run; and what must not exchange a key."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import ssl
import time
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from agent.contract import requests, subjects
from agent.contract.commands import Answer
from agent.contract.trust import Trust, pack_announcements
from brain.adapters.keys import Signer, load_signer
from tests import people
from tests.real.brain_kit import Node
from tests.security import rotation_kit as kit
from tests.security.test_cell import Machine, machine

pytestmark = pytest.mark.component("nats-server")
BACK_WITHIN_S = 3.0


def over(whole: Machine, kind: str) -> bool:
    """Is the rotation over?"""
    return kind not in kit.keys(whole)["rotations"]


def test_the_signing_key_is_rotated_and_no_node_is_lost(tmp_path: Path) -> None:
    """Who is live confirms; who is off is shown the announcements when it is back; the old key counts nowhere."""
    with machine(tmp_path) as whole:
        token = whole.token("--count", "3")
        for node in ("gpu-1", "gpu-2", "gpu-3"):
            whole.join(node, token)
        kit.start_heard(whole, "gpu-1", "gpu-2", "gpu-3")
        kit.stop(whole, "gpu-3")
        before, old = whole.status()["started_at"], kit.signer(whole)
        assert "the running brain puts the new key into use" in whole.cell("rotate", "signing")
        whole.until(lambda: over(whole, "signing"), "the rotation is over")
        new = kit.signer(whole)
        assert new.key_id != old.key_id
        who = pwd.getpwuid(os.getuid()).pw_name
        for what in (
            "the new key that signs commands is in use",
            "the old key that signs commands has been taken out",
        ):
            said = f"{who} on the brain's machine: {what}"
            whole.until(lambda said=said: said in whole.notes(), said)  # noted after the files have changed
        found = kit.keys(whole)
        assert found["signing"] == [new.key_id]
        assert kit.names(kit.announcements(whole)) == [[old.key_id, new.key_id], [new.key_id]]
        assert not [
            one
            for one in whole.data.glob("signing.key*")
            if one.name not in ("signing.key", "signing.key.pub")
        ]
        whole.until(lambda: list(kit.keys(whole)["unconfirmed"]) == ["gpu-3"], "all but gpu-3 have confirmed")
        assert (tmp_path / "gpu-1/data/trusted.json").stat().st_mode & 0o777 == 0o640

        # A command of the brain, by the new key.
        whole.ask("mode", "accept-node", "auto")
        whole.ask("start", "accept-node", "--node", "gpu-1")
        log = tmp_path / "gpu-1.log"
        whole.until(lambda: "gpu.links_check" in log.read_text(), "the command has come")
        assert "is not trusted here" not in log.read_text()

        async def old_key() -> None:
            async with kit.on_bus(whole, whole.data / "nats/keys/brain.nk") as client:
                reply = await kit.asked(client, "gpu-1", kit.command("gpu-1", old))
                assert reply.answer is Answer.REFUSED
                assert f"key '{old.key_id}' has ended" in reply.why
                assert (await kit.asked(client, "gpu-1", kit.command("gpu-1", new))).answer is Answer.ACCEPTED

        asyncio.run(old_key())
        kit.stop(whole, "gpu-1")
        kit.start_heard(whole, "gpu-3", "gpu-1")
        whole.until(
            lambda: not kit.keys(whole)["unconfirmed"], "gpu-3 has confirmed, and gpu-1 has forgotten nothing"
        )
        asyncio.run(old_key())
        assert kit.trusted(whole, "gpu-3")["keys"] == {new.key_id: new.public}
        assert whole.status()["started_at"] == before

        # Who joins now gets the new key, and lacks nothing.
        whole.join("gpu-4", whole.token())
        assert new.key_id in (tmp_path / "gpu-4/agent.toml").read_text()
        kit.start_heard(whole, "gpu-4")
        whole.until(lambda: not kit.keys(whole)["unconfirmed"], "gpu-4 has what it needs")
        assert kit.trusted(whole, "gpu-4") == {}


def test_a_node_that_does_not_confirm_holds_up_the_rotation_until_the_operator_says_now(
    tmp_path: Path,
) -> None:
    """It is named; the other key is in use as long; afterwards it is shown the announcements."""
    with machine(tmp_path, "unreachable_after_s = 600\n") as whole:  # a node that is silent is not waited for
        token = whole.token("--count", "2")
        whole.join("gpu-1", token)
        whole.join("gpu-2", token)
        kit.start_heard(whole, "gpu-1", "gpu-2")
        old = kit.signer(whole)
        whole.processes["gpu-2"].send_signal(signal.SIGSTOP)
        try:
            whole.cell("rotate", "signing")
            whole.until(lambda: "gpu-1" not in kit.keys(whole)["unconfirmed"], "gpu-1 has confirmed")
            found = kit.keys(whole)
            assert "gpu-2" in found["unconfirmed"]
            assert found["signing"][0] == old.key_id
            assert "is under way" in whole.cell("rotate", "signing", status=2)
            assert "not confirmed by 1 node: gpu-2" in whole.cell("show")
            whole.cell("rotate", "signing", "--now")
            whole.until(lambda: over(whole, "signing"), "the rotation is over")
        finally:
            whole.processes["gpu-2"].send_signal(signal.SIGCONT)
        whole.until(lambda: not kit.keys(whole)["unconfirmed"], "gpu-2 has confirmed too")
        new = kit.signer(whole)
        assert kit.trusted(whole, "gpu-2")["keys"] == {new.key_id: new.public}


def test_nobody_else_makes_a_node_trust_a_key(tmp_path: Path) -> None:
    """A stolen node, a stranger, a key that has ended, another cell, a repetition: not even with the brain's place on the bus."""
    with machine(tmp_path) as whole:
        token = whole.token("--count", "2")
        whole.join("gpu-1", token)
        whole.join("gpu-2", token)
        kit.start_heard(whole, "gpu-1", "gpu-2")
        old = kit.signer(whole)
        for _ in range(2):
            whole.cell("rotate", "signing")
            whole.until(lambda: over(whole, "signing"), "the rotation is over")
        whole.until(lambda: not kit.keys(whole)["unconfirmed"], "both have confirmed")
        new, thief = kit.signer(whole), load_signer(tmp_path / "thief.key")
        known = kit.announcements(whole)
        before = kit.trusted(whole, "gpu-2")
        assert before["serial"] == 4
        trust = Trust(cell=kit.CELL, serial=9, keys={thief.key_id: thief.public})

        async def try_it() -> None:
            # A stolen node's credential: the broker has no way from it to another node.
            async with kit.on_bus(whole, tmp_path / "gpu-1/node.nk") as client:
                for body in (kit.forged(trust, thief), pack_announcements(known)):
                    await client.publish(subjects.command(kit.CELL, "gpu-2"), requests.pack("a" * 24, body))
                await client.flush()
            # Somebody who has the brain's credential even, but not its signing key.
            async with kit.on_bus(whole, whole.data / "nats/keys/brain.nk") as client:
                cases = [
                    (kit.forged(trust, thief), "signed by no key that is trusted here"),
                    (kit.forged(trust, old), "signed by no key that is trusted here"),
                    (kit.forged(trust, thief, key_id=new.key_id), "signed by no key that is trusted here"),
                    (kit.forged(replace(trust, cell="other"), new), "it is of cell 'other'"),
                    (b'{"announcements":[{"payload":"{}","sigs":{}}]}', "not an announcement"),
                    (b'{"announcements":[7]}', "not announcements"),
                    (b'{"announcements":' + b"[" * 60_000, "not announcements"),
                ]
                for body, why in cases:
                    reply = await kit.asked(client, "gpu-2", body)
                    assert reply.answer is Answer.REFUSED, body[:200]
                    assert why in reply.why, reply.why
                # Repetitions: all of them, and each alone; the command that follows them is judged as before.
                for body in (pack_announcements(known), *(pack_announcements([one]) for one in known)):
                    assert (await kit.asked(client, "gpu-2", body)).why == "trusts announcement 4"
                assert "has ended" in (await kit.asked(client, "gpu-2", kit.command("gpu-2", old))).why
                # An announcement is no command, and a command no announcement.
                swapped = json.dumps(
                    {"payload": known[-1].payload, "key": new.key_id, "sig": known[-1].signatures[new.key_id]}
                )
                assert "not a command" in (await kit.asked(client, "gpu-2", swapped.encode())).why

        asyncio.run(try_it())
        assert kit.trusted(whole, "gpu-2") == before


def test_after_a_compromise_nodes_obey_nobody_until_they_join_again(tmp_path: Path) -> None:
    """No endorsement by the stolen key counts; the operator is told so; a node that has joined again obeys the new key only."""
    with machine(tmp_path) as whole:
        token = whole.token("--count", "2")
        whole.join("gpu-1", token)
        whole.join("gpu-2", token)
        kit.start_heard(whole, "gpu-1", "gpu-2")
        kit.stop(whole, "gpu-2")
        stolen = tmp_path / "stolen.key"
        shutil.copy(whole.data / "signing.key", stolen)
        thief = load_signer(stolen)
        whole.cell("rotate", "signing")  # one that is under way does not come into force
        assert "EVERY NODE MUST JOIN AGAIN" in whole.cell("rotate", "signing", "--compromised")
        assert over(whole, "signing")
        whole.until(lambda: kit.trusted(whole, "gpu-1").get("keys") == {}, "gpu-1 obeys nobody")
        whole.until(
            lambda: kit.keys(whole)["join_again"] == ["gpu-1", "gpu-2"],
            "both are named",
        )
        assert "must join again: gpu-1, gpu-2" in whole.cell("show")
        new = kit.signer(whole)
        mine = Trust(cell=kit.CELL, serial=99, keys={thief.key_id: thief.public})

        async def refuses(node: str, by: Signer, why: str) -> None:
            async with kit.on_bus(whole, whole.data / "nats/keys/brain.nk") as client:
                reply = await kit.asked(client, node, kit.command(node, by))
                assert (reply.answer, why in reply.why) == (Answer.REFUSED, True), reply.why
                reply = await kit.asked(client, node, kit.forged(mine, thief))
                assert "join this node again" in reply.why

        asyncio.run(refuses("gpu-1", thief, "has ended"))
        asyncio.run(refuses("gpu-1", new, "is not trusted here"))
        whole.until(lambda: whole.beat_age_s("gpu-1") < 5, "it goes on reporting")

        again = whole.token("--count", "2")
        for node in ("gpu-1", "gpu-2"):
            whole.join(node, again)
        kit.stop(whole, "gpu-1")
        kit.start_heard(whole, "gpu-1", "gpu-2")
        whole.until(lambda: not kit.keys(whole)["join_again"], "both have joined again")

        async def obeys() -> None:
            async with kit.on_bus(whole, whole.data / "nats/keys/brain.nk") as client:
                for node in ("gpu-1", "gpu-2"):
                    assert (await kit.asked(client, node, kit.command(node, new))).answer is Answer.ACCEPTED

        asyncio.run(obeys())
        asyncio.run(refuses("gpu-1", thief, "is not trusted here"))
        asyncio.run(refuses("gpu-2", thief, "is not trusted here"))
        # And the next rotation is an ordinary one.
        whole.cell("rotate", "signing")
        whole.until(lambda: over(whole, "signing"), "the rotation is over")
        whole.until(lambda: not kit.keys(whole)["unconfirmed"], "both have confirmed")


async def test_the_brains_nkey_is_rotated_and_nothing_is_lost(tmp_path: Path) -> None:
    """Events of a node meanwhile are on the log, once and in order; the brain leads again within 3 s; the old seed is refused."""
    with machine(tmp_path) as whole:
        token = await asyncio.to_thread(whole.token, "--count", "1")
        await asyncio.to_thread(whole.join, "gpu-1", token)
        seed = whole.data / "nats/keys/brain.nk"
        old = tmp_path / "old.nk"
        shutil.copy(seed, old)
        gaps: list[float] = []
        context = ssl.create_default_context(cafile=str(whole.data / "cell/ca.pem"))
        done = asyncio.Event()

        async def watch() -> None:
            async with aiohttp.ClientSession(headers=people.bearer(tmp_path / "brain-ann.token")) as http:
                led = time.monotonic()
                while not done.is_set():
                    async with http.get(f"{whole.url}/api/v1/status", ssl=context) as answer:
                        if (await answer.json()).get("leads"):
                            gaps.append(time.monotonic() - led)
                            led = time.monotonic()
                    await asyncio.sleep(0.05)
                gaps.append(time.monotonic() - led)

        def rotate() -> None:
            whole.cell("rotate", "brain")
            whole.until(lambda: over(whole, "brain"), "the rotation is over")

        await kit.accepted(whole, tmp_path / "gpu-1/node.nk")
        async with kit.on_bus(whole, tmp_path / "gpu-1/node.nk") as client:
            node = Node("gpu-1", client, kit.signer(whole).key.verify_key)
            node.again_s = 1.0
            await node.listen(commands=False)
            watching = asyncio.create_task(watch())
            told = [(await node.event("test.told", number=0)).id]
            rotating = asyncio.create_task(asyncio.to_thread(rotate))
            while not rotating.done():
                told.append((await node.event("test.told", number=len(told))).id)
            await rotating
            told.append((await node.event("test.told", number=len(told))).id)
            done.set()
            await watching
        assert max(gaps) < BACK_WITHIN_S, max(gaps)
        async with kit.on_bus(whole, seed) as brain:
            stream = brain.jetstream()
            subscription = await stream.subscribe(subjects.event(kit.CELL, "gpu-1"), ordered_consumer=True)
            found: list[str] = []
            while not found or found[-1] != told[-1]:
                found.append(json.loads((await subscription.next_msg(timeout=30)).data)["id"])
        assert list(dict.fromkeys(one for one in found if one in told)) == told
        await kit.accepted(whole, old, wanted=False)
        assert not list(seed.parent.glob("brain.nk.*"))


def test_the_authority_is_rotated_and_no_node_is_lost(tmp_path: Path) -> None:
    """A node that was off, and trusts only the old one, comes back by it; then both trust the new one only."""
    with machine(tmp_path) as whole:
        token = whole.token("--count", "3")
        for node in ("gpu-1", "gpu-2"):
            whole.join(node, token)
        kit.start_heard(whole, "gpu-1", "gpu-2")
        kit.stop(whole, "gpu-2")
        before = whole.status()["started_at"]
        file = whole.data / "cell/ca.pem"
        old = file.read_text()
        whole.cell("rotate", "authority")
        whole.until(lambda: over(whole, "authority"), "the rotation is over")
        new = file.read_text()
        assert new != old
        issued = x509.load_pem_x509_certificate((whole.data / "cell/server.pem").read_bytes())
        assert issued.issuer == x509.load_pem_x509_certificate(new.encode()).subject

        def shows_new() -> bool:
            context = ssl.create_default_context(cafile=str(file))
            try:
                return bool(
                    ssl.get_server_certificate(("localhost", whole.port), ca_certs=str(file)) and context
                )
            except ssl.SSLError:
                return False

        whole.until(shows_new, "the console shows it")
        whole.until(lambda: list(kit.keys(whole)["unconfirmed"]) == ["gpu-2"], "gpu-1 has confirmed")
        assert kit.trusted(whole, "gpu-1")["ca"] == new
        kit.stop(whole, "gpu-1")
        kit.start_heard(whole, "gpu-1", "gpu-2")
        whole.until(lambda: not kit.keys(whole)["unconfirmed"], "gpu-2 has confirmed")
        assert kit.trusted(whole, "gpu-2")["ca"] == new
        assert whole.status()["started_at"] == before
        said = whole.join("gpu-3", token, status=1)
        assert "the cell's authority was rotated since the token was made" in said
        assert "somebody is in between" in said
        whole.join("gpu-3", whole.token())
        assert (tmp_path / "gpu-3/ca.pem").read_text() == new

        # Once more: who is still where the second began is shown both.
        whole.cell("rotate", "authority")
        whole.until(lambda: over(whole, "authority"), "the second rotation is over")
        kit.start_heard(whole, "gpu-3")
        whole.until(lambda: not kit.keys(whole)["unconfirmed"], "all have confirmed")
        assert len({kit.trusted(whole, node)["ca"] for node in ("gpu-1", "gpu-2", "gpu-3")}) == 1


def test_a_node_gets_a_new_key_of_its_own_while_its_agent_runs(tmp_path: Path) -> None:
    """By a token that may replace; the agent is not restarted, and is never taken for unreachable; the old seed is refused."""
    with machine(tmp_path) as whole:
        whole.join("gpu-1", whole.token())
        kit.start_heard(whole, "gpu-1")
        seed = tmp_path / "gpu-1/node.nk"
        old = tmp_path / "old.nk"
        shutil.copy(seed, old)
        config = str(tmp_path / "gpu-1/agent.toml")
        argv = ("gpuward-agent", "join", "--new-key", "-", "--config", config, "--node", "gpu-1")
        said = whole.run(*argv, status=1, text=whole.token() + "\n")
        assert "is there with another key" in said
        assert seed.read_bytes() == old.read_bytes()
        whole.run(*argv, text=whole.token("--replace") + "\n")
        assert seed.read_bytes() != old.read_bytes()
        assert seed.stat().st_mode & 0o777 == 0o600
        log = tmp_path / "gpu-1.log"
        whole.until(lambda: log.read_text().count("connected to") == 2, "it has connected again")
        whole.until(lambda: whole.beat_age_s("gpu-1") < 2, "it is heard")
        assert whole.processes["gpu-1"].poll() is None
        said = json.dumps(whole.ask("incidents", "--all"))
        assert "node-unreachable" not in said, said

        asyncio.run(kit.accepted(whole, old, wanted=False))
