"""The cell's own certificate authority, and the certificate of its brain's machine: for NATS and for the console.

ECDSA P-256 with SHA-256, which every TLS 1.3 client has. The authority's key signs certificates for the names that the operator
has given, and nothing else; whoever has it can stand in for the brain, so it may be moved away from the machine (then
nobody renews the certificate but a person).

The authority itself is rotated in three steps (`prepare`, `switch`, `finish`). The old one signs the key of the new one too, and
the server shows that certificate beside its own: who trusts only the old authority still finds a way to it.
"""

import datetime
import hashlib
import ipaddress
import re
import ssl
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agent.contract.errors import ConfigError
from agent.contract.messages import clip
from agent.shared import files
from agent.shared.secret_file import warn_if_open
from brain.locked_file import locked

CA_DAYS, SERVER_DAYS = 3650, 397  # browsers take no longer ones than 398
RENEW_DAYS = 60  # before it ends
_EARLIER = datetime.timedelta(hours=1)  # other machines' clocks may be behind
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
ALWAYS = ("127.0.0.1", "::1", "localhost")


class Authority:
    """The files of one folder: ca.pem, ca.key, server.pem, server.key; cross.pem: the authority's key, signed by the one before;
    next-*.* and old-ca.pem: while a rotation is under way; next-server.key: while a certificate is made.
    """

    def __init__(self, folder: Path, *, peers: bool = False) -> None:
        """`peers`: its certificates are for servers that connect to each other, so for both ends of a connection."""
        uses = [ExtendedKeyUsageOID.SERVER_AUTH]
        self._uses = [*uses, ExtendedKeyUsageOID.CLIENT_AUTH] if peers else uses
        self.ca_file = folder / "ca.pem"
        self.certificate_file = folder / "server.pem"
        self.key_file = folder / "server.key"
        self._ca_key_file = folder / "ca.key"
        self._cross_file = folder / "cross.pem"
        self._next_ca_file = folder / "next-ca.pem"
        self._next_key_file = folder / "next-ca.key"
        self._next_cross_file = folder / "next-cross.pem"
        self._old_ca_file = folder / "old-ca.pem"
        self._coming_key_file = folder / "next-server.key"
        self._lock = folder / "server.lock"

    def exists(self) -> bool:
        """Has it been made?"""
        return self.ca_file.exists()

    def warn_of_open_keys(self) -> None:
        """Can every user of this machine read a key?"""
        for file in (self._ca_key_file, self._next_key_file, self.key_file):
            warn_if_open(file)

    def check(self, names: Sequence[str]) -> None:
        """ConfigError: one cannot be made for these names, or there is one."""
        if self.exists():
            raise ConfigError(
                f"{self.ca_file} is there already: `gpuward cell show` says what it has, and `gpuward cell rotate server --name "
                "NAME` adds a name of this machine"
            )
        _alternatives(names)

    def make(self, cell: str, names: Sequence[str], now: float) -> None:
        """Makes the authority and the first certificate. ConfigError: there is one, or a name is none."""
        self.check(names)
        self._make_ca(cell, now, self._ca_key_file, self.ca_file)
        self.issue(names, now)

    def prepare(self, cell: str, now: float) -> None:
        """Makes the next authority, unless there is one already. ConfigError: the present one's key is not here."""
        if not self.exists():
            raise ConfigError("this cell has no authority of its own: `gpuward cell init` makes one")
        present, signer = self._ca(), self._ca_key()
        if not self._next_ca_file.exists():
            self._make_ca(cell, now, self._next_key_file, self._next_ca_file)
        following = _read(self._next_ca_file)
        key = following.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)  # noqa: S101  made above
        cross = (
            _begun(following.subject, present.subject, key, now, CA_DAYS, ends=present.not_valid_after_utc)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(_issuer(present), critical=False)
            .sign(signer, hashes.SHA256())
        )
        earlier = files.read(self._cross_file) if self._cross_file.exists() else b""
        self._write(self._next_cross_file, cross.public_bytes(serialization.Encoding.PEM) + earlier)

    def switch(self, now: float) -> None:
        """The next authority becomes the present one, and issues the certificate. What was done before is not done again."""
        self.settle()
        names = self.names()
        if self._next_ca_file.exists():
            if self._next_key_file.exists():
                self._write(self._old_ca_file, files.read(self.ca_file))
                self._next_key_file.replace(self._ca_key_file)
            if self._next_cross_file.exists():
                self._next_cross_file.replace(self._cross_file)
            self._next_ca_file.replace(self.ca_file)
        self._follow(names, now)

    def follow(self, now: float) -> None:
        """Issues the certificate anew where that is of another authority than the present one. ConfigError as in `issue`."""
        self.settle()
        self._follow(self.names(), now)

    def _follow(self, names: Sequence[str], now: float) -> None:
        if self._certificate().issuer != self._ca().subject:
            self.issue(names, now)

    def finish(self) -> None:
        """The authority before the present one is no longer told to anybody."""
        self._old_ca_file.unlink(missing_ok=True)

    def bundle(self) -> str:
        """All authorities that are trusted now, in PEM, the present one first."""
        found = (self.ca_file, self._next_ca_file, self._old_ca_file)
        return "".join(files.read(file).decode("ascii") for file in found if file.exists())

    def issue(self, names: Sequence[str], now: float) -> None:
        """Makes a new certificate for these names, with a new key. ConfigError: the authority's key is not here."""
        with locked(self._lock):  # two pairs at once would be one of the halves of both
            self._issue(names, now)

    def _issue(self, names: Sequence[str], now: float) -> None:
        alternatives = _alternatives(names)
        authority, signer = self._ca(), self._ca_key()
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
        certificate = (
            _begun(name, authority.subject, key.public_key(), now, SERVER_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(self._uses), critical=False)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(_issuer(authority), critical=False)
            .sign(signer, hashes.SHA256())
        )
        # The new key lies beside the old one until its certificate is there: who is interrupted has left a pair (`settle`).
        _write_key(self._coming_key_file, key)
        cross = files.read(self._cross_file) if self._cross_file.exists() else b""
        self._write(self.certificate_file, certificate.public_bytes(serialization.Encoding.PEM) + cross)
        self.settle()

    def settle(self) -> None:
        """Puts the key of the certificate in its place, where whoever has made both could not any more. ConfigError: a file
        cannot be read.
        """
        try:
            key = serialization.load_pem_private_key(files.read(self._coming_key_file), None)
            if key.public_key() == self._certificate().public_key():
                self._coming_key_file.replace(self.key_file)
        except FileNotFoundError:  # nobody was interrupted, or somebody else has done it just now
            return
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(
                f"{self._coming_key_file}: cannot be read: {error}: remove it, and say `gpuward cell rotate server`"
            ) from error

    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate, hexadecimal: what a join token carries."""
        return fingerprint(self._ca().public_bytes(serialization.Encoding.DER))

    def names(self) -> list[str]:
        """The names in the present certificate, as they were given, at least one; those of loopback are in each."""
        found = self._certificate().extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        texts = [str(one.value) for one in found]
        return [text for text in texts if text not in ALWAYS] or list(ALWAYS[:1])

    def ends(self) -> tuple[float, float]:
        """When the authority's and the present certificate end, seconds since 1970."""
        return self._ca().not_valid_after_utc.timestamp(), self._certificate().not_valid_after_utc.timestamp()

    def check_key(self) -> None:
        """ConfigError: the server's certificate and its key are not there, or do not belong together; it says what to do."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.certificate_file, self.key_file, password=_none
            )
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{self.certificate_file} and {self.key_file} are no certificate with its key ({error}): restore the folder "
                "`cell`, or `gpuward cell rotate server`"
            ) from error

    def renew_if_due(self, now: float) -> bool:
        """Makes a new certificate for the same names when the present one ends soon. ConfigError as in `issue`."""
        if not ends_soon(self.ends()[1], now):
            return False
        self.issue(self.names(), now)
        return True

    def trouble(self, now: float) -> str:
        """What ends soon although it should have been renewed, and who must do what; empty: nothing."""
        of_authority, of_certificate = self.ends()
        if ends_soon(of_authority, now):
            return (
                f"the certificate authority of this cell {ended(of_authority, now)}: say `gpuward cell rotate authority`, or no "
                "node and no person trusts this brain any more"
            )
        if not ends_soon(of_certificate, now):
            return ""
        here = self._ca_key_file.exists()
        first = (
            f"see that the brain can read {self._ca_key_file}"
            if here
            else f"put ca.key back in {self.ca_file.parent}"
        )
        return (
            f"the certificate of NATS and of the console {ended(of_certificate, now)}: {first} and say `gpuward cell rotate "
            "server`; agents and people cannot connect any more when it has ended"
        )

    def _make_ca(self, cell: str, now: float, key_file: Path, ca_file: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        # Each has a name of its own: clients look for an issuer by its name.
        digest = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()[:8]
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"gpuward cell {cell} {digest}")])
        certificate = (
            _begun(name, name, key.public_key(), now, CA_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write_key(key_file, key)
        self._write(ca_file, certificate.public_bytes(serialization.Encoding.PEM))

    def _write(self, file: Path, body: bytes) -> None:
        files.write(file, body, sync=True, mode=0o644, like=self.ca_file.parent)

    def _ca(self) -> x509.Certificate:
        return _read(self.ca_file)

    def _certificate(self) -> x509.Certificate:
        return _read(self.certificate_file)

    def _ca_key(self) -> ec.EllipticCurvePrivateKey:
        try:
            key = serialization.load_pem_private_key(files.read(self._ca_key_file), None)
        except FileNotFoundError as error:
            raise ConfigError(
                f"{self._ca_key_file} is not there, and nothing is signed without it: put it back (mode 0600, the brain's user), "
                "say this again, and move it away again"
            ) from error
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(f"{self._ca_key_file}: the authority's key cannot be read: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigError(f"{self._ca_key_file}: not a key of ours")
        return key


def all_end(file: Path) -> float:
    """When the first of the certificates in a PEM file ends, seconds since 1970. ConfigError: it has none, or cannot be read."""
    try:
        found = x509.load_pem_x509_certificates(files.read(file))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: not certificates that can be read: {error}") from error
    return min(one.not_valid_after_utc.timestamp() for one in found)


def _none() -> str:
    """A key with a password is refused, and nobody is asked for one."""
    return ""


def ends_soon(at: float, now: float) -> bool:
    """Is it time to renew what ends then?"""
    return at - now <= RENEW_DAYS * 86400


def ended(at: float, now: float) -> str:
    """`ends on ...` or `ended on ...`."""
    day = datetime.datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{'ends' if now < at else 'ended'} on {day}"


def fingerprint(der: bytes) -> str:
    """SHA-256 of a certificate, hexadecimal."""
    return hashlib.sha256(der).hexdigest()


def _read(file: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(files.read(file))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: not a certificate that can be read: {error}") from error


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: float,
    days: int,
    ends: datetime.datetime | None = None,
) -> x509.CertificateBuilder:
    """`ends`: not later than that."""
    at = datetime.datetime.fromtimestamp(now, UTC)
    until = at + datetime.timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - _EARLIER)
        .not_valid_after(min(until, ends or until))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _issuer(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    found = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    if not names:
        raise ConfigError("give at least one name or address by which nodes reach this machine")
    found: list[x509.GeneralName] = []
    for name in dict.fromkeys([*names, *ALWAYS]):
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            if not _is_name(name):
                raise ConfigError(
                    f"{clip(name, 100)!r} is neither a name nor an address of this machine: give it as brain-1.example.com or "
                    "192.0.2.7, without scheme and port"
                ) from None
            found.append(x509.DNSName(name))
        else:
            if address.is_unspecified or address.is_multicast:
                raise ConfigError(
                    f"{name} leads no node to this machine: give a name or an address that does"
                )
            found.append(x509.IPAddress(address))
    return found


def _is_name(name: str) -> bool:
    """A host's name (RFC 1123); one whose last part is a number is an address with a mistake."""
    parts = name.split(".")
    return len(name) <= 253 and all(_LABEL.fullmatch(part) for part in parts) and not parts[-1].isdecimal()


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    body = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files.write(file, body, sync=True, mode=0o600, like=file.parent)
