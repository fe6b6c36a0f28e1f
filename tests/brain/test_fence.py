"""What a brain that no longer leads is about to send does not leave, by every way out; and there is no other way."""

import ast
import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from brain import fence
from brain.actions import tools
from brain.actions.redfish_connector import Abandoned, BoundedConnector
from brain.fence import Deposed

ROOT = Path(__file__).resolve().parents[2]


class Asked:
    """A fence whose answers a test sets, and that counts how often it is asked."""

    def __init__(self, *, confirms: bool = True, holds: bool = True) -> None:
        self.confirms = confirms
        self._holds = holds
        self.times = 0

    async def confirm(self) -> bool:
        """As in Fence."""
        self.times += 1
        await asyncio.sleep(0)
        return self.confirms

    def holds(self) -> bool:
        """As in Fence."""
        return self._holds


DEPOSED = {"the server says no": {"confirms": False}, "the clock says no": {"holds": False}}


@contextlib.asynccontextmanager
async def receiver() -> AsyncIterator[tuple[str, list[str]]]:
    """An HTTP server, and the requests that reached it."""
    heard: list[str] = []

    async def hear(request: web.Request) -> web.Response:
        heard.append(f"{request.method} {request.path}")
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", hear)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", heard
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("how", DEPOSED.values(), ids=DEPOSED)
async def test_aiohttp(how: dict[str, bool]) -> None:
    """A change does not leave, a look does; the leader's changes do, each asked for by itself."""
    async with receiver() as (url, heard), aiohttp.ClientSession(request_class=fence.Request) as session:
        with fence.around(Asked(**how)):
            async with session.get(f"{url}/look"):
                pass
            for change in (session.post, session.put, session.patch, session.delete):
                with pytest.raises(Deposed):
                    async with change(f"{url}/change"):
                        pass
        assert heard == ["GET /look"]
        leader = Asked()
        with fence.around(leader):
            async with session.post(f"{url}/change"), session.post(f"{url}/change"):
                pass
        assert heard[1:] == ["POST /change"] * 2
        assert leader.times == 2


async def test_aiohttp_asks_when_the_connection_is_there() -> None:
    """A connection can take long, and a brain can be deposed meanwhile: a server whose handshake waits."""
    order: list[str] = []

    class Late(Asked):
        async def confirm(self) -> bool:
            order.append("asked")
            return True

    async def slow_connect(*args: Any, **kwargs: Any) -> Any:
        found = await connect(*args, **kwargs)
        order.append("connected")
        return found

    async with receiver() as (url, _), aiohttp.ClientSession(request_class=fence.Request) as session:
        assert session.connector is not None
        connect = session.connector.connect
        session.connector.connect = slow_connect  # type: ignore[method-assign]
        with fence.around(Late()):
            async with session.post(url):
                pass
    assert order == ["connected", "asked"]


@pytest.mark.parametrize("how", DEPOSED.values(), ids=DEPOSED)
async def test_programs(how: dict[str, bool], tmp_path: Path) -> None:
    """Not even started."""
    touched = tmp_path / "touched"
    with fence.around(Asked(**how)):
        assert (await tools.read(["/bin/true"], deadline_s=60)).status == 0
        with pytest.raises(Deposed):
            await tools.change(["/usr/bin/touch", str(touched)], deadline_s=60)
    assert not touched.exists()
    with fence.around(Asked()):
        await tools.change(["/usr/bin/touch", str(touched)], deadline_s=60)
    assert touched.exists()


@contextlib.contextmanager
def bmc() -> Any:
    """A server of the standard library in a thread, as sushy's requests are made in one."""
    heard: list[str] = []

    class Bmc(BaseHTTPRequestHandler):
        """Answers everything."""

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            heard.append(f"{self.command} {self.path}")
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def __getattr__(self, name: str) -> Any:
            """Every method."""
            if name.startswith("do_"):
                return self._answer
            raise AttributeError(name)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Bmc)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def in_thread(connector: BoundedConnector, asked: fence.Fence, work: Callable[[], object]) -> None:
    """One job, as brain/actions/redfish.py runs them."""
    connector.job += 1
    connector.fence, connector.loop = asked, asyncio.get_running_loop()
    await asyncio.to_thread(work)


@pytest.mark.parametrize("how", DEPOSED.values(), ids=DEPOSED)
async def test_redfish(how: dict[str, bool]) -> None:
    """A reset does not leave; a login does, as it changes nothing."""
    with bmc() as (url, heard):
        connector = BoundedConnector(url, verify=False, connect_s=10, answer_s=10)
        nobody = Asked(**how)
        await in_thread(connector, nobody, lambda: connector.get("/redfish/v1/"))
        await in_thread(connector, nobody, lambda: connector.post("/redfish/v1/SessionService/Sessions"))
        for change in (connector.post, connector.patch, connector.delete):
            with pytest.raises(Deposed):
                await in_thread(connector, nobody, partial(change, "/redfish/v1/Systems/1"))
        assert heard == ["GET /redfish/v1/", "POST /redfish/v1/SessionService/Sessions"]
        await in_thread(connector, Asked(), lambda: connector.post("/redfish/v1/Systems/1/Actions/Reset"))
        assert heard[2:] == ["POST /redfish/v1/Systems/1/Actions/Reset"]
        connector.close()


async def test_redfish_that_nobody_waits_for_any_more() -> None:
    """The caller was cancelled while the thread asked: it is not sent."""
    with bmc() as (url, heard):
        connector = BoundedConnector(url, verify=False, connect_s=10, answer_s=10)

        class Slow(Asked):
            async def confirm(self) -> bool:
                connector.abandoned = connector.job
                return True

        with pytest.raises(Abandoned):
            await in_thread(connector, Slow(), lambda: connector.post("/redfish/v1/Systems/1"))
        assert heard == []
        connector.close()


async def test_outside_of_a_step_nothing_leaves() -> None:
    """In a brain; tests open it for themselves."""
    with fence.around(fence._Nobody()), pytest.raises(Deposed):
        await fence.passed()
    assert isinstance(fence.outside, object)


def _calls(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


FOLDERS = ("brain/actions", "brain/ufm")


@pytest.mark.parametrize(
    "file", [str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).glob("*.py")]
)
def test_there_is_no_other_way_out(file: str) -> None:
    """Sessions of aiohttp have the fenced request; programs are started in tools.py; nothing else opens a connection."""
    for name, call in _calls(ast.parse((ROOT / file).read_text())):
        last = name.rpartition(".")[2]
        if last == "ClientSession":
            given = {one.arg: ast.unparse(one.value) for one in call.keywords}
            assert given.get("request_class") == "fence.Request", f"{file}:{call.lineno}"
        if name in ("tool.run", "asyncio.create_subprocess_exec", "subprocess.run", "subprocess.Popen"):
            assert file == "brain/actions/tools.py", f"{file}:{call.lineno}: through brain/actions/tools.py"
        assert last not in ("open_connection", "create_connection", "urlopen", "create_subprocess_shell"), (
            file
        )
        assert name not in ("requests.get", "requests.post", "requests.request", "requests.Session"), file
