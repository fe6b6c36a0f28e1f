"""Rotating the keys of a cell: what each step does to the files. Each can be done again after a crash in the middle.

`begin` makes the new key; `advance` puts it in the place of the old one, and the next time takes the old one out. What nodes must
know of it is announced at the start and at the end (agent/contract/trust.py). When each step is due: brain/leader/rotations.py.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.contract.trust import Trust
from brain.adapters import keys, signing_key
from brain.adapters.files import move_away
from brain.adapters.keys import Signer, beside
from brain.cell.authority import Authority
from brain.cell.confirmations import highest, read_confirmed
from brain.cell.trust import STAGES, KeyKind, Rotation, SignedTrust, Stage, TrustFile, TrustState
from brain.config import BrainConfig

_FOR_EVER_S = 10 * 365 * 86400.0
_FRESH = "fresh"  # beside the signing key: the one that replaces a stolen one
ANNOUNCED = (KeyKind.SIGNING, KeyKind.AUTHORITY)  # the brain's NKEY is the server's affair


class KeyRotation:
    """The keys of one cell."""

    def __init__(self, config: BrainConfig) -> None:
        self._config = config
        self._cell = config.cell
        self._signing = config.signing_key
        self._brain_seed = config.brain_seed
        self._authority = Authority(config.cell_dir)
        self._embedded = config.embedded  # the certificates of a site's own servers are the site's affair
        self.file = TrustFile(config.cell_dir)

    def begin(self, kind: KeyKind, *, now: float, overlap_s: float, by: str = "") -> None:
        """Makes the new key; the old one stays in use. `by`: the operator. ConfigError: one is under way; it cannot be made."""

        def change(state: TrustState) -> TrustState:
            if kind in state.rotations:
                raise ConfigError(
                    f"a rotation of {kind.value} is under way: `gpuward cell show` says for what it waits, and "
                    f"`gpuward cell rotate {kind.value} --now` does not wait"
                )
            match kind:
                case KeyKind.SIGNING:
                    signing_key.check(self._config)
                    keys.load_signer(self._signing)
                    keys.load_signer(beside(self._signing, "next"))
                case KeyKind.BRAIN:
                    seed = self._seed()
                    keys.load_nkey(seed)
                    keys.load_nkey(beside(seed, "next"))
                case KeyKind.AUTHORITY:
                    self._authority.prepare(self._cell, now)
            # What a site's own servers accept the operator knows, and says `--now`.
            by_hand = kind is KeyKind.BRAIN and not self._embedded
            switch_at = now + (_FOR_EVER_S if by_hand else overlap_s)
            begun = Rotation(stage=Stage.OVERLAP, since=now, switch_at=switch_at, by=by)
            changed = state.model_copy(update={"rotations": {**state.rotations, kind: begun}})
            return self._announced(changed, self._held(changed)) if kind in ANNOUNCED else changed

        self._change(change)

    def hurry(self, kind: KeyKind, *, now: float, by: str = "") -> None:
        """The new key comes into use without waiting. ConfigError: no rotation is under way."""

        def change(state: TrustState) -> TrustState:
            found = state.rotations.get(kind)
            if found is None:
                raise ConfigError(f"no rotation of {kind.value} is under way")
            hurried = found.model_copy(update={"switch_at": now, "by": by or found.by})
            return state.model_copy(update={"rotations": {**state.rotations, kind: hurried}})

        self._change(change)

    def advance(self, kind: KeyKind, *, now: float) -> None:
        """The next step of a rotation (STAGES). ConfigError: a file cannot be read or written."""

        def change(state: TrustState) -> TrustState:
            found = state.rotations[kind]
            following = STAGES[found.stage]
            rotations = {key: one for key, one in state.rotations.items() if key != kind}
            if following is Stage.SWITCHED:
                self._switch(kind, now)
                rotations[kind] = found.model_copy(update={"stage": following})
                return state.model_copy(update={"rotations": rotations})
            held = self._held(state)  # the old key endorses once more: for nodes that know only it
            self._finish(kind)
            changed = state.model_copy(update={"rotations": rotations})
            return self._announced(changed, held) if kind in ANNOUNCED else changed

        self._change(change)

    def replace_compromised(self) -> None:
        """A new signing key at once, which no old one endorses: each node must join again. One that was interrupted is carried to
        its end instead, if its key was announced.

        The old keys sign one thing more, that no key counts: a node that hears it takes no command until then, from nobody.
        """
        with suppress(FileNotFoundError):
            try:
                keys.read_signer(self._signing)
            except (
                ConfigError
            ):  # damaged: as if it were gone; the announcement is then by a key that no node knows
                move_away(self._signing, "damaged")
        keys.load_signer(self._signing)

        def change(state: TrustState) -> TrustState:
            if self._settled(state):
                return state
            new = keys.load_signer(beside(self._signing, _FRESH))
            revoked = Trust(cell=self._cell, serial=self._next(state), keys={}, ca=self._ca())
            trust = Trust(
                cell=self._cell, serial=revoked.serial + 1, keys={new.key_id: new.public}, ca=self._ca()
            )
            return TrustState(
                # All that were before lead to the revocation, and nodes that were off must hear it, too.
                announcements=(
                    *state.announcements,
                    _signed(revoked, self._held(state)),
                    _signed(trust, (new,)),
                ),
                joined_since=trust.serial,
                rotations={key: one for key, one in state.rotations.items() if key != KeyKind.SIGNING},
            )

        self.file.change(change)
        self.settle()

    def settle(self) -> None:
        """Carries to its end a run of `replace_compromised` that has announced its key, and was interrupted. ConfigError: a file
        cannot be read or written.
        """
        if beside(self._signing, f"{_FRESH}.pub").exists():
            self._change(lambda state: state)

    def in_force(self) -> Mapping[str, str]:
        """Key id -> public key of the signing keys that nodes should accept now, the one in use first."""
        return _public(self._held(self.file.state()))

    def _change(self, change: Callable[[TrustState], TrustState]) -> None:
        def changed(state: TrustState) -> TrustState:
            self._settled(state)
            return change(state)

        self.file.change(changed)

    def _settled(self, state: TrustState) -> bool:
        """Clears up what an interrupted run has left. True: one of `replace_compromised` had told nodes of its key, which is in
        its place now; nothing is left of the stolen one and of those beside it.
        """
        for what in ("next", _FRESH):  # they are made under this lock only
            keys.sweep(beside(self._signing, what))
        public = signing_key.public_half(beside(self._signing, f"{_FRESH}.pub"))
        if not public or state.newest is None or public not in state.newest.keys.values():
            return False
        for what in ("next", "next.pub", "old", "old.pub"):
            beside(self._signing, what).unlink(missing_ok=True)
        with suppress(FileNotFoundError):  # it is in its place already
            beside(self._signing, _FRESH).replace(self._signing)
        keys.load_signer(self._signing)
        beside(self._signing, f"{_FRESH}.pub").unlink(
            missing_ok=True
        )  # the last: it says that this is not done
        return True

    def _switch(self, kind: KeyKind, now: float) -> None:
        match kind:
            case KeyKind.SIGNING:
                _exchange(self._signing)
                keys.load_signer(self._signing)  # writes its public half
                beside(self._signing, "next.pub").unlink(missing_ok=True)
            case KeyKind.BRAIN:
                _exchange(self._seed())
            case KeyKind.AUTHORITY:
                self._authority.switch(now)

    def _finish(self, kind: KeyKind) -> None:
        match kind:
            case KeyKind.SIGNING:
                for what in ("old", "old.pub"):
                    beside(self._signing, what).unlink(missing_ok=True)
            case KeyKind.BRAIN:
                beside(self._seed(), "old").unlink(missing_ok=True)
            case KeyKind.AUTHORITY:
                self._authority.finish()

    def _announced(self, state: TrustState, signers: Sequence[Signer]) -> TrustState:
        """With one announcement more: of what the files have now, signed by these keys."""
        keys_ = _public(self._held(state))
        trust = Trust(cell=self._cell, serial=self._next(state), keys=keys_, ca=self._ca())
        return state.model_copy(update={"announcements": (*state.announcements, _signed(trust, signers))})

    def _next(self, state: TrustState) -> int:
        """Above what any node has: ours may be older, put back from a backup, and nodes take only what is newer than theirs."""
        return highest(read_confirmed(self.file.confirmed_file), state.serial) + 1

    def _held(self, state: TrustState) -> list[Signer]:
        """The signing keys that count, the one in use first. One that lies beside it counts while its rotation is under way: a
        run that was interrupted may have left it there, and it may be stolen.
        """
        others = ("next", "old") if KeyKind.SIGNING in state.rotations else ()
        files = (self._signing, *(beside(self._signing, what) for what in others))
        return [keys.read_signer(file) for file in files if file.exists()]

    def _ca(self) -> str:
        return self._authority.bundle() if self._embedded and self._authority.exists() else ""

    def _seed(self) -> Path:
        if self._brain_seed is None:
            raise ConfigError("this brain connects to NATS without an NKEY: give it one (nats.seed_file)")
        return self._brain_seed


def _exchange(file: Path) -> None:
    """The next key in the place of the present one, which is kept beside it as the old one."""
    following = beside(file, "next")
    if following.exists():
        keys.keep(file, beside(file, "old"))
        following.replace(file)


def _public(signers: Sequence[Signer]) -> Mapping[str, str]:
    return {signer.key_id: signer.public for signer in signers}


def _signed(trust: Trust, signers: Sequence[Signer]) -> SignedTrust:
    payload = trust.payload()
    return SignedTrust(
        payload=payload, signatures={one.key_id: one.sign(payload.encode()) for one in signers}
    )
