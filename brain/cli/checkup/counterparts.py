"""Whom the brain talks to: channels, switches outside, BMCs, schedulers, UFM. Nobody is told or asked to do anything."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

from agent.contract.errors import ActionError, BugError, ConfigError, Refused, Unreachable
from agent.contract.messages import Scalar
from agent.shared.words import later, many, t
from brain import actions, reach
from brain.actions import bmc_tables, scheduler
from brain.actions.base import Order
from brain.actions.bmc_tables import Bmcs
from brain.adapters import archive_store
from brain.cli.checkup import reached
from brain.cli.checkup.installation import Installation
from brain.cli.checkup.lines import HealthLine, fail, ok, some, unchecked, warn
from brain.config import located
from brain.core.inputs import StepResult
from brain.leader import trace_outputs
from brain.leader.report_mail import scheduled_reports
from brain.notify import dead_mans_switch, notifier
from brain.outgoing import outgoing, to_environment
from brain.ufm import client as ufm_client

MOST_AT_ONCE = 50
MOST_NAMES = 50  # of a scheduler's nodes by whose names it is asked: a wrong node_name is wrong for all
FEW_AT_ONCE = 8  # each may be a program of Slurm
PROXY_WITHIN_S = 10.0
_CORRECT = later("correct it in brain.toml")


async def way_out(found: Installation) -> AsyncIterator[HealthLine]:
    """The proxy of [outgoing] takes connections from here. It is asked nothing."""
    if not found.config.outgoing.proxy:
        return
    try:
        way = outgoing(found.config.outgoing)
        await reach.connects(*way.address(), within_s=PROXY_WITHIN_S)
    except ConfigError as error:
        yield _wrong(found, "proxy", error)
    except ActionError as error:
        yield fail(
            "proxy",
            t("the proxy {proxy}: {error}; nobody outside is paged without it", proxy=way.proxy, error=error),
            _todo(error, t("look at outgoing.proxy, and at the proxy"), "outgoing.proxy"),
        )
    else:
        yield ok("proxy", t("the proxy {proxy} can be reached", proxy=way.proxy))


async def channels(found: Installation) -> AsyncIterator[HealthLine]:
    """Each channel's receiver can be reached from here."""
    config = found.config
    try:
        way = outgoing(config.outgoing)
        built = notifier.build(config.channels, config.groups, config.data_dir, way=way)
        outside = dead_mans_switch.dead_mans_switches(
            config.dead_mans_switches, cell=config.cell, works=bool, note=lambda _kind, _text: None, way=way
        )
    except ConfigError as error:
        yield _wrong(found, "channels", error)
        return
    try:
        for name, channel in built.channels.items() if config.channels else ():
            yield await _reached(found, t("channel {name}", name=name), channel)
        for switch in outside:
            yield await _reached(found, t("dead man's switch {name}", name=switch.name), switch)
    finally:
        await built.close()
        for switch in outside:
            await switch.close()


def _wrong(found: Installation, check: str, error: ConfigError) -> HealthLine:
    """The configuration is wrong there, in this line."""
    return fail(check, located(str(error), found.config), t(_CORRECT))


def _todo(error: ActionError, otherwise: str, key: str = "") -> str:
    """Who must do what; `otherwise` where the error does not say why. `key`: of brain.toml; empty: its table."""
    return reached.todo(
        error,
        key=key or t("its table of brain.toml"),
        ca_key=t("ca_file of its table"),
        credential=t("correct the user, password or token of its table"),
        otherwise=otherwise,
    )


async def _reached(found: Installation, name: str, other: Any) -> HealthLine:
    """`other` has `reach`."""
    key = t("its table of brain.toml, or in outgoing.proxy") if found.config.outgoing.proxy else ""
    try:
        where = await other.reach()
    except ActionError as error:
        return fail(
            name,
            str(error),
            _todo(error, t("look at name, port, firewall and certificate from this machine"), key),
        )
    if not where:
        return unchecked(
            name,
            t("it cannot be known without sending a page"),
            t("send one: `gpuward drill`, on simulated nodes"),
        )
    return ok(name, t("{where} can be reached; no page was sent", where=where))


async def reports(found: Installation) -> AsyncIterator[HealthLine]:
    """The mail server of each report by schedule lets us in. Nothing is mailed."""
    try:
        built = scheduled_reports(found.config)
    except ConfigError as error:
        yield _wrong(found, "reports", error)
        return
    for one in built:
        check = t("report {name}", name=one.want.name)
        try:
            yield ok(check, t("{what} lets us in; nothing was mailed", what=await one.mailer.reach()))
        except ActionError as error:
            otherwise = t("look at the mail server, and at the URL in the file of its table")
            yield fail(check, str(error), _todo(error, otherwise, t("the URL in the file of its table")))


