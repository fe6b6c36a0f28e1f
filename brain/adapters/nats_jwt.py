"""The accounts of brain/adapters/nats_accounts.py as NATS JWTs (version 2), for servers in operator mode.

What a configuration file says by names, JWTs say by keys and signatures: the operator signs accounts, an account signs its users.
An export names no accounts; it asks each importer for an activation, which the brains' account signs for that node's subject
alone. So the brains' account stays as it is when nodes come and go. A node's permissions stand in its account as the default of
its users: they can be changed there, and what the node has keeps its worth. Nothing here reads a file or a clock.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from brain.adapters import nats_accounts
from brain.adapters.nats_accounts import Member
from brain.adapters.nkey import Nkey

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
_VERSION = 2
_NO_LIMIT = -1
_LIMITS = {"max_connections": "conn", "max_subscriptions": "subs", "max_payload": "payload"}
_UNLIMITED = {
    **dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), _NO_LIMIT),
    "wildcards": True,
}
_JETSTREAM = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), _NO_LIMIT)


def encode(claims: Mapping[str, Any], signer: Nkey) -> str:
    """Returns the JWT of these claims. Servers take two with one id for the same, so it is made of all claims."""
    whole = {**claims, "iss": signer.public}
    id_ = base64.b32encode(hashlib.sha256(orjson.dumps(whole)).digest()).decode().rstrip("=")
    body = f"{_part(orjson.dumps(_HEADER))}.{_part(orjson.dumps({**whole, 'jti': id_}))}"
    return f"{body}.{_part(signer.sign(body.encode()))}"


def subject(jwt: str) -> str:
    """Returns the public key that a JWT is about."""
    claims = jwt.split(".")[1]
    found: str = orjson.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
    return found


def operator(operator: Nkey, name: str, system_account: str, at: int) -> str:
    """Returns the operator's own JWT. `at`: seconds since 1970, here and below."""
    return encode(_claims("operator", operator.public, name, at, system_account=system_account), operator)


def system(account: Nkey, operator: Nkey, at: int) -> str:
    """Returns the JWT of an operator's system account."""
    return encode(_claims("account", account.public, nats_accounts.SYSTEM, at, limits=_UNLIMITED), operator)


def brains(cell: str, account: Nkey, operator: Nkey, at: int) -> str:
    """Returns the JWT of the account in which the brains are, with everything for nodes of whatever name."""
    said = {
        "limits": _UNLIMITED | _JETSTREAM,
        "exports": [_export(one) for one in nats_accounts.exports(cell)],
    }
    return encode(_claims("account", account.public, f"{nats_accounts.BRAINS}_{cell}", at, **said), operator)


def node(cell: str, member: Member, *, account: Nkey, brains: Nkey, operator: Nkey, at: int) -> str:
    """Returns the JWT of a node's account. Users of it from before `at` are out."""
    found = nats_accounts.account(cell, member)
    (user,) = found["users"]
    allowed = user["permissions"]
    said = {
        "imports": [_import(one, account.public, brains, at) for one in found["imports"]],
        "limits": {
            **_UNLIMITED,
            "leaf": 0,
            "exports": 0,
            "imports": len(found["imports"]),
            **{_LIMITS[name]: value for name, value in found["limits"].items()},
        },
        "default_permissions": {"pub": allowed["publish"], "sub": allowed["subscribe"]},
        "revocations": {"*": at - 1},
    }
    return encode(_claims("account", account.public, member.account, at, **said), operator)


def closed(member: str, account: Nkey, operator: Nkey, at: int) -> str:
    """Returns the JWT of the account of a node that is no longer a member: nobody may connect, and nothing is imported."""
    said = {"limits": _UNLIMITED | {"conn": 0, "leaf": 0}, "revocations": {"*": at}}
    return encode(_claims("account", account.public, member, at, **said), operator)


def user(public: str, name: str, account: Nkey, at: int) -> str:
    """Returns the JWT by which the owner of this user key comes into an account."""
    limits = dict.fromkeys(("subs", "data", "payload"), _NO_LIMIT)
    return encode(_claims("user", public, name, at, **limits), account)


def credentials(jwt: str, seed: str) -> str:
    """Returns the text of a `.creds` file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def _claims(kind: str, subject: str, name: str, at: int, /, **said: Any) -> dict[str, Any]:
    return {"iat": at, "sub": subject, "name": name, "nats": {**said, "type": kind, "version": _VERSION}}


def _export(said: Mapping[str, Any]) -> dict[str, Any]:
    kind, subject = _kind(said), said[_kind(said)]
    found = {"name": subject, "subject": subject, "type": kind, "token_req": True}
    if kind == "service":
        found["response_threshold"] = nats_accounts.THRESHOLD_S * 1_000_000_000
    return found


def _import(said: Mapping[str, Any], importer: str, brains: Nkey, at: int) -> dict[str, Any]:
    kind = _kind(said)
    subject = said[kind]["subject"]
    activation = encode(_claims("activation", importer, subject, at, subject=subject, kind=kind), brains)
    found = {"name": subject, "subject": subject, "account": brains.public, "token": activation, "type": kind}
    return found | ({"local_subject": said["to"]} if "to" in said else {})


def _kind(said: Mapping[str, Any]) -> str:
    return "service" if "service" in said else "stream"


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
