"""How the brain connects to its NATS servers."""

from pathlib import Path

from agent.shared.nats_connection import NatsConnection, tls_context
from agent.shared.secret_file import nkey_seed
from brain.config import NatsConfig

_LOOK_S = 0.2  # a leader that has lost its connection should notice before its lease runs out


def brain_connection(
    config: NatsConfig,
    *,
    name: str,
    url: str = "",
    seed: str = "",
    jwt: str = "",
    ca_file: Path | None = None,
) -> NatsConnection:
    """The brain's connection. `url`, `seed` and `ca_file` replace the configured ones (embedded server).
    `jwt`: see NatsConnection. ConfigError when a file cannot be read.
    """
    servers = [one.strip() for one in (url or config.url).split(",") if one.strip()]
    return NatsConnection(
        servers,
        name=name,
        seed=seed or nkey_seed(config.seed_file, "nats.seed_file"),
        jwt=jwt,
        tls=tls_context(servers, ca_file or config.ca_file, "nats.ca_file"),
        look_s=_LOOK_S,
    )
