"""What `gpuward cell show` says: the authority, the nodes, the join tokens, and the accounts for servers of a site's own."""

import time
from datetime import UTC, datetime
from typing import Any

import click
import orjson

from agent.contract.errors import ConfigError
from agent.shared.words import many, t
from brain.adapters import keys, nats_accounts
from brain.adapters.nats_accounts import Member
from brain.cell.authority import ALWAYS, Authority, ends_soon
from brain.cell.registry import CellRegistry
from brain.cli import cell_rotate
from brain.cli.cell_export import registry_of
from brain.cli.terminal import padded, print_json
from brain.config import BrainConfig


def day(at: float) -> str:
    """A time, as people read it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def marked(at: float, now: float) -> str:
    """What stands behind a day on which something ends."""
    return t(" EXPIRED") if at <= now else t(" ENDS SOON") if ends_soon(at, now) else ""


def show(config: BrainConfig, *, plain: bool) -> None:
    """Prints the authority, the nodes, the join tokens and the keys."""
    registry, authority, now = registry_of(config), Authority(config.cell_dir), time.time()
    found: dict[str, Any] = {
        "cell": config.cell,
        "fingerprint": authority.fingerprint() if authority.exists() else "",
        "names": authority.names() if authority.exists() else [],
        "authority_ends": day(authority.ends()[0]) if authority.exists() else "",
        "certificate_ends": day(authority.ends()[1]) if authority.exists() else "",
        "nodes": {
            name: {"public": node.public, "since": day(node.since), "by": node.by}
            for name, node in sorted(registry.nodes().items())
        },
        "tokens": {
            id_: {
                "nodes": one.nodes,
                "left": one.left,
                "replace": one.replace,
                "expires": day(one.expires_at),
            }
            for id_, one in registry.tokens().items()
            if one.left and now < one.expires_at
        },
        "keys": cell_rotate.shown(config, registry.nodes()),
    }
    if plain:
        print_json(found)
        return
    click.echo(
        t(
            "cell {cell}, authority {fingerprint}, names {names}",
            cell=found["cell"],
            fingerprint=found["fingerprint"][:16] or t("none"),
            names=", ".join(found["names"]) or t("none"),
        )
        + (t(" (and {always} in each certificate)", always=", ".join(ALWAYS)) if found["names"] else "")
    )
    if authority.exists():
        until = {
            what: t("{what} until {at}{marked}", what=what, at=day(at), marked=marked(at, now))
            for what, at in zip((t("authority"), t("certificate")), authority.ends(), strict=True)
        }
        click.echo(f"{until['certificate']}, {until['authority']}")
        if trouble := authority.trouble(now):
            click.echo(trouble)
    click.echo(many(len(found["nodes"]), "node"))
    for name, node in found["nodes"].items():
        click.echo(
            t("  {name} since {since} by {by}", name=padded(name, 24), since=node["since"], by=node["by"])
        )
    for id_, one in found["tokens"].items():
        click.echo(
            t(
                "join token {id}: {left} of nodes {nodes} until {expires}",
                id=id_,
                left=one["left"],
                nodes=repr(one["nodes"]),
                expires=one["expires"],
            )
        )
    for line in cell_rotate.lines(found["keys"]):
        click.echo(line)


def accounts(config: BrainConfig, registry: CellRegistry) -> str:
    """The accounts block of a NATS server's configuration (JSON is a subset of its format)."""
    if config.brain_seed is None:
        raise ConfigError(t("this brain connects to NATS without an NKEY: give it one (nats.seed_file)"))
    brain, *also = keys.nkeys_in_force(config.brain_seed)
    members = [
        Member(name=name, public=node.public, nodes=(name,))
        for name, node in sorted(registry.nodes().items())
    ]
    block = {
        "system_account": nats_accounts.SYSTEM,
        "no_fast_producer_stall": True,
        "accounts": nats_accounts.accounts(config.cell, brain, members, also=also),
    }
    return orjson.dumps(block, option=orjson.OPT_INDENT_2).decode()
