"""How the brain connects to its NATS servers."""

from collections.abc import Callable
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.nats_connection import Identity, NatsConnection, TlsContexts
from agent.shared.secret_file import nkey_seed
from brain.glance import Latest
from brain.nats_config import NatsConfig

_LOOK_S = 0.2  # a leader that has lost its connection should notice before its lease runs out


def brain_connection(
    config: NatsConfig,
    *,
    name: str,
    url: str = "",
    seed_file: Path | None = None,
    seed: str = "",
    jwt: str = "",
    ca_file: Path | None = None,
    on_error: Callable[[str], None] = lambda _: None,
) -> NatsConnection:
    """The brain's connection. `url`, `seed_file` and `ca_file` replace the configured ones (embedded server). The files are read
    at each attempt; while their disk hangs, what was read last counts. `seed` and `jwt`: of its user, where the servers are in
    operator mode. `on_error`: hears what the server refuses. ConfigError: a file cannot be read.
    """
    servers = [one.strip() for one in (url or config.url).split(",") if one.strip()]
    trusted = ca_file or config.ca_file
    todo = f"put the servers' authority into {trusted}, or that file back from your backup"
    contexts = TlsContexts(servers, "nats.ca_file", todo=todo)

    def read() -> tuple[str, str]:
        own = seed or nkey_seed(seed_file or config.seed_file, "nats.seed_file")
        return own, _read(trusted) if trusted else ""

    latest = Latest(read, seed_file or config.seed_file or trusted or Path())

    def identity() -> Identity:
        own, ca = latest()
        return Identity(seed=own, jwt=jwt, tls=contexts.of(ca))

    return NatsConnection(servers, name=name, identity=identity, look_s=_LOOK_S, on_error=on_error)


def _read(ca_file: Path) -> str:
    try:
        return ca_file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"nats.ca_file: {ca_file} cannot be read: {error}") from error
