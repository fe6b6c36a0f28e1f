"""NKEYs of NATS operators, accounts and users, with which JWTs are signed (brain/adapters/nats_jwt.py)."""

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import nkeys

from agent.contract.errors import ConfigError
from agent.shared import files
from agent.shared.secret_file import check_seed, warn_if_open

_RAW_BYTES = 32


class NkeyKind(Enum):
    """What a key stands for."""

    OPERATOR = "operator"
    ACCOUNT = "account"
    USER = "user"


_PREFIXES: dict[NkeyKind, int] = {
    NkeyKind.OPERATOR: nkeys.PREFIX_BYTE_OPERATOR,
    NkeyKind.ACCOUNT: nkeys.PREFIX_BYTE_ACCOUNT,
    NkeyKind.USER: nkeys.PREFIX_BYTE_USER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nkey:
    """One key: its public half (O..., A..., U...), and its seed (SO..., SA..., SU...)."""

    public: str
    seed: str = field(repr=False)

    def sign(self, data: bytes) -> bytes:
        """Returns the signature of exactly these bytes."""
        return bytes(nkeys.from_seed(bytearray(self.seed.encode())).sign(data))

    def derived(self, kind: NkeyKind, name: str) -> "Nkey":
        """Returns the key that belongs to this name: always the same, and only for who has this seed."""
        _, secret = nkeys.decode_seed(self.seed.encode())
        raw = hmac.new(bytes(secret), f"gpuward {kind.value} {name}".encode(), hashlib.sha256).digest()
        return _of(nkeys.encode_seed(raw, _PREFIXES[kind]))


def load(path: Path, kind: NkeyKind) -> Nkey:
    """Returns the key whose seed is in the file. ConfigError: there is none of this kind."""
    warn_if_open(path)
    try:
        seed = files.read(path).strip()
        prefix, raw = nkeys.decode_seed(seed)
        check_seed(seed)
    except (OSError, nkeys.NkeysError, ValueError) as error:
        raise ConfigError(f"{path}: not an NKEY seed: {error or type(error).__name__}") from error
    if prefix != _PREFIXES[kind] or len(raw) != _RAW_BYTES:
        raise ConfigError(f"{path}: this is not the seed of the NATS {kind.value}")
    return _of(seed)


def load_or_make(path: Path, kind: NkeyKind, *, like: Path | None = None) -> Nkey:
    """As `load`; makes the seed when there is none. The file belongs to whom the folder `like` belongs to; None: its own."""
    if not path.exists():
        seed = nkeys.encode_seed(os.urandom(_RAW_BYTES), _PREFIXES[kind])
        files.write(path, seed + b"\n", sync=True, mode=0o600, like=like or path.parent)
    return load(path, kind)


def _of(seed: bytes) -> Nkey:
    public: str = nkeys.from_seed(bytearray(seed)).public_key.decode()
    return Nkey(public=public, seed=seed.decode())
