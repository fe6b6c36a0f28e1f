"""Rotations that are killed before each change of a file that they make, and what is done next.

Whatever that is, nodes that have heard of each step at once and nodes that were off all the time obey the key in use and no
other, and once a key was revoked as stolen nobody is told to trust it again.
"""

import base64
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from agent.commands.announcements import endorsed
from agent.contract.errors import Refused
from brain.adapters import keys, signing_key
from brain.adapters.keys import Signer, beside
from brain.adapters.rotation import KeyRotation
from brain.cell.authority import Authority
from brain.cell.trust import KeyKind
from brain.cli import cell_shared
from brain.config import BrainConfig, parse
from tests import forked
from tests.killed import killed

NOW_S = 1_800_000_000.0
STEPS = ("begin", "advance", "advance")


@dataclass(kw_only=True)
class Node:
    """What a node trusts: decided by the agent's own code."""

    keys: dict[str, bytes]
    serial: int = 0
    refused: list[str] = field(default_factory=list)

    def hears(self, rotation: KeyRotation) -> None:
        """It is told what it lacks, as the brain does."""
        lacks = rotation.file.state().after(self.serial)
        try:
            trust = endorsed(lacks, cell="default", serial=self.serial, keys=self.keys)
        except Refused as error:
            self.refused.append(str(error))
            return
        if trust is not None:
            self.serial = trust.serial
            self.keys = {name: base64.b64decode(text) for name, text in trust.keys.items()}


def config_of(folder: Path) -> BrainConfig:
    """Of a brain with this data folder."""
    return parse({"data_dir": str(folder)}, "test", folder)


def new_cell(folder: Path) -> BrainConfig:
    """With all its keys."""
    config = config_of(folder)
    config.cell_dir.mkdir(parents=True)
    Authority(config.cell_dir).make("default", ["localhost"], NOW_S)
    keys.load_signer(config.signing_key)
    assert config.brain_seed is not None
    keys.load_nkey(config.brain_seed)
    return config


def in_use(config: BrainConfig) -> Signer:
    """The key that signs commands."""
    return keys.read_signer(config.signing_key)


def joined(config: BrainConfig) -> Node:
    """A node that has just joined."""
    signer = in_use(config)
    serial = KeyRotation(config).file.state().serial
    return Node(keys={signer.key_id: bytes(signer.key.verify_key)}, serial=serial)


def step(config: BrainConfig, kind: KeyKind, number: int) -> None:
    """One of STEPS."""
    rotation = KeyRotation(config)
    if STEPS[number] == "begin":
        rotation.begin(kind, now=NOW_S, overlap_s=1)
    else:
        rotation.advance(kind, now=NOW_S)


def left_over(folder: Path) -> list[str]:
    """Files that only a rotation under way has."""
    words = ("next", "old", "fresh", ".part", "signing.key.")
    found = (str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())
    return sorted(one for one in found if any(word in one for word in words) and one != "signing.key.pub")


@pytest.mark.parametrize("number", range(len(STEPS)))
@pytest.mark.parametrize("kind", list(KeyKind))
def test_a_rotation_that_is_killed_anywhere_is_whole_when_it_was_done_again(
    kind: KeyKind, number: int, tmp_path: Path
) -> None:
    """In between the brain can start and is obeyed, and its certificate has its key."""
    for at in count():
        folder = tmp_path / str(at)
        config = new_cell(folder)
        online, off = joined(config), joined(config)
        for before in range(number):
            step(config, kind, before)
            online.hears(KeyRotation(config))
        died = killed(at, lambda config=config: step(config, kind, number))  # type: ignore[misc]  # a default of a lambda has no type
        authority, rotation = Authority(config.cell_dir), KeyRotation(config)
        online.hears(rotation)
        signing_key.check(config)
        assert in_use(config).key_id in online.keys
        authority.settle()
        authority.check_key()
        if not died:
            assert at, "it has changed nothing"
            return
        for again in range(number, len(STEPS)):
            step(config, kind, again)
            online.hears(rotation)
        off.hears(rotation)
        assert set(online.keys) == set(off.keys) == {in_use(config).key_id}
        assert left_over(folder) == [], at
        authority.follow(NOW_S)
        authority.check_key()


