"""`gpuward cell`: who belongs to a cell. It works on the files of the brain's machine, whether the brain runs or not."""

import os
import pwd
import time
from contextlib import nullcontext
from pathlib import Path

import click

from agent.contract.errors import ConfigError
from agent.shared.words import language, t
from brain import sentences
from brain.cell import by_hand
from brain.cell.authority import Authority
from brain.cell.invitation import check_url, invitation
from brain.cell.journal import CellJournal, Deed
from brain.cell.trust import KeyKind
from brain.cli import brain_toml_keys, cell_export, cell_rotate, cell_shared, cell_show
from brain.cli.as_owner import as_owner, make_data_folder
from brain.cli.brain_toml import check_cell, chosen, in_cell, in_config, in_data, load
from brain.cli.cell_export import make_brain_seed, registry_of
from brain.cli.operator_commands import Duration
from brain.cli.own_brain import DEFAULT_CONFIG
from brain.config import BrainConfig


def _make_folder(config: BrainConfig) -> None:
    config.cell_dir.mkdir(parents=True, exist_ok=True, mode=0o750)


def _operator() -> str:
    """Who types this, for the log: this machine's user, also behind sudo."""
    user = os.environ.get("SUDO_USER", "")
    if not user:
        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            user = f"user {os.getuid()}"
    return user


def _done(config: BrainConfig, text: str) -> None:
    """For the notes of the brain, under the name of who has typed it. Where that cannot be written, as on a full disk, what was
    done is done all the same, and whoever did it must hear what comes of it.
    """
    try:
        CellJournal(config.cell_dir).add(Deed(by=_operator(), at=time.time(), text=text))
    except ConfigError as error:
        click.echo(t("It is done, and no note will say who did it: {error}", error=error), err=True)


@click.group()
def cell() -> None:
    """A cell's certificate authority, its nodes, and the tokens with which they join."""


@cell.command()
@click.option(
    "--name",
    "names",
    multiple=True,
    required=True,
    help="Name or address by which nodes reach this machine; repeat it.",
)
@click.option("--write", is_flag=True, help="Also write into brain.toml what it needs for that.")
@in_config
@in_data
def init(names: tuple[str, ...], write: bool, path: Path | None, data: Path | None) -> None:
    """Makes the authority, and the certificate of NATS and of the console. Prints what to write into brain.toml, or writes it."""
    config = load(path, data)
    authority = Authority(config.cell_dir)
    authority.check(names)
    keys = brain_toml_keys.reachable(config, authority, names)
    file = chosen(path)
    if write and file is None:
        raise ConfigError(
            t("--write: there is no {default_config}: give --config", default_config=DEFAULT_CONFIG)
        )
    text = brain_toml_keys.changed(file, keys) if write and file else ""
    # First the file: a cell that is there is not made again, and then nobody would say any more what brain.toml needs.
    with brain_toml_keys.written(file, text) if text and file else nullcontext():
        make_data_folder(config.data_dir)
        with as_owner(config.cell_dir):
            _make_folder(config)
            authority.make(config.cell, names, time.time())
            click.echo(
                t(
                    "cell {cell}: authority {fingerprint}… in {cell_dir}",
                    cell=config.cell,
                    fingerprint=authority.fingerprint()[:16],
                    cell_dir=config.cell_dir,
                )
            )
    if text and file:
        click.echo(
            t(
                "{file} says now how nodes reach it. Start the brain: systemctl enable --now gpuward",
                file=file,
            )
        )
        click.echo(t("(where it runs already: systemctl restart gpuward)"))
    else:
        click.echo(
            t(
                "Change these keys of brain.toml in the tables that are there (no table may be there twice), "
                "and restart the brain\n(--write does it for you):\n\n{shown}",
                shown=brain_toml_keys.shown(keys),
            )
        )
    click.echo(t("Then let nodes join: gpuward cell token --nodes 'gpu-*' --count 100"))


