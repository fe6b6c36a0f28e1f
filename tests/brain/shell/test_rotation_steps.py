"""The steps of a rotation on the files of a brain, also when it dies in the middle of one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from agent.contract.trust import decode_trust
from brain.adapters import keys, signing_key
from brain.adapters.rotation import KeyRotation
from brain.cell.authority import Authority
from brain.cell.confirmations import Confirmed, write_confirmed
from brain.cell.registry import CellRegistry
from brain.cell.trust import KeyKind
from brain.config import parse
from brain.locked_file import LockedFile

NOW_S = 1_800_000_000.0


def made(tmp_path: Path) -> KeyRotation:
    """Of a new cell."""
    config = parse({"data_dir": str(tmp_path)}, "test", tmp_path)
    config.cell_dir.mkdir()
    Authority(config.cell_dir).make("default", ["localhost"], NOW_S)
    return KeyRotation(config)


@contextmanager
def dies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a step did to the keys is done, but not written down."""

    def change(self: LockedFile[object], step: object) -> None:
        step(self.value())  # type: ignore[operator]  # a function
        raise KeyboardInterrupt

    monkeypatch.setattr(LockedFile, "change", change)
    try:
        yield
    except KeyboardInterrupt:
        pass
    else:
        pytest.fail("it did not die")
    finally:
        monkeypatch.undo()


@pytest.mark.parametrize("kind", list(KeyKind))
def test_each_step_can_be_done_again(kind: KeyKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with one key, as if nothing had happened."""
    rotation = made(tmp_path)
    authority = Authority(tmp_path / "cell")
    signing, seed = tmp_path / "signing.key", tmp_path / "nats/keys/brain.nk"
    before = (keys.load_signer(signing).key_id, keys.load_nkey(seed), authority.fingerprint())
    with dies(monkeypatch):
        rotation.begin(kind, now=NOW_S, overlap_s=1)
    rotation.begin(kind, now=NOW_S, overlap_s=1)
    with pytest.raises(ConfigError, match="is under way"):
        rotation.begin(kind, now=NOW_S, overlap_s=1)
    for _ in range(2):
        with dies(monkeypatch):
            rotation.advance(kind, now=NOW_S)
        rotation.advance(kind, now=NOW_S)
    after = (keys.load_signer(signing).key_id, keys.load_nkey(seed), authority.fingerprint())
    changed = [old != new for old, new in zip(before, after, strict=True)]
    assert changed == [kind is one for one in (KeyKind.SIGNING, KeyKind.BRAIN, KeyKind.AUTHORITY)]
    state = rotation.file.state()
    assert state.rotations == {}
    assert len(keys.nkeys_in_force(seed)) == len(rotation.in_force()) == 1
    if state.newest is not None:
        assert list(state.newest.keys) == [after[0]]
        assert state.newest.ca == authority.bundle() == authority.ca_file.read_text()


def test_a_compromised_key_endorses_nothing_but_its_own_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a rotation is under way, and when it is said twice."""
    rotation = made(tmp_path)
    rotation.begin(KeyKind.SIGNING, now=NOW_S, overlap_s=1)
    stolen = set(rotation.in_force())
    with dies(monkeypatch):
        rotation.replace_compromised()
    assert set(rotation.in_force()) == stolen
    rotation.replace_compromised()
    state = rotation.file.state()
    _, revoked, renewed = state.announcements
    assert decode_trust(revoked.payload).keys == {}
    assert stolen == set(revoked.signatures)
    assert not stolen & set(renewed.signatures)
    assert list(rotation.in_force()) == list(renewed.signatures)
    assert state.joined_since == decode_trust(renewed.payload).serial == 3
    assert not state.rotations
    names = {one.name for one in tmp_path.glob("signing.key*")}
    assert names == {"signing.key", "signing.key.pub"}


def test_what_cannot_be_rotated_says_why(tmp_path: Path) -> None:
    """No authority; its key moved away; a brain without an NKEY."""
    raw = {"data_dir": str(tmp_path), "nats": {"url": "nats://a:4222"}}
    config = parse(raw, "test", tmp_path)
    config.cell_dir.mkdir()
    rotation = KeyRotation(config)
    with pytest.raises(ConfigError, match="no authority of its own"):
        rotation.begin(KeyKind.AUTHORITY, now=NOW_S, overlap_s=1)
    with pytest.raises(ConfigError, match="without an NKEY"):
        rotation.begin(KeyKind.BRAIN, now=NOW_S, overlap_s=1)
    Authority(config.cell_dir).make("default", ["localhost"], NOW_S)
    (config.cell_dir / "ca.key").unlink()
    with pytest.raises(ConfigError, match="put it back"):
        rotation.begin(KeyKind.AUTHORITY, now=NOW_S, overlap_s=1)
    with pytest.raises(ConfigError, match="no rotation of signing"):
        rotation.hurry(KeyKind.SIGNING, now=NOW_S)
    rotation.begin(KeyKind.SIGNING, now=NOW_S, overlap_s=1)
    assert rotation.file.state().newest is not None
    assert rotation.file.state().newest.ca == ""  # type: ignore[union-attr]  # just asserted


@pytest.mark.parametrize("known", ["joined", "confirmed", "announced", "its public half"])
def test_a_lost_signing_key_is_not_replaced_where_nodes_obey_it(known: str, tmp_path: Path) -> None:
    """They would obey nobody, and nobody would know: who starts the brain or rotates the key is told. `--compromised` goes on."""
    rotation = made(tmp_path)
    config = parse({"data_dir": str(tmp_path)}, "test", tmp_path)
    signing_key.check(config)  # a new cell: nobody knows a key yet
    CellRegistry(config.registry_file).add("n2", keys.load_nkey(tmp_path / "n2.nk"), now=NOW_S)
    signing_key.check(config)  # let in by hand before the first start: nor does that one
    signing = tmp_path / "signing.key"
    match known:
        case "joined":
            public = keys.load_nkey(tmp_path / "n1.nk")
            CellRegistry(config.registry_file).add("n1", public, now=NOW_S, by="a1b2c3")  # a join token
        case "confirmed":
            write_confirmed(rotation.file.confirmed_file, {"n1": Confirmed(serial=0, live=False)})
        case "announced":
            rotation.begin(KeyKind.AUTHORITY, now=NOW_S, overlap_s=1)
        case _:
            keys.load_signer(signing)
            signing.unlink()
    said = "is gone, and 1 node would obey" if known in ("joined", "confirmed") else "is gone, and the nodes"
    attempts: tuple[Callable[[], object], ...] = (
        lambda: signing_key.check(config),
        lambda: rotation.begin(KeyKind.SIGNING, now=NOW_S, overlap_s=1),
    )
    for does in attempts:
        with pytest.raises(ConfigError, match=said) as caught:
            does()
        assert "put it back from your backup" in str(caught.value)
        assert not signing.exists()
    rotation.replace_compromised()
    signing_key.check(config)
    assert rotation.file.state().joined_since
