"""May this command run here, now? One pure decision; every refusal gives its reason.

The checks, in order: it is signed by a trusted key, it can be read, it is for this node, it comes from the present leader
(epoch). A command that was accepted before passes here. Any other must be for this run of the agent, not expired by our own
clock, and allowed on this node.
"""

import base64
import binascii
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from agent.contract.commands import Command, decode_command
from agent.contract.errors import ContractError, Refused
from agent.contract.look import LOOK

MAX_ENVELOPE_BYTES = 65536
MAX_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierState:
    """What a node checks commands against."""

    node: str
    # This run of the agent.
    session: str
    # The highest that was seen.
    epoch: int
    # Names of actions.
    allow: frozenset[str]
    # Ids of commands that were accepted before.
    known: Container[str]


class BadCommand(Refused):
    """A command that this node does not run. `command`: its id, empty when it could not be read or is not authentic."""

    def __init__(self, why: str, command: str = "") -> None:
        super().__init__(why)
        self.command = command


def verify(
    envelope: bytes,
    keys: Mapping[str, bytes],
    state: VerifierState,
    now_mono_s: float,
    *,
    ended: Container[str] = (),
) -> Command:
    """The command in `envelope` if it may run, was accepted before, or only asks for a plan; else BadCommand.

    `keys`: key id → 32-byte Ed25519 public key; `ended`: ids of keys that were trusted once;
    `now_mono_s`: the node's monotonic clock, seconds. A command that only asks
    for a plan may leave the session out, and may name an action that is not allowed.
    """
    try:
        command = decode_command(_authentic(envelope, keys, ended))
    except ContractError as error:
        raise BadCommand(str(error)) from error
    if command.node != state.node:
        raise BadCommand(f"it is for node {command.node[:63]!r}, this is {state.node!r}", command.id)
    if command.epoch < state.epoch:
        raise BadCommand(f"epoch {command.epoch} is older than {state.epoch}: not the leader", command.id)
    if command.id in state.known:
        return command
    if not 0 < command.timeout_s <= MAX_TIMEOUT_S:  # refuses nan too
        raise BadCommand(f"timeout_s must be above 0 and at most {MAX_TIMEOUT_S:.0f}", command.id)
    if command.plan and not command.session:
        return command
    if command.session != state.session:
        raise BadCommand("it is for another run of this agent", command.id)
    if not now_mono_s <= command.not_after_s:
        raise BadCommand(
            f"expired {now_mono_s - command.not_after_s:.1f} s ago by this node's clock", command.id
        )
    if command.action not in state.allow and command.action != LOOK and not command.plan:
        raise BadCommand(f"{command.action} is not on this node's allow-list", command.id)
    return command


def _authentic(envelope: bytes, keys: Mapping[str, bytes], ended: Container[str]) -> bytes:
    """The signed bytes; BadCommand when they are not signed by a trusted key."""
    if len(envelope) > MAX_ENVELOPE_BYTES:
        raise BadCommand(f"envelope of {len(envelope)} bytes, at most {MAX_ENVELOPE_BYTES} are read")
    try:
        raw = json.loads(envelope)
        payload, key_id = raw["payload"].encode(), raw["key"]
        signature = base64.b64decode(raw["sig"], validate=True)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, binascii.Error):
        raise BadCommand("not a signed envelope") from None
    key = keys.get(key_id) if isinstance(key_id, str) else None
    if key is None and isinstance(key_id, str) and key_id in ended:
        raise BadCommand(
            f"key {key_id!r} has ended: it was replaced (`gpuward cell rotate signing`), and whoever signs with it is not the "
            "brain of this cell, or has an old signing.key"
        )
    if key is None:
        raise BadCommand(f"key {str(key_id)[:40]!r} is not trusted here (trusted_keys)")
    try:
        VerifyKey(key).verify(payload, signature)
    except (BadSignatureError, ValueError):
        raise BadCommand("signature does not fit") from None
    return bytes(payload)
