"""Keys on disk: NKEYs (who may say what on NATS) and the Ed25519 key that signs commands.

Files have mode 0600.
"""

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import nkeys
from nacl.signing import SigningKey

from agent.contract.errors import ConfigError

_SEED_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Signs commands. Agents know `public` under the name `key_id` (their `trusted_keys`)."""

    key_id: str
    key: SigningKey

    @property
    def public(self) -> str:
        """Base64 of the 32-byte public key, as it stands in an agent's configuration."""
        return base64.b64encode(bytes(self.key.verify_key)).decode()

    def sign(self, payload: bytes) -> str:
        """Base64 of the signature over exactly these bytes."""
        return base64.b64encode(self.key.sign(payload).signature).decode()


def load_signer(path: Path) -> Signer:
    """The signing key in `path`, made when there is none; its public half is written to `<path>.pub`."""
    if not path.exists():
        _write(path, base64.b64encode(os.urandom(_SEED_BYTES)) + b"\n")
    try:
        seed = base64.b64decode(path.read_bytes().strip(), validate=True)
    except (OSError, binascii.Error) as error:
        raise ConfigError(f"{path}: not a signing key (base64 of 32 bytes): {error}") from error
    if len(seed) != _SEED_BYTES:
        raise ConfigError(f"{path}: a signing key has 32 bytes in base64, this has {len(seed)}")
    key = SigningKey(seed)
    signer = Signer(key_id=hashlib.sha256(bytes(key.verify_key)).hexdigest()[:12], key=key)
    public = path.with_name(path.name + ".pub")
    line = f"{signer.key_id} = {signer.public}\n"
    if not public.exists() or public.read_text(encoding="ascii") != line:
        public.write_text(line, encoding="ascii")
    return signer


def load_nkey(path: Path) -> str:
    """The public NKEY (U...) of the user seed in `path`, made when there is none."""
    if not path.exists():
        _write(path, nkeys.encode_seed(os.urandom(_SEED_BYTES), nkeys.PREFIX_BYTE_USER) + b"\n")
    return public_nkey(path)


def public_nkey(path: Path) -> str:
    """The public NKEY (U...) of the user seed in `path`; ConfigError when it holds none."""
    try:
        pair = nkeys.from_seed(bytearray(path.read_bytes().strip()))
        public: str = pair.public_key.decode()
    except (OSError, nkeys.NkeysError, ValueError) as error:
        raise ConfigError(f"{path}: not an NKEY seed: {error or type(error).__name__}") from error
    return public


def _write(path: Path, data: bytes) -> None:
    """Writes a new secret file, complete or not at all, readable by nobody else from the start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as sink:
        sink.write(data)
        sink.flush()
        os.fsync(sink.fileno())
    part.replace(path)
