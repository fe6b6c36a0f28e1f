"""How a node connects to its NATS servers."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agent.shared.nats_connection import Identity, NatsConnection, TlsContexts
from agent.shared.secret_file import nkey_seed, secret

_LOOK_S = 2.0  # beats go as often


def node_connection(
    servers: Sequence[str], node: str, *, seed_file: str = "", jwt_file: str = "", ca: Callable[[], str] = str
) -> NatsConnection:
    """The node's connection; ConfigError when a file cannot be read. `ca`: PEM of the authorities that are trusted now; empty:
    the system's.
    """
    contexts = TlsContexts(servers, "nats_ca_file")

    def identity() -> Identity:
        seed = nkey_seed(Path(seed_file) if seed_file else None, "nats_seed_file")
        jwt = secret(Path(jwt_file) if jwt_file else None, "nats_jwt_file")
        return Identity(seed=seed, jwt=jwt, tls=contexts.of(ca()))

    return NatsConnection(
        servers,
        name=f"gpuward-agent {node}",
        identity=identity,
        look_s=_LOOK_S,
        ping_s=_LOOK_S,
        validate_subjects=False,  # ours were checked when the configuration was read
    )
