"""The nodes of a cell and the tokens with which they join: one file, which the brain and `gpuward cell` share.

A token is shown once; the file has its hash. It lets nodes in whose names fit its pattern, so many times, until it expires, and
never in place of a node that is there with another key, unless it was made for that.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import nkeys
from pydantic import BaseModel, ConfigDict, ValidationError

from agent.contract import subjects
from agent.contract.errors import ConfigError, Refused
from agent.contract.messages import clip
from brain.cell.void_tokens import VoidToken, VoidTokens
from brain.locked_file import LockedFile

MOST_TOKENS = 1000
BY_HAND = "add-node"
MOST_REVOKED = 10_000  # a cell has no more nodes


class TokenRefusal(StrEnum):
    """Why a join token lets nobody in."""

    UNKNOWN = "this join token is wrong or was revoked: make another (`gpuward cell token`)"
    EXPIRED = "this join token has expired: make another (`gpuward cell token`)"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CellNode(_Model):
    """One node. Times are seconds since 1970 by this machine's clock."""

    # its public NKEY (U...)
    public: str
    since: float
    # the id of the join token, or `add-node`
    by: str


class JoinToken(_Model):
    """One token."""

    # SHA-256 of the secret, hexadecimal
    hash: str
    # glob of the names that may join by it
    nodes: str
    # how many may still join
    left: int
    # true: also in place of a node that is there with another key
    replace: bool = False
    made_at: float
    expires_at: float


class Revocation(_Model):
    """A node that was taken away: the brain forgets it."""

    # the operator
    by: str
    at: float
    # the key that it had; empty: it was revoked by an earlier version
    public: str = ""


class _Registry(_Model):
    nodes: Mapping[str, CellNode] = {}
    # By the node's name. The brain forgets the node; servers in operator mode are told, also those that were down at the time
    revoked: Mapping[str, Revocation] = {}
    # by id
    tokens: Mapping[str, JoinToken] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedOut:
    """Whom the log says to be turned out: the registry may be older, put back from a backup."""

    # node -> when it was revoked
    nodes: Mapping[str, float] = field(default_factory=dict)
    # ids of join tokens
    tokens: Container[str] = frozenset()


