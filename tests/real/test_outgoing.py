"""A site whose way out is a proxy: tinyproxy, which alone knows where `pager.example` is, and TLS behind it."""

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agent.contract.errors import ActionError, Unreachable
from brain import config
from brain.adapters import archive_store
from brain.cli.checkup import counterparts
from brain.cli.checkup.lines import Health, HealthLine
from brain.config import BrainConfig
from brain.console.access import oidc
from brain.console.chat import reply
from brain.console.counters.prometheus import Prometheus
from brain.leader import trace_outputs
from brain.notify import apprise, dead_mans_switch, notifier
from brain.notify.compose import compose
from brain.notify.notifier import Sent
from brain.outgoing import outgoing, to_environment
from tests.brain.notify.pages import page
from tests.brain.shell import doctor_kit
from tests.real.bmc_kit import server_tls
from tests.real.nats import free_port

pytestmark = [pytest.mark.root, pytest.mark.component("tinyproxy")]
NAME = "pager.example"
PASSWORD = "s3cret-pass"
WITHIN_S = 60.0


class Site:
    """A receiver of alerts, and the proxy before it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cert, self.key = folder / "pager.pem", folder / "pager.key"
        argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        argv += ["-keyout", str(self.key), "-out", str(self.cert), "-days", "2", "-subj", f"/CN={NAME}"]
        argv += ["-addext", f"subjectAltName=DNS:{NAME}"]
        subprocess.run(argv, check=True, capture_output=True, timeout=60)
        self.proxy_port, self.port = free_port(), 0
        self.taken: list[Any] = []
        (folder / "hosts").write_text(f"127.0.0.1 localhost {NAME}\n")
        self.credentials(PASSWORD)

    async def take(self, request: web.Request) -> web.Response:
        """One post."""
        self.taken.append(await request.json())
        return web.Response()

    def credentials(self, password: str) -> None:
        """What the brain says to the proxy."""
        file = self.folder / "proxy.credentials"
        file.write_text(f"ward:{password}\n")
        file.chmod(0o600)

    @contextmanager
    def proxy(self, *, ports: str = "") -> Iterator[None]:
        """It runs. `ports`: the only one that it lets CONNECT go to; empty: the receiver's."""
        conf = self.folder / "tinyproxy.conf"
        conf.write_text(
            f"Port {self.proxy_port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nLogLevel Connect\n"
            f'LogFile "{self.folder}/tinyproxy.log"\nBasicAuth ward {PASSWORD}\nConnectPort {ports or self.port}\n'
        )
        script = 'mount --bind "$0/hosts" /etc/hosts && exec tinyproxy -d -c "$0/tinyproxy.conf"'
        running = subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", "sh", "-c", script, str(self.folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(self.proxy_port)
            yield
        finally:
            running.terminate()
            running.wait(WITHIN_S)

    def log(self) -> str:
        """What the proxy has written."""
        return (self.folder / "tinyproxy.log").read_text()

    def raw(self, *, by_proxy: bool = True) -> dict[str, Any]:
        """The keys of its brain.toml."""
        table = {
            "type": "alertmanager",
            "urls": [f"https://{NAME}:{self.port}"],
            "ca_file": str(self.cert),
            "timeout_s": 20.0,
        }
        raw: dict[str, Any] = {"channels": {"pager": table}}
        if by_proxy:
            raw["outgoing"] = {
                "proxy": f"http://127.0.0.1:{self.proxy_port}",
                "credentials_file": str(self.folder / "proxy.credentials"),
            }
        return raw

    def config(self, *, by_proxy: bool = True) -> BrainConfig:
        """Its brain.toml."""
        return config.parse(self.raw(by_proxy=by_proxy), "brain.toml", self.folder)

    async def page(self, *, by_proxy: bool = True, credentials: bool = True) -> Sent:
        """What becomes of a page, by a brain that has just been started."""
        loaded = self.config(by_proxy=by_proxy)
        way = outgoing(loaded.outgoing)
        way = way if credentials else replace(way, credentials="")
        built = notifier.build(loaded.channels, loaded.groups, self.folder, way=way)
        try:
            return await built.send(compose(page()))
        finally:
            await built.close()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + WITHIN_S
    while subprocess.run(["bash", "-c", f"</dev/tcp/127.0.0.1/{port}"], capture_output=True).returncode:
        assert time.monotonic() < deadline, "tinyproxy does not listen"
        time.sleep(0.05)  # before it tries again, until the deadline


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    it = Site(tmp_path)
    app = web.Application()
    app.router.add_post("/{path:.*}", it.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_tls(it.cert, it.key)).start()
    it.port = runner.addresses[0][1]
    yield it
    await runner.cleanup()


async def test_a_page_arrives_by_the_proxy_and_only_by_it(site: Site) -> None:
    """Directly nobody knows the receiver's name; by the proxy it comes over TLS, whose certificate is the receiver's own."""
    with site.proxy():
        assert not (await site.page(by_proxy=False)).delivered
        assert site.taken == []
        sent = await site.page()
        assert (sent.delivered, sent.why, len(site.taken)) == (True, "", 1)
        assert f"CONNECT {NAME}:{site.port}" in site.log()