@cell.command("add-node")
@click.argument("name")
@click.argument("public")
@in_config
@in_data
def add_node(name: str, public: str, path: Path | None, data: Path | None) -> None:
    """Lets the node NAME in by its PUBLIC NKEY (U...), which somebody has made there."""
    with in_cell(path, data) as config:
        registry_of(config).add(name, public, now=time.time())
        _done(config, f"let node {name} in")
        click.echo(t("node {name} may connect", name=name))
        if more := by_hand.todo(config, name, joined=True):
            click.echo(t("Not done yet: {more}.", more=sentences.told(more, language())))


@cell.command()
@click.option("--nodes", default="*", show_default=True, help="Glob of the names that may join by it.")
@click.option(
    "--count", type=click.IntRange(1, 100_000), default=1, show_default=True, help="How many may join."
)
@click.option("--for", "lasts_s", type=Duration(), default="1h", show_default=True, help="Until it expires.")
@click.option("--replace", is_flag=True, help="Also in place of a node that is there with another key.")
@click.option(
    "--url",
    "urls",
    multiple=True,
    help="Where the console is reached; default: by the first name of the cell.",
)
@in_config
@in_data
def token(
    nodes: str,
    count: int,
    lasts_s: float,
    replace: bool,
    urls: tuple[str, ...],
    path: Path | None,
    data: Path | None,
) -> None:
    """Makes a join token: `gpuward-agent join TOKEN` on each node. It is shown once."""
    with in_cell(path, data) as config:
        registry, authority = registry_of(config), Authority(config.cell_dir)
        fingerprint = authority.fingerprint() if authority.exists() else ""
        if not urls:
            if not fingerprint:
                raise ConfigError(t("there is no authority: give --url, or make one (`gpuward cell init`)"))
            name = authority.names()[0]
            urls = (f"https://{f'[{name}]' if ':' in name else name}:{config.console.port}",)
        for url in urls:
            check_url(url)
        if not nodes:
            raise ConfigError(t("--nodes: want a glob of names, e.g. 'gpu-*'"))
        now = time.time()
        id_, secret = registry.make_token(nodes, count=count, now=now, lasts_s=lasts_s, replace=replace)
        _done(
            config,
            f"made join token {id_}: {count} of nodes {nodes!r} until {cell_show.day(now + lasts_s)}",
        )
        click.echo(invitation(urls, fingerprint, id_, secret))
        click.echo(
            t(
                "{id}: {count} of nodes {nodes} until {now}",
                id=id_,
                count=count,
                nodes=repr(nodes),
                now=cell_show.day(now + lasts_s),
            ),
            err=True,
        )


@cell.command()
@click.argument("what")
@in_config
@in_data
def revoke(what: str, path: Path | None, data: Path | None) -> None:
    """Takes a node or a join token (its id) away, at once: a node's connection is closed, and the brain forgets it."""
    with in_cell(path, data) as config:
        revoked = registry_of(config).revoke(what, by=_operator(), now=time.time())
        _done(config, f"revoked {revoked}")
        click.echo(t("revoked: {revoked}", revoked=sentences.told(revoked, language())))
        if revoked.startswith("node ") and (more := by_hand.todo(config, what, joined=False)):
            click.echo(t("Not done yet: {more}.", more=sentences.told(more, language())))


@cell.command()
@click.argument("what", type=click.Choice(["server", *(kind.value for kind in KeyKind)]))
@click.option(
    "--name",
    "names",
    multiple=True,
    help="server: a further name of this machine; it keeps those that it has.",
)
@click.option("--only", is_flag=True, help="With --name: it keeps none of those that it has.")
@click.option("--now", "at_once", is_flag=True, help="Does not wait until all live nodes have confirmed.")
@click.option(
    "--overlap",
    "overlap_s",
    type=Duration(),
    default="24h",
    show_default=True,
    help="It waits no longer than this.",
)
@click.option(
    "--compromised",
    is_flag=True,
    help="signing: no old key endorses the new one, and every node must join again.",
)
@in_config
@in_data
def rotate(
    what: str,
    names: tuple[str, ...],
    only: bool,
    at_once: bool,
    overlap_s: float,
    compromised: bool,
    path: Path | None,
    data: Path | None,
) -> None:
    """Exchanges a key for a new one while everything runs.

    \b
    server     the certificate and key of this machine, by the same authority
    signing    the key that signs commands
    brain      the brain's NKEY on NATS
    authority  the certificate authority
    """
    if only and not names:
        raise click.UsageError(t("--only needs --name"))
    with in_cell(path, data) as config:
        if what == "server":
            _rotate_server(Authority(config.cell_dir), names, only=only)
            _done(
                config,
                f"made a new certificate for {', '.join(Authority(config.cell_dir).names())}",
            )
            return
        if names:
            raise click.UsageError(t("--name is for the server's certificate"))
        if compromised and what != KeyKind.SIGNING:
            raise ConfigError(t("--compromised is for the signing key"))
        if not compromised:  # which makes a key where the cell's is lost
            check_cell(config)
        _make_folder(config)
        said = cell_rotate.rotate(
            config, KeyKind(what), overlap_s, by=_operator(), at_once=at_once, compromised=compromised
        )
        how = t(" as compromised") if compromised else t(" at once") if at_once else ""
        _done(config, f"began to rotate {what}{how}")
        click.echo(said)


