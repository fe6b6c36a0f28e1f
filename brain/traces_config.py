"""The part `[traces]` of the brain's configuration: where the way of each fault is told as an OpenTelemetry trace."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator


class TracesConfig(BaseModel):
    """One trace for each incident, in OTLP (docs/operations.md). Off by default: give `otlp_url`, `file`, or both."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # A collector's receiver of OTLP over HTTP, with its path: http://collector:4318/v1/traces. The leader posts JSON; empty: none
    otlp_url: str = ""
    # Additional headers that are no secret, e.g. X-Scope-OrgID
    headers: Mapping[str, str] = {}
    # File with further ones, a line `Name: value` each, e.g. `Authorization: Bearer ...`
    headers_file: Path | None = None
    # PEM file with the CA of an https:// collector; none: the system's CAs
    ca_file: Path | None = None
    # Timeout of one post
    timeout_s: float = Field(default=10.0, gt=0, le=120)
    # File to which the leader appends lines of OTLP/JSON, for a collector's otlpjsonfile receiver; none: none
    file: Path | None = None
    # Beyond this size the file becomes `<file>.1`, and the one before that is gone
    file_max_bytes: int = Field(default=100 * 1024**2, ge=1024**2)

    @field_validator("otlp_url")
    @classmethod
    def _is_one(cls, url: str) -> str:
        """A collector that is named without its path answers 404 to everything."""
        scheme, found, rest = url.partition("://")
        host, _, path = rest.partition("/")
        if url and not (found and scheme in ("http", "https") and host):
            raise ValueError("want http://host:4318/v1/traces or https://...")
        if url and not path:
            raise ValueError("the path is missing: collectors take traces at /v1/traces")
        return url

    @property
    def on(self) -> bool:
        """Are traces told at all?"""
        return bool(self.otlp_url) or self.file is not None
