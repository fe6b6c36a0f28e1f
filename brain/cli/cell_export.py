"""What `gpuward cell export --jwt` writes: a cell's accounts for NATS servers in operator mode."""

import time
from pathlib import Path

import orjson

from agent.contract.errors import ConfigError
from agent.shared import files
from agent.shared.words import t
from brain.adapters import nats_jwt, nkey, operator_mode
from brain.adapters.nats_accounts import BRAINS, SYSTEM, account_name
from brain.adapters.nkey import Nkey, NkeyKind
from brain.cell import by_hand
from brain.cell.registry import CellNode, CellRegistry
from brain.cli.as_owner import as_owner
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


def registry_of(config: BrainConfig) -> CellRegistry:
    """The nodes of this cell. ConfigError: there is no cell yet."""
    if not config.cell_dir.is_dir():
        raise ConfigError(
            t("{cell_dir}: there is no cell yet: `gpuward cell init --name NAME`", cell_dir=config.cell_dir)
        )
    return CellRegistry(config.registry_file, config.nats.embedded.nodes)


def make_brain_seed(config: BrainConfig, file: Path) -> None:
    """The seed of the brain's NKEY, when there is none, where brain.toml says: beside brain.toml root makes it, for the brain's
    user.
    """
    with as_owner(file.parent):
        nkey.load_or_make(file, NkeyKind.USER, like=config.data_dir)


def export(config: BrainConfig, folder: Path, operator_seed: Path | None) -> int:
    """Writes the files, and returns of how many accounts. `operator_seed`: of the site's operator or one of its signing keys;
    None: the configured one, or else an operator of the cell's own. ConfigError: a key cannot be read.

    Keys are made with the rights of the cell's owner, the site's own seed is read and the files are written with those of
    whoever has typed the command.
    """
    now = time.time()
    configured = config.nats.operator.seed_file if config.nats.operator else None
    own_file = config.cell_dir / "operator.nk"
    seed_file = operator_seed or configured or own_file
    own = seed_file == own_file
    given = None if own else nkey.load(seed_file, NkeyKind.OPERATOR)
    make_brain_seed(config, operator_mode.brain_seed_file(config))
    creds = config.cell_dir / "system.creds"
    with as_owner(config.cell_dir):
        states = by_hand.states(registry_of(config))
        jwts = operator_mode.load_or_make(config)
        operator = given or nkey.load_or_make(own_file, NkeyKind.OPERATOR)
        if own:
            body = _system_creds(operator, now).encode()
            files.write(creds, body, sync=True, mode=0o600, like=config.cell_dir)
    accounts = {BRAINS: jwts.brains_account(operator, now)}
    texts: dict[str, str] = {}
    for name, of in sorted(states.items()):
        accounts[account_name(name)] = jwts.node_account(name, of, operator)
        if isinstance(of, CellNode):
            texts[f"users/{name}.jwt"] = jwts.node_jwt(name, of)
    texts |= {f"accounts/{name}.jwt": jwt for name, jwt in accounts.items()}
    texts["brain.creds"] = nats_jwt.credentials(jwts.brain_jwt(now), jwts.user.seed)
    if own:
        texts |= _operator_files(config, operator, [*accounts.values()], now)
    texts["README.txt"] = _README.format(
        cell=config.cell,
        brains=BRAINS,
        first=_OWN if own else _GIVEN,
        seed=seed_file,
        creds=creds if own else "SYSTEM.creds",
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for inner in ("accounts", "users"):
        (folder / inner).mkdir(exist_ok=True)
    for at, text in texts.items():
        files.write(folder / at, f"{text.rstrip()}\n".encode(), sync=True, mode=0o600)
    return len(accounts)


def _operator_files(config: BrainConfig, operator: Nkey, accounts: list[str], now: float) -> dict[str, str]:
    """The operator's JWT, and the lines of a server's configuration."""
    system = operator.derived(NkeyKind.ACCOUNT, SYSTEM)
    jwt = nats_jwt.operator(operator, f"gpuward_{config.cell}", system.public, int(now))
    lines = {
        "operator": jwt,
        "system_account": system.public,
        "resolver": {"type": "full", "dir": "jwt"},
        "resolver_preload": {
            nats_jwt.subject(one): one for one in (nats_jwt.system(system, operator, int(now)), *accounts)
        },
        "no_fast_producer_stall": True,
    }
    return {
        "operator.jwt": jwt,
        "resolver.conf": orjson.dumps(lines, option=orjson.OPT_INDENT_2).decode(),
    }


def _system_creds(operator: Nkey, now: float) -> str:
    user = operator.derived(NkeyKind.USER, SYSTEM)
    jwt = nats_jwt.user(user.public, "gpuward", operator.derived(NkeyKind.ACCOUNT, SYSTEM), int(now))
    return nats_jwt.credentials(jwt, user.seed)