async def archive(found: Installation) -> AsyncIterator[HealthLine]:
    """The log's archive can be reached and read. Nothing is written."""
    config = found.config.archive
    if not config.on:
        return
    if found.brain is not None and (why := found.brain.status.get("archive_failing")):
        yield fail(
            "archive",
            t("{brain} cannot write it: {why}", brain=found.brain.status["brain"], why=why),
            t("look at its rights there, and at the room; of a folder also at ReadWritePaths of the unit"),
        )
        return
    try:
        to_environment(outgoing(found.config.outgoing))
        logs = await asyncio.to_thread(lambda: archive_store.opened(config).logs(found.config.cell))
    except ConfigError as error:
        yield _wrong(found, "archive", error)
    except ActionError as error:
        yield fail(
            "archive", str(error), t("look at the folder or the S3 server; faults are healed all the same")
        )
    else:
        yield ok(
            "archive",
            t(
                "{url} can be read: {logs} of this cell; no file was written to try it",
                url=config.url,
                logs=many(len(logs), "log"),
            ),
        )


async def traces(found: Installation) -> AsyncIterator[HealthLine]:
    """The collector can be reached, and the file of traces can be written. Nothing is sent or written."""
    try:
        built = trace_outputs.outputs(found.config.traces, outgoing(found.config.outgoing))
    except ConfigError as error:
        yield _wrong(found, "traces", error)
        return
    for output in built:
        check = t("traces {name}", name=output.name)
        try:
            yield ok(check, t("{what} is there; no trace was sent to try it", what=await output.reach()))
        except ActionError as error:
            otherwise = t("look at the collector, or at who may write there; faults are healed all the same")
            yield fail(check, str(error), _todo(error, otherwise))
        finally:
            await output.close()


async def logins(found: Installation) -> AsyncIterator[HealthLine]:
    """The identity provider answers as a login needs it, and the way back leads to a name of the console. Nobody is logged in."""
    name, console = "identity provider", found.config.console
    if console.oidc is None:
        return
    from brain.console.access import oidc  # joserfc is loaded only where people log in with it

    try:
        provider = oidc.provider(console.oidc, dict, outgoing(found.config.outgoing))
        yield ok(name, t("{what} answers; nobody was logged in", what=await provider.reach()))
    except ConfigError as error:
        yield _wrong(found, name, error)
    except Refused as error:
        yield fail(name, str(error), t("correct [console.oidc] of brain.toml, or the client at the provider"))
    except Unreachable as error:
        otherwise = t("look at console.oidc.issuer, ca_file and the firewall from this machine")
        yield fail(name, str(error), _todo(error, otherwise, "console.oidc.issuer"))
    back = urlsplit(console.oidc.redirect_url).hostname or ""
    if not console.answers_to(back):
        text = t("redirect_url leads people back to {back}, which is not a name of this console", back=back)
        yield fail(name, text, t("list it in console.hosts, unless a proxy before it changes Host"))


async def fabric_managers(found: Installation) -> AsyncIterator[HealthLine]:
    """Each UFM can be reached."""
    config = found.config
    try:
        for name, ufm in ufm_client.ufms(config.ufm).items():
            yield await _reached(found, f"ufm {name}", ufm)
            await ufm.close()
    except ConfigError as error:
        yield _wrong(found, "ufm", error)


async def schedulers(found: Installation) -> AsyncIterator[HealthLine]:
    """Each scheduler answers, knows the nodes that are its own, and our account may do there what runbooks do."""
    for name, table in found.config.schedulers.items():
        yield await _scheduler(found, name, table)
    if not found.config.schedulers:
        yield ok("schedulers", t("none is configured: jobs are not asked about, and nothing is drained"))


