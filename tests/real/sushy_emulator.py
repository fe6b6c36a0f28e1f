"""OpenStack's sushy-emulator over TLS with basic authentication: a Redfish service that we did not write.

Its hardware takes 1 to 11 s, at random, to do what it accepted; here 1 s, so that the tests stay short.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bcrypt

from tests.real.bmc_kit import certificate

_RUN = """
import random, sys
from sushy_tools.emulator.main import main
random.randint = lambda least, most: least
sys.exit(main())
"""
UUID = "11111111-1111-4111-8111-000000000001"


@contextmanager
def sushy_emulator(folder: Path) -> Iterator[tuple[str, Path]]:
    """Its URL and its certificate; the system UUID is node gpu01. Gone when the block ends."""
    cert, key = certificate(folder)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    users = folder / "htpasswd"
    users.write_text(f"admin:{bcrypt.hashpw(b'secret', bcrypt.gensalt(4)).decode()}\n")
    nodes = [
        {
            "uuid": UUID[:-1] + str(n),
            "name": f"gpu0{n}",
            "power_state": "On",
            "external_notifier": False,
            "nics": [],
        }
        for n in (1, 2)
    ]
    conf = folder / "emulator.conf"
    conf.write_text(
        f"SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_FAKE_SYSTEMS = {nodes!r}\n"
        f"SUSHY_EMULATOR_AUTH_FILE = {str(users)!r}\nSUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n"
    )
    argv = [sys.executable, "-c", _RUN, "--fake", "--config", str(conf), "-i", "127.0.0.1", "-p", str(port)]
    argv += ["--ssl-certificate", str(cert), "--ssl-key", str(key)]
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not _listens(port):
            text = (folder / "emulator.log").read_text()
            assert process.poll() is None, text[-2000:]
            assert time.monotonic() < deadline, text[-2000:]
            time.sleep(0.05)
        yield f"https://127.0.0.1:{port}", cert
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