async def test_what_the_proxy_refuses_is_said_in_plain_words_and_later_delivered(site: Site) -> None:
    """A wrong password, a port that it does not let through, a proxy that is gone: each is named, never the password; the same
    page, sent again when that is mended, arrives.
    """
    loaded = site.config()
    built = notifier.build(loaded.channels, loaded.groups, site.folder, way=outgoing(loaded.outgoing))
    why = []
    try:
        why.append((await built.send(compose(page()))).why)
        with site.proxy(ports="443"):
            why.append((await built.send(compose(page()))).why)
        site.credentials("wrong-" + PASSWORD)
        with site.proxy():
            why.append((await site.page(credentials=False)).why)
            why.append((await site.page()).why)
            assert site.taken == []
            sent = await built.send(compose(page()))
        assert (sent.delivered, sent.why, len(site.taken)) == (True, "", 1)
    finally:
        await built.close()
    where = f"the proxy http://127.0.0.1:{site.proxy_port}"
    gone, not_there, none, who = why
    assert f"{where} cannot be reached" in gone
    assert f"{where} does not let us go there (403)" in not_there
    assert f"{where} wants a user and a password, or does not take ours (407)" in none
    assert (
        f"{where} wants a user and a password, or does not take ours (401): outgoing.credentials_file" in who
    )
    assert not any(PASSWORD in one for one in why)


async def test_the_doctor_looks_at_the_proxy_and_at_the_receiver_behind_it(site: Site) -> None:
    """The proxy does not answer: that is said. It answers: the receiver is reached by it, and told nothing."""
    gone = await lines_of(site)
    assert gone["proxy"].health is Health.FAIL
    assert "nothing listens there" in gone["proxy"].text
    assert gone["proxy"].action == "start it there; or correct host and port in outgoing.proxy"
    assert "cannot be reached: nothing listens there" in gone["channel pager"].text
    assert gone["channel pager"].action.endswith("in its table of brain.toml, or in outgoing.proxy")
    with site.proxy():
        well = await lines_of(site)
    assert [one.health for one in well.values()] == [Health.OK, Health.OK], well
    with site.proxy(ports="443"):
        refused = await lines_of(site)
    assert "does not let us go there (403)" in refused["channel pager"].text
    assert site.taken == []


async def test_apprise_goes_by_it_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows the environment only."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.setenv(name, "")
        monkeypatch.setenv(name.lower(), "")
    url = site.folder / "apprise.url"
    url.write_text(f"jsons://{NAME}:{site.port}/?verify=no\n")
    url.chmod(0o600)
    way = outgoing(site.config().outgoing)
    to_environment(way)
    channel = apprise.build("a", {"url_file": str(url)}, "channels.a", way)
    try:
        with pytest.raises(Unreachable, match=f"was it the proxy http://127.0.0.1:{site.proxy_port}"):
            await channel.send(compose(page()))
        with site.proxy():
            await channel.send(compose(page()))
    finally:
        await channel.close()
    assert len(site.taken) == 1
    assert f"CONNECT {NAME}:{site.port}" in site.log()


async def test_what_else_leaves_the_site_goes_by_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logins, the plots of a Prometheus, an answer in Slack, a dead man's switch, traces and the archive: the proxy is asked for
    the way each time. What is there answers none of them as they want, which is another matter.
    """
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.setenv(name, "")
        monkeypatch.setenv(name.lower(), "")
    url, ca, way = f"https://{NAME}:{site.port}", str(site.cert), outgoing(site.config().outgoing)
    keys = site.folder / "s3.credentials"
    keys.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    keys.chmod(0o600)
    to_environment(way)
    client = {"client_id": "g", "redirect_url": f"{url}/login/callback", "ca_file": ca, "issuer": url}
    raw: dict[str, Any] = {
        "console": {
            "prometheus": {"url": url, "ca_file": ca},
            "oidc": client | {"groups": {"oncall": {"role": "viewer"}}},
        },
        "traces": {"otlp_url": f"{url}/v1/traces", "ca_file": ca},
        "archive": {"url": "s3://b", "endpoint": url, "credentials_file": str(keys), "ca_file": ca},
    }
    loaded = config.parse(raw, "brain.toml", site.folder)
    assert loaded.console.oidc is not None
    assert loaded.console.prometheus is not None
    provider = oidc.provider(loaded.console.oidc, dict, way)
    prometheus = Prometheus(loaded.console.prometheus, way)
    (traces,) = trace_outputs.outputs(loaded.traces, way)
    tables = {"d": {"type": "url", "url": f"{url}/ping", "ca_file": ca}}
    (switch,) = dead_mans_switch.dead_mans_switches(tables, cell="c", works=bool, note=print, way=way)

    async def plotted() -> None:
        async with aiohttp.ClientSession() as session:
            await prometheus.lines(session, "up", 0, 60, 15)

    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "login": provider.reach,
        "plot": plotted,
        "slack": lambda: reply.to_sender(f"{url}/actions/1", "done", way),
        "switch": switch.reach,
        "traces": lambda: traces.write(b"{}"),
        "archive": lambda: asyncio.to_thread(lambda: archive_store.opened(loaded.archive).logs("c")),
    }
    with site.proxy():
        for what, ask in asked.items():
            before = site.log().count(f"CONNECT {NAME}:{site.port}")
            with suppress(ActionError):
                await asyncio.wait_for(ask(), WITHIN_S)
            assert site.log().count(f"CONNECT {NAME}:{site.port}") > before, what
    await switch.close()
    await traces.close()


async def lines_of(site: Site) -> dict[str, HealthLine]:
    """Check → what the doctor says of the way out and of channels."""
    found = doctor_kit.site(site.folder, **site.raw())
    checks = counterparts.way_out(found), counterparts.channels(found)
    return {line.check: line for check in checks for line in await doctor_kit.gathered(check)}
