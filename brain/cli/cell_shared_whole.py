"""Is what `gpuward cell take` is given what `gpuward cell share` has written? Asked before anything of it is on the disk."""

import base64
import hashlib
from collections.abc import Mapping

import nkeys
import orjson
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from agent.contract.errors import ConfigError, ContractError
from agent.contract.trust import decode_trust
from agent.shared.secret_file import check_seed
from agent.shared.words import t
from brain.adapters import keys, operator_mode
from brain.cell.trust import TrustState

_DIGITS = 16
_DAMAGED = (
    *(ValueError, TypeError, KeyError, ContractError, nkeys.NkeysError),
    *(InvalidSignature, UnsupportedAlgorithm, BadSignatureError),
)
_SEED_BYTES = 32


def check_of(cell: str, files: Mapping[str, str]) -> str:
    """Returns what people compare: another one for whatever has changed on the way."""
    body = orjson.dumps([cell, dict(files)], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(body).hexdigest()[:_DIGITS]


def check_whole(files: Mapping[str, str]) -> None:
    """ConfigError: one of them is no key or certificate, or two do not fit together."""
    for name, text in files.items():
        try:
            _check(name, text, files)
        except _DAMAGED as error:
            raise ConfigError(
                t(
                    "{name} in this file is damaged ({name2}): nothing was taken. Write the file again "
                    "(`gpuward cell share` on the other brain's machine)",
                    name=name,
                    name2=type(error).__name__,
                )
            ) from error


def _check(name: str, text: str, files: Mapping[str, str]) -> None:
    raw = text.encode("ascii")
    if name.endswith(".nk"):
        check_seed(raw.strip())
    elif name == "signing.key":
        if len(base64.b64decode(raw.strip(), validate=True)) != _SEED_BYTES:
            raise ValueError(name)
    elif name == "trust.json":
        _check_announced(text, files.get("signing.key", ""))
    elif name == "system.creds":
        _check_credentials(text)
    elif name.endswith(".key"):
        key = serialization.load_pem_private_key(raw, None)
        shown = files.get(f"{name.removesuffix('.key')}.pem")
        if (
            shown is not None
            and key.public_key() != x509.load_pem_x509_certificate(shown.encode()).public_key()
        ):
            raise ValueError(name)
    elif name.endswith(".pem"):
        authority = x509.load_pem_x509_certificate(files.get("ca.pem", text).encode())
        public = authority.public_key()
        for found in x509.load_pem_x509_certificates(raw):
            if found.issuer == authority.subject and isinstance(public, ec.EllipticCurvePublicKey):
                found.verify_directly_issued_by(authority)


def _check_credentials(text: str) -> None:
    """ValueError and the like: the JWT is not what its issuer has signed, or the seed is not its user's."""
    jwt, seed = operator_mode.credentials_in(text)
    head, body, signature = jwt.split(".")
    claims = orjson.loads(_decoded(body))
    issuer = VerifyKey(base64.b32decode(claims["iss"])[1:-2])  # between the prefix and the sum
    issuer.verify(f"{head}.{body}".encode(), _decoded(signature))
    check_seed(seed.encode())
    if nkeys.from_seed(bytearray(seed.encode())).public_key.decode() != claims["sub"]:
        raise ValueError("seed")


def _decoded(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)


def _check_announced(text: str, signing: str) -> None:
    """ValueError and the like: an announcement is not what its signers have signed, or the newest one does not name the key. Who
    has signed the first one may be older than all of them; if that was a revocation, nobody known has signed the next one but the
    key that it names.
    """
    known: dict[str, str] = {}
    newest: Mapping[str, str] = {}
    for number, one in enumerate(TrustState.model_validate_json(text).announcements):
        newest = decode_trust(one.payload).keys
        known |= newest
        by = one.signatures.keys() & known.keys()
        if not number and not newest:
            continue
        if not by or (number and len(by) < len(one.signatures)):
            raise ValueError("signatures")
        for key_id in by:
            signature = base64.b64decode(one.signatures[key_id], validate=True)
            VerifyKey(base64.b64decode(known[key_id])).verify(one.payload.encode(), signature)
    if newest and signing:
        public = bytes(SigningKey(base64.b64decode(signing.strip())).verify_key)
        if newest.get(keys.key_id_of(public)) != base64.b64encode(public).decode():
            raise ValueError("signing.key")
