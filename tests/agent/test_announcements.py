"""What a node trusts: which announcement counts, and what is left of it after a restart."""

import base64
import json
import time
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from agent.commands.announcements import endorsed
from agent.contract.errors import ContractError, Refused
from agent.contract.trust import (
    Announcement,
    Trust,
    decode_trust,
    pack_announcements,
    unpack_announcements,
)
from agent.remembered.trusted import Trusted

KEYS = {name: SigningKey(bytes([number]) * 32) for number, name in enumerate("abc", 1)}
RAW = {name: bytes(key.verify_key) for name, key in KEYS.items()}


def said(serial: int, keys: str, by: str, cell: str = "c", ca: str = "") -> Announcement:
    """Announcement `serial`: that `keys` count, signed by the keys `by`."""
    texts = {name: base64.b64encode(RAW[name]).decode() for name in keys}
    payload = Trust(cell=cell, serial=serial, keys=texts, ca=ca).payload()
    signatures = {name: base64.b64encode(KEYS[name].sign(payload.encode()).signature).decode() for name in by}
    return Announcement(payload=payload, signatures=signatures)


def keys_of(name: str) -> dict[str, bytes]:
    """The raw keys of these names."""
    return {one: RAW[one] for one in name}


CHAIN = (said(1, "ab", "ab"), said(2, "b", "ab"), said(3, "bc", "bc"), said(4, "c", "bc"))


@pytest.mark.parametrize(
    ("announcements", "serial", "keys", "becomes"),
    [
        (CHAIN, 0, "a", "c"),  # it was off all the time
        (CHAIN[2:], 2, "b", "c"),
        (CHAIN, 0, "b", "c"),  # its configuration is younger than the first of them
        (CHAIN, 4, "c", None),  # a repetition
        (CHAIN[:2], 2, "b", None),
        (CHAIN[:1], 0, "a", "ab"),
        ((said(9, "", "a"),), 3, "a", ""),  # the key revokes itself
        ((said(9, "", "a"), said(10, "b", "b")), 3, "a", ""),  # and leads nowhere
        ((said(2, "b", "b"), said(3, "b", "a")), 1, "a", "b"),  # only the second is endorsed
        (CHAIN, 0, "c", "c"),
    ],
)
def test_what_is_endorsed_and_what_is_not(
    announcements: tuple[Announcement, ...], serial: int, keys: str, becomes: str | None
) -> None:
    """The last statement to which signatures lead; None: all are old."""
    found = endorsed(announcements, cell="c", serial=serial, keys=keys_of(keys))
    assert (None if found is None else "".join(found.keys)) == becomes


@pytest.mark.parametrize(
    ("announcement", "keys", "why"),
    [
        (said(2, "b", "b"), "a", "signed by no key that is trusted here"),
        (said(2, "b", ""), "a", "signed by no key that is trusted here"),
        (said(2, "b", "a"), "", "signed by no key that is trusted here"),
        (said(2, "b", "a", cell="d"), "a", "it is of cell 'd'"),
        (Announcement(payload=said(2, "b", "a").payload, signatures={"a": "%"}), "a", "signed by no key"),
        (Announcement(payload=said(2, "b", "a").payload, signatures=said(3, "b", "a").signatures), "a", "signed by no key"),
        (Announcement(payload="[]", signatures={}), "a", "not an announcement"),
    ],
)  # fmt: skip
def test_what_is_refused(announcement: Announcement, keys: str, why: str) -> None:
    """With what the operator must do."""
    with pytest.raises(Refused, match=why):
        endorsed([announcement], cell="c", serial=1, keys=keys_of(keys))


@pytest.mark.parametrize(
    "change",
    [{"serial": 0}, {"serial": True}, {"keys": {"a": "AAAA"}}, {"keys": {"a": "%"}}, {"keys": []}, {"ca": None}, {"cell": 7}],
)  # fmt: skip
def test_what_is_no_announcement(change: dict[str, object]) -> None:
    """Nothing of it counts."""
    raw = {"cell": "c", "serial": 1, "keys": {}, "ca": ""} | change
    with pytest.raises(ContractError):
        decode_trust(json.dumps({"trust": raw}))


def test_announcements_travel_unchanged_and_commands_are_something_else() -> None:
    """What is signed are the exact characters."""
    assert unpack_announcements(pack_announcements(CHAIN)) == list(CHAIN)
    assert unpack_announcements(b'{"payload":"{}"}') is None
    with pytest.raises(ContractError):
        unpack_announcements(b'{"announcements":[{"payload":1,"sigs":{}}]}')


def test_it_is_remembered_until_the_configuration_is_changed(tmp_path: Path) -> None:
    """A restart forgets nothing; `join`, or a person, has the last word; a damaged file is as none."""
    file = tmp_path / "trusted.json"

    def node(keys: str = "a", serial: int = 0, ca: str = "old") -> Trusted:
        return Trusted(file, cell="c", serial=serial, keys=keys_of(keys), ca=ca)

    trusted = node()
    trusted.take(decode_trust(said(2, "b", "a", ca="new").payload))
    assert file.stat().st_mode & 0o777 == 0o640
    for now in (trusted, node()):
        assert (now.serial, now.keys, now.ca, now.ended) == (2, keys_of("b"), "new", ("a",))
    trusted.take(decode_trust(said(3, "ab", "b").payload))
    assert (node().ca, node().ended) == ("new", ())  # it said nothing of authorities; and a key may come back
    for changed in (node("ac"), node(serial=3), node(ca="other")):
        assert changed.serial != 3 or changed.keys == keys_of("a")
        assert changed.ended == ()
    file.write_text('{"basis": 1')
    assert (node().serial, node().keys) == (0, keys_of("a"))


def test_what_cannot_be_written_is_not_in_force(tmp_path: Path) -> None:
    """Else it would be forgotten by the next restart, after the brain has counted on it."""
    trusted = Trusted(tmp_path / "none/trusted.json", cell="c", serial=0, keys=keys_of("a"), ca="")
    with pytest.raises(OSError, match="none"):
        trusted.take(decode_trust(said(1, "b", "a").payload))
    assert (trusted.serial, trusted.keys) == (0, keys_of("a"))


def test_the_largest_request_is_judged_in_no_time() -> None:
    """Many signatures by nobody: each costs only a look."""
    one = said(2, "b", "")
    many = Announcement(payload=one.payload, signatures={f"k{number}": "A" * 88 for number in range(600)})
    began = time.process_time()
    with pytest.raises(Refused):
        endorsed([many], cell="c", serial=1, keys=keys_of("abc"))
    assert time.process_time() - began < 1


def test_no_bit_of_what_is_remembered_makes_another_key(tmp_path: Path) -> None:
    """A damaged file is none: the configuration counts, and the brain announces again. One without a check is of version 0.2."""
    file = tmp_path / "trusted.json"

    def node() -> Trusted:
        return Trusted(file, cell="c", serial=0, keys=keys_of("a"), ca="old")

    node().take(decode_trust(said(2, "b", "a", ca="new").payload))
    whole = file.read_bytes()
    configured, announced = (0, keys_of("a"), "old"), (2, keys_of("b"), "new")
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        found = node()
        assert (found.serial, found.keys, found.ca) in (configured, announced), bytes(damaged)
    kept = json.loads(whole)
    del kept["check"]
    file.write_text(json.dumps(kept))
    assert (node().serial, node().keys, node().ca) == announced
