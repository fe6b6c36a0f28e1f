"""Three nats-servers on loopback that are one cluster: routes and clients in TLS, the accounts of a cell in a file that each of
them includes.
"""

import contextlib
import datetime
import ipaddress
import socket
import threading
import time
from datetime import UTC
from itertools import permutations
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.real.nats import NatsServer, free_port

NAMES = ("s1", "s2", "s3")


class Cable:
    """What connects one server with another: a port of loopback that leads to a port. `cut`: nothing comes through, and nobody is
    told.
    """

    def __init__(self, to: int) -> None:
        self.port = free_port()
        self._to = to
        self.cut = False
        self._ended = False
        self._listener: socket.socket | None = None

    def start(self) -> None:
        """It listens."""
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def end(self) -> None:
        """For ever."""
        self._ended = True
        if self._listener is not None:
            self._listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while not self._ended:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                time.sleep(0.05)  # the other server does not run
                continue
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        """Until either end closes, or the cable has been cut for a while and is whole again: what was lost is not made good."""
        lost = False
        with contextlib.suppress(OSError):
            while not self._ended and (data := source.recv(65536)):
                lost |= self.cut
                if lost and not self.cut:
                    break
                if not lost:
                    sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Cluster:
    """The servers; `accounts` is the file that each includes, before `start`. `binary`: of another version than ours."""

    def __init__(self, folder: Path, binary: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.accounts = folder / "accounts.conf"
        self.ca_file = folder / "site.pem"
        _certificate(self.ca_file, folder / "site.key")
        tls = f'cert_file: "{self.ca_file}", key_file: "{folder}/site.key", ca_file: "{self.ca_file}"'
        ports = {name: free_port() for name in NAMES}
        self.cables = {(one, other): Cable(ports[other]) for one, other in permutations(NAMES, 2)}
        self.servers = {
            name: NatsServer(
                folder / name,
                f"server_name: {name}\ntls {{ {tls.partition(', ca_file')[0]} }}\ninclude ../accounts.conf\n"
                f"cluster {{ name: site, listen: '127.0.0.1:{port}', advertise: '127.0.0.1:9', "
                f"routes: [{self._routes(name)}], tls {{ {tls} }} }}",
            )
            for name, port in ports.items()
        }
        for server in self.servers.values():
            server.binary = binary

    def _routes(self, name: str) -> str:
        """To the others, each through its cable. (What a server advertises leads nowhere: no route goes around them.)"""
        cables = (cable for (one, _), cable in self.cables.items() if one == name)
        return ", ".join(f'"tls://127.0.0.1:{cable.port}"' for cable in cables)

    @property
    def url(self) -> str:
        """Of all of them."""
        return ",".join(f"tls://127.0.0.1:{server.port}" for server in self.servers.values())

    def start(self) -> None:
        """Until each listens."""
        for cable in self.cables.values():
            cable.start()
        for server in self.servers.values():
            server.start()

    def reload(self) -> None:
        """Each reads the accounts."""
        for server in self.servers.values():
            server.reload()

    def kill(self) -> None:
        """All of them."""
        for server in self.servers.values():
            server.kill()
        for cable in self.cables.values():
            cable.end()

    def part(self, name: str) -> None:
        """This server and the others no longer hear each other; whoever asks one of them is answered by it."""
        for pair, cable in self.cables.items():
            cable.cut = name in pair

    def join(self) -> None:
        """All hear each other again."""
        for cable in self.cables.values():
            cable.cut = False


def _certificate(file: Path, key_file: Path) -> None:
    """One that vouches for itself, for both ends of a route."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "site")])
    now = datetime.datetime.now(UTC)
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
