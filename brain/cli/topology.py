"""`gpuward topology`: where the nodes stand, as the topology file says: shown, checked, and made from what others know."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from agent.contract.errors import ConfigError
from agent.contract.inert import inert
from agent.shared.words import many, t
from brain.cli import brain_toml
from brain.cli.client import Client
from brain.cli.terminal import as_json, padded, print_json
from brain.core.pack.spec import Place
from brain.core.pack.topology import WIDE
from brain.marked_yaml import Diagnostic
from brain.topology import check as oddities
from brain.topology import infiniband, kubernetes, lldp, places_file, slurm, trees, write
from brain.topology.merge import merged
from brain.topology.site_map import SiteMap, unplaced

_MOST_LINES = 40  # of one tree; --all shows the rest
_MOST_SAID = 40  # warnings that are told one by one; --json has all
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_in_file = click.argument("file", required=False, type=_FILE)


@click.group(invoke_without_command=True)
@click.pass_context
def topology(ctx: click.Context) -> None:
    """Where the nodes stand: racks, leaf switches, power feeds. Without a command: `print`."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(print_)


@topology.command("print")
@_in_file
@click.option("--all", "everything", is_flag=True, help="Every place, however many there are.")
@brain_toml.in_config
@as_json
def print_(
    file: Path | None = None, everything: bool = False, path: Path | None = None, plain: bool = False
) -> None:
    """The trees of places with their numbers of nodes, and what is not known. FILE: default `topology` of brain.toml."""
    site = _usable(_of(file, path))
    if plain:
        print_json(trees.data(site.places, site.places))
        return
    for line in _shown(site.places, everything=everything):
        click.echo(line)


@topology.command("check")
@_in_file
@click.option("--nodes", "names", type=_FILE, help="File with a line for each node that there is.")
@click.option("--heard", is_flag=True, help="Compares with the nodes that the brain has heard.")
@brain_toml.in_config
@as_json
@click.pass_context
def check_(
    ctx: click.Context, file: Path | None, names: Path | None, heard: bool, path: Path | None, plain: bool
) -> None:
    """What is wrong with a topology file, and what looks like a slip. Exit status 1 on any error.

    FILE: default `topology` of brain.toml.
    """
    site = _of(file, path)
    there: set[str] | None = None
    if names is not None:
        there = {line.split()[0].partition(".")[0] for line in names.read_text().splitlines() if line.strip()}
    if heard:
        client: Client = ctx.obj
        there = (there or set()) | {str(node["name"]) for node in client.get("nodes")["nodes"]}
    oddities.add(site, there)
    if plain:
        print_json({"ok": not site.errors, "nodes": len(site.places), **_found(site)})
    else:
        for line in _said(site):
            click.echo(line)
        for line in _counts(site.places):
            click.echo(line)
        if site.errors:
            click.echo(t("{errors}: no brain will load this file", errors=many(len(site.errors), "error")))
        else:
            click.echo(
                t("all well")
                if not site.warnings
                else t("usable; {warnings}", warnings=many(len(site.warnings), "warning"))
            )
    if site.errors:
        sys.exit(1)


@topology.command("import")
@click.option("--base", type=_FILE, help="A topology file by hand: it goes before all others.")
@click.option(
    "--ibnetdiscover",
    "--iblinkinfo",
    "fabrics",
    multiple=True,
    metavar="[FABRIC=]FILE",
    help="What either prints of an InfiniBand fabric; several fabrics need names.",
)
@click.option(
    "--lldp",
    multiple=True,
    type=_FILE,
    help="What `lldpcli show neighbors -f json` prints on node NAME: NAME.json.",
)
@click.option(
    "--interface", "interfaces", multiple=True, help="Only these interfaces of LLDP (glob); default: all."
)
@click.option(
    "--kubernetes", "clusters", multiple=True, type=_FILE, help="What `kubectl get nodes -o json` prints."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="LABEL=KIND",
    help="What a label of a node tells; an empty KIND: nothing.",
)
@click.option("--slurm", "confs", multiple=True, type=_FILE, help="Slurm's topology.conf.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file; default: stdout."
)
@as_json
def import_(
    base: Path | None,
    fabrics: tuple[str, ...],
    lldp: tuple[Path, ...],
    interfaces: tuple[str, ...],
    clusters: tuple[Path, ...],
    labels: tuple[str, ...],
    confs: tuple[Path, ...],
    out: Path | None,
    plain: bool,
) -> None:
    """Makes a topology file from what others know. Of each kind of place the first of these decides that knows it of a node:
    the file by hand, what is cabled (InfiniBand, then LLDP), Kubernetes, Slurm. Contradictions are told.
    """
    sources = list(_sources(base, fabrics, lldp, interfaces, clusters, labels, confs))
    if not sources:
        raise click.UsageError(t("from what? --slurm, --ibnetdiscover, --iblinkinfo, --kubernetes or --lldp"))
    if plain and out is None:
        raise click.UsageError(t("--json tells what was found: the file needs --out"))
    site = _usable(merged(sources, ", ".join(source.source for source in sources)))
    text = write.text_of(site.places, [f"Made by gpuward topology import of {inert(site.source)}."])
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
    if plain:
        print_json({"ok": True, "nodes": len(site.places), "file": str(out), **_found(site)})
        return
    for line in (*_said(site), *_counts(site.places)):
        click.echo(line, err=True)


