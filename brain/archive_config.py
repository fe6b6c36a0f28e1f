"""The part `[archive]` of the brain's configuration: where the log is kept for longer than NATS keeps it."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class ArchiveConfig(BaseModel):
    """The leader writes the log into files there, each once (docs/operations.md). Off by default: give `url`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # /absolute/folder, file:///absolute/folder or s3://bucket/prefix; the folder or bucket exists. Empty: no archive
    url: str = ""
    # Of the S3 server, https://host[:port]; empty: Amazon's, in `region`
    endpoint: str = ""
    # Of the bucket
    region: str = "us-east-1"
    # S3's keys in the form of the AWS command line: [default], aws_access_key_id, aws_secret_access_key, aws_session_token
    credentials_file: Path | None = None
    # PEM file with the CA of an https:// endpoint; none: the system's CAs
    ca_file: Path | None = None
    # true: an http:// endpoint that is not on this machine may be used; whoever is on the way reads the log
    allow_http: bool = False
    # A file ends when it has so many bytes, before it is compressed
    segment_bytes: int = Field(default=32 * 1024**2, ge=64 * 1024, le=256 * 1024**2)
    # A file ends with each period of so many seconds of the log's time: the log may be lost with that much not in the archive
    segment_s: float = Field(default=3600, ge=1, le=86400)
    # When the archive is so much later than it should be, people are told
    behind_after_s: float = Field(default=6 * 3600, ge=1)

    @field_validator("url")
    @classmethod
    def _is_a_place(cls, url: str) -> str:
        if not url or url.startswith("/"):
            return url.rstrip("/") or url
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(
                "credentials and options have keys of their own (credentials_file, endpoint, ...)"
            )
        if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
            return url.rstrip("/")
        if parts.scheme == "s3" and parts.netloc:
            return url.rstrip("/")
        raise ValueError("want /absolute/folder, file:///absolute/folder or s3://bucket/prefix")

    @model_validator(mode="after")
    def _agrees(self) -> "ArchiveConfig":
        parts = urlsplit(self.endpoint)
        if self.endpoint and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
            raise ValueError("endpoint: want https://host or https://host:port")
        if parts.scheme == "http" and not self.allow_http and not _loopback(parts.hostname or ""):
            raise ValueError(
                "endpoint: http:// is for this machine only: whoever is on the way would read the log (allow_http = true)"
            )
        if self.url.startswith("s3:") and self.credentials_file is None:
            raise ValueError("credentials_file: an s3:// url needs one")
        return self

    @property
    def on(self) -> bool:
        """Is there one at all?"""
        return bool(self.url)

    @property
    def folder(self) -> Path | None:
        """Of files on this machine; None: it is on S3."""
        if not self.url or self.url.startswith("s3:"):
            return None
        return Path(urlsplit(self.url).path if self.url.startswith("file:") else self.url)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
