"""A cell on NATS servers in operator mode: who joins is heard, who is revoked is out, and nobody else gets in between."""

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
import nkeys
import orjson
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent.contract import subjects
from brain.adapters import nats_jwt, nkey, operator_mode
from brain.adapters.nkey import NkeyKind
from brain.cli import cell_export
from brain.nats_config import OperatorConfig
from tests import people
from tests.brain.shell.test_nats_jwt import claims
from tests.real.brain_kit import lab
from tests.real.nats import NatsServer, login
from tests.real.operator_kit import OperatorLab
from tests.security.test_cell import Machine

pytestmark = pytest.mark.component("nats-server")
CELL = "default"


@dataclass(kw_only=True)
class Site(Machine):
    """The brain's machine, and a NATS server of the site's with TLS."""

    server: NatsServer = field(init=False)

    def __post_init__(self) -> None:
        cell = self.data / "cell"
        tls = f'tls {{ cert_file: "{cell}/server.pem", key_file: "{cell}/server.key" }}'
        self.server = NatsServer(self.folder / "nats", f'{tls}\ninclude "../export/resolver.conf"')

    def init(self) -> None:
        """By the commands and the README that an operator has."""
        config = self.folder / "brain.toml"
        config.write_text(f'data_dir = "{self.data}"\n')
        self.cell("init", "--name", "localhost")
        self.export()
        self.server.start()
        (operator,) = re.findall(
            r"(?m)^ *\[nats.operator\](?:\n +\w.*)+", (self.folder / "export/README.txt").read_text()
        )
        cell = self.data / "cell"
        config.write_text(
            f'data_dir = "{self.data}"\n[log]\nmax_bytes = 268435456\n[evidence]\nmax_bytes = 104857600\n'
            f'[nats]\nurl = "tls://localhost:{self.server.port}"\nca_file = "{cell}/ca.pem"\n{operator}\n'
            f'[console]\nport = {self.port}\nhosts = ["localhost"]\nusers.ann.role = "administrator"\n'
            f'tls_cert_file = "{cell}/server.pem"\ntls_key_file = "{cell}/server.key"\n'
        )
        people.token_file(self.data)

    def export(self) -> None:
        """Anew."""
        assert "accounts written" in self.cell("export", "--jwt", str(self.folder / "export"))

    def stop(self, name: str) -> None:
        """A process."""
        process = self.processes.pop(name)
        process.terminate()
        process.wait(60)


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    """With a brain that leads."""
    site = Site(folder=folder)
    try:
        site.init()
        site.start_brain()
        yield site
    finally:
        for name in [*reversed(site.processes)]:
            site.stop(name)
        site.server.kill()


def test_a_node_joins_is_heard_and_is_revoked(tmp_path: Path) -> None:
    """By the commands of an operator; its account reaches the servers while they run, and so does its end."""
    with running(tmp_path) as site:
        token = site.token("--count", "2")
        site.join("gpu-1", token)
        site.join("gpu-2", token)
        written = (tmp_path / "gpu-1/agent.toml").read_text()
        assert f'nats_jwt_file = "{tmp_path}/gpu-1/node.jwt"' in written
        site.start_agent("gpu-1")
        site.start_agent("gpu-2")
        site.until(lambda: site.beat_age_s("gpu-1") < 5, "the node is heard")
        site.until(lambda: site.beat_age_s("gpu-2") < 5, "the other node is heard")

        log = tmp_path / "gpu-1.log"
        site.cell("revoke", "gpu-1")
        began = time.monotonic()
        site.until(lambda: re.search("connections exceeded|uthorization", log.read_text()), "it is out")
        print(f"out after {time.monotonic() - began:.1f} s")
        site.until(lambda: site.beat_age_s("gpu-1") > 5, "the node is heard no more")
        assert site.beat_age_s("gpu-2") < 5


def test_a_revocation_outlives_restarts(tmp_path: Path) -> None:
    """Of the brain, which did not run when it was said; and of the servers, whose configuration still has the open account."""
    with running(tmp_path) as site:
        site.join("gpu-1", site.token())
        site.start_agent("gpu-1")
        site.until(lambda: site.beat_age_s("gpu-1") < 5, "the node is heard")
        site.export()  # as the configuration of the server now has it
        site.stop("brain")
        site.cell("revoke", "gpu-1")
        site.start_brain()
        log = tmp_path / "gpu-1.log"
        site.until(lambda: re.search("connections exceeded|uthorization", log.read_text()), "it is out")
        site.server.kill()
        restarted_s = time.monotonic()
        site.server.start()
        site.until(lambda: site.status().get("leads"), "the brain leads again")
        before = log.read_text().count("uthorization")
        site.stop("gpu-1")
        site.start_agent("gpu-1")
        site.until(lambda: log.read_text().count("uthorization") > before, "it is refused")
        assert site.beat_age_s("gpu-1") > time.monotonic() - restarted_s - 1, "not heard since"


