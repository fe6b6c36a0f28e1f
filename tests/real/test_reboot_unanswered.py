"""node.reboot when logind is stopped by the shutdown that it was asked for, before it has answered: a real message bus."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from agent.actions.node_reboot import NodeReboot
from agent.contract.errors import TimedOut

pytestmark = [
    pytest.mark.component("dbus"),
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="needs apt-get install dbus"),
]
CONFIG = """<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>"""


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    """A bus of our own, on which one program answers as systemd and logind do, and leaves when it shall reboot."""
    address = f"unix:path={tmp_path}/bus"
    (tmp_path / "bus.conf").write_text(CONFIG.format(address=address))
    daemon = subprocess.Popen(["dbus-daemon", f"--config-file={tmp_path}/bus.conf", "--nofork"])
    try:
        bus = await _connected(address)

        def answer(message: Message) -> Message | bool | None:
            if message.message_type is not MessageType.METHOD_CALL:
                return None
            if message.member == "Reboot":
                asyncio.get_running_loop().call_soon(bus.disconnect)
                return True  # and no answer
            if message.member == "ListInhibitors":
                return Message.new_method_return(message, "a(ssssuu)", [[]])
            if message.body == ["org.freedesktop.systemd1.Manager"]:
                state = {"SystemState": Variant("s", "running")}
            else:
                state = {"PreparingForShutdown": Variant("b", False)}
            return Message.new_method_return(message, "a{sv}", [state])

        bus.add_message_handler(answer)
        for name in ("org.freedesktop.systemd1", "org.freedesktop.login1"):
            await bus.request_name(name)
        yield address
    finally:
        daemon.terminate()
        daemon.wait(60)


async def _connected(address: str) -> MessageBus:
    """A connection, as soon as the daemon listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return await MessageBus(bus_address=address).connect()
        except OSError:
            assert time.monotonic() < deadline, "dbus-daemon does not listen"
            await asyncio.sleep(0.02)


async def test_a_logind_that_left_before_it_answered_may_have_rebooted(address: str) -> None:
    """The bus says that nobody will answer: that is no refusal of logind, so the node is given its time to go down."""
    with pytest.raises(TimedOut, match="systemd did not answer, and the node still runs"):
        await NodeReboot(address, go_down_s=0.1).run({})