class CellRegistry:
    """The registry of one cell."""

    def __init__(self, path: Path, configured: Mapping[str, str] | None = None) -> None:
        """`configured`: node -> public NKEY of those that stand in brain.toml; nobody joins under their names or keys."""
        self._configured = dict(configured or {})
        self._file = LockedFile(path, parse=partial(_parse, path), dump=_dump, empty=_Registry)
        self._void = VoidTokens(path)

    def nodes(self) -> Mapping[str, CellNode]:
        """Returns node -> its line, as it was read last. ConfigError: the file could never be read."""
        return self._file.value().nodes

    def trouble(self) -> str:
        """Why the file cannot be read, so that what was read last counts; empty: it can."""
        return self._file.trouble()

    def tokens(self) -> Mapping[str, JoinToken]:
        """Returns id -> token, also of those that are used up or have expired. ConfigError as above."""
        return self._file.value().tokens

    def void(self) -> Mapping[str, VoidToken]:
        """Returns id -> join token that was taken away. ConfigError: its file could never be read."""
        return self._void.all()

    def revoked(self) -> Mapping[str, Revocation]:
        """Returns node → its revocation; none of nodes that have joined again. ConfigError as above."""
        return self._file.value().revoked

    def had_nodes(self) -> bool:
        """Has a node joined by a token, which only a brain that runs lets in? False too when the file cannot be read: that is
        told elsewhere.
        """
        try:
            return self.joined() > 0
        except ConfigError:
            return False

    def joined(self) -> int:
        """How many nodes have joined by a token, or did before they were revoked. ConfigError as above."""
        return len(self.revoked()) + sum(node.by != BY_HAND for node in self.nodes().values())

    def shut_out(self) -> frozenset[str]:
        """The names of nodes that nobody may speak for any more: taken away, and not in brain.toml. ConfigError as above."""
        return frozenset(self.revoked()) - self._configured.keys()

    def add(self, name: str, public: str, *, now: float, by: str = BY_HAND, replace: bool = False) -> None:
        """Lets a node in. ConfigError: its name or key is none. Refused: it is there with another key."""
        subjects.new_node(name)
        _check_public(public)

        def add(found: _Registry) -> _Registry:
            self._check_configured(name, public)
            return _with_node(found, name, public, now=now, by=by, replace=replace)

        self._file.change(add)

    def make_token(
        self, nodes: str, *, count: int, now: float, lasts_s: float, replace: bool = False
    ) -> tuple[str, str]:
        """Returns (id, secret) of a new token; the secret is kept nowhere. ConfigError: there are too many tokens."""
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        token = JoinToken(
            hash=_hashed(secret),
            nodes=nodes,
            left=count,
            replace=replace,
            made_at=now,
            expires_at=now + lasts_s,
        )

        def add(found: _Registry) -> _Registry:
            kept = {key: one for key, one in found.tokens.items() if now < one.expires_at and one.left > 0}
            if len(kept) >= MOST_TOKENS:
                raise ConfigError(f"{self._file.path} holds {MOST_TOKENS} tokens: revoke some")
            return found.model_copy(update={"tokens": kept | {id_: token}})

        self._file.change(add)
        return id_, secret

    def knows(self, id_: str, secret: str) -> bool:
        """Is it a token that is there, expired or not? Takes no lock, and an unknown id as long as a wrong secret. ConfigError:
        the file cannot be read.
        """
        return _right(self._file.value(), id_, secret)

    def join(
        self,
        id_: str,
        secret: str,
        name: str,
        public: str,
        *,
        now: float,
        turned_out: TurnedOut = TurnedOut(),
    ) -> CellNode:
        """Lets a node in by a token, and returns its line. Refused, with what to do: the token is none, or not for this node. A
        node that joins again with the same key uses up nothing, unless it was turned out.
        """
        try:
            subjects.new_node(name)
            _check_public(public)
        except ConfigError as error:
            raise Refused(str(error)) from error

        joined: list[CellNode] = []

        def take(found: _Registry) -> _Registry:
            token = found.tokens.get(id_)
            void = id_ in turned_out.tokens or id_ in self._void.all()
            if token is None or void or not _right(found, id_, secret):
                raise Refused(TokenRefusal.UNKNOWN)
            if now >= token.expires_at:
                raise Refused(TokenRefusal.EXPIRED)
            if not fnmatchcase(name, token.nodes):
                raise Refused(
                    f"this join token is for nodes {token.nodes!r}, not for {name!r}: join under a name that fits (--node), or "
                    f"make another (`gpuward cell token --nodes {name}`)"
                )
            self._check_configured(name, public)
            told = _as_told(found, turned_out.nodes)
            _check_revoked(told, token, name, public)
            present = told.nodes.get(name)
            if present is not None and present.public == public:
                joined.append(present)
                return found
            if token.left < 1:
                raise Refused("this join token is used up: make another (`gpuward cell token`)")
            node = _with_node(told, name, public, now=now, by=id_, replace=token.replace).nodes[name]
            joined.append(node)
            used = token.model_copy(update={"left": token.left - 1})
            return _let_in(found, name, node).model_copy(update={"tokens": {**found.tokens, id_: used}})

        self._file.change(take)
        return joined[0]

    def _check_configured(self, name: str, public: str) -> None:
        """Refused: brain.toml has this name with another key, or this key for another name."""
        if self._configured.get(name, public) != public:
            raise Refused(
                f"node {name} stands in brain.toml with another key: take it out of [nats.embedded.nodes] there first, "
                "on the brain's machine"
            )
        taken = next((one for one, key in self._configured.items() if key == public and one != name), "")
        if taken:
            raise Refused(_other_name(taken))

    def revoke(self, name: str, *, now: float, by: str = "") -> str:
        """Takes a node or, by its id, a token away; with a node the token by which it came. Returns what it was. Refused: there
        is neither.
        """
        what = ""

        def drop(found: _Registry) -> _Registry:
            nonlocal what
            if name in found.nodes:
                what = f"node {name}"
                token = found.tokens.get(found.nodes[name].by)
                if token is not None and token.left > 0 and now < token.expires_at:
                    what += (
                        f", and the join token {found.nodes[name].by} by which it came: whoever has the node may have that too. "
                        f"{token.left} nodes could still have joined by it: make another for them (`gpuward cell token`)"
                    )
                return self._without(found, name, now=now, by=by)
            if name not in found.tokens:
                raise Refused(
                    f"there is no node and no join token {clip(name, 80)!r}: see `gpuward cell show`"
                )
            what = f"join token {name}"
            self._void.add(name, by=by, at=now)
            tokens = {key: one for key, one in found.tokens.items() if key != name}
            return found.model_copy(update={"tokens": tokens})

        self._file.change(drop)
        return what

    def turn_out(self, name: str, *, at: float, by: str) -> None:
        """The log says that a node was revoked then: if it has not joined since, it goes, as by `revoke`."""

        def drop(found: _Registry) -> _Registry:
            node = found.nodes.get(name)
            return found if node is None or _newer(node, at) else self._without(found, name, now=at, by=by)

        self._file.change(drop)

    def _without(self, found: _Registry, name: str, *, now: float, by: str) -> _Registry:
        """Without this node, and the token by which it came: that is void in a backup too, where it was not used up yet."""
        gone = found.nodes[name]
        if gone.by != BY_HAND:
            self._void.add(gone.by, by=by, at=now)
        nodes = {key: one for key, one in found.nodes.items() if key != name}
        tokens = {key: one for key, one in found.tokens.items() if key != gone.by}
        revocation = Revocation(by=by, at=_later(now, gone.since), public=gone.public)
        revoked = [*found.revoked.items(), (name, revocation)][-MOST_REVOKED:]
        return found.model_copy(update={"nodes": nodes, "revoked": dict(revoked), "tokens": tokens})


