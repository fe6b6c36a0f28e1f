"""`gpuward-agent join TOKEN`: a node becomes a member of a cell.

The token says where, and the fingerprint of the authority to trust there (brain/cell/invitation.py). That authority's certificate
is fetched over a connection that nobody vouches for, and counts by its fingerprint alone; the token's secret goes only over
a connection for which it vouches. The node's seed is made here and stays here.
"""

import base64
import hashlib
import http.client
import json
import os
import pwd
import random
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nkeys

from agent import config_file
from agent.contract import subjects
from agent.contract.errors import ConfigError, GpuwardError, Refused, Unreachable
from agent.contract.inert import inert
from agent.contract.messages import clip
from agent.shared import files, reasons
from agent.shared.secret_file import nkey_seed
from agent.shared.words import language, t
from agent.started import HOST_FILE

PREFIX = "gwj_"
USER = "gpuward-agent"  # of the agent's unit: it reads the seed
TIMEOUT_S = 15.0
PATIENCE_S = 300.0  # with a console that has too many nodes joining at once
MAX_ANSWER = 1_000_000
_END = "-----END CERTIFICATE-----"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Busy(Unreachable):
    """The console takes no more at the moment: ask again after so many seconds."""

    def __init__(self, text: str, again_s: float) -> None:
        super().__init__(text)
        self.again_s = again_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What a token says."""

    urls: tuple[str, ...]
    # SHA-256 of the cell's authority, hexadecimal; empty: the system's CAs are trusted
    fingerprint: str
    id: str
    secret: str


def main(token: str, *, config: Path, node: str, new_key: bool = False) -> int:
    """Joins, and says what to do next. `new_key`: with a key that is made now; the old one stays until the cell has taken it.
    ConfigError, Refused, Unreachable: it has not joined; the configuration is as it was."""
    _may_write(config.parent)
    invited = read(sys.stdin.readline().strip() if token == "-" else token.strip())  # noqa: S105  a dash
    node = node or _configured_name(config)
    name = subjects.new_node(
        node or subjects.node_name(socket.gethostname(), "give another name with --node")
    )
    config.parent.mkdir(parents=True, exist_ok=True)
    seed_file = config.parent / "node.nk"
    next_file = seed_file.with_name("node.nk.next")
    public = _key(next_file if new_key else seed_file)
    answer = _ask(invited, {"id": invited.id, "secret": invited.secret, "node": name, "public": public})
    values: dict[str, Any] = {
        "cell": answer["cell"],
        "node": name,
        "nats_url": answer["nats_url"],
        "nats_seed_file": str(seed_file.resolve()),
        "nats_jwt_file": "",
        "trusted_keys": answer["trusted_keys"],
        "trust_serial": answer["trust_serial"],
    }
    if answer["nats_jwt"]:
        jwt_file = config.parent / "node.jwt"
        files.write(jwt_file, answer["nats_jwt"].encode() + b"\n", sync=True, mode=0o644)
        values["nats_jwt_file"] = str(jwt_file.resolve())
    if new_key:  # an agent that runs reads it when it connects the next time, which is now
        next_file.replace(seed_file)
    # Not into agent.toml: an earlier version, to which a site may go back, would not start with a key that it does not know.
    files.write(seed_file.with_name(HOST_FILE), f"{socket.gethostname()}\n".encode(), sync=True, mode=0o644)
    if answer["ca"]:
        ca_file = config.parent / "ca.pem"
        files.write(ca_file, answer["ca"].encode(), sync=True, mode=0o644)
        values["nats_ca_file"] = str(ca_file.resolve())
    _write(config, values)
    sys.stdout.write(
        t(
            "{name} has joined cell {cell}: {config} has how. It only observes until its `allow` list says "
            "more.\nStart it: systemctl enable --now gpuward-agent (where it runs already: systemctl restart "
            "gpuward-agent)\n",
            name=name,
            cell=answer["cell"],
            config=config,
        )
    )
    if answer["todo"]:
        sys.stdout.write(t("Not done yet: {todo}.\n", todo=inert(clip(answer["todo"], 1000))))
    return 0


def _may_write(folder: Path) -> None:
    """ConfigError: this user may not, and whoever may is to type it. Before the token is used, which is good once."""
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(t("{folder} is not yours to write: type it as root", folder=there))


def read(token: str) -> Invitation:
    """What a token says; ConfigError: it is none."""
    try:
        body = token.removeprefix(PREFIX)
        raw = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        found = Invitation(
            urls=tuple(str(url) for url in raw["u"]),
            fingerprint=str(raw["f"]),
            id=str(raw["i"]),
            secret=str(raw["s"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            t("this is no join token: copy all of what `gpuward cell token` printed")
        ) from error
    if not token.startswith(PREFIX) or not found.urls:
        raise ConfigError(t("this is no join token: copy all of what `gpuward cell token` printed"))
    return found


def _configured_name(config: Path) -> str:
    """The node's name as its configuration has it; empty: it has none. ConfigError: it cannot be read."""
    return config_file.load(config).node if config.exists() else ""