async def test_a_key_that_was_replaced_is_out(tmp_path: Path) -> None:
    """What an earlier key of the node had is worth nothing, even within one second and with a clock that was set back."""
    async with lab(tmp_path, OperatorLab) as found:
        assert isinstance(found, OperatorLab)
        old = (await found.credential("n1")).rename(tmp_path / "old.creds")
        held = await connected(found.server.url, old)
        found.registry.add("n1", user().public, now=-1e6, replace=True)
        async with asyncio.timeout(60):
            while not held.is_closed:
                await asyncio.sleep(0.02)
        assert not await found.is_in(old)
        found.registry.revoke("n1", now=0)
        new = await found.credential("n1")
        assert await found.is_in(new)
        assert not await found.is_in(old)


async def test_another_account_of_the_operator_imports_nothing(tmp_path: Path) -> None:
    """Neither by itself nor with a node's activations: it hears no commands, and speaks for no node."""
    async with lab(tmp_path, OperatorLab) as found:
        assert isinstance(found, OperatorLab)
        await found.node("n2")
        operator = nkey.load(found.config.cell_dir / "operator.nk", NkeyKind.OPERATOR)
        jwts = operator_mode.load(found.config)
        node = claims(jwts.node_account("n2", found.registry.nodes()["n2"], operator))["nats"]
        stranger, who = (
            operator.derived(NkeyKind.ACCOUNT, "stranger"),
            operator.derived(NkeyKind.USER, "stranger"),
        )
        creds = tmp_path / "stranger.creds"
        creds.write_text(nats_jwt.credentials(nats_jwt.user(who.public, "x", stranger, 1), who.seed))
        without = [{key: value for key, value in one.items() if key != "token"} for one in node["imports"]]
        said_of_it = {"limits": node["limits"], "type": "account", "version": 2}
        forged = {"iat": 1, "sub": stranger.public, "name": "x"}
        with pytest.raises(AssertionError, match="activation token"):
            await push(
                found, nats_jwt.encode(forged | {"nats": said_of_it | {"imports": node["imports"]}}, operator)
            )
        await push(found, nats_jwt.encode(forged | {"nats": said_of_it | {"imports": without}}, operator))

        heard: list[str] = []
        said = await heard_by_brains(found)
        client = await connected(found.server.url, creds)
        await client.subscribe(">", cb=noting(heard))
        for subject in (subjects.offer, subjects.lane):
            await client.publish(subject(CELL, "n2", subjects.EVENT), b"forged")
        await client.flush()
        brain = await found.brain_client()
        await brain.publish(subjects.command(CELL, "n2"), b"secret")
        await brain.flush()
        await client.publish("the.end")
        async with asyncio.timeout(60):
            while not any("the.end" in one for one in heard):
                await asyncio.sleep(0.02)
        await client.close()
        assert "forged" in str(heard), "it hears itself"
        assert "secret" not in str(heard)
        assert "forged" not in str(said)


async def test_by_hand_with_the_operator_of_a_site(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One of its signing keys signs, elsewhere than on the brain's machine; the brain says what the servers do not know."""
    async with lab(tmp_path, SiteLab) as found:
        assert isinstance(found, SiteLab)
        node = user()
        found.registry.add("n1", node.public, now=time.time())
        async with asyncio.timeout(60):
            while "accounts/N_n1.jwt" not in caplog.text:  # of a note
                await asyncio.sleep(0.02)
        found.export()
        creds = tmp_path / "n1.creds"
        jwt = (tmp_path / "export/users/n1.jwt").read_text().strip()
        creds.write_text(nats_jwt.credentials(jwt, node.seed))
        assert not await found.is_in(creds)
        await push(found, (tmp_path / "export/accounts/N_n1.jwt").read_text())
        assert await found.is_in(creds)
        found.registry.revoke("n1", now=time.time())
        found.export()
        await push(found, (tmp_path / "export/accounts/N_n1.jwt").read_text())
        assert not await found.is_in(creds)
        assert not (tmp_path / "export/resolver.conf").exists()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("resolver", "set `resolver { type: full }` in their configuration"),
        ("operator", "do not trust the key of nats.operator.seed_file"),
    ],
)
async def test_servers_that_take_no_account(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wrong: str, why: str
) -> None:
    """The brain works on, and says what an administrator has to change."""

    class Wrong(OperatorLab):
        """Where something was changed after the export."""

        def export(self) -> None:
            """As OperatorLab."""
            super().export()
            if wrong == "operator":
                self.config.cell_dir.joinpath("operator.nk").write_text(key(NkeyKind.OPERATOR).seed)
            conf = self.folder / "export/resolver.conf"
            changed = re.sub(r'"resolver": \{[^}]*\}', '"resolver": "MEMORY"', conf.read_text())
            if wrong == "resolver":
                conf.write_text(changed)

    async with lab(tmp_path, Wrong):
        async with asyncio.timeout(60):
            while why not in caplog.text:  # of a note
                await asyncio.sleep(0.02)


