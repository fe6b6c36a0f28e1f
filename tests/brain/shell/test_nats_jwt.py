"""The JWTs of accounts say what the configuration file says, and are signed by whom they should be."""

import base64
from pathlib import Path
from typing import Any

import nkeys
import orjson
import pytest
from nacl.signing import VerifyKey

from agent.contract import subjects
from agent.contract.errors import ConfigError
from brain.adapters import nats_accounts, nats_jwt, nkey, operator_mode
from brain.adapters.nats_accounts import Member
from brain.adapters.nkey import Nkey, NkeyKind
from brain.cell import by_hand
from brain.cell.registry import CellRegistry

SEED = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_OPERATOR).decode()
OPERATOR = Nkey(public="", seed=SEED).derived(NkeyKind.OPERATOR, "o")
BRAINS = OPERATOR.derived(NkeyKind.ACCOUNT, "brains")
NODE = OPERATOR.derived(NkeyKind.ACCOUNT, "n1")
USER = OPERATOR.derived(NkeyKind.USER, "n1")
MEMBER = Member(name="n1", public=USER.public, nodes=("n1",))
AT = 1_800_000_000


def claims(jwt: str) -> Any:
    """What a JWT says; its signature is that of who it says has issued it."""
    head, body, signature = jwt.strip().split(".")
    assert orjson.loads(raw(head)) == {"typ": "JWT", "alg": "ed25519-nkey"}
    found = orjson.loads(raw(body))
    public = base64.b32decode(found["iss"] + "=" * (-len(found["iss"]) % 8))[1:33]
    VerifyKey(public).verify(f"{head}.{body}".encode(), raw(signature))
    return found


def raw(part: str) -> bytes:
    """Unpadded base64url."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_a_node_s_account_is_that_of_the_configuration_file() -> None:
    """Imports, limits and permissions, each of them; nothing beside."""
    written = nats_accounts.accounts("c", "brain", [MEMBER])["N_n1"]
    found = claims(nats_jwt.node("c", MEMBER, account=NODE, brains=BRAINS, operator=OPERATOR, at=AT))
    assert (found["iss"], found["sub"], found["name"]) == (OPERATOR.public, NODE.public, "N_n1")
    said = found["nats"]
    assert (said["type"], said["version"]) == ("account", 2)
    imports = [
        ({one["type"]: {"account": "WARD", "subject": one["subject"]}})
        | ({"to": one["local_subject"]} if "local_subject" in one else {})
        for one in said["imports"]
    ]
    assert imports == written["imports"]
    allowed = said["default_permissions"]
    (user,) = written["users"]
    assert {"publish": allowed["pub"], "subscribe": allowed["sub"]} == user["permissions"]
    limits = said["limits"]
    assert (limits["conn"], limits["subs"], limits["payload"]) == tuple(written["limits"].values())
    assert not any("stor" in key for key in limits), "no JetStream"
    assert said["revocations"] == {"*": AT - 1}


def test_each_activation_is_for_one_account_and_one_subject() -> None:
    """Signed by the brains' account."""
    found = claims(nats_jwt.node("c", MEMBER, account=NODE, brains=BRAINS, operator=OPERATOR, at=AT))
    for one in found["nats"]["imports"]:
        activation = claims(one["token"])
        assert (activation["iss"], activation["sub"]) == (BRAINS.public, NODE.public)
        assert (activation["nats"]["subject"], activation["nats"]["kind"]) == (one["subject"], one["type"])
        assert (one["account"], ".n1" in one["subject"]) == (BRAINS.public, True)


def test_the_brains_account_exports_only_to_who_was_let_in() -> None:
    """All lanes, so that it does not change when a node comes; JetStream."""
    said = claims(nats_jwt.brains("c", BRAINS, OPERATOR, AT))["nats"]
    assert all(one["token_req"] for one in said["exports"])
    written = nats_accounts.accounts("c", "brain", [MEMBER])["WARD"]["exports"]
    subjects_of = {(one["type"], one["subject"]) for one in said["exports"]}
    assert {
        (kind, one[kind]) for one in written for kind in ("service", "stream") if kind in one
    } <= subjects_of
    assert len(said["exports"]) == subjects.LANES + subjects.PARTS_LANES + 2
    services = [one for one in said["exports"] if one["type"] == "service"]
    assert {one["response_threshold"] for one in services} == {1_000_000_000}
    assert said["limits"]["mem_storage"] == said["limits"]["disk_storage"] == -1


def test_a_closed_account_lets_nobody_in() -> None:
    """No connection, no import, and no user from before."""
    said = claims(nats_jwt.closed("N_n1", NODE, OPERATOR, AT))["nats"]
    assert (said["limits"]["conn"], said["limits"]["leaf"], said["revocations"]) == (0, 0, {"*": AT})
    assert "imports" not in said


def test_whatever_differs_has_another_id() -> None:
    """Servers keep the first of two JWTs with one id."""
    made = [
        nats_jwt.closed("N_n1", NODE, OPERATOR, AT),
        nats_jwt.closed("N_n1", NODE, OPERATOR, AT + 1),
        nats_jwt.node("c", MEMBER, account=NODE, brains=BRAINS, operator=OPERATOR, at=AT),
        nats_jwt.node("d", MEMBER, account=NODE, brains=BRAINS, operator=OPERATOR, at=AT),
    ]
    assert len({claims(one)["jti"] for one in made}) == len(made)
    assert nats_jwt.closed("N_n1", NODE, OPERATOR, AT) == made[0]


def test_time_never_runs_backwards_for_a_node(tmp_path: Path) -> None:
    """Whatever the clock says: what a node had before it was revoked or got another key is older by a second at least."""
    registry = CellRegistry(tmp_path / "registry.json")
    others = [OPERATOR.derived(NkeyKind.USER, str(number)).public for number in range(3)]
    registry.add("n1", others[0], now=AT)
    registry.add("n1", others[0], now=AT + 9)
    assert registry.nodes()["n1"].since == AT, "the same key again changes nothing"
    registry.add("n1", others[1], now=AT, replace=True)
    registry.revoke("n1", now=AT - 100)
    assert by_hand.states(registry) == {"n1": AT + 2}
    registry.add("n1", others[2], now=AT - 50)
    assert (registry.nodes()["n1"].since, registry.revoked()) == (AT + 3, {})


def test_files_that_are_no_keys(tmp_path: Path) -> None:
    """The error says which file, and what it should be."""
    file = tmp_path / "key.nk"
    made = nkey.load_or_make(file, NkeyKind.ACCOUNT)
    assert nkey.load_or_make(file, NkeyKind.ACCOUNT) == made
    assert made.seed not in repr(made)
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match=r"key.nk: this is not the seed of the NATS operator"):
        nkey.load(file, NkeyKind.OPERATOR)
    for text in ("", "nonsense", "SUAB", "é"):
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"key.nk: not an NKEY seed"):
            nkey.load(file, NkeyKind.ACCOUNT)
    creds = tmp_path / "x.creds"
    creds.write_text(nats_jwt.credentials("a.b.c", "SUABC"))
    assert operator_mode.credentials(creds) == ("a.b.c", "SUABC")
    creds.write_text("SUABC")
    with pytest.raises(ConfigError, match=r"x.creds: not a .creds file"):
        operator_mode.credentials(creds)