def _key(file: Path) -> str:
    """The public half of the seed in this file, which is made when there is none."""
    if not file.exists():
        seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
        files.write(file, seed + b"\n", sync=True, mode=0o600)
    if os.geteuid() == 0:
        with suppress(KeyError):  # no such user: the agent runs as root, or is not installed yet
            user = pwd.getpwnam(USER)
            os.chown(file, user.pw_uid, user.pw_gid)
    pair = nkeys.from_seed(bytearray(nkey_seed(file, t("the node's seed")).encode()))
    return str(pair.public_key.decode())


def _ask(invited: Invitation, body: Mapping[str, str]) -> dict[str, Any]:
    """The answer of the first console that gives one. Refused: a console says no, and why."""
    failed: list[str] = []
    for url in invited.urls:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise ConfigError(
                t(
                    "{url}: the token leads over an open connection: make one with an https:// address",
                    url=inert(clip(url, 200)),
                )
            )
        try:
            trusted = _authority(url, invited.fingerprint) if parts.scheme == "https" else None
            return _answer(
                _patiently(f"{url.rstrip('/')}/api/join", trusted, json.dumps(dict(body)).encode())
            )
        except Unreachable as error:
            failed.append(str(error))
    raise Unreachable("; ".join(failed))


def _authority(url: str, fingerprint: str) -> ssl.SSLContext:
    """Whom to trust there. Refused: the console shows another authority than the token names."""
    if not fingerprint:
        return ssl.create_default_context()
    nobody = ssl.create_default_context()
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
    shown = str(_exchange(f"{url.rstrip('/')}/api/join", nobody).get("ca", ""))
    try:
        # Two while the authority is rotated: only the one that the token names counts.
        each = [ssl.PEM_cert_to_DER_cert(pem + _END) for pem in shown.split(_END)[:-1]]
        named = next((der for der in each if hashlib.sha256(der).hexdigest() == fingerprint), b"")
        context = ssl.create_default_context(cadata=named) if named else None
    except (ValueError, ssl.SSLError) as error:
        raise Refused(t("{url}: what it shows is no certificate", url=url)) from error
    if not each:
        raise Refused(t("{url}: what it shows is no certificate", url=url))
    if context is None:
        raise Refused(
            t(
                "{url}: its authority is not the one that the token names: the cell's authority was rotated "
                "since the token was made (make another: `gpuward cell token`), the token is of another cell, "
                "or somebody is in between",
                url=url,
            )
        )
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _patiently(url: str, trusted: ssl.SSLContext | None, body: bytes) -> dict[str, Any]:
    """As _exchange; a console that has too many nodes joining at once is asked again when it says."""
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _exchange(url, trusted, body)
        except Busy as error:
            if time.monotonic() + error.again_s > ends_s:
                raise
            time.sleep(error.again_s * (1 + random.random()))  # noqa: S311  so that not all come at once