async def _scheduler(found: Installation, name: str, table: Mapping[str, Any]) -> HealthLine:
    check = t("scheduler {name}", name=name)
    try:
        built = scheduler.built(name, table)
    except ConfigError as error:
        return _wrong(found, check, error)
    try:
        lacking = await built.lacking()
        tables = found.config.schedulers
        its = [node for node in found.node_names() if scheduler.table_of(tables, node) == name]
        asked = [] if lacking else its[:: 1 + len(its) // MOST_NAMES]
        unknown = await _unknown(built, asked)
    except Refused as error:
        return fail(
            check,
            str(error),
            t(
                "correct its table in brain.toml, or what it names (a file, a command); what it denies give gpuward's account: "
                "docs/kubernetes.md, docs/slurm.md"
            ),
        )
    except ActionError as error:
        otherwise = t("look at its server, and at the table of brain.toml")
        return fail(check, t("it does not answer: {error}", error=error), _todo(error, otherwise))
    finally:
        await built.close()
    if lacking:
        return fail(
            check, t("our account may not {lacking}", lacking=some(lacking)), t("give it these rights there")
        )
    if unknown:
        text = t(
            "{unknown} of {asked} nodes are not known there: {names} ({why})",
            unknown=len(unknown),
            asked=len(asked),
            names=some(unknown),
            why=next(iter(unknown.values())),
        )
        action = t("correct node_name or nodes of its table: such a node is neither drained nor given back")
        return (fail if len(unknown) == len(asked) else warn)(check, text, action)
    return ok(check, t("{type} answers, and our account may do what is needed", type=table["type"]))


async def _unknown(built: scheduler.Closing, nodes: Sequence[str]) -> dict[str, str]:
    """Those of which it does not say how they are, and why. Other errors as in `Action`."""
    few_at_once = asyncio.Semaphore(FEW_AT_ONCE)

    async def trouble(node: str) -> str:
        async with few_at_once:
            try:
                await built.drained(node)
            except Refused as error:
                return str(error)
            return ""

    said = await asyncio.gather(*map(trouble, nodes))
    return {node: why for node, why in zip(nodes, said, strict=True) if why}


async def bmcs(found: Installation) -> AsyncIterator[HealthLine]:
    """Each node's BMC answers from here. With `--login` one of each table is logged in to, and its power state is read."""
    if not found.config.bmc:
        yield ok("bmc", t("none is configured: no node is power cycled"))
        return
    try:
        tables = bmc_tables.build(found.config.bmc)
    except ConfigError as error:
        yield _wrong(found, "bmc", error)
        return
    nodes: dict[str, list[str]] = {name: [] for name in found.config.bmc}
    for node in found.node_names():
        try:
            nodes[tables.tables_of(node)[0].name].append(node)
        except Refused:
            continue  # a node without a BMC
    for name, of_table in nodes.items():
        if of_table:
            async for line in _bmcs_of(f"bmc {name}", tables, of_table, login=found.login):
                yield line
        else:
            yield unchecked(
                f"bmc {name}",
                t("no known node is one of its first choice"),
                t("say it again when nodes are heard"),
            )


async def _bmcs_of(check: str, tables: Bmcs, nodes: list[str], *, login: bool) -> AsyncIterator[HealthLine]:
    some_at_once = asyncio.Semaphore(MOST_AT_ONCE)

    async def trouble(node: str) -> str:
        async with some_at_once:
            try:
                await tables.tables_of(node)[0].backend.reach(node)
            except ActionError as error:
                return str(error)
            return ""

    why = dict(zip(nodes, await asyncio.gather(*map(trouble, nodes)), strict=True))
    dead = [node for node in nodes if why[node]]
    if dead:
        text = t(
            "{dead} of {nodes} do not answer: {dead2} ({why})",
            dead=len(dead),
            nodes=len(nodes),
            dead2=some(dead),
            why=why[dead[0]],
        )
        action = t("look at the BMCs, the management network, and the addresses in brain.toml")
        yield fail(check, text, action) if len(dead) == len(nodes) else warn(check, text, action)
    else:
        yield ok(check, t("{bmcs} answer", bmcs=many(len(nodes), "BMC")))
    well = next((node for node in nodes if not why[node]), "")
    if login and well:
        try:
            async with tables.open(well) as bmc:
                yield ok(
                    check,
                    t(
                        "{where}: logged in; {well} is {what}",
                        where=bmc.where,
                        well=well,
                        what=await bmc.power(),
                    ),
                )
        except ActionError as error:
            yield fail(
                check,
                t("login for {well}: {error}", well=well, error=error),
                t("correct user, password_file, or the BMC's account"),
            )


class _Nobody:
    """In place of the nodes: actions are built here, and none is performed."""

    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """BugError: nothing may come here."""
        raise BugError(f"the doctor performs nothing: {action} on {node}, {params}, {of}, {part}")


async def own_actions(found: Installation) -> AsyncIterator[HealthLine]:
    """What the brain does by itself can be built from the configuration, as at its start."""
    name = "actions of the brain"
    async with AsyncExitStack() as stack:
        try:
            built = actions.build(found.config, _Nobody(), stack)
        except ConfigError as error:
            yield _wrong(found, name, error)
        else:
            yield ok(
                name, t("{actions} can be performed with this configuration", actions=len(built.actions))
            )
