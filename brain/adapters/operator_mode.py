"""A cell on NATS servers in operator mode: its accounts are JWTs, signed by keys that only the brain's machine has.

The seed of the brains' account is a file of the cell; each node's account has a key that is derived from it and the node's
name, so there is nothing more to keep. A node's credential is of the second in which it joined: its account takes none from
before.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.secret_file import warn_if_open
from brain.adapters import nats_jwt, nkey
from brain.adapters.nats_accounts import Member
from brain.adapters.nkey import Nkey, NkeyKind
from brain.cell.registry import CellNode
from brain.config import BrainConfig

ACCOUNT_FILE = "account.nk"
_CREDENTIALS = re.compile(r"-----BEGIN [A-Z ]+-----\s*(\S+)\s*-+END [A-Z ]+-+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMode:
    """The keys of one cell, and what they sign."""

    cell: str
    # the key of the brains' account
    brains: Nkey
    # the brain's own user
    user: Nkey

    def brain_jwt(self, at: float) -> str:
        """Returns what the brain shows to the servers."""
        return nats_jwt.user(self.user.public, "brain", self.brains, int(at))

    def node_jwt(self, name: str, node: CellNode) -> str:
        """Returns what a node shows to the servers; it is worth nothing without the node's seed."""
        return nats_jwt.user(node.public, name, self._key(name), int(node.since))

    def brains_account(self, operator: Nkey, at: float) -> str:
        """Returns the JWT of the brains' account."""
        return nats_jwt.brains(self.cell, self.brains, operator, int(at))

    def node_account(self, name: str, of: CellNode | float, operator: Nkey) -> str:
        """Returns the JWT of a node's account. `of`: the node, or when it was revoked."""
        key = self._key(name)
        public = of.public if isinstance(of, CellNode) else ""
        member = Member(name=name, public=public, nodes=(name,))
        if isinstance(of, CellNode):
            return nats_jwt.node(
                self.cell, member, account=key, brains=self.brains, operator=operator, at=int(of.since)
            )
        return nats_jwt.closed(member.account, key, operator, int(of))

    def _key(self, node: str) -> Nkey:
        return self.brains.derived(NkeyKind.ACCOUNT, f"{self.cell} {node}")


def of(config: BrainConfig) -> OperatorMode | None:
    """Returns the keys of a cell whose servers are in operator mode; None: they are not. ConfigError as in `load`."""
    return load(config) if config.nats.operator else None


def load(config: BrainConfig) -> OperatorMode:
    """Returns the keys of a cell. ConfigError: it has none yet."""
    return OperatorMode(
        cell=config.cell,
        brains=_found(config.cell_dir / ACCOUNT_FILE, NkeyKind.ACCOUNT),
        user=_found(brain_seed_file(config), NkeyKind.USER),
    )


def load_or_make(config: BrainConfig) -> OperatorMode:
    """As `load`; makes the keys that are missing."""
    nkey.load_or_make(config.cell_dir / ACCOUNT_FILE, NkeyKind.ACCOUNT)
    nkey.load_or_make(brain_seed_file(config), NkeyKind.USER)
    return load(config)


def brain_seed_file(config: BrainConfig) -> Path:
    """The file with the seed of the brain's user."""
    return config.nats.seed_file or config.cell_dir / "brain.nk"


def credentials(path: Path) -> tuple[str, str]:
    """Returns (JWT, seed) of a `.creds` file. ConfigError: it is none."""
    warn_if_open(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    try:
        return credentials_in(text)
    except ValueError as error:
        raise ConfigError(f"{path}: not a .creds file: a user's JWT and its seed") from error


def credentials_in(text: str) -> tuple[str, str]:
    """Returns (JWT, seed) of the text of a `.creds` file. ValueError: it is none."""
    jwt, seed = _CREDENTIALS.findall(text)
    return str(jwt), str(seed)


def _found(path: Path, kind: NkeyKind) -> Nkey:
    if not path.exists():
        raise ConfigError(f"{path} is not there: `gpuward cell export --jwt FOLDER` makes it")
    return nkey.load(path, kind)
