"""How a node connects to its NATS servers."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.nats_connection import Identity, NatsConnection, TlsContexts
from agent.shared.secret_file import first_line, nkey_seed

_LOOK_S = 2.0  # beats go as often
# Of one message: commands, acknowledgements and answers to evidence have at most a tenth of it
_MOST_BYTES = 1024**2


def node_identity(
    servers: Sequence[str], *, seed_file: str = "", jwt_file: str = "", ca: Callable[[], str] = str
) -> Callable[[], Identity]:
    """What says as whom the node connects now; ConfigError when a file cannot be read. `ca`: PEM of the authorities that
    are trusted now; empty: the system's.
    """
    contexts = TlsContexts(servers, "nats_ca_file", todo="`gpuward-agent join` writes those of the cell")

    def identity() -> Identity:
        seed = _seed(seed_file)
        jwt = first_line(Path(jwt_file) if jwt_file else None, "nats_jwt_file")
        return Identity(seed=seed, jwt=jwt, tls=contexts.of(ca()))

    return identity


def node_connection(
    servers: Sequence[str], node: str, *, seed_file: str = "", jwt_file: str = "", ca: Callable[[], str] = str
) -> NatsConnection:
    """The node's connection; ConfigError when a file cannot be read. `ca` as in `node_identity`."""
    return NatsConnection(
        servers,
        name=f"gpuward-agent {node}",
        identity=node_identity(servers, seed_file=seed_file, jwt_file=jwt_file, ca=ca),
        look_s=_LOOK_S,
        ping_s=_LOOK_S,
        most=_MOST_BYTES,
        validate_subjects=False,  # ours were checked when the configuration was read
    )


def _seed(file: str) -> str:
    try:
        return nkey_seed(Path(file) if file else None, "nats_seed_file")
    except ConfigError as error:
        if isinstance(error.__cause__, PermissionError):
            raise
        raise ConfigError(f"{error}: `gpuward-agent join` with a token makes one (docs/cell.md)") from error
