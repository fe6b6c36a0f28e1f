"""Three nats-servers on loopback that are one cluster: routes and clients in TLS, the accounts of a cell in a file that each of
them includes.
"""

import datetime
import ipaddress
from datetime import UTC
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.real.nats import NatsServer, free_port

NAMES = ("s1", "s2", "s3")


class Cluster:
    """The servers; `accounts` is the file that each includes, before `start`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.accounts = folder / "accounts.conf"
        self.ca_file = folder / "site.pem"
        _certificate(self.ca_file, folder / "site.key")
        tls = f'cert_file: "{self.ca_file}", key_file: "{folder}/site.key", ca_file: "{self.ca_file}"'
        ports = {name: free_port() for name in NAMES}
        routes = ", ".join(f'"tls://127.0.0.1:{port}"' for port in ports.values())
        self.servers = {
            name: NatsServer(
                folder / name,
                f"server_name: {name}\ntls {{ {tls.partition(', ca_file')[0]} }}\ninclude ../accounts.conf\n"
                f"cluster {{ name: site, listen: '127.0.0.1:{port}', routes: [{routes}], tls {{ {tls} }} }}",
            )
            for name, port in ports.items()
        }

    @property
    def url(self) -> str:
        """Of all of them."""
        return ",".join(f"tls://127.0.0.1:{server.port}" for server in self.servers.values())

    def start(self) -> None:
        """Until each listens."""
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
