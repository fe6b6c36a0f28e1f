"""The brain's configuration: one TOML file. Unknown keys are errors, and every key has a safe default.

A relative path is relative to the folder of the configuration file.
"""

import copy
import functools
import logging
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from agent.contract import subjects
from agent.contract.errors import ConfigError
from agent.shared.inert_log import LogFormat
from brain import options, renamed, reports_config, settings_agree, toml_lines, windows_config, zones
from brain.all_wrong import AllWrong
from brain.archive_config import ArchiveConfig
from brain.bmc_poll_config import BmcPollConfig
from brain.chat_config import AlertsConfig, ChatConfig
from brain.console_config import ConsoleConfig, refuse_shared_token
from brain.core.operators import scopes
from brain.core.pack.spec import (
    ONCALL,
    ModeSetting,
    Place,
    Settings,
)
from brain.nats_config import EvidenceConfig, LogConfig, NatsConfig
from brain.outgoing_config import OutgoingConfig
from brain.reports_config import ReportConfig
from brain.topology.places_file import read_places
from brain.traces_config import TracesConfig

T = TypeVar("T")
_log = logging.getLogger(__name__)
_BESIDE = Path(__file__).resolve().parents[1]  # rules/ and runbooks/ are installed beside this package
# Keys with tables of plug-ins.
PLUG_INS = ("channels", "bmc", "schedulers", "subnet_managers", "switches", "ufm", "dead_mans_switches")
_UNKNOWN = "unknown key"
_KINDS_OF_ERROR = {
    "extra_forbidden": _UNKNOWN,
    "unexpected_keyword_argument": _UNKNOWN,
    "missing": "is missing",
}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SnapshotConfig(_Model):
    """How often the engine's state is written to disk, so that a restart need not read the whole log."""

    every_s: float = Field(default=60, gt=0)
    every_inputs: int = Field(default=200_000, ge=1)


