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

from agent.contract.errors import ConfigError
from agent.shared.words import t

_DIGITS = 16
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
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, nkeys.NkeysError) as error:
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
        nkeys.decode_seed(raw.strip())
    elif name == "signing.key":
        if len(base64.b64decode(raw.strip(), validate=True)) != _SEED_BYTES:
            raise ValueError(name)
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
