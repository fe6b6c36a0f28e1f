"""What the checks look at: the configuration, and what the brain answers if it does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from agent.contract.errors import ConfigError
from agent.shared.words import later
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry
from brain.cli import own_brain
from brain.cli.as_owner import as_owner
from brain.cli.client import Client
from brain.config import BrainConfig

NO_BRAIN = later("the brain does not answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainAnswers:
    """What a brain says of itself and of its nodes."""

    status: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]
    # It runs on this machine: the paths that it names are ours
    here: bool = False

    @property
    def data_dir(self) -> Path | None:
        """Where it keeps what it has; None: on another machine, or it does not say (before version 0.2)."""
        named = str(self.status.get("data_dir", "")) if self.here else ""
        return Path(named) if named else None

    @property
    def config_file(self) -> Path | None:
        """Its brain.toml; None: as with `data_dir`, or it has none."""
        named = str(self.status.get("config_file", "")) if self.here else ""
        return Path(named) if named else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One brain's machine, at one moment."""

    # None: defaults
    file: Path | None
    config: BrainConfig
    # Warnings about the configuration: old names
    warnings: Sequence[str]
    # None: it does not answer
    brain: BrainAnswers | None
    # Why it does not
    silent_why: str
    # May a BMC be logged in to?
    login: bool
    # Seconds since 1970, by this machine's clock
    now: float

    def registered(self) -> Sequence[str]:
        """Names of the nodes that belong to the cell. ConfigError: its registry cannot be read."""
        if not self.config.cell_dir.is_dir():
            return sorted(self.config.nats.embedded.nodes)
        registry = CellRegistry(self.config.registry_file, self.config.nats.embedded.nodes)
        with as_owner(self.config.cell_dir):
            return sorted({*registry.nodes(), *self.config.nats.embedded.nodes})

    def node_names(self) -> Sequence[str]:
        """Names of the nodes, as the brain knows them; those that belong to the cell while it does not answer."""
        if self.brain is not None:
            return [str(node["name"]) for node in self.brain.nodes]
        try:
            return self.registered()
        except ConfigError:
            return []


def ask(client: Client) -> tuple[BrainAnswers | None, str]:
    """Returns what the brain answers, or None and why it does not."""
    try:
        status, nodes = client.get("status"), client.get("nodes")["nodes"]
        return BrainAnswers(status=status, nodes=nodes, here=client.local), ""
    except click.ClickException as error:
        return None, error.message


def client_of(client: Client, config: BrainConfig) -> Client:
    """Returns the client of the console in this configuration, unless another place was named."""
    console = config.console
    if not client.assumed or not console.port:
        return client
    authority = Authority(config.cell_dir)
    issued = console.tls_cert_file == authority.certificate_file and authority.ca_file.is_file()
    own = authority.ca_file if issued else None
    url = own_brain.url_of(console.host, console.port, tls=console.tls_cert_file is not None)
    return client.at(url=url, ca_file=own)
