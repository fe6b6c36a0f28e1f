"""Keys on disk: NKEYs (NATS users) and the Ed25519 key that signs commands. Files have mode 0600."""

import base64
import errno
import hashlib
import logging
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

import nkeys
from nacl.signing import SigningKey

from agent.contract.errors import ConfigError
from agent.shared import files
from agent.shared.secret_file import check_seed, warn_if_open
from brain.glance import Glance

FIRST = "first"  # beside the place of a key that no brain of the cell has made yet
_SEED_BYTES = 32
_MADE_BYTES = 4
_MADE = re.compile(r"[0-9a-f]{8}(\.part)?")  # how the name of a key ends that is not in its place yet
_NO_LINKS = (
    errno.EPERM,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EMLINK,
)  # of file systems whose files have one name
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Signs commands. Agents list `public` under the name `key_id` in their `trusted_keys`."""

    key_id: str
    key: SigningKey

    @property
    def public(self) -> str:
        """Base64 of the 32-byte public key, as written in an agent's configuration."""
        return base64.b64encode(bytes(self.key.verify_key)).decode()

    def sign(self, payload: bytes) -> str:
        """Returns the base64 signature of exactly these bytes."""
        return base64.b64encode(self.key.sign(payload).signature).decode()


class CurrentSigner:
    """The key that is in a file now: a rotation exchanges it while the brain runs."""

    def __init__(self, path: Path) -> None:
        """As `load_signer`."""
        self._path = path
        self._signer = load_signer(path)
        self._seen = self._stamp()
        self._glance = Glance(self._look, known=True)

    def __call__(self) -> Signer:
        """The key that is in the file now; the one before, while it cannot be read, or its disk hangs."""
        self._glance()
        return self._signer

    def _look(self) -> None:
        stamp = self._stamp()
        if stamp not in (self._seen, None):
            try:
                self._signer = load_signer(self._path)
            except ConfigError as error:
                _log.error("key %s stays in use: %s", self._signer.key_id, error)
            self._seen = stamp

    def _stamp(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns


def make_first(path: Path) -> Signer:
    """The key that comes to `path` once this brain may make the cell's key; made beside it, where an earlier run has not. One
    that is damaged is made anew: nothing was ever signed with it.
    """
    first = beside(path, FIRST)
    _make_signer(first)
    try:
        return read_signer(first)
    except ConfigError as error:
        if isinstance(error.__cause__, OSError):
            raise
        _log.warning("%s is damaged, and was never used: another is made", first)
        first.unlink(missing_ok=True)
        _make_signer(first)
        return read_signer(first)


def put_first(path: Path) -> bool:
    """Puts the key of `make_first` in its place; a key that was brought there meanwhile stays. True."""
    try:
        _place(beside(path, FIRST), path)
    except FileNotFoundError:
        if not path.exists():  # else another brain, whose file is the same one, has put it there
            raise
    return True


def drop_first(path: Path) -> bool:
    """Removes the key of `make_first`: the cell has another one. True."""
    beside(path, FIRST).unlink(missing_ok=True)
    return True


def _make_signer(path: Path) -> None:
    """Of several that make it at once, on a file server too, all have the key of the first one."""
    if not path.exists():
        made = beside(path, secrets.token_hex(_MADE_BYTES))
        _write(made, base64.b64encode(os.urandom(_SEED_BYTES)) + b"\n")
        _place(made, path)


def _place(made: Path, path: Path) -> None:
    """Gives a file its name, if no other one has it by now; else it is removed. OSError: it lies where it was."""
    try:
        os.link(made, path)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS or path.exists():
            raise
        made.replace(path)
    made.unlink(missing_ok=True)


def load_signer(path: Path) -> Signer:
    """Loads the signing key from `path` or creates it; writes its public half to `<path>.pub`. Where one was made before, and is
    perhaps claimed (`make_first`), it is that one.
    """
    if not path.exists() and beside(path, FIRST).exists():
        make_first(path)
        put_first(path)
    _make_signer(path)
    signer = read_signer(path)
    public = path.with_name(path.name + ".pub")
    line = f"{signer.key_id} = {signer.public}\n"
    if not _holds(public, line.encode("ascii")):
        files.write(public, line.encode("ascii"), mode=0o644, like=public.parent)
    return signer


def _holds(file: Path, content: bytes) -> bool:
    """Whether it is there and holds this. A file that cannot be read does not, and is replaced."""
    try:
        return files.read(file) == content
    except OSError:
        return False


def read_signer(path: Path) -> Signer:
    """Reads the signing key in `path`, and writes nothing. ConfigError: it holds none."""
    warn_if_open(path)
    try:
        seed = base64.b64decode(files.read(path).strip(), validate=True)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # binascii's is one
        raise _no_key(path, str(error)) from error
    if len(seed) != _SEED_BYTES:
        raise _no_key(path, f"this has {len(seed)}")
    key = SigningKey(seed)
    return Signer(key_id=key_id_of(bytes(key.verify_key)), key=key)


def _no_key(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path}: not a signing key (base64 of 32 bytes): {why}: put it back from your backup. If there is none: "
        "`gpuward cell rotate signing --compromised`, and every node joins again"
    )


def key_id_of(public: bytes) -> str:
    """The name of a public key, in commands and on nodes."""
    return hashlib.sha256(public).hexdigest()[:12]


def sweep(path: Path) -> None:
    """Removes keys that were made for this place and never got there. Nobody may be making one now."""
    for left in path.parent.glob(f"{path.name}.*"):
        if _MADE.fullmatch(left.name.removeprefix(f"{path.name}.")):
            left.unlink(missing_ok=True)


def load_nkey(path: Path) -> str:
    """Returns the public NKEY (U...) of the user seed in `path`; creates the seed when there is none."""
    if not path.exists():
        _write(path, nkeys.encode_seed(os.urandom(_SEED_BYTES), nkeys.PREFIX_BYTE_USER) + b"\n")
    return public_nkey(path)


def public_nkey(path: Path) -> str:
    """Returns the public NKEY (U...) of the user seed in `path`; ConfigError when the file holds none."""
    warn_if_open(path)
    try:
        seed = files.read(path).strip()
        check_seed(seed)
        pair = nkeys.from_seed(bytearray(seed))
        public: str = pair.public_key.decode()
    except (OSError, nkeys.NkeysError, ValueError) as error:
        raise ConfigError(
            f"{path}: not an NKEY seed: {error or type(error).__name__}: put it back from your backup. If there is none, remove "
            "it: another is made at the next start (servers of your own must be told: `gpuward cell show --nats-accounts`)"
        ) from error
    return public


def _write(path: Path, data: bytes) -> None:
    """Writes a new secret file; no other user can read it at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, data, sync=True, mode=0o600, like=path.parent)


def beside(path: Path, what: str) -> Path:
    """The file of the key that comes next (`next`), or of the one before (`old`), while a rotation is under way."""
    return path.with_name(f"{path.name}.{what}")


def keep(path: Path, copy: Path) -> None:
    """Writes a secret file once more, under another name. ConfigError: it cannot be read."""
    try:
        _write(copy, files.read(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def nkeys_in_force(path: Path) -> list[str]:
    """Returns the public NKEYs that are accepted for the user of this seed; more than one while it is rotated."""
    others = (beside(path, what) for what in ("next", "old"))
    return list(dict.fromkeys([load_nkey(path), *(public_nkey(one) for one in others if one.exists())]))