class SiteLab(OperatorLab):
    """The servers have an operator and a system account of the site's own."""

    # the brain has what it needs for it
    pushes = False

    def __init__(self, folder: Path, more: dict[str, Any]) -> None:
        self.site, self.signing = key(NkeyKind.OPERATOR), key(NkeyKind.OPERATOR)
        super().__init__(folder, more)
        if self.pushes:
            return
        nats_config = self.config.nats.model_copy(update={"operator": OperatorConfig()})
        self.config = self.config.model_copy(update={"nats": nats_config})

    def export(self) -> None:
        """With the signing key; the site's own configuration is written beside it."""
        seed = self.folder / "signing.nk"
        seed.write_text(self.signing.seed)
        self.config.cell_dir.joinpath("operator.nk").write_text(self.signing.seed)
        cell_export.export(self.config, self.folder / "export", seed)
        conf = self.folder / "site.conf"
        if not conf.exists():
            assert isinstance(self.server, NatsServer)
            self.server.configure(f'include "../{conf.name}"')
            conf.write_text(self._site())

    def _site(self) -> str:
        system, who = self.site.derived(NkeyKind.ACCOUNT, "SYS"), self.site.derived(NkeyKind.USER, "SYS")
        said = {"system_account": system.public, "signing_keys": [self.signing.public]}
        operator = {"iat": 1, "sub": self.site.public, "name": "site"}
        operator["nats"] = said | {"type": "operator", "version": 2}
        creds = nats_jwt.credentials(nats_jwt.user(who.public, "admin", system, 1), who.seed)
        (self.folder / "brain/cell/system.creds").write_text(creds)
        accounts = [
            nats_jwt.system(system, self.site, 1),
            (self.folder / "export/accounts/WARD.jwt").read_text(),
        ]
        return json.dumps(
            {
                "operator": nats_jwt.encode(operator, self.site),
                "system_account": system.public,
                "resolver": {"type": "full", "dir": "jwt"},
                "resolver_preload": {nats_jwt.subject(one): one.strip() for one in accounts},
            }
        )


class PushingSiteLab(SiteLab):
    """Where the administrator of the site has given the brain a signing key and credentials of the system account."""

    pushes = True


async def test_a_brain_with_a_signing_key_of_a_site(tmp_path: Path) -> None:
    """It pushes by itself."""
    async with lab(tmp_path, PushingSiteLab) as found:
        node = await found.node("n1")
        await node.event("agent.started", version="1")


async def push(found: OperatorLab, jwt: str) -> None:
    """As `nats request '$SYS.REQ.CLAIMS.UPDATE'` does."""
    system = await connected(found.server.url, found.config.cell_dir / "system.creds")
    answer = orjson.loads((await system.request("$SYS.REQ.CLAIMS.UPDATE", jwt.encode(), 30)).data)
    await system.close()
    assert answer.get("data", {}).get("code") == 200, answer["error"]


async def heard_by_brains(found: OperatorLab) -> list[str]:
    """All that comes into the brains' account."""
    heard: list[str] = []
    client = await found.brain_client()
    await client.subscribe(">", cb=noting(heard))
    await client.flush()
    return heard


def noting(heard: list[str]) -> Any:
    """A callback."""

    async def note(message: Msg) -> None:
        heard.append(f"{message.subject} {message.data!r}")

    return note


async def connected(url: str, file: Path) -> Client:
    """Which is not connected anew."""

    async def quiet(_: Exception) -> None:
        return

    with suppress(OSError):
        return await nats.connect(url, allow_reconnect=False, error_cb=quiet, **login(file))
    raise AssertionError


def key(kind: NkeyKind) -> nkey.Nkey:
    """A new one."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_OPERATOR).decode()
    return nkey.Nkey(public="", seed=seed).derived(kind, "")


def user() -> nkey.Nkey:
    """A new one."""
    return key(NkeyKind.USER)