@pytest.mark.parametrize("under_way", range(3))
def test_a_stolen_key_is_never_trusted_again(under_way: int, tmp_path: Path) -> None:
    """`--compromised` is killed anywhere, also while a rotation is under way. Then somebody says it again, or something else, or
    nothing; nodes that were off all the time hear that the key is revoked, whichever of them they knew.
    """
    for at in count():
        config = new_cell(tmp_path / str(at))
        rotation = KeyRotation(config)
        online, off = joined(config), joined(config)
        for number in range(under_way):
            step(config, KeyKind.SIGNING, number)
            online.hears(rotation)
        stolen = set(rotation.in_force())
        died = killed(at, lambda config=config: KeyRotation(config).replace_compromised())  # type: ignore[misc]  # a default of a lambda has no type
        signing_key.check(config)
        online.hears(rotation)
        revoked = not online.keys
        if at % 2:
            rotation.settle()  # the running brain
        else:
            step(config, KeyKind.AUTHORITY, 0)
        newest = rotation.file.state().newest
        assert not revoked or (newest is not None and not stolen & set(newest.keys)), at
        assert not revoked or not stolen & set(rotation.in_force()), at
        rotation.replace_compromised()  # it is said again; also after it has ended: then it is a second one
        assert not stolen & set(rotation.in_force())
        assert list(rotation.in_force()) == [in_use(config).key_id]
        fresh = joined(config)
        for node in (online, off):
            node.hears(rotation)
            assert not node.keys, at
            node.refused.clear()
            node.hears(rotation)
            assert not node.refused, "it is told nothing more, as it would refuse it"
        for number in range(len(STEPS)):
            step(config, KeyKind.SIGNING, number)
            fresh.hears(rotation)
        assert set(fresh.keys) == {in_use(config).key_id}
        assert [one for one in left_over(tmp_path / str(at)) if one.startswith("signing")] == []
        if not died:
            assert at
            return


@pytest.mark.parametrize(
    "story", ["first", "rotated", "compromised", "rotated and compromised", "compromised twice"]
)
def test_take_that_is_killed_anywhere_is_whole_when_it_was_said_again(story: str, tmp_path: Path) -> None:
    """The second brain starts in between, has the first one's keys at the end, and shows a certificate of its authority."""
    for at in count():
        first, second = new_cell(tmp_path / f"a{at}"), config_of(tmp_path / f"b{at}")
        if story != "first":
            cell_shared.take(second, cell_shared.gathered(first), NOW_S)
        if "rotated" in story:
            for kind in (KeyKind.SIGNING, KeyKind.AUTHORITY):
                for number in range(len(STEPS)):
                    step(first, kind, number)
        for _ in range(0 if "compromised" not in story else 2 if "twice" in story else 1):
            KeyRotation(first).replace_compromised()
        shared = cell_shared.gathered(first)
        died = killed(at, lambda config=second, shared=shared: cell_shared.take(config, shared, NOW_S))  # type: ignore[misc]  # a default of a lambda has no type
        signing_key.check(second)
        cell_shared.take(second, shared, NOW_S)
        again = cell_shared.gathered(second)
        own = ("server.pem", "server.key")
        assert {name: text for name, text in again.files.items() if name not in own} == {
            name: text for name, text in shared.files.items() if name not in own
        }
        signing_key.check(second)
        assert KeyRotation(second).in_force() == KeyRotation(first).in_force()
        assert signing_key.public_half(beside(second.signing_key, "pub")) == in_use(first).public
        authority = Authority(second.cell_dir)
        authority.check_key()
        before = authority.certificate_file.read_bytes()
        authority.follow(NOW_S)
        assert authority.certificate_file.read_bytes() == before, "it was of the old authority"
        if not died:
            assert at
            return


def test_what_is_done_is_told_also_where_no_note_of_it_can_be_written(tmp_path: Path) -> None:
    """As on a full disk: who heard of the note alone would say it again, and make another key."""
    config = new_cell(tmp_path)
    (config.cell_dir / "journal.json").mkdir()
    status, said = forked.gpuward("cell", "rotate", "signing", "--compromised", "--data", str(tmp_path))
    assert status == 0, said
    assert "EVERY NODE MUST JOIN AGAIN" in said
    assert "It is done, and no note will say who did it" in said
    assert KeyRotation(config).file.state().joined_since
