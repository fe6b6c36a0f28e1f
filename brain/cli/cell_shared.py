"""What the brains of one cell have in common, as one file: `gpuward cell share` writes it, `gpuward cell take` reads it.

The keys by which nodes and NATS servers know a cell, and the announcements of rotations; not the registry, since nodes join at
one brain. Nothing that a brain has is replaced by anything older, and nothing at all where both were never one cell.
"""

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click
from pydantic import BaseModel, ConfigDict, ValidationError

from agent.contract.errors import ConfigError, ContractError
from agent.shared import files
from agent.shared.words import t
from brain.adapters import keys, operator_mode, signing_key
from brain.cell.authority import Authority
from brain.cell.trust import TrustFile, TrustState
from brain.cli.as_owner import as_owner, make_data_folder
from brain.cli.brain_toml import check_cell, in_config, in_data, load
from brain.cli.cell_shared_whole import check_of, check_whole
from brain.config import BrainConfig

_TRUST, _SIGNING, _SEED, _ACCOUNT = "trust.json", "signing.key", "brain.nk", operator_mode.ACCOUNT_FILE
_CA = "ca.pem"
# What a rotation exchanges; the rest stays as it was made.
_ROTATED = (_CA, "ca.key", "cross.pem", _SIGNING, _TRUST)
# The second brain's own certificate need not be the first one's; its halves fit each other only.
_SHOWN, _SHOWN_KEY = "server.pem", "server.key"
_STDIO = Path("-")
_MOST_BYTES = 1024 * 1024  # as much as a Secret of Kubernetes holds


