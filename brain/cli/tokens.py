"""`gpuward token`: who may come in."""

import os
from pathlib import Path
from typing import Any

import click

from agent.shared.words import t
from brain.cli.answers import ListedTokenJson, RevokedJson
from brain.cli.client import Client, for_client
from brain.cli.operator_commands import Duration
from brain.cli.queries import clock
from brain.cli.terminal import as_json, print_json, waits


@click.group()
def token() -> None:
    """Tokens: each belongs to a person of [console.users], may be weaker than them, expires, and can be revoked."""


@token.command()
@click.argument("name", default="")
@click.option("--role", help="What it may do at most; default: what its user may do.")
@click.option("--scope", "scopes", multiple=True, help="Only commands on these (glob), e.g. 'node/gpu-*'.")
@click.option("--runbook", "runbooks", multiple=True, help="Only commands about these (glob).")
@click.option("--for", "lasts_s", type=Duration(), default="90d", show_default=True, help="Until it expires.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="File for it, readable by you only; default: print it."
)
@as_json
@for_client
def create(
    client: Client,
    name: str,
    role: str | None,
    scopes: tuple[str, ...],
    runbooks: tuple[str, ...],
    lasts_s: float,
    out: Path | None,
    plain: bool,
) -> None:
    """Makes a token for NAME (default: for yourself). It is shown once: the brain keeps only its hash."""
    body: dict[str, Any] = {"user": name, "lasts_s": lasts_s, "scopes": scopes, "runbooks": runbooks}
    made = client.post("tokens", body=body | ({"role": role} if role else {}))
    if made.get("waiting"):
        waits(made, plain=plain)
    if out is not None:
        _write(out, made.pop("token"))
    if plain:
        print_json(made)
        return
    if "token" in made:
        click.echo(made["token"])
    click.echo(
        t(
            "{id} of {user}: {role} until {expires_at}",
            id=made["id"],
            user=made["user"],
            role=made["role"],
            expires_at=made["expires_at"][:10],
        )
        + (t(", in {out}", out=out) if out else "")
        + (f"\n{made['said']}" if "said" in made else ""),
        err=True,
    )


@token.command("list")
@as_json
@for_client
def list_(client: Client, plain: bool) -> None:
    """Your tokens; for administrators: everybody's."""
    found: list[ListedTokenJson] = client.get("tokens")["tokens"]
    if plain:
        print_json(found)
        return
    for one in found:
        limits = " ".join((*one["scopes"], *one["runbooks"]))
        until = clock(one["expires_at"])
        line = t(
            "{id}  {user}  {role}  until {until}  by {made_by}  {limits}",
            id=one["id"],
            user=one["user"],
            role=one["role"],
            until=until,
            made_by=one["made_by"],
            limits=limits,
        ).rstrip()
        void = one.get("void")  # an older brain does not say it
        click.echo(t("{line}  counts no more: {void}", line=line, void=void) if void else line)
    if not found:
        click.echo(t("no tokens"))


@token.command()
@click.argument("ids", nargs=-1)
@click.option("--user", default="", help="All tokens and logins of this person.")
@as_json
@for_client
def revoke(client: Client, ids: tuple[str, ...], user: str, plain: bool) -> None:
    """Takes tokens away, at once; with --user the person's logins at this brain end, too."""
    if not ids and not user:
        raise click.UsageError(t("give ids (`gpuward token list`) or --user NAME"))
    answer: RevokedJson = client.post("tokens", "revoke", body={"ids": ids, "user": user})
    if plain:
        print_json(answer["revoked"])
        return
    for one in answer["revoked"]:
        click.echo(t("revoked {id} of {user}", id=one["id"], user=one["user"]))
    if ended := answer.get("sessions"):  # an older brain does not say it
        click.echo(
            t(
                "ended {ended} logins of {user}; another brain of the cell has its own: say it there, too (--url)",
                ended=ended,
                user=user,
            )
        )


def _write(path: Path, text: str) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as sink:
            sink.write(text + "\n")
    except OSError as error:
        raise click.ClickException(
            t(
                "{path}: {strerror}: the token was made, but is lost; revoke it (`gpuward token list`)",
                path=path,
                strerror=error.strerror,
            )
        ) from error
