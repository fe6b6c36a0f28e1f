"""What `gpuward cell rotate` begins, and what `gpuward cell show` says of keys."""

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from agent.contract.errors import ConfigError
from agent.shared.words import later, many, t
from brain.adapters.rotation import KeyRotation
from brain.cell.confirmations import ahead, is_behind, read_confirmed
from brain.cell.registry import CellRegistry
from brain.cell.trust import KeyKind, Rotation, Stage
from brain.config import BrainConfig

_MOST_NAMES = 20
_COMPROMISED = later(
    "A new key signs commands from now on, and no old one endorses it. EVERY NODE MUST JOIN AGAIN:\n"
    "  gpuward cell token --nodes 'gpu-*' --count 100      then, on each node: gpuward-agent join TOKEN, and "
    "restart the agent\n"
    "Until then a node that has heard of it takes no command from anybody, and goes on reporting. A node that "
    "was not reached\n"
    "still obeys the old key, so rotate the brain's NKEY too (`gpuward cell rotate brain`): without it nobody "
    "can send it one.\n"
    "`gpuward cell show` names the nodes that have not joined again."
)


def rotate(
    config: BrainConfig, kind: KeyKind, overlap_s: float, *, by: str, at_once: bool, compromised: bool
) -> str:
    """Begins a rotation, or makes one that is under way go on; the running brain does the rest, under the name of `by`. Returns
    what to tell them.

    ConfigError: one is under way, or a file cannot be read.
    """
    if kind is KeyKind.BRAIN and config.nats.operator is not None:
        raise ConfigError(
            t(
                "in operator mode the brain's NKEY belongs to a user of an account, and gpuward does not "
                "exchange it: revoke that user with your operator's tools, and make another"
            )
        )
    rotation, now = KeyRotation(config), time.time()
    if compromised:
        rotation.replace_compromised()
        return t(_COMPROMISED)
    under_way = kind in rotation.file.state().rotations
    if not under_way or not at_once:
        rotation.begin(kind, now=now, overlap_s=overlap_s, by=by)
    if at_once:
        rotation.hurry(kind, now=now, by=by)
    if kind is KeyKind.BRAIN and not config.embedded and not at_once:
        return t(
            "the brain's next NKEY is there. Write the accounts again (`gpuward cell show --nats-accounts`), "
            "reload the\nservers, and say `gpuward cell rotate brain --now`; then do both once more: the old "
            "NKEY is no longer among them"
        )
    waits = (
        ""
        if at_once or kind is KeyKind.BRAIN
        else t(" when all live nodes have confirmed it, at {now} at the latest", now=_time(now + overlap_s))
    )
    said = t(
        "{value}: the running brain puts the new key into use{waits}. `gpuward cell show` says how far it is",
        value=kind.value,
        waits=waits,
    )
    left = _tokens_left(config, now) if kind is KeyKind.AUTHORITY else 0
    if left:
        said += t(
            "\n{join_tokens} that can still be used {what} the old authority and will be worth nothing when "
            "the rotation is over: make others then (`gpuward cell token`)",
            join_tokens=many(left, "join token"),
            what=t("names") if left == 1 else "name",
        )
    return said


def _tokens_left(config: BrainConfig, now: float) -> int:
    tokens = CellRegistry(config.registry_file).tokens().values()
    return sum(1 for one in tokens if one.left and now < one.expires_at)


def shown(config: BrainConfig, registered: Iterable[str]) -> dict[str, Any]:
    """What is in force, for JSON."""
    rotation = KeyRotation(config)
    state = rotation.file.state()
    confirmed = read_confirmed(rotation.file.confirmed_file)
    serials = {name: one.serial for name, one in confirmed.items()}
    wanted = dict.fromkeys([*registered, *(name for name, one in confirmed.items() if one.live)], 0)
    behind = {name: serials.get(name, 0) for name in sorted(wanted) if serials.get(name, 0) < state.serial}
    again = [name for name, serial in behind.items() if name in serials and serial < state.joined_since]
    try:
        signing = list(rotation.in_force())
    except ConfigError:  # e.g. another user may not read it
        signing = []
    return {
        "signing": signing,
        "announcement": state.serial,
        "rotations": {
            kind.value: {
                "stage": one.stage.value,
                "since": _time(one.since),
                # empty: when somebody says `--now`
                "switch_at": "" if _waits_for_a_person(config, kind, one) else _time(one.switch_at),
            }
            for kind, one in state.rotations.items()
        },
        "unconfirmed": {
            name: t("live") if name in confirmed and confirmed[name].live else t("not heard")
            for name in behind
            if name not in again
        },
        "join_again": again,
        # node -> the announcement that it trusts, which is newer than ours
        "ahead": ahead(confirmed, state.serial),
        "keys_behind": is_behind(
            len(ahead(confirmed, state.serial)), sum(one.live for one in confirmed.values())
        ),
    }


def lines(keys: Mapping[str, Any]) -> Iterator[str]:
    """The same, for people."""
    for number, key_id in enumerate(keys["signing"]):
        yield t(
            "signing key {key_id}: {what}",
            key_id=key_id,
            what=t("signs commands") if number == 0 else t("accepted too"),
        )
    for kind, one in keys["rotations"].items():
        until = t("until {switch_at} at the latest", switch_at=one["switch_at"])
        if not one["switch_at"]:
            until = t(
                "until you say `gpuward cell rotate {kind} --now`, when your servers accept both", kind=kind
            )
        how = (
            t("both are accepted, the old one is in use {until}", until=until)
            if one["stage"] == Stage.OVERLAP.value
            else t("the new one is in use, the old one is being taken out")
        )
        yield t("rotation of {kind} since {since}: {how}", kind=kind, since=one["since"], how=how)
    if keys["unconfirmed"]:
        named = [f"{name} ({how})" for name, how in keys["unconfirmed"].items()]
        yield t(
            "announcement {announcement} not confirmed by {nodes}: {named}",
            announcement=keys["announcement"],
            nodes=many(len(named), "node"),
            named=_some(named),
        )
    if keys["ahead"]:
        yield f"{many(len(keys['ahead']), 'node')} {ahead_of(keys)}: {_some(list(keys['ahead']))}"
    if keys["join_again"]:
        again = keys["join_again"]
        yield t(
            "{again} nodes take no command and must join again: {again2}",
            again=len(again),
            again2=_some(again),
        )


def ahead_of(keys: Mapping[str, Any]) -> str:
    """What is wrong with nodes that trust newer announcements than ours."""
    return t(
        "trust newer keys than this brain has (announcement {values}, ours is {announcement}) and may refuse "
        "every command",
        values=max(keys["ahead"].values()),
        announcement=keys["announcement"],
    )


def _waits_for_a_person(config: BrainConfig, kind: KeyKind, rotation: Rotation) -> bool:
    by_hand = kind is KeyKind.BRAIN and not config.embedded and rotation.stage is Stage.OVERLAP
    return by_hand and rotation.switch_at > time.time()


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (t(" and {more} more (--json)", more=more) if more > 0 else "")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
