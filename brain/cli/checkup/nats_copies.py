"""On how many servers lies what the brain keeps on NATS: on as many as are wanted, and are enough are wanted at all?"""

from collections.abc import AsyncIterator

from nats.aio.client import Client
from nats.js.api import StreamInfo

from agent.contract import subjects
from agent.shared.words import later, many, t
from brain.adapters import copies, kept_streams
from brain.adapters.kept_streams import StreamUse
from brain.cli.checkup.lines import HealthLine, fail, ok, some, warn
from brain.config import BrainConfig

IN_A_CLUSTER = 3  # copies of which one may be lost, and the rest is still more than half
_CALLED = {
    StreamUse.LOG: later("the log"),
    StreamUse.LEASE: later("the lease"),
    StreamUse.STATE: later("the state"),
    StreamUse.EVIDENCE: later("the evidence"),
    StreamUse.LANES: later("the lanes"),
}


async def copies_of_all(client: Client, config: BrainConfig) -> AsyncIterator[HealthLine]:
    """Each stream has as many copies as are wanted, all of them there: else the next server that dies is one too many."""
    name, wanted, streams = "copies on NATS", config.nats.replicas, await _streams(client, config.cell)
    few, away, leads = dict[str, int](), dict[str, str](), ""
    for what, found in streams:
        if found.config.name == subjects.stream(config.cell):
            leads = str((found.cluster and found.cluster.leader) or "")
        if (there := copies.of(found.config)) < wanted:
            few[what] = min(there, few.get(what, wanted))
        for peer in (found.cluster and found.cluster.replicas) or ():
            gone = t("{server} is away", server=peer.name)
            if peer.offline or not peer.current:
                away[str(peer.name)] = gone if peer.offline else t("{server} is behind", server=peer.name)
    if away:
        yield warn(
            name,
            t("not on all servers: {away}", away=some(away.values())),
            t("start that server, or see its log and its disk: when another one dies, the cell stands"),
        )
    unfit = _unfit(config, _servers(client), min((copies.of(one.config) for _, one in streams), default=0))
    if unfit:
        yield unfit
    elif few:
        yield warn(
            name,
            some(
                t("{what}: {copies} of {wanted}", what=t(what), copies=there, wanted=wanted)
                for what, there in few.items()
            ),
            t(
                "nats.replicas servers must be there: start them, then restart the brain, which makes the copies"
            ),
        )
    elif wanted > 1 and streams and not away:
        log_leader = t("; {server} leads the log", server=leads) if leads else ""
        yield ok(
            name,
            t("{wanted} of everything, and all are there{log_leader}", wanted=wanted, log_leader=log_leader),
        )


def _unfit(config: BrainConfig, servers: int | None, fewest: int) -> HealthLine | None:
    """What is wrong with `nats.replicas`, whatever the streams have by now. `servers`: how many of them the one that we are
    connected to tells of, None: it does not say; `fewest`: copies that a stream has, 0 while there is none.
    """
    name, wanted = "copies on NATS", config.nats.replicas
    named = len(set(config.nats.url.split(","))) if config.nats.url else 1
    there = max(named, (servers or 1) if config.nats.url else 1, fewest)
    if wanted > there and servers is not None:
        text = t("nats.replicas is {wanted}, of {servers}", wanted=wanted, servers=many(there, "NATS server"))
        action = t(
            "write `replicas = {fit}` under [nats] of brain.toml, or add servers and name them in nats.url; then `systemctl "
            "restart gpuward`",
            fit=IN_A_CLUSTER if there >= IN_A_CLUSTER else 1,
        )
        if fewest:
            return warn(name, text, action)
        return fail(name, t("{text}: the brain cannot make its log", text=text), action)
    if not wanted < IN_A_CLUSTER <= named:
        return None
    action = t(
        "write `replicas = {fit}` under [nats] of each brain's brain.toml, then `systemctl restart gpuward`: the brain makes the "
        "copies",
        fit=IN_A_CLUSTER,
    )
    if fewest >= IN_A_CLUSTER:
        text = t(
            "nats.url names {named} servers, which keep {fewest} copies, and nats.replicas is {wanted} here: what this brain "
            "is the first to make has no more",
            named=named,
            fewest=fewest,
            wanted=wanted,
        )
    else:
        text = t(
            "nats.url names {named} servers, and nats.replicas is {wanted}: when a server dies that has the log, the cell "
            "stands, and with its disk all is lost that only it had",
            named=named,
            wanted=wanted,
        )
    return warn(name, text, action)


def _servers(client: Client) -> int | None:
    """How many servers of its cluster the server tells its clients of, or more, as it names each of its addresses; None: it has
    others, and does not tell of them (`no_advertise`).
    """
    info = getattr(client, "_server_info", {})
    told = info.get("connect_urls")
    return None if info.get("cluster") and not told else len(told or ("alone",))


async def _streams(client: Client, cell: str) -> list[tuple[str, StreamInfo]]:
    """What the brain keeps on NATS, and each stream that has it. `LOST`: the servers say nothing of one of them."""
    found: list[tuple[str, StreamInfo]] = []
    for what, info in await kept_streams.told(client, cell):
        if isinstance(info, Exception):
            raise info
        found.append((_CALLED[what], info))
    return found
