"""What the nodes of a cell were told to trust, and which rotation is under way: one file that the brain and `gpuward cell` share.

A rotation goes through the states of STAGES. What happens at each step, and when, is in brain/adapters/rotation.py and
brain/leader/rotations.py.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.contract.errors import ConfigError, ContractError
from agent.contract.trust import Announcement, Trust, decode_trust
from brain.locked_file import LockedFile


class KeyKind(StrEnum):
    """What can be rotated."""

    SIGNING = "signing"  # the key that signs commands
    BRAIN = "brain"  # the brain's NKEY on NATS
    AUTHORITY = "authority"  # the certificate authority of the servers


class Stage(StrEnum):
    """How far a rotation is; the old and the new key are both accepted in all of them."""

    OVERLAP = "overlap"  # the old one is in use
    SWITCHED = "switched"  # the new one is in use


# Stage -> the next one; None: the old key is taken out, and the rotation is over.
STAGES: Mapping[Stage, Stage | None] = {Stage.OVERLAP: Stage.SWITCHED, Stage.SWITCHED: None}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Rotation(_Model):
    """One rotation under way. Times are seconds since 1970 by this machine's clock."""

    stage: Stage
    since: float
    # the new one comes into use then at the latest
    switch_at: float
    # who has begun it, or said last that it shall not wait; empty: an earlier version did not write it down
    by: str = ""


class SignedTrust(_Model):
    """One announcement, as agent.contract.trust has it."""

    payload: str
    signatures: Mapping[str, str]


class TrustState(_Model):
    """What the file holds."""

    # the oldest first
    announcements: tuple[SignedTrust, ...] = ()
    # no signature leads from an announcement before this one to it: such nodes must join again
    joined_since: int = 0
    rotations: Mapping[KeyKind, Rotation] = {}

    @property
    def newest(self) -> Trust | None:
        """The newest announcement; None: there was none yet."""
        return decode_trust(self.announcements[-1].payload) if self.announcements else None

    @property
    def serial(self) -> int:
        """Of the newest announcement; 0: there was none yet."""
        found = self.newest
        return found.serial if found else 0

    def after(self, serial: int) -> list[Announcement]:
        """The announcements that a node lacks which trusts this one; none after a key's own revocation: it would refuse them."""
        all_ = [(decode_trust(one.payload), one) for one in self.announcements]
        if any(trust.serial == serial and not trust.keys for trust, _ in all_):
            return []
        return [
            Announcement(payload=one.payload, signatures=one.signatures)
            for trust, one in all_
            if trust.serial > serial
        ]


class TrustFile:
    """The file of one cell."""

    def __init__(self, cell_dir: Path) -> None:
        path = cell_dir / "trust.json"
        self._file = LockedFile(path, parse=partial(_parse, path), dump=_dump, empty=TrustState)
        self.confirmed_file = cell_dir / "confirmed.json"

    def state(self) -> TrustState:
        """What the file holds now, or while it cannot be read what it held last. ConfigError: it could never be read."""
        return self._file.value()

    def trouble(self) -> str:
        """Why the file cannot be read; empty: it can."""
        return self._file.trouble()

    def change(self, change: Callable[[TrustState], TrustState]) -> None:
        """Replaces what it holds, under its lock. ConfigError as above."""
        self._file.change(change)


def _parse(path: Path, body: bytes) -> TrustState:
    try:
        state = TrustState.model_validate_json(body)
        state.after(0)
    except (ValidationError, ContractError) as error:
        why = f"{error.error_count()} errors" if isinstance(error, ValidationError) else str(error)[:200]
        raise ConfigError(f"{path} is not what it was: restore it ({why})") from error
    return state


def _dump(state: TrustState) -> bytes:
    return state.model_dump_json(indent=1).encode()
