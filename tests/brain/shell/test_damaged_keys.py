"""A signing key of which the disk gives back other bits is as good a key as any, which no node obeys: no brain starts with it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from agent.shared.secret_file import nkey_seed
from brain import config
from brain.adapters import keys, nkey, signing_key
from brain.adapters.nkey import NkeyKind
from brain.adapters.rotation import KeyRotation
from brain.config import BrainConfig


@pytest.fixture(name="brain")
def _brain(tmp_path: Path) -> BrainConfig:
    """With a key."""
    found = config.parse({"data_dir": str(tmp_path)}, "test", tmp_path)
    keys.load_signer(found.signing_key)
    return found


def accepted(brain: BrainConfig) -> str:
    """The public key with which a brain starts; empty: it does not."""
    try:
        signing_key.check(brain)
        return keys.load_signer(brain.signing_key).public
    except ConfigError:
        return ""


def test_no_bit_of_the_key_is_another(brain: BrainConfig) -> None:
    """Each of them."""
    whole, public = brain.signing_key.read_bytes(), keys.read_signer(brain.signing_key).public
    refused = 0
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        brain.signing_key.write_bytes(damaged)
        found = accepted(brain)
        assert found in ("", public), damaged
        refused += not found
    assert refused > 8 * 42, "all but what base64 leaves open, and the end of the line"
    brain.signing_key.write_bytes(whole)
    assert accepted(brain) == public


@pytest.mark.parametrize("left", [b"", b"AAAA\n", b"\0" * 45])
def test_a_key_that_a_power_failure_has_emptied_says_what_to_do(brain: BrainConfig, left: bytes) -> None:
    """And what it says when there is no backup makes another."""
    brain.signing_key.write_bytes(left)
    with pytest.raises(ConfigError) as told:
        signing_key.check(brain)
    assert "put it back from your backup" in str(told.value)
    assert "`gpuward cell rotate signing --compromised`" in str(told.value)
    brain.cell_dir.mkdir()  # as the command does
    KeyRotation(brain).replace_compromised()
    assert accepted(brain)


def test_a_damaged_public_half_is_written_again(brain: BrainConfig) -> None:
    """Whatever stands in it: the key says what it is."""
    half = brain.signing_key.with_name("signing.key.pub")
    whole, public = half.read_bytes(), keys.read_signer(brain.signing_key).public
    for at in range(len(whole) - 1):
        half.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert accepted(brain) == public
        assert half.read_bytes() == whole


def test_an_exchange_that_was_cut_short_is_no_damage(brain: BrainConfig) -> None:
    """The new key is there, and the public half is the old one's still; the next one's lies beside it until all is done."""
    for following in ("next", "fresh"):
        coming = keys.beside(brain.signing_key, following)
        new = keys.load_signer(coming).public
        coming.replace(brain.signing_key)
        assert accepted(brain) == new
        keys.beside(brain.signing_key, f"{following}.pub").unlink()
        assert accepted(brain) == new, "which is written by then"


def test_a_key_that_was_put_back_alone_is_told(brain: BrainConfig) -> None:
    """The page says which file to remove."""
    half = brain.signing_key.with_name("signing.key.pub")
    other = brain.signing_key.with_name("other.key")
    public = keys.load_signer(other).public
    other.replace(brain.signing_key)
    with pytest.raises(ConfigError, match=r"If signing\.key is the right one, remove signing\.key\.pub"):
        signing_key.check(brain)
    half.unlink()
    assert accepted(brain) == public


def test_no_bit_of_an_nkey_is_another(tmp_path: Path) -> None:
    """Of the brain's, of an account's, of a node's: each ends with a sum. One that were taken all the same would be a user whom
    no server knows, and the servers would say no more than that.
    """
    file = tmp_path / "any.nk"
    reads: dict[NkeyKind, list[Callable[[], object]]] = {
        NkeyKind.USER: [
            lambda: keys.public_nkey(file),
            lambda: nkey_seed(file, "nats_seed_file"),
            lambda: nkey.load(file, NkeyKind.USER),
        ],
        NkeyKind.ACCOUNT: [lambda: nkey.load(file, NkeyKind.ACCOUNT)],
    }
    for kind, readers in reads.items():
        file.unlink(missing_ok=True)
        nkey.load_or_make(file, kind)
        whole = file.read_bytes()
        for bit in range(8 * len(whole.strip())):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            file.write_bytes(damaged)
            if damaged.strip() == whole.strip():
                continue
            for read in readers:
                with pytest.raises(ConfigError):
                    read()
        file.write_bytes(whole)
        for read in readers:
            read()