def _sources(
    base: Path | None,
    fabrics: Sequence[str],
    lldp_files: Sequence[Path],
    interfaces: Sequence[str],
    clusters: Sequence[Path],
    labels: tuple[str, ...],
    confs: Sequence[Path],
) -> Iterator[SiteMap]:
    """The sources in the order in which they decide."""
    if base is not None:
        yield _usable(places_file.read(base))
    if fabrics:
        named = [_named_fabric(one) for one in fabrics]
        yield infiniband.read([(fabric, str(file), _text(file)) for fabric, file in named])
    if lldp_files:
        files = [(file.name.partition(".")[0], _text(file)) for file in lldp_files]
        yield lldp.read(files, t("LLDP of {nodes}", nodes=many(len(files), "node")), interfaces or ("*",))
    kinds = kubernetes.mapping(labels)
    for file in clusters:
        yield kubernetes.read(_text(file), str(file), kinds)
    for file in confs:
        yield slurm.read(_text(file), str(file))


def _named_fabric(text: str) -> tuple[str, Path]:
    """(name of the fabric, file)."""
    name, equals, file = text.rpartition("=")
    whole = Path(text)
    return (name, Path(file)) if equals and not whole.exists() else ("", whole)


def _text(file: Path) -> str:
    """What a tool wrote. A description of a device may hold any bytes."""
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError as error:
        raise ConfigError(
            t("{file}: cannot be read: {strerror}", file=file, strerror=error.strerror)
        ) from error


def _of(file: Path | None, path: Path | None) -> SiteMap:
    """The file that is named, or that of the brain."""
    if file is None:
        config = brain_toml.load(path, None)
        if config.topology is None:
            raise ConfigError(
                t("brain.toml names no topology file (`topology`): name one here, or make one with `import`")
            )
        file = config.topology
    return places_file.read(file)


def _usable(site: SiteMap) -> SiteMap:
    """A site without errors; ConfigError: it has some."""
    if site.errors:
        raise ConfigError("\n".join(map(str, site.errors[:_MOST_SAID])))
    return site


def _found(site: SiteMap) -> Mapping[str, Any]:
    return {
        name: [_finding(one) for one in all_]
        for name, all_ in (("errors", site.errors), ("warnings", site.warnings))
    }


def _finding(one: Diagnostic) -> Mapping[str, Any]:
    return {"file": one.file, "line": one.line, "key": one.key, "text": one.text}


def _said(site: SiteMap) -> Iterator[str]:
    for error in site.errors[:_MOST_SAID]:
        yield inert(str(error))
    for one in site.warnings[:_MOST_SAID]:
        where = f"{one.file}:{one.line}" if one.line else one.file
        yield inert(
            t(
                "{where}: warning: {key}{text}",
                where=where,
                key=one.key + ": " if one.key else "",
                text=one.text,
            )
        )
    more = len(site.errors[_MOST_SAID:]) + len(site.warnings[_MOST_SAID:])
    if more:
        yield t("and {more} more: --json has them", more=more)


def _counts(places: Mapping[str, Place]) -> Iterator[str]:
    """How many places of each kind there are, in a line."""
    kinds = [(kind, len({name for place in places.values() for name in place.names(kind)})) for kind in WIDE]
    known = ", ".join(f"{kind} {count}" for kind, count in kinds if count)
    yield f"{many(len(places), 'node')}" + (t("; places: {known}", known=known) if known else "")


def _shown(places: Mapping[str, Place], *, everything: bool) -> Iterator[str]:
    yield from _counts(places)
    for name, branches in trees.of(places).items():
        yield f"\n{name}"
        for branch in branches if everything else branches[:_MOST_LINES]:
            head = f"{'  ' * (branch.depth + 1)}{inert(branch.scope)}"
            yield f"{padded(head, 32)} {padded(many(len(branch.nodes), 'node'), 9, right=True)}  {oddities.names(branch.nodes)}"
        if not everything and (more := len(branches) - _MOST_LINES) > 0:
            yield t("  and {more} more: --all shows them", more=more)
    unknown = unplaced(places, places)
    if unknown:
        yield t("\nnot known")
    for kind, nodes in unknown.items():
        yield t(
            "  {kind} of {nodes} of {nodes2}: {nodes3}",
            kind=kind,
            nodes=len(nodes),
            nodes2=many(len(places), "node"),
            nodes3=oddities.names(nodes),
        )
    nobody = [
        kind for kind in WIDE if kind != "fabric" and not any(place.names(kind) for place in places.values())
    ]
    if nobody:
        yield t("\nnothing is said of: {nobody}", nobody=", ".join(nobody))
