"""The keys of a cell, a rotation that is under way, and when certificates end."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.contract.errors import ConfigError
from agent.shared.words import later, many, t
from brain.adapters import keys, signing_key
from brain.adapters.rotation import KeyRotation
from brain.cell import authority
from brain.cell.authority import Authority
from brain.cell.trust import KeyKind
from brain.cli import cell_rotate
from brain.cli.checkup.installation import Installation
from brain.cli.checkup.lines import HealthLine, fail, ok, some, unchecked, warn
from brain.cli.checkup.secrets import named_files
from brain.console.access.tokens import Token, Tokens

SOON_S = 30 * 86_400.0
TOKEN_S = 14 * 86_400.0  # of the 90 days that one lasts
RESTORED = later(
    "they were put back from an old backup: put back the newest signing.key and folder `cell`, and restart "
    "the brain; if there "
    "are none, `gpuward cell rotate signing --compromised` while the brain runs, and every node joins again"
)
LATE_S = 3600.0  # a rotation's next step is taken within seconds of its time while a brain runs


def signing(found: Installation) -> Iterator[HealthLine]:
    """The key that signs commands is there."""
    name, path = "signing key", found.config.signing_key
    if not path.exists():
        if found.brain is not None and found.brain.data_dir == found.config.data_dir:
            yield fail(
                name,
                t("{path} is gone, and the brain that runs has it in memory only", path=path),
                t(
                    "put it back from your backup (mode 0600, the brain's user) before the brain is restarted: without it none "
                    "starts"
                ),
            )
            return
        if found.brain is not None:
            yield fail(
                name,
                t("{path} is not there, and a brain answers", path=path),
                t("is this brain's brain.toml the one that runs?"),
            )
            return
        try:
            signing_key.check(found.config)
        except ConfigError as error:
            yield fail(name, str(error), t("the brain does not start without it"))
        else:
            yield unchecked(
                name, t("{path} is not there", path=path), t("the brain makes it at its first start")
            )
        return
    try:
        yield ok(name, t("{key_id} in {path}", key_id=keys.read_signer(path).key_id, path=path))
    except ConfigError as error:
        if isinstance(error.__cause__, PermissionError):  # looked at with the rights of the brain's user
            action = t("it is only its owner or mode: what the line about files says, and nothing is lost")
        else:
            action = t("restore it: no node obeys another one; or run this as root")
        yield fail(name, str(error), action)


def broker_key(found: Installation) -> Iterator[HealthLine]:
    """The key by which the servers know the brain is one."""
    name, path = "brain's key", found.config.brain_seed
    if path is None or not path.exists():
        return  # it is made at a start, or servers of the site ask for none
    try:
        yield ok(name, t("{public_nkey}... in {path}", public_nkey=keys.public_nkey(path)[:12], path=path))
    except ConfigError as error:
        yield fail(name, str(error), t("the brain does not start with it; or run this as root"))


def rotation(found: Installation) -> Iterator[HealthLine]:
    """Rotations go on, and every node knows the keys in force."""
    name = "key rotation"
    try:
        state = KeyRotation(found.config).file.state()
        shown = cell_rotate.shown(found.config, found.registered())
    except ConfigError as error:
        yield unchecked(name, str(error), t("run this as root, or restore the file"))
        return
    for kind, one in state.rotations.items():
        text = t(
            "{value}: under way since {since}, {value2}, goes on by {switch_at}",
            value=kind.value,
            since=_day(one.since),
            value2=one.stage.value,
            switch_at=_day(one.switch_at),
        )
        if kind is KeyKind.BRAIN and not found.config.embedded:
            yield warn(
                name, text, t("reload the servers with the accounts, then `gpuward cell rotate brain --now`")
            )
        elif found.now > one.switch_at + LATE_S:
            yield fail(
                name,
                t("{text}: that is over", text=text),
                t("start the brain: it takes the next step; see its log"),
            )
        else:
            yield ok(name, text)
    if not state.rotations:
        yield ok(name, t("none is under way"))
    newest = state.newest
    if newest is not None and shown["signing"] and shown["signing"][0] not in newest.keys:
        text = t(
            "{signing} is not among those that nodes were told to trust ({keys})",
            signing=shown["signing"][0],
            keys=", ".join(newest.keys) or t("none"),
        )
        yield fail("signing key", text, t(RESTORED))
    yield from _told(shown)


def _told(shown: dict[str, Any]) -> Iterator[HealthLine]:
    name = "keys of nodes"
    again, behind = shown["join_again"], shown["unconfirmed"]
    if again:
        yield fail(
            name,
            t("{nodes} must join again: {again}", nodes=many(len(again), "node"), again=some(again)),
            t("`gpuward cell token`, then `gpuward-agent join TOKEN` on each"),
        )
    if shown["ahead"]:
        ahead = list(shown["ahead"])
        text = f"{many(len(ahead), 'node')} {cell_rotate.ahead_of(shown)}: {some(ahead)}"
        if shown["keys_behind"]:
            yield fail(name, text, t(RESTORED))
        else:
            yield warn(
                name, text, t("join it again: `gpuward cell token`, then `gpuward-agent join TOKEN` there")
            )
    if behind:
        yield warn(
            name,
            t(
                "announcement {announcement} is not confirmed by {nodes}: {behind}",
                announcement=shown["announcement"],
                nodes=many(len(behind), "node"),
                behind=some(behind),
            ),
            t("they do when they are heard; see `gpuward cell show`"),
        )
    if not again and not behind and not shown["ahead"]:
        yield ok(
            name,
            t("announcement {announcement} is confirmed", announcement=shown["announcement"])
            if shown["announcement"]
            else t("never exchanged"),
        )


def certificates(found: Installation) -> Iterator[HealthLine]:
    """None has ended, or ends soon."""
    name, config, own = "certificates", found.config, Authority(found.config.cell_dir)
    ends: dict[str, float] = {}
    renew: dict[str, str] = {}
    if own.exists():
        try:
            ends["the authority's"], ends["the server's"] = own.ends()
        except ConfigError as error:
            yield fail(name, str(error), t("restore the folder `cell`, or `gpuward cell rotate server`"))
        else:
            yield from _key_of(own)
        renew = {
            "the authority's": "gpuward cell rotate authority",
            "the server's": t(
                "gpuward cell rotate server; the brain does it by itself while it runs and has ca.key"
            ),
        }
    for key, path in named_files(config, public=True):
        if path in (own.ca_file, own.certificate_file):
            continue
        try:
            ends[key] = authority.all_end(path)
        except ConfigError as error:
            yield fail(name, f"{key}: {error}", t("correct the file, or the key of brain.toml"))
    soon = {key: at for key, at in ends.items() if at - found.now < SOON_S}
    for key, at in soon.items():
        action = renew.get(key, "renew it")
        ended = at <= found.now
        text = f"{key} {(t('ended') if ended else t('ends'))} {_day(at)}"
        yield fail(name, text, action) if ended else warn(name, text, action)
    if ends and not soon:
        first = min(ends, key=lambda key: ends[key])
        yield ok(
            name,
            t(
                "{files}; the first to end, {first}, {ends}",
                files=many(len(ends), "file"),
                first=first,
                ends=_day(ends[first]),
            ),
        )
    if not ends:
        yield ok(name, t("none: everything is on loopback, or another program has TLS"))


def tokens(found: Installation) -> Iterator[HealthLine]:
    """What other machines come by has not ended, and does not soon. A person who logs in makes another when theirs ends."""
    name, now = "tokens", found.now
    try:
        kept = Tokens(found.config.tokens_file).all()
    except ConfigError as error:
        yield fail(name, str(error), t("from your backup; until then what was read last counts"))
        return
    lasting = [one for one in kept if not one.login and one.expires_at - one.made_at > SOON_S]
    newest = {one.user: one.expires_at for one in sorted(lasting, key=lambda one: one.expires_at)}
    last = [one for one in lasting if one.expires_at == newest[one.user]]
    ended = [one for one in last if now - SOON_S < one.expires_at <= now]
    soon = [one for one in last if now < one.expires_at <= now + TOKEN_S]
    if ended:
        yield fail(name, t("no longer good: {named}", named=_named(ended)), _another(ended[0]))
    if soon:
        yield warn(name, t("end soon: {named}", named=_named(soon)), _another(soon[0]))
    if not ended and not soon:
        yield ok(name, many(len(kept), "token"))


def _named(found: Sequence[Token]) -> str:
    return some(
        t("{user} ({id}, until {expires_at})", user=one.user, id=one.id, expires_at=_day(one.expires_at))
        for one in found
    )


def _another(one: Token) -> str:
    return t(
        "`gpuward token create {user}`, and put it where that one is used; for a machine with `--for 365d`. "
        "One that nobody uses: `gpuward token revoke {id}`",
        user=one.user,
        id=one.id,
    )


def _key_of(own: Authority) -> Iterator[HealthLine]:
    try:
        own.check_key()
    except ConfigError as error:
        yield fail("certificates", str(error), t("the brain's NATS server does not start with it"))


def _day(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError):
        return "never"
