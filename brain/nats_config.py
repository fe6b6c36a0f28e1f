"""The tables of brain.toml about NATS: which servers, and how long what lies there is kept."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EmbeddedConfig(_Model):
    """The NATS server that the brain starts as a child process. For one brain; production has a cluster."""

    # Address to listen on; agents on other nodes cannot reach loopback
    host: str = "127.0.0.1"
    port: int = Field(default=4222, ge=1, le=65535)
    # Folder of its files; none: <data_dir>/nats
    store: Path | None = None
    # node -> its public NKEY (U...); other nodes cannot connect
    nodes: Mapping[str, str] = {}


class OperatorConfig(_Model):
    """NATS servers in operator mode, where accounts are JWTs: see docs/cell.md."""

    # File with the seed of the NATS operator, or of one of its signing keys; none: `gpuward cell export` signs with one you give
    seed_file: Path | None = None
    # .creds file of a user of the system account; with both the brain tells the servers who joins and who is revoked
    system_creds_file: Path | None = None


class NatsConfig(_Model):
    """Which NATS the brain uses: its own embedded server, or the servers in `url`."""

    # nats:// or tls://, comma separated; empty: the embedded server
    url: str = ""
    # File with the brain's NKEY seed (mode 0600); none: connect without one
    seed_file: Path | None = None
    # PEM file with the CA of tls:// servers; none: the system's CAs
    ca_file: Path | None = None
    # Copies of the log; 3 in a cluster of three servers
    replicas: int = Field(default=1, ge=1, le=5)
    # The servers of `url` are in operator mode
    operator: OperatorConfig | None = None
    embedded: EmbeddedConfig = EmbeddedConfig()


class LogConfig(_Model):
    """How long the log is kept. What was dropped cannot be replayed; open incidents are also in the snapshot."""

    max_age_s: float = Field(default=30 * 86400, ge=3600)
    # Beyond this size the oldest messages are dropped
    max_bytes: int = Field(default=8 * 1024**3, ge=64 * 1024**2)
    # How long a message id is remembered
    duplicate_window_s: float = Field(default=300, ge=120)


class EvidenceConfig(_Model):
    """How long evidence bundles are kept in NATS. A dropped bundle may still be on its node."""

    keep_s: float = Field(default=14 * 86400, ge=3600)
    # Beyond this size the oldest bundles are dropped
    max_bytes: int = Field(default=1024**3, ge=16 * 1024**2)