def _exchange(url: str, trusted: ssl.SSLContext | None, body: bytes | None = None) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Accept-Language": language()}
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310  checked above
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted), _NoRedirect()
    )
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            found = json.loads(answer.read(MAX_ANSWER))
    except urllib.error.HTTPError as error:
        raise _said(url, error) from error
    except ssl.SSLCertVerificationError as error:
        raise Refused(f"{url}: {reasons.of_certificate(error)}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise Refused(f"{url}: {reasons.of_certificate(reason)}") from error
        raise Unreachable(
            t("{url} does not answer: {reason}", url=url, reason=reasons.what(error))
        ) from error
    if not isinstance(found, dict):
        raise Unreachable(t("{url}: not a console of gpuward", url=url))
    return found


def _said(url: str, error: urllib.error.HTTPError) -> GpuwardError:
    """A console's refusal, in its words."""
    try:
        why = str(json.loads(error.read(MAX_ANSWER))["error"])
    except (ValueError, KeyError, TypeError, OSError):
        why = t("it answers {code}", code=error.code)
    text = f"{url}: {inert(clip(why, 500))}"
    if error.code == http.client.TOO_MANY_REQUESTS:
        again = error.headers.get("Retry-After", "")
        return Busy(text, float(again) if again.isdecimal() else 1.0)
    return Unreachable(text) if error.code >= 500 or error.code == 404 else Refused(text)


def _answer(found: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, if it is one."""
    texts = {key: found.get(key) for key in ("cell", "nats_url", "ca")}
    texts["nats_jwt"] = found.get("nats_jwt", "")  # only where the servers are in operator mode
    texts["todo"] = found.get("todo", "")  # only where somebody must tell the servers
    trusted = found.get("trusted_keys")
    good = isinstance(trusted, dict) and all(
        isinstance(one, str) for one in (*texts.values(), *trusted, *trusted.values())
    )
    if not good:
        raise Unreachable(
            t("the console's answer is not one that this agent knows: is it much older or newer?")
        )
    serial = found.get("trust_serial", 0)  # older consoles do not say it
    return texts | {"trusted_keys": trusted, "trust_serial": serial if isinstance(serial, int) else 0}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A console does not send its nodes elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """As in HTTPRedirectHandler: it is an error."""


def _write(config: Path, values: Mapping[str, Any]) -> None:
    """Sets these keys in the configuration, and leaves the rest as it is. ConfigError: what comes of it is not valid."""
    text = config.read_text(encoding="utf-8").removeprefix("\ufeff") if config.exists() else ""
    for key, value in values.items():
        text = _with(text, key, value)
    draft = config.with_name(f"{config.name}.draft")
    files.write(draft, text.encode(), sync=True, mode=0o644)
    try:
        config_file.load(draft)
    except ConfigError as error:
        draft.unlink()
        raise ConfigError(
            t("{config} was not changed, as it would not be valid: {error}", config=config, error=error)
        ) from error
    draft.replace(config)


def _with(text: str, key: str, value: Any) -> str:
    """`text` with `key = value` in place of what it says of the key, of its commented default, or as its first line."""
    shown = _table(value) if isinstance(value, Mapping) else json.dumps(value)
    line = f"{key} = {shown}"
    text = _without_table(text, key)
    tables = re.search(r"(?m)^[ \t]*\[[^\[\]=,]+\][ \t]*(#.*)?$", text)
    ends = tables.start() if tables else len(text)  # what stands behind it is a key of that table
    for pattern in (rf"(?m)^[ \t]*{key}[ \t]*=.*$", rf"(?m)^#[ \t]*{key}[ \t]*=.*$"):
        if (place := re.search(pattern, text)) and place.start() < ends:
            return f"{text[: place.start()]}{line}{text[place.end() :]}"
    return f"{line}\n{text}"


def _without_table(text: str, key: str) -> str:
    """`text` without the key where it is written as a table, `[key]` or `key.name = ...`; comments stay."""
    left, inside = list[str](), False
    for line in text.splitlines(keepends=True):
        said = line.strip()
        if said.startswith("["):
            inside = re.match(rf"\[[ \t]*{key}[ \t]*\]", said) is not None
        comment = not said or said.startswith("#")
        if comment or not (inside or re.match(rf"{key}[ \t]*\.", said)):
            left.append(line)
    return "".join(left)


def _table(value: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{json.dumps(key)} = {json.dumps(text)}" for key, text in value.items()) + " }"