class BrainConfig(_Model):
    """The keys of brain.toml."""

    _file: Path | None = PrivateAttr(default=None)
    # Failure domain; part of every NATS subject
    cell: str = "default"
    # This brain's name in notes; empty: the host name
    brain: str = ""
    # text, or json: each line of the log is an object, with the ids of incident, run and step as keys; the leader's notes too
    log_format: LogFormat = LogFormat.TEXT
    # Folder of the snapshot, read model, keys and embedded NATS
    data_dir: Path = Path("/var/lib/gpuward")
    nats: NatsConfig = NatsConfig()
    log: LogConfig = LogConfig()
    archive: ArchiveConfig = ArchiveConfig()
    evidence: EvidenceConfig = EvidenceConfig()
    console: ConsoleConfig = ConsoleConfig()
    chat: ChatConfig = ChatConfig()
    alerts: AlertsConfig = AlertsConfig()
    snapshot: SnapshotConfig = SnapshotConfig()
    traces: TracesConfig = TracesConfig()
    outgoing: OutgoingConfig = OutgoingConfig()
    # Which reports are mailed, when, and to whom
    reports: tuple[ReportConfig, ...] = ()
    # Folder; none: the rules that came with gpuward
    rules: Path | None = None
    # Folder; none: the runbooks that came with gpuward
    runbooks: Path | None = None
    # The default is to observe everywhere; the last matching entry wins
    modes: tuple[ModeSetting, ...] = ()
    # Limits and delays; the modes are in `modes`
    settings: Settings = Settings()
    # YAML: where nodes stand (docs/topology.md); none: places are unknown
    topology: Path | None = None
    # name -> type and its options (brain/notify)
    channels: Mapping[str, Mapping[str, Any]] = {}
    # oncall, scheduler, ... -> channels, in the order in which they are tried
    groups: Mapping[str, tuple[str, ...]] = {}
    # name -> type, nodes (glob) and options (brain/actions)
    bmc: Mapping[str, Mapping[str, Any]] = {}
    bmc_poll: BmcPollConfig = BmcPollConfig()
    # name -> type, nodes (glob) and options
    schedulers: Mapping[str, Mapping[str, Any]] = {}
    # fabric -> its hosts and the nodes that are asked about it
    subnet_managers: Mapping[str, Mapping[str, Any]] = {}
    # name -> type and options of a way to set switch ports
    switches: Mapping[str, Mapping[str, Any]] = {}
    # name -> url, token_file, events, ... of NVIDIA UFM (brain/ufm/client.py)
    ufm: Mapping[str, Mapping[str, Any]] = {}
    # Ed25519 seed, base64; none: <data_dir>/signing.key, created when missing
    signing_key_file: Path | None = None
    # A node that has sent no beat for so long is unreachable
    unreachable_after_s: float = Field(default=15, ge=1, le=3600)
    # A leader that does not renew its lease for so long is replaced
    lease_ttl_s: float = Field(default=2, ge=1, le=60)
    # When nobody leads, or no input comes round through the log, for so long, people are told
    nobody_leads_after_s: float = Field(default=10, ge=5, le=600)
    # name -> type and options of what raises the alarm when this cell no longer calls it
    dead_mans_switches: Mapping[str, Mapping[str, Any]] = {}
    # true: `gpuward drill` may inject faults into simulated nodes of this cell; `gpuward up` sets it
    drill: bool = False

    @model_validator(mode="after")
    def _agrees(self) -> "BrainConfig":
        wrong = AllWrong()
        if self.nats.url and "embedded" in self.nats.model_fields_set:
            wrong.add(
                "nats.embedded: give `url` or `embedded`, not both: take out the table [nats.embedded] and all below it, "
                "[nats.embedded.nodes] too, or nats.url"
            )
        if self.nats.operator is not None and not self.nats.url:
            wrong.add("nats.operator: give the servers in nats.url; the embedded one has no operator")
        with wrong.also():
            settings_agree.check(self.settings, self.groups)
        with wrong.also():
            reports_config.check(self.reports, self.channels)
        wrong.end(ValueError)
        return self

    @property
    def file(self) -> Path | None:
        """The file that it was read from; None: it comes from elsewhere."""
        return self._file

    @property
    def cell_dir(self) -> Path:
        """The folder of the cell's authority, nodes and join tokens (`gpuward cell`)."""
        return self.data_dir / "cell"

    @property
    def registry_file(self) -> Path:
        """The cell's nodes and join tokens; see brain.cell.registry."""
        return self.cell_dir / "registry.json"

    @property
    def tokens_file(self) -> Path:
        """The hashes of people's tokens; see brain.console.access.tokens."""
        return self.console.tokens_file or self.data_dir / "tokens.json"

    @property
    def signing_key(self) -> Path:
        """The file with the key that signs commands; its public half is beside it."""
        return self.signing_key_file or self.data_dir / "signing.key"

    @property
    def brain_seed(self) -> Path | None:
        """The file with the seed of the brain's NKEY; None: it connects to servers of the site without one."""
        if self.nats.url:
            return self.nats.seed_file
        return (self.nats.embedded.store or self.data_dir / "nats") / "keys/brain.nk"

    def nats_url_for_nodes(self, host: str, *, tls: bool) -> str:
        """Returns where nodes find NATS. `host`: by which they reach the brain's machine; `tls`: has the embedded server TLS?"""
        if self.nats.url:
            return self.nats.url
        return (
            f"{'tls' if tls else 'nats'}://{f'[{host}]' if ':' in host else host}:{self.nats.embedded.port}"
        )

    @property
    def embedded(self) -> bool:
        """Does the brain start its own NATS server?"""
        return not self.nats.url

    @property
    def rules_dir(self) -> Path:
        """The folder of the rules in force."""
        return self.rules or _BESIDE / "rules"

    @property
    def runbooks_dir(self) -> Path:
        """The folder of the runbooks in force."""
        return self.runbooks or _BESIDE / "runbooks"

    def site_settings(self) -> Settings:
        """Returns the settings with the configured modes. A configured scheduler is asked what runs there."""
        ask = self.settings.ask_jobs or bool(self.schedulers)
        hit = self.settings.ask_who_is_hit or bool(self.schedulers)
        offsets = zones.utc_offsets(self.settings.zone) if self.settings.zone else self.settings.utc_offsets
        modes = self.settings.modes + self.modes
        groups = self.settings.groups or tuple(dict.fromkeys([ONCALL, *self.groups]))
        return replace(
            self.settings, modes=modes, ask_jobs=ask, ask_who_is_hit=hit, utc_offsets=offsets, groups=groups
        )

    def places(self) -> dict[str, Place]:
        """Reads node → place from the topology file; ConfigError names file, line and key."""
        return read_places(self.topology) if self.topology else {}


def check_modes(config: BrainConfig) -> None:
    """ConfigError when a mode is for a runbook that is not there: it would hold for nothing, silently."""
    wrong = AllWrong()
    known = sorted(path.stem for path in config.runbooks_dir.glob("*.yaml"))
    tables = {"modes": config.modes, "settings.modes": config.settings.modes}
    for key, number, mode in ((key, n, one) for key, modes in tables.items() for n, one in enumerate(modes)):
        if known and not any(fnmatchcase(name, mode.runbook) for name in known):
            meant = scopes.have(mode.runbook, known)
            wrong.add(f"{key}.{number}.runbook: no runbook {mode.runbook!r}{meant}")
    wrong.end()


def load(path: Path | None) -> BrainConfig:
    """Reads the configuration in `path` (None: only defaults); ConfigError names file and key, WrongText where it was read."""
    if path is None:
        return parse({}, "defaults", Path.cwd())
    text = read_text(path)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise options.WrongText(toml_lines.not_toml(str(path), text, error)) from error
    try:
        config = parse(raw, str(path), path.resolve().parent)
        with _named(str(path)):
            check_modes(config)
    except ConfigError as error:
        raise options.WrongText(toml_lines.with_lines(str(error), str(path), text)) from error
    config._file = path.resolve()
    return config


