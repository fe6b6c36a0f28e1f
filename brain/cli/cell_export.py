"""What `gpuward cell export --jwt` writes: a cell's accounts for NATS servers in operator mode."""

import time
from pathlib import Path

import orjson

from agent.shared import files
from brain.adapters import nats_jwt, nkey, operator_mode
from brain.adapters.nats_accounts import BRAINS, SYSTEM, account_name
from brain.adapters.nkey import Nkey, NkeyKind
from brain.cell import by_hand
from brain.cell.registry import CellNode, CellRegistry
from brain.config import BrainConfig

_README = """\
Accounts of the gpuward cell {cell} for NATS servers in operator mode. Keep brain.creds secret.

{first}

accounts/{brains}.jwt is the brains' account, accounts/N_NODE.jwt that of each node; one that was revoked is there too, closed.
The brain gives them to the servers by itself, while they run, when brain.toml has

    [nats.operator]
    seed_file = "{seed}"
    system_creds_file = "{creds}"

Without these two lines (but with `[nats.operator]`) do it by hand for each account that is new or has changed:

    nats --creds {creds} request '$SYS.REQ.CLAIMS.UPDATE' "$(cat accounts/N_NODE.jwt)"

users/NODE.jwt is for a node that was let in by `gpuward cell add-node`: nats_jwt_file in its agent.toml. `gpuward-agent join`
fetches its own. A node's seed is not here: it never leaves the node.
"""
_OWN = """\
The operator is a new one, of this cell's own: include resolver.conf in the configuration of each server, and start them. Each
keeps accounts in a folder `jwt` where it was started. They need `jetstream { strict: true }`."""
_GIVEN = """\
The operator is yours. The servers need `resolver { type: full }`, `jetstream { strict: true }` and, so that no node holds
up the brain, `no_fast_producer_stall: true`. SYSTEM.creds below are the credentials of a user of your system account."""


def export(config: BrainConfig, registry: CellRegistry, folder: Path, operator_seed: Path | None) -> int:
    """Writes the files, and returns of how many accounts. `operator_seed`: of the site's operator or one of its signing keys;
    None: the configured one, or else an operator of the cell's own. ConfigError: a key cannot be read.
    """
    now = time.time()
    jwts = operator_mode.load_or_make(config)
    configured = config.nats.operator.seed_file if config.nats.operator else None
    own_file = config.cell_dir / "operator.nk"
    seed_file = operator_seed or configured or own_file
    own = seed_file == own_file
    operator = (nkey.load_or_make if own else nkey.load)(seed_file, NkeyKind.OPERATOR)
    accounts = {BRAINS: jwts.brains_account(operator, now)}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for inner in ("accounts", "users"):
        (folder / inner).mkdir(exist_ok=True)
    for name, of in sorted(by_hand.states(registry).items()):
        accounts[account_name(name)] = jwts.node_account(name, of, operator)
        if isinstance(of, CellNode):
            _write(folder / "users" / f"{name}.jwt", jwts.node_jwt(name, of))
    for name, jwt in accounts.items():
        _write(folder / "accounts" / f"{name}.jwt", jwt)
    _write(folder / "brain.creds", nats_jwt.credentials(jwts.brain_jwt(now), jwts.user.seed))
    creds = config.cell_dir / "system.creds"
    if own:
        _write_operator(config, folder, operator, [*accounts.values()], now)
        files.write(creds, _system_creds(operator, now).encode(), sync=True, mode=0o600, like=config.cell_dir)
    readme = _README.format(
        cell=config.cell,
        brains=BRAINS,
        first=_OWN if own else _GIVEN,
        seed=seed_file,
        creds=creds if own else "SYSTEM.creds",
    )
    _write(folder / "README.txt", readme)
    return len(accounts)


def _write_operator(
    config: BrainConfig, folder: Path, operator: Nkey, accounts: list[str], now: float
) -> None:
    """The operator's JWT, and the lines of a server's configuration."""
    system = operator.derived(NkeyKind.ACCOUNT, SYSTEM)
    jwt = nats_jwt.operator(operator, f"gpuward_{config.cell}", system.public, int(now))
    _write(folder / "operator.jwt", jwt)
    lines = {
        "operator": jwt,
        "system_account": system.public,
        "resolver": {"type": "full", "dir": "jwt"},
        "resolver_preload": {
            nats_jwt.subject(one): one for one in (nats_jwt.system(system, operator, int(now)), *accounts)
        },
        "no_fast_producer_stall": True,
    }
    _write(folder / "resolver.conf", orjson.dumps(lines, option=orjson.OPT_INDENT_2).decode())


def _system_creds(operator: Nkey, now: float) -> str:
    user = operator.derived(NkeyKind.USER, SYSTEM)
    jwt = nats_jwt.user(user.public, "gpuward", operator.derived(NkeyKind.ACCOUNT, SYSTEM), int(now))
    return nats_jwt.credentials(jwt, user.seed)


def _write(path: Path, text: str) -> None:
    files.write(path, f"{text.rstrip()}\n".encode(), sync=True, mode=0o600)
