"""What the brain says: does it lead, does it hear its nodes, do the versions fit, and how far may runbooks go?"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent import __version__
from agent.contract.errors import ConfigError
from agent.shared.words import many, t
from brain.cli.checkup import unit_now
from brain.cli.checkup.installation import NO_BRAIN, BrainAnswers, Installation
from brain.cli.checkup.lines import HealthLine, fail, ok, some, unchecked, warn
from brain.cli.deaf import deaf, nobody_leads
from brain.core.pack.spec import Mode

APART = 2  # minor versions between brain and agents that work together
AHEAD_S = 2.0  # a beat may have waited on its way
_VERSION = re.compile(
    r"\d{1,6}\.\d{1,6}[0-9A-Za-z.+]{0,30}"
)  # as agents of any version say it, also between releases
_OF_NODES = ("agents", "nodes", "clocks of nodes")  # what only a brain that hears them can say


def brain(found: Installation) -> Iterator[HealthLine]:
    """A brain answers, leads or follows, and has no trouble; nothing else can be known without it."""
    name = "brain"
    if found.brain is None:
        why, action = unit_now.why_silent(found.file) or (
            found.silent_why,
            t(
                "where none runs, start it: `systemctl start gpuward`; why one does not stay up: `journalctl -u gpuward`; one "
                "that asks for a token: --token-file"
            ),
        )
        yield fail(name, f"{t(NO_BRAIN)}: {why}", action)
        for other in (*_OF_NODES, "modes"):
            yield unchecked(other, t(NO_BRAIN))
        return
    status = found.brain.status
    theirs = found.brain.data_dir
    if theirs is not None and theirs.resolve() != found.config.data_dir.resolve():
        file = found.brain.config_file
        which = f"--config {file}" if file else f"--data {theirs}"
        yield fail(
            name,
            t(
                "the one that answers keeps its data in {theirs}, and this looks at {data_dir}",
                theirs=theirs,
                data_dir=found.config.data_dir,
            ),
            t("`gpuward doctor {which}`, or --url of the brain that is meant", which=which),
        )
    if status["stopped"]:
        yield fail(
            name,
            t("it has stopped acting: {stopped}", stopped=status["stopped"]),
            t("see its log, then restart it"),
        )
    if since := status.get("breaker_since"):  # 0.2.0 does not say it
        yield fail(
            name,
            t("the breaker has tripped at {since}: nothing disruptive begins, on any node", since=since),
            t("look why the remedies have failed (`gpuward runs`), then `gpuward reset`"),
        )
    if pages := status.get("pages_failing"):
        yield fail(
            name,
            t("{pages} that no channel takes: people are told nothing", pages=many(pages, "page")),
            t(
                "`gpuward incidents` names them, and `gpuward explain` says what the channels answer: correct them"
            ),
        )
    for trouble in status["troubles"]:
        yield fail(name, f"{trouble['cause']}: {trouble['text']}", t("as the page says"))
    if status["version"] != __version__:
        yield warn(
            name,
            t(
                "it is of version {version}, and this is {version2}",
                version=status["version"],
                version2=__version__,
            ),
            t("restart the brain"),
        )
    why = deaf(status)
    if not status.get("connected", True):
        if not status["troubles"]:  # it pages only after some seconds
            yield fail(name, f"{status['brain']}: {why}", t("see `broker` below, and its log"))
    elif nobody_leads(status):
        pass  # as its trouble says
    elif status["leads"]:
        yield ok(
            name,
            t(
                "{brain} leads cell {cell}, version {version}",
                brain=status["brain"],
                cell=status["cell"],
                version=status["version"],
            ),
        )
    elif status["leader"]:
        yield ok(
            name,
            t(
                "{brain} follows; {leader} leads cell {cell}",
                brain=status["brain"],
                leader=status["leader"],
                cell=status["cell"],
            ),
        )
    else:
        yield fail(
            name,
            t("{brain}: nobody leads cell {cell}", brain=status["brain"], cell=status["cell"]),
            t("see its log"),
        )
    if why:
        for other in _OF_NODES:
            yield unchecked(other, t("this brain cannot say: {why}", why=why))
    else:
        yield from _nodes(found, found.brain)
        yield from _agents(found.brain)
        yield from _clocks(found.brain)
    yield from _modes(status)


def _nodes(found: Installation, answers: BrainAnswers) -> Iterator[HealthLine]:
    name = "nodes"
    if not answers.nodes:
        yield warn(name, t("none was ever heard"), t("install agents: docs/cell.md says how nodes join"))
        return
    silent = [str(node["name"]) for node in answers.nodes if not node["alive"]]
    known = {node["name"] for node in answers.nodes}
    try:
        never = [one for one in found.registered() if one not in known]
    except ConfigError as error:
        yield unchecked(name, str(error), t("run this as root, or restore the file"))
        never = []
    if len(silent) == len(known) > 1:
        yield fail(
            name,
            t("none of {known} is heard: {silent}", known=len(known), silent=some(silent)),
            t(
                "look at the log of one's agent first: it says why; after a restore they trust newer keys or "
                "another authority (docs/operations.md)"
            ),
        )
    elif silent:
        yield warn(
            name,
            t(
                "{silent} of {known} are not heard: {silent2}",
                silent=len(silent),
                known=len(known),
                silent2=some(silent),
            ),
            t(
                "look there (`systemctl status gpuward-agent`); one that is gone for good: `gpuward forget NODE`"
            ),
        )
    if never:
        yield warn(
            name,
            t("joined and never heard: {never}", never=some(never)),
            t("start their agents, or `gpuward cell revoke NODE`"),
        )
    late = [str(node["name"]) for node in answers.nodes if node["dropped"]]
    if late:
        yield warn(
            name,
            t("have dropped events: {late}", late=some(late)),
            t("they were cut off for long, or flood: see their logs"),
        )
    if not silent and not never:
        yield ok(name, t("all {known} are heard", known=len(known)))


def _agents(answers: BrainAnswers) -> Iterator[HealthLine]:
    """Brain and agents may differ by two minor versions (docs/upgrades.md)."""
    name, ours = "agents", answers.status["version"]
    told = {
        str(node["name"]): str(node["version"]).partition(" ")[0] for node in answers.nodes if node["version"]
    }
    odd = [node for node, version in told.items() if not _VERSION.fullmatch(version)]
    if odd:  # what they say instead is not repeated among our own words
        yield warn(
            name,
            t("say no version of an agent: {odd}", odd=some(odd)),
            t("look there what runs (`systemctl status gpuward-agent`)"),
        )
    versions: dict[str, list[str]] = {}
    for node, version in told.items():
        if _VERSION.fullmatch(version):
            versions.setdefault(version, []).append(node)
    if not versions:
        leader = "" if answers.status["leads"] else t(": only the leader hears the nodes")
        yield unchecked(name, t("no node has told its version to this brain{leader}", leader=leader))
        return
    far = {version: nodes for version, nodes in versions.items() if not _fit(version, ours)}
    if far:
        yield fail(
            name,
            t("too far from the brain's {ours}: {far}", ours=ours, far=_counts(far, ours)),
            t("upgrade them"),
        )
    elif set(versions) != {ours}:
        yield warn(
            name,
            t("the brain is {ours}, the agents: {versions}", ours=ours, versions=_counts(versions, ours)),
            t("finish the upgrade"),
        )
    else:
        yield ok(name, t("all {versions} are {ours}, as the brain", versions=len(versions[ours]), ours=ours))


def _counts(versions: Mapping[str, Sequence[str]], ours: str) -> str:
    """How many nodes have each, and which, if it is not ours."""
    return some(
        f"{len(nodes)} × {version}" + (f" ({some(nodes)})" if version != ours else "")
        for version, nodes in sorted(versions.items())
    )


def _fit(one: str, other: str) -> bool:
    try:
        (a, b), (c, d) = (tuple(map(int, text.split(".")[:2])) for text in (one, other))
    except ValueError:
        return False
    return a == c and abs(b - d) <= APART


def _clocks(answers: BrainAnswers) -> Iterator[HealthLine]:
    """Compared with this brain's clock, as each node's newest beat came."""
    name = "clocks of nodes"
    told = {
        str(node["name"]): float(node["clock_ahead_s"])
        for node in answers.nodes
        if node["clock_ahead_s"] is not None
    }
    if not told:
        yield unchecked(name, t("no node has told its time to this brain"))
        return
    off = {node: ahead_s for node, ahead_s in told.items() if abs(ahead_s) > AHEAD_S}
    if not off:
        yield ok(
            name,
            t(
                "{nodes} within {ahead_s} s of the brain's",
                nodes=many(len(told), "node"),
                ahead_s=f"{AHEAD_S:g}",
            ),
        )
        return
    worst = sorted(off, key=lambda node: -abs(off[node]))
    text = some(f"{node} {off[node]:+.1f} s" for node in worst)
    most = len(off) > len(told) / 2
    action = t("look at the brain's own clock first: most nodes differ") if most else t("start chronyd there")
    yield warn(name, t("off: {text}", text=text), action)


def _modes(status: Any) -> Iterator[HealthLine]:
    """Which runbooks run by themselves, and which only say what they would do."""
    shown = [
        t(
            "{mode}: {runbook} on {nodes}",
            mode=one["mode"],
            runbook=one["runbook"],
            nodes=one["nodes"] or t("wider scopes than a node"),
        )
        + (f" ({one['who']})" if one["who"] else "")
        for one in status["modes"]
        if (one["mode"], one["runbook"], one["nodes"]) != (Mode.OBSERVE.value, "*", "*")
    ]
    acts = any(one["mode"] != Mode.OBSERVE.value for one in status["modes"])
    rest = "" if acts else t("; nothing is healed, people are told")
    yield ok(
        "modes",
        t("observe everywhere, then {shown}{rest}", shown="; ".join(shown), rest=rest)
        if shown
        else t("observe everywhere{rest}", rest=rest),
    )
    if status["holds"]:
        yield warn(
            "modes",
            t(
                "{holds} in force: {scope}",
                holds=many(len(status["holds"]), "hold"),
                scope=some(one["scope"] for one in status["holds"]),
            ),
            t("`gpuward release SCOPE` when they have served"),
        )
