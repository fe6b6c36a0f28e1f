"""The part `[console]` of the brain's configuration: where it listens, who may come in, and what they may do."""

import ipaddress
import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agent.contract.errors import ConfigError
from brain.core.operators.scopes import ALL
from brain.core.pack.topology import SCOPES
from brain.core.people import SCHEDULE

# Until somebody notices that a node is ill, and has looked: as in `gpuward simulate` (docs/simulation.md)
PEOPLE_BEGIN_S = 3000.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# What a person's name may be: it stands in the log, in pages and in the name of a token.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class Role(StrEnum):
    """What people may do, weakest first: each role may also do what the ones before it may."""

    VIEWER = "viewer"  # reads
    OPERATOR = (
        "operator"  # stops and answers: holds, acknowledges, denies, gives a node back, sets mode observe
    )
    APPROVER = "approver"  # lets runs go on: approves, starts runbooks, resets the breaker
    ADMINISTRATOR = "administrator"  # decides what runs by itself, and who comes in: other modes, all tokens


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class GrantConfig(_Model):
    """What one person, or one group of the identity provider, may do."""

    role: Role
    # Globs of scopes (node/gpu-*, rack/r7): commands on anything else are refused; empty: no limit
    scopes: tuple[str, ...] = ()
    # Globs of runbooks: commands about runs of others are refused; empty: no limit
    runbooks: tuple[str, ...] = ()

    @field_validator("scopes")
    @classmethod
    def _have_types(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        """A misspelt one would refuse this person everything, and nobody would know why."""
        for scope in scopes:
            kind = scope.partition("/")[0]
            if kind not in (*SCOPES, ALL) and not any(fnmatchcase(known, kind) for known in (*SCOPES, ALL)):
                raise ValueError(f"no scope {scope!r}: want {ALL} or TYPE/NAME (types: {', '.join(SCOPES)})")
        return scopes


class OidcConfig(_Model):
    """An identity provider (OpenID Connect) at which people log in with their browser."""

    # Its issuer, exactly as it names itself; https, or http on loopback
    issuer: str
    client_id: str
    # None: a public client, which PKCE protects alone
    client_secret_file: Path | None = None
    # Where the provider sends people back to: this console's own https://.../login/callback
    redirect_url: str
    # PEM file with its CA; none: the system's CAs
    ca_file: Path | None = None
    # The claim that names people in the log. Danger: one that people can change themselves lets them be others
    name_claim: str = "sub"
    groups_claim: str = "groups"
    scopes: tuple[str, ...] = ("openid", "profile", "email", "groups")
    # Group -> role, scopes, runbooks; who is in none of them may not come in. They are read again when the file changes
    groups: Mapping[str, GrantConfig]
    # How long a login lasts; changes of groups at the provider count from the next one on
    session_s: float = Field(default=8 * 3600, ge=60, le=7 * 86400)

    @field_validator("issuer", "redirect_url")
    @classmethod
    def _in_private(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise ValueError(f"{url!r}: must begin with https:// (http:// on loopback only)")
        return url

    @field_validator("scopes")
    @classmethod
    def _with_openid(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError("must have 'openid': without it the provider says nobody's name")
        return scopes

    @field_validator("redirect_url")
    @classmethod
    def _ours(cls, url: str) -> str:
        if urlsplit(url).path != "/login/callback":
            raise ValueError(f"{url!r}: its path must be /login/callback")
        return url


class PrometheusConfig(_Model):
    """A Prometheus of the site: pages of nodes and cards plot what its dcgm-exporter and node_exporter have told."""

    # http(s)://host:9090, or what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics), with its path
    url: str = Field(pattern=r"^https?://[^\s?#]+$")
    # File with a bearer token, where it wants one
    token_file: Path | None = None
    # PEM file with its CA; none: the system's CAs
    ca_file: Path | None = None
    # The label by which node_exporter's series name a node; a domain or a port may stand behind the name
    node_label: str = Field(default="instance", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")
    # The same of dcgm-exporter's series
    gpu_node_label: str = Field(default="Hostname", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")
    # The label by which dcgm-exporter says who has a card: "namespace" or "exported_namespace" in Kubernetes, "hpc_job" beside
    # Slurm (docs/operations.md); empty: reports tell the energy of GPUs, and not whose it is
    tenant_label: str = Field(default="", pattern=r"^([a-zA-Z_][a-zA-Z0-9_]*)?$")
    # A matcher of the energy's series, where it knows other clusters, too: cluster="a"
    only: str = Field(default="", pattern=r'^([a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"\\\n]*")?$')
    # Timeout of one question
    timeout_s: float = Field(default=5.0, gt=0, le=60)


class ConsoleConfig(_Model):
    """The HTTP API."""

    host: str = "127.0.0.1"
    # 0: any free port
    port: int = Field(default=8470, ge=0, le=65535)
    # Names under which people reach it; an address and `localhost` need not be here. A request for another name is refused
    hosts: tuple[str, ...] = ()
    # PEM files of the certificate chain and its key: TLS 1.3. They are read again when they change
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    # Addresses of proxies that take TLS and set X-Forwarded-For and X-Forwarded-Proto; nobody else's such headers count
    trusted_proxies: tuple[str, ...] = ()
    # Requests of one address; twice as many at once
    requests_per_s: float = Field(default=200, gt=0)
    # Loopback only: may everybody on this machine read without a token? Nobody changes anything without one
    open_reading: bool = True
    # name -> role, scopes, runbooks; their tokens: `gpuward token create`. They are read again when the file changes
    users: Mapping[str, GrantConfig] = {}
    # Commands that count only when a second person gives the same: `start`, `approve`, `mode auto` ...; with any of them,
    # also a token that an administrator makes for somebody else (until two administrators have tokens, whoever started the
    # brain makes them alone)
    two_persons: tuple[str, ...] = ()
    # Where people log in with their browser; none: tokens only
    oidc: OidcConfig | None = None
    # The Prometheus whose counters the pages of nodes and cards plot; none: they plot nothing
    prometheus: PrometheusConfig | None = None
    # File with the hashes of all tokens; none: <data_dir>/tokens.json. It is read again when it changes
    tokens_file: Path | None = None
    # Of reports: so long after the first sign of a fault people would have begun with its remedy, for the estimate of node-hours
    # saved; 0: nothing is estimated. The default is what `gpuward simulate` takes for people: 30 minutes to notice, 20 to look
    people_begin_s: float = Field(default=PEOPLE_BEGIN_S, ge=0)

    @property
    def loopback(self) -> bool:
        """Can only this machine reach it?"""
        return self.host in LOOPBACK

    def answers_to(self, host: str) -> bool:
        """Is it a name under which it may be asked for? `host`: lower case, without port."""
        return is_address(host) or host in ("localhost", *self.hosts)

    @field_validator("users")
    @classmethod
    def _named(cls, users: Mapping[str, GrantConfig]) -> Mapping[str, GrantConfig]:
        for name in users:
            if not is_name(name):
                raise ValueError(f"{name!r} cannot be a name: letters, digits, `.`, `_`, `-` and `@`")
        return users

    @field_validator("hosts")
    @classmethod
    def _lower(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not host or any(char in host for char in "/:* "):
                raise ValueError(f"{host!r}: give a name without scheme, port and wildcard")
        return tuple(host.lower() for host in hosts)

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            if not is_address(proxy):
                raise ValueError(f"{proxy!r}: give the address of the proxy")
        return proxies

    @model_validator(mode="after")
    def _guarded(self) -> "ConsoleConfig":
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("give tls_cert_file and tls_key_file, or neither")
        if not self.loopback and self.tls_cert_file is None and not self.trusted_proxies:
            raise ValueError(
                f"host {self.host} is not loopback: it needs tls_cert_file and tls_key_file, or trusted_proxies "
                f"that take TLS; otherwise anyone on the way could read tokens"
            )
        return self


def refuse_shared_token(raw: Mapping[str, object], where: str) -> None:
    """ConfigError for the key of earlier versions that cannot be read under a new name."""
    table = raw.get("console")
    if isinstance(table, Mapping) and "token_file" in table:
        raise ConfigError(
            f"{where}: console.token_file: one token for all says nobody's name: list people in [console.users] and "
            f"make a token for each with `gpuward token create NAME`"
        )


def is_name(text: str) -> bool:
    """May a person be called this?"""
    return NAME.fullmatch(text) is not None and text != SCHEDULE


def is_address(host: str) -> bool:
    """Is it an IP address? No page elsewhere can have one as its name, so DNS cannot be turned against it."""
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