def located(message: str, loaded: BrainConfig) -> str:
    """An error about a table of this configuration, `TABLE.KEY: ...`, with its file and line; another one as it is.

    Tables of plug-ins are read by those, when they are built.
    """
    if loaded.file is None:
        return message
    try:
        text = read_text(loaded.file)
    except ConfigError:
        return message

    def of_a_table(line: str) -> str:
        first = line.partition(": ")[0].partition(".")[0]
        return f"{loaded.file}: {line}" if first in BrainConfig.model_fields else line

    return toml_lines.with_lines("\n".join(map(of_a_table, message.splitlines())), str(loaded.file), text)


@contextmanager
def locating(loaded: BrainConfig) -> Iterator[None]:
    """What is built inside names file and line, too, where it refuses what the configuration says."""
    try:
        yield
    except ConfigError as error:
        raise type(error)(located(str(error), loaded)) from error


def read_text(path: Path) -> str:
    """The text of a configuration; ConfigError: there is none."""
    try:
        return path.read_text(encoding="utf-8").removeprefix("\ufeff")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error


def parse(raw: Mapping[str, Any], where: str, folder: Path) -> BrainConfig:
    """Reads the configuration from TOML data. `where` names it in errors; relative paths start from `folder`.

    Old names are read with a warning in the log.
    """
    raw = copy.deepcopy(dict(raw))
    refuse_shared_token(raw, where)
    renamed.rename(raw, renamed.CONFIG, functools.partial(_warn, where))
    with _named(where):
        windows_config.in_seconds(raw)
    config = _checked(lambda: BrainConfig.model_validate_json(orjson.dumps(raw, default=str)), where)
    with _named(where):
        _check_names(config)
    tables = {name: options.placed(getattr(config, name), folder) for name in PLUG_INS}
    return _absolute(config, folder).model_copy(update=tables)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Each line of what is refused within begins with the file."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError("\n".join(f"{where}: {line}" for line in str(error).splitlines())) from error


def _check_names(config: BrainConfig) -> None:
    """ConfigError: windows, zones and names that cannot be, a line for each."""
    wrong = AllWrong()
    with wrong.also():
        windows_config.check(config.settings.maintenance)
    keys: list[tuple[str, Callable[[], object]]] = [
        ("settings.zone", lambda: zones.utc_offsets(config.settings.zone)),
        ("cell", lambda: subjects.token(config.cell, "cell")),
        ("brain", lambda: subjects.token(config.brain or "-", "brain")),
    ]
    keys += [
        (f"reports.{number}.zone", functools.partial(zones.utc_offsets, one.zone))
        for number, one in enumerate(config.reports)
    ]
    keys += [
        (f"nats.embedded.nodes.{node}", functools.partial(subjects.token, node, "node"))
        for node in config.nats.embedded.nodes
    ]
    for key, read in keys:
        try:
            read()
        except ConfigError as error:
            wrong.add(f"{key}: {error}")
    wrong.end()


def _warn(where: str, key: renamed.Where, text: str) -> None:
    _log.warning("%s: %s: %s", where, ".".join(map(str, key)), text)


def _checked(build: Callable[[], T], where: str) -> T:
    try:
        return build()
    except ValidationError as error:
        raise ConfigError("\n".join(f"{where}: {line}" for line in _lines(error))) from error


def _lines(error: ValidationError) -> list[str]:
    lines = []
    for item in error.errors(include_url=False):
        key = ".".join(str(part) for part in item["loc"])
        says = _KINDS_OF_ERROR.get(item["type"], item["msg"].removeprefix("Value error, "))
        if says == _UNKNOWN:
            says += options.meant(BrainConfig, [str(part) for part in item["loc"]])
        lines += [f"{key}: {says}"] if key else says.splitlines()
    return lines


def _absolute(config: BrainConfig, folder: Path) -> BrainConfig:
    """Returns the configuration with absolute paths."""

    def fixed(model: Any) -> Any:
        changes: dict[str, Any] = {}
        for name in type(model).model_fields:
            value = getattr(model, name)
            if isinstance(value, Path):
                changes[name] = folder / value
            elif isinstance(value, BaseModel):
                changes[name] = fixed(value)
            elif isinstance(value, tuple) and any(isinstance(one, BaseModel) for one in value):
                changes[name] = tuple(fixed(one) for one in value)
        # Keep the distinction between set keys and defaults: model_copy would mark all changes as set.
        copy = model.model_copy(update=changes)
        copy.__pydantic_fields_set__.intersection_update(model.model_fields_set)
        return copy

    result: BrainConfig = fixed(config)
    return result
