"""May this command run here, now? The pure decision by itself: what it refuses and in whose name, and what just passes."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from agent.commands.verify import MAX_ENVELOPE_BYTES, BadCommand, VerifierState, verify
from agent.contract.commands import Command
from agent.contract.look import LOOK
from tests.agent.commander_kit import KEYS, NOT_HERE, UNREADABLE, order, signed

NOW_S = 1000.0
HERE = VerifierState(
    node="gpu-1", session="run-1", epoch=5, allow=frozenset({"evidence.collect"}), known=frozenset({"before"})
)
SIGNED = json.loads(signed(order().payload()))


def refusal(envelope: bytes, keys: Mapping[str, bytes] = KEYS) -> BadCommand:
    """Why the node does not run it."""
    with pytest.raises(BadCommand) as caught:
        verify(envelope, keys, HERE, NOW_S)
    return caught.value


@pytest.mark.parametrize(
    ("envelope", "why"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE]
)
def test_what_nobody_has_sent(envelope: bytes, why: str) -> None:
    """Not authentic, or not to be read: whatever id it claims, the refusal names no command."""
    error = refusal(envelope)
    assert why in str(error)
    assert error.command == ""


@pytest.mark.parametrize(("envelope", "why"), [row[1:] for row in NOT_HERE], ids=[row[0] for row in NOT_HERE])
def test_what_may_not_run_here(envelope: bytes, why: str) -> None:
    """An authentic command is refused under its own id."""
    error = refusal(envelope)
    assert why in str(error)
    assert error.command == order().id


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sig": SIGNED["sig"] + "!"}, "not a signed envelope"),
        ({"sig": f"\n{SIGNED['sig']}"}, "not a signed envelope"),
        ({"key": ["brain-1"]}, "key \"['brain-1']\" is not trusted here (trusted_keys)"),
        ({"key": "k" * 50}, f"key '{'k' * 40}' is not trusted here (trusted_keys)"),
        ({"payload": {}}, "not a signed envelope"),
    ],
)
def test_an_envelope_is_read_to_the_letter(changes: Mapping[str, object], why: str) -> None:
    """A signature with other characters in it is none, even if the rest would fit; a key id is a text."""
    assert str(refusal(json.dumps(SIGNED | changes).encode())) == why


def test_a_trusted_key_that_is_none() -> None:
    """A key of the wrong length in the configuration verifies nothing."""
    assert str(refusal(signed(order().payload()), {"brain-1": b"short"})) == "signature does not fit"


def test_what_is_said_to_people() -> None:
    """The reason alone, and of a long name only the start."""
    assert (
        str(refusal(signed(order(node="n" * 70).payload())))
        == f"it is for node '{'n' * 63}', this is 'gpu-1'"
    )
    old = refusal(signed(order(epoch=4).payload()))
    assert (str(old), old.command) == ("epoch 4 is older than 5: not the leader", order().id)
    assert BadCommand("unreadable").command == ""


@pytest.mark.parametrize(
    "command",
    [
        order(),
        order(not_after_s=NOW_S),
        order(timeout_s=3600.0),
        order(timeout_s=0.001),
        order(epoch=6),
        order(id="before", session="run-0", not_after_s=0.0, timeout_s=0.0),
        replace(
            order(id="before"), action="service.restart", params={"unit": "x.service"}, session="another run"
        ),
        order(plan=True, session="", not_after_s=0.0),
        order(plan=True, action="service.restart", params={"unit": "x.service"}),
        order(action=LOOK),
    ],
    ids=[
        "in order",
        "just not expired",
        "the longest time limit",
        "a short one",
        "a newer leader",
        "accepted before: its answer is wanted",
        "accepted before: the allow-list has changed",
        "a plan for any run",
        "a plan of what is not allowed",
        "a look: it changes nothing, and needs no leave",
    ],
)
def test_what_passes(command: Command) -> None:
    """The command as it was signed."""
    assert verify(signed(command.payload()), KEYS, HERE, NOW_S) == command


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (order(id="before", epoch=4), "not the leader"),
        (order(id="before", node="gpu-2"), "it is for node"),
        (order(plan=True, session="run-0"), "another run"),
        (order(plan=True, not_after_s=999.0), "expired"),
        (order(plan=True, session="", timeout_s=0.0), "timeout_s"),
        (order(plan=True, session="", epoch=4), "not the leader"),
    ],
)
def test_what_no_plan_and_no_repetition_is_spared(command: Command, why: str) -> None:
    """Known ids and plans go through the checks that come before theirs."""
    assert why in str(refusal(signed(command.payload())))


def test_the_largest_envelope() -> None:
    """Up to the limit it is read; one byte more is not."""
    envelope = signed(order().payload()).ljust(MAX_ENVELOPE_BYTES)
    assert verify(envelope, KEYS, HERE, NOW_S) == order()
    assert "65537 bytes" in str(refusal(envelope + b" "))


def test_the_signature_is_over_the_bytes() -> None:
    """The same command in other words is another text: it needs its own signature."""
    reworded = json.dumps(json.loads(SIGNED["payload"]), indent=1)
    assert str(refusal(json.dumps(SIGNED | {"payload": reworded}).encode())) == "signature does not fit"