def _rotate_server(authority: Authority, names: tuple[str, ...], *, only: bool) -> None:
    """Issues the certificate anew, and says what that changes for whom."""
    if not authority.exists():
        raise ConfigError(
            t("this cell has no authority of its own: `gpuward cell init --name NAME` makes one")
        )
    before: list[str] = []
    try:
        before = authority.names()
    except ConfigError as error:  # what it said is lost with it
        if not only:
            raise ConfigError(
                t(
                    "{error}: say by which names this machine is reached: `gpuward cell rotate server --only "
                    "--name NAME`",
                    error=error,
                )
            ) from error
    now = list(dict.fromkeys(names if only else (*names, *before)))
    authority.issue(now, time.time())
    click.echo(
        t(
            "{certificate_file}: for {now}; ends {ends}",
            certificate_file=authority.certificate_file,
            now=", ".join(now),
            ends=cell_show.day(authority.ends()[1]),
        )
    )
    if added := [name for name in now if name not in before]:
        click.echo(
            t(
                "New: {added}. List names (addresses need not be) in console.hosts of brain.toml, and restart "
                "the brain. Nodes go on to where nats_url of their agent.toml leads: run `gpuward-agent join` "
                "there again, with a new token, to change it.",
                added=", ".join(added),
            )
        )
    if gone := [name for name in before if name not in now]:
        click.echo(
            t(
                "Gone: {gone}. A node or a person who comes by that name is refused at the next connection: "
                "it does not fit the certificate any more.",
                gone=", ".join(gone),
            )
        )


@cell.command()
@click.option(
    "--nats-accounts",
    "accounts",
    is_flag=True,
    help="The accounts for a NATS cluster of your own, as a file to include.",
)
@click.option("--json", "plain", is_flag=True, help="JSON, for scripts.")
@in_config
@in_data
def show(accounts: bool, plain: bool, path: Path | None, data: Path | None) -> None:
    """Shows the authority, the nodes and the join tokens."""
    config = load(path, data)
    if accounts and config.brain_seed is not None:
        make_brain_seed(config, config.brain_seed)
    with as_owner(config.cell_dir):
        if accounts:
            click.echo(cell_show.accounts(config, registry_of(config)))
        else:
            cell_show.show(config, plain=plain)


@cell.command("export")
@click.option(
    "--jwt",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder to write: accounts and users for NATS servers in operator mode.",
)
@click.option(
    "--operator-seed",
    "seed",
    type=click.Path(path_type=Path),
    help="Seed of your operator or of one of its signing keys; default: nats.operator.seed_file, or a new operator.",
)
@in_config
@in_data
def export(folder: Path, seed: Path | None, path: Path | None, data: Path | None) -> None:
    """Writes what a NATS cluster of your own in operator mode needs: its README.txt says what to do with it."""
    count = cell_export.export(load(path, data), folder, seed)
    click.echo(
        t(
            "{count} accounts written: {folder} says what to do with them",
            count=count,
            folder=folder / "README.txt",
        )
    )


cell.command("share")(cell_shared.share_command)
cell.command("take")(cell_shared.take_command)
cell.command("certificate")(cell_shared.certificate_command)