def _check_revoked(found: _Registry, token: JoinToken, name: str, public: str) -> None:
    """Refused: this key was revoked, or this name after the token was made. Who was turned out does not come back by what he had:
    a key that was copied is its thief's too, whoever shows the token.
    """
    for gone, one in found.revoked.items():
        if public == one.public and name != gone:
            raise Refused(f"this key is that of node {gone}, which was revoked: each node makes its own")
        if (name == gone or public == one.public) and token.made_at <= one.at:
            raise Refused(
                f"node {gone} was revoked after this join token was made: make another (`gpuward cell token`)"
            )
        if public == one.public:
            raise Refused(
                f"this key of node {gone} was revoked, and whoever has copied it would be let in by it, too: make another there "
                "(`gpuward-agent join --new-key`)"
            )


def _right(found: _Registry, id_: str, secret: str) -> bool:
    token = found.tokens.get(id_)
    known = token.hash if token else _hashed("")  # an unknown id takes as long as a wrong secret
    return hmac.compare_digest(_hashed(secret), known) and token is not None


def _with_node(found: _Registry, name: str, public: str, *, now: float, by: str, replace: bool) -> _Registry:
    present = found.nodes.get(name)
    if present is not None and present.public != public and not replace:
        raise Refused(
            f"node {name} is there with another key: if it is the same machine, or takes its place, say "
            f"`gpuward cell revoke {name}` first, or make a token with --replace"
        )
    taken = next((one for one, node in found.nodes.items() if node.public == public and one != name), "")
    if taken:
        raise Refused(_other_name(taken))
    if present is not None and present.public == public:
        return found
    taken_away = found.revoked.get(name)
    before = max(present.since if present else 0.0, taken_away.at if taken_away else 0.0)
    return _let_in(found, name, CellNode(public=public, since=_later(now, before), by=by))


def _let_in(found: _Registry, name: str, node: CellNode) -> _Registry:
    revoked = {key: one for key, one in found.revoked.items() if key != name}
    return found.model_copy(update={"nodes": {**found.nodes, name: node}, "revoked": revoked})


def _as_told(found: _Registry, turned_out: Mapping[str, float]) -> _Registry:
    """Without the nodes that were turned out after they had joined, though this file, from a backup, still has them."""
    gone = {name: at for name, at in turned_out.items() if not _newer(found.nodes.get(name), at)}
    keys = {name: node.public for name, node in found.nodes.items() if name in gone}
    told = {name: Revocation(by="", at=at, public=keys.get(name, "")) for name, at in gone.items()}
    nodes = {name: node for name, node in found.nodes.items() if name not in gone}
    return found.model_copy(update={"nodes": nodes, "revoked": {**told, **found.revoked}})


def _newer(node: CellNode | None, at: float) -> bool:
    return node is not None and node.since > at


def _other_name(known: str) -> str:
    return (
        f"this key belongs to node {known}, and each node makes its own. If that machine was renamed: `gpuward-agent join "
        f"--new-key` there, then `gpuward cell revoke {known}`"
    )


def _later(now: float, before: float) -> float:
    """Now, and at least a second later than `before`, whatever the clock says: by the whole second a server in operator mode
    knows which of a node's credentials are of before.
    """
    return max(now, before + 1)


def _check_public(public: str) -> None:
    """ConfigError: not the public NKEY of a user (base32 of a prefix, 32 bytes and their CRC)."""
    try:
        raw = base64.b32decode(public + "=" * (-len(public) % 8))
    except (binascii.Error, ValueError):
        raw = b""
    crc = int.from_bytes(raw[-2:], "little")
    if len(raw) != 35 or raw[0] != nkeys.PREFIX_BYTE_USER or nkeys.crc16(raw[:-2]) != crc:
        raise ConfigError(f"{clip(public, 80)!r} is not a public NKEY (it begins with U)")


def _parse(path: Path, body: bytes) -> _Registry:
    try:
        return _Registry.model_validate_json(body)
    except ValidationError as error:
        raise ConfigError(
            f"{path} is not the registry of a cell: restore it ({error.error_count()} errors)"
        ) from error


def _dump(registry: _Registry) -> bytes:
    return registry.model_dump_json(indent=1).encode()


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