class Shared(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    cell: str
    # name -> text; names as in _places
    files: Mapping[str, str]


def _places(config: BrainConfig) -> dict[str, Path]:
    """Name in the file -> where it lies here, the announcements last: they say how new the others are."""
    names = ("operator.nk", "system.creds", _SHOWN, _SHOWN_KEY, _CA, "ca.key", "cross.pem")
    return {
        _ACCOUNT: config.cell_dir / _ACCOUNT,
        _SEED: operator_mode.brain_seed_file(config),
        **{name: config.cell_dir / name for name in names},
        _SIGNING: config.signing_key,
        _TRUST: config.cell_dir / _TRUST,
    }


def gathered(config: BrainConfig) -> Shared:
    """Returns what another brain of this cell needs; makes the signing key when the cell has none yet. ConfigError: there is no
    cell, the key is gone, or keys are being rotated.
    """
    check_cell(config)
    if TrustFile(config.cell_dir).state().rotations:
        raise ConfigError(
            t("keys are being rotated: do it again when `gpuward cell show` says that it is over")
        )
    signing_key.check(config)
    keys.load_signer(config.signing_key)
    found = {name: path for name, path in _places(config).items() if path.exists()}
    try:
        texts = {name: path.read_text(encoding="ascii") for name, path in found.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(t("a file of the cell cannot be read: {error}", error=error)) from error
    return Shared(cell=config.cell, files=texts)


def take(config: BrainConfig, shared: Shared, now: float) -> list[str]:
    """Writes what is missing here, and what a rotation has exchanged since; never half of a pair. Returns the names of what was
    written, in their order. ConfigError: it is another cell's, or a file cannot be written.

    Root writes each with the rights of whoever decides what lies at its place, and for the brain's user.
    """
    places = _places(config)
    check_whole(shared.files)
    if shared.cell != config.cell:
        raise ConfigError(
            t("this is of cell {cell}, and brain.toml says {cell2}", cell=shared.cell, cell2=config.cell)
        )
    if unknown := sorted(shared.files.keys() - places.keys()):
        raise ConfigError(t("{unknown} is nothing that brains have in common", unknown=repr(unknown[0])))
    with as_owner(config.cell_dir):
        theirs, ours = _serial(shared), TrustFile(config.cell_dir).state().serial
    _check_same(shared, places, [_ACCOUNT] if theirs != ours else [_ACCOUNT, _SIGNING, _CA])
    make_data_folder(config.data_dir)
    with as_owner(config.cell_dir):
        config.cell_dir.mkdir(exist_ok=True, mode=0o750)
    written = []
    left = (_SHOWN, _SHOWN_KEY) if _half_lost(shared, places) else ()
    for name, path in places.items():
        if name in left:
            continue
        here = _text(path)
        due = not here or (theirs > ours and name in _ROTATED)
        if due and name in shared.files and here != shared.files[name]:
            mode = 0o644 if path.suffix == ".pem" else 0o600
            with as_owner(path.parent):
                if (
                    name == _SIGNING
                ):  # of the key before; it is written again below, also when this run does not come so far
                    path.with_name(f"{path.name}.pub").unlink(missing_ok=True)
                files.write(path, shared.files[name].encode(), sync=True, mode=mode, like=config.data_dir)
            written.append(name)
    # Asked of what lies here, not of what was written: a run before this one may have been interrupted.
    if _SIGNING in shared.files and _text(places[_SIGNING]) == shared.files[_SIGNING]:
        with as_owner(config.signing_key.parent):
            keys.load_signer(config.signing_key)  # writes its public half
    with as_owner(config.cell_dir):
        if all(places[name].exists() for name in (_CA, "ca.key", _SHOWN, _SHOWN_KEY)):
            Authority(config.cell_dir).follow(now)  # the certificate is of the authority that is here now
    return written


def _check_same(shared: Shared, places: Mapping[str, Path], names: list[str]) -> None:
    """ConfigError: this brain has another key under one of these names."""
    for name in names:
        present = _text(places[name])
        if present and present.strip() != shared.files.get(name, "").strip():
            if name == _CA:  # `cell init` was said on both machines
                raise ConfigError(
                    t(
                        "{places} is another authority than the one of this file, so nothing was taken: nodes "
                        "trust one of them only. Where `gpuward cell init` was said here by mistake, move "
                        "{parent} away, and say this again",
                        places=places[name],
                        parent=places[name].parent,
                    )
                )
            raise ConfigError(
                t(
                    "{places} is another key than the one of this file: they are two cells. Nodes obey one of "
                    "them only; move the wrong one away, with the whole data folder that it is in",
                    places=places[name],
                )
            )


def _half_lost(shared: Shared, places: Mapping[str, Path]) -> str:
    """Which half of this machine's certificate is missing, where that of the file does not fit the other one; empty: none."""
    halves = {name: _text(places[name]) for name in (_SHOWN, _SHOWN_KEY)}
    there = [name for name, text in halves.items() if text]
    if len(there) != 1 or halves[there[0]] == shared.files.get(there[0]):
        return ""
    return next(name for name in halves if name not in there)


def _serial(shared: Shared) -> int:
    """How new its keys are; 0: they were never rotated."""
    text = shared.files.get(_TRUST)
    try:
        return TrustState.model_validate_json(text).serial if text else 0
    except (ValidationError, ContractError) as error:
        raise ConfigError(
            t("{trust} in this file is not what it was: nothing was taken", trust=_TRUST)
        ) from error


def _text(path: Path) -> str:
    try:
        with as_owner(path.parent):
            return path.read_text(encoding="ascii")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(t("{path} cannot be read: {error}", path=path, error=error)) from error


def _read(file: Path) -> Shared:
    try:
        with sys.stdin.buffer if file == _STDIO else file.open("rb") as source:
            return Shared.model_validate_json(source.read(_MOST_BYTES))
    except OSError as error:
        raise ConfigError(
            t("{file}: cannot be read: {strerror}", file=file, strerror=error.strerror)
        ) from error
    except ValidationError as error:
        raise ConfigError(t("{file} is not what `gpuward cell share` writes", file=file)) from error


@click.argument("file", type=click.Path(path_type=Path))
@in_config
@in_data
def share_command(file: Path, path: Path | None, data: Path | None) -> None:
    """Writes what another brain of this cell needs into FILE (-: prints it): its keys, so keep it secret."""
    shared = gathered(load(path, data))
    body = shared.model_dump_json(indent=1) + "\n"
    if file == _STDIO:
        click.echo(body, nl=False)
        return
    try:
        files.write(file, body.encode(), sync=True, mode=0o600)
    except OSError as error:
        raise ConfigError(
            t("{file}: cannot be written: {strerror}", file=file, strerror=error.strerror)
        ) from error
    check = check_of(shared.cell, shared.files)
    click.echo(
        t(
            "{file}: on the other brain's machine, as root, say `gpuward cell take FILE --check {check}`; "
            "then remove it on both",
            file=file,
            check=check,
        )
    )


@click.argument("file", type=click.Path(path_type=Path))
@in_config
@in_data
@click.option(
    "--check", default="", help="What `share` has printed: nothing is taken if FILE has changed since."
)
def take_command(file: Path, path: Path | None, data: Path | None, check: str) -> None:
    """Takes what `gpuward cell share` of another brain has written into FILE (-: from standard input). Safe to run again."""
    config = load(path, data)
    shared = _read(file)
    if check and check != check_of(shared.cell, shared.files):
        raise ConfigError(
            t(
                "{file} is not what `gpuward cell share` has written when it printed {check}: it has changed "
                "on its way, or is another one. Nothing was taken: bring it again",
                file=file,
                check=check,
            )
        )
    written = take(config, shared, time.time())
    click.echo(
        t("taken: {written}", written=", ".join(written))
        if written
        else t("nothing is new: this brain has it all")
    )
    if _SIGNING in written and not check:
        click.echo(
            t(
                "Compare: it must be what `gpuward cell share` has printed: --check {check_of}. A key with "
                "another bit is a key, too, which no node obeys",
                check_of=check_of(shared.cell, shared.files),
            )
        )
    if lost := _half_lost(shared, _places(config)):
        click.echo(
            t(
                "{cell_dir} is not there, and that of the file is of another certificate: `gpuward cell "
                "rotate server` makes both anew",
                cell_dir=config.cell_dir / lost,
            )
        )
    seed = operator_mode.brain_seed_file(config)
    if _SEED in shared.files and _text(seed).strip() != shared.files[_SEED].strip():
        click.echo(
            t(
                "{seed} stays, though that of the file is another one, and nobody can tell which is newer: if "
                "it was rotated there, remove it here and say this again",
                seed=seed,
            )
        )


@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", "names", multiple=True, help="Name or address of one of the servers; repeat it.")
def certificate_command(folder: Path, names: tuple[str, ...]) -> None:
    """A certificate for NATS servers of your own, by an authority in FOLDER that is for them alone.

    The servers need server.pem, server.key and ca.pem; ca.key stays with you. The same FOLDER again: a new certificate by the
    same authority, with the same names unless others are given.
    """
    authority, now = Authority(folder, peers=True), time.time()
    if authority.exists():
        authority.issue(names or authority.names(), now)
    else:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        authority.make("NATS", names, now)
    click.echo(
        t(
            "{certificate_file}: for {names}; ends {ends}",
            certificate_file=authority.certificate_file,
            names=", ".join(authority.names()),
            ends=_day(authority.ends()[1]),
        )
    )


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
