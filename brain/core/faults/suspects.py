"""A version is suspected: one symptom on ever more nodes that share it, over hours and days, while the others are well. Pure.

Asked for a symptom when it began on one node more, once five nodes have had it within 28 days. For each version
(decision 56): of the nodes that have had it, and of those that have had another one, for as long as half of the former have it,
how many fell ill since? Nodes that fell ill together count once: a job or a switch may have done that. Fisher's exact test says
how likely that is by chance. One of the ill nodes with other versions is left out: it may have made it up (law 15).

The threshold holds for all questions together: ALPHA, divided by the number of versions and symptoms that are asked, and once
more by that of the symptoms, since a cell with many faults is asked more often.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent.contract.counted import counted, span
from agent.contract.messages import Event, Scalar, Severity, clip
from brain.core import ids
from brain.core.baseline import parsed
from brain.core.context import Context
from brain.core.faults import releases, symptoms
from brain.core.faults.fisher import p_at_least
from brain.core.pack.spec import Symptom
from brain.core.pack.topology import RELEASE, type_of
from brain.core.pack.vocabulary import FLEET_RELEASE
from brain.core.state import SymptomState

ALPHA = 0.01  # how likely one false suspicion may be, over all questions of one moment
SHARE = 0.02  # at least this share of the nodes with a version fell ill
TIMES = 3.0  # and so many times the share of the others
TOGETHER_S = 120.0  # nodes that fell ill within so long of each other count as one
SLACK_S = 3600.0  # nodes of one cell are not first heard at one moment

_WORDS = {
    "driver": "GPU driver",
    "gpu_vbios": "GPU VBIOS",
    "nic_firmware": "network firmware",
    "bios": "BIOS",
    "kernel": "kernel",
    "product": "product",
    "gpu_models": "GPUs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """The nodes with one version beside those with others."""

    trait: str
    value: str
    # nodes with it that fell ill, apart from each other; and all nodes with it
    ill: int
    of: int
    # the same for other versions
    others: int
    of_others: int
    # by chance, before it is corrected
    p: float
    # since the first of the ill nodes, s
    for_s: float
    # the one that fell ill last
    newest: str


def judge(ctx: Context, key: str) -> list[SymptomState]:
    """The timer of a symptom (`State.ill`'s key) fired. Returns the suspicion that began or grew."""
    ill = {node: at for node, at in ctx.state.ill.get(key, {}).items() if at >= ctx.now - releases.WITHIN_S}
    spec = ctx.compiled.symptoms.get(key.partition("/")[0])
    if spec is None or len(ill) < releases.AT_LEAST:
        return []
    known = _suspected(ctx, key)
    if known and not _grows(ctx, known, ill):
        return []
    versions, found = _suspicions(ctx, ill, known)
    symptoms_asked = sum(len(nodes) >= releases.AT_LEAST for nodes in ctx.state.ill.values())
    asked = versions * symptoms_asked**2
    strong = [one for one in found if known or one.p * asked <= ALPHA]
    if not strong:
        return []
    best = min(strong, key=lambda one: one.p)
    also = [one for one in strong if one is not best and one.p == best.p]
    return _tell(ctx, key, spec, best, also, asked)


def left(ctx: Context) -> Iterator[SymptomState]:
    """A node told other versions: ends what is suspected of one that no node has any more."""
    for scope in _scopes(ctx):
        if not any(releases.has(ctx.state, node, scope) for node in ctx.state.nodes):
            for tag in [tag for state in ctx.index.active[scope].values() for tag in state.open_facts]:
                text = "no node has this version any more"
                yield from symptoms.feed(ctx, _event(ctx, "", scope, {"active": False, "symptom": tag}, text))


def _scopes(ctx: Context) -> list[str]:
    return [place for place in ctx.index.active if type_of(place) == RELEASE]


def _suspected(ctx: Context, key: str) -> str:
    """The version that is suspected of this symptom already; empty: none is."""
    for scope in _scopes(ctx):
        if any(key in state.open_facts for state in ctx.index.active[scope].values()):
            return scope
    return ""


def _grows(ctx: Context, scope: str, ill: Mapping[str, float]) -> bool:
    """Whether one more node with the version fell ill; not where an operator has closed the incident: then it ends in a week."""
    if any(ids.split(match)[1] == scope for match in ctx.state.dismissed):
        return False
    newest = max(state.last for state in ctx.index.active[scope].values())
    return any(at > newest and releases.has(ctx.state, node, scope) for node, at in ill.items())


def _suspicions(ctx: Context, ill: Mapping[str, float], known: str) -> tuple[int, list[Suspicion]]:
    """How many versions there are to be asked about, and those that enough of the ill nodes have. `known`: only this one."""
    prefix = f"{releases.KIND} "
    told = {key.removeprefix(prefix): one for key, one in ctx.state.peers.items() if key.startswith(prefix)}
    for node, known_of in ctx.state.traits.items():
        if known_of.untold and node in told:
            told[node] = json.dumps(parsed(told[node]) | known_of.untold)
    texts = Counter(told.values())  # most nodes of a fleet tell the same
    sick = Counter(told[node] for node in ill if node in told)
    unlike = ctx.compiled.unlikes.get(releases.KIND, ())
    names = [name for symptom in unlike for name in (symptom.compare, *symptom.alike)]
    asked = 0
    found: list[Suspicion] = []
    for trait in [name for name in _WORDS if name in names]:
        versions = {text: version for text in texts if (version := parsed(text).get(trait))}
        whole = sum(texts[text] for text in versions)
        for mine in dict.fromkeys(versions.values()):
            own = {text: version == mine for text, version in versions.items()}
            having = sum(texts[text] for text, with_it in own.items() if with_it)
            others_few = min(having, whole - having) < releases.AT_LEAST
            if others_few or (known and releases.scope_of(trait, mine) != known):
                continue
            asked += 1
            if sum(sick[text] for text, with_it in own.items() if with_it) >= releases.AT_LEAST:
                found += _compared(ctx, trait, mine, told, own, ill)
    return asked, found


def _compared(
    ctx: Context,
    trait: str,
    mine: str,
    told: Mapping[str, str],
    own: Mapping[str, bool],
    ill: Mapping[str, float],
) -> Iterator[Suspicion]:
    """`own`: whether nodes that tell this have the version; absent: they tell none."""
    traits = ctx.state.traits
    with_it = [node for node, text in told.items() if own.get(text)]
    begun = [traits[node].begun(trait) if node in traits else 0.0 for node in with_it]
    start = max(ctx.now - releases.WITHIN_S, sorted(begun)[(len(begun) - 1) // 2])
    facts: list[tuple[float, str, bool]] = []
    for node, at in ill.items():
        since = traits[node].begun(trait) if node in traits else 0.0
        if since <= start + SLACK_S and at >= max(start, since) and told.get(node, "") in own:
            facts.append((at, node, own[told[node]]))
    sick, elsewhere = _apart(sorted(facts))
    # At least half of the nodes with the version are asked, so that the share is at most twice as large as here.
    if 2 * sick * (len(told) - len(with_it)) < TIMES * (elsewhere - 1) * len(with_it):
        return
    of = sum(since <= start + SLACK_S for since in begun)
    of_others = sum(
        not own.get(text, True) and (node not in traits or traits[node].begun(trait) <= start + SLACK_S)
        for node, text in told.items()
    )
    counts = sick, of, max(0, elsewhere - 1), of_others
    if _large(*counts):
        mine_only = [(at, node) for at, node, has in facts if has]
        yield Suspicion(
            trait=trait, value=mine, ill=sick, of=of, others=elsewhere, of_others=of_others, p=p_at_least(*counts),
            for_s=ctx.now - min(mine_only)[0], newest=max(mine_only)[1],
        )  # fmt: skip


def _apart(facts: list[tuple[float, str, bool]]) -> tuple[int, int]:
    """How often nodes fell ill that all have the version, and how often others did, alone or with them."""
    sick = elsewhere = 0
    last, all_have = -math.inf, True
    for at, _, has in [*facts, (math.inf, "", True)]:
        if at - last > TOGETHER_S and last > -math.inf:
            sick, elsewhere, all_have = sick + all_have, elsewhere + (not all_have), True
        last, all_have = at, all_have and has
    return sick, elsewhere


def _large(ill: int, of: int, others: int, of_others: int) -> bool:
    """Whether enough nodes fell ill, and so many more than elsewhere that people would act on it."""
    enough = ill >= releases.AT_LEAST and of_others >= releases.AT_LEAST and ill >= SHARE * of
    return enough and ill * of_others >= TIMES * others * of


def _tell(
    ctx: Context, key: str, spec: Symptom, best: Suspicion, also: list[Suspicion], asked: int
) -> list[SymptomState]:
    scope = releases.scope_of(best.trait, best.value)
    name, _, code = key.partition("/")
    what = f"XID {code}" if code else name
    with_it = f"{_WORDS[best.trait]} {best.value}"
    same = "".join(f"; all of them have {_WORDS[one.trait]} {one.value}, too" for one in also)
    text = (
        f"{best.ill} of {counted(best.of, 'node')} with {with_it} had {what} within {span(best.for_s)}, and "
        f"{best.others} of {best.of_others} with others (Fisher's exact test: p = {best.p:.1g}, {counted(asked, 'question')} "
        f"asked){same}. {what}: {spec.summary}"
    )
    data: dict[str, Scalar] = {
        "active": True, "symptom": key, "trait": best.trait, "version": clip(best.value), "nodes": best.ill, "of": best.of,
        "others": best.others, "of_others": best.of_others, "p": best.p,
    }  # fmt: skip
    known = ids.key("release_suspected", scope) in ctx.state.symptoms
    ctx.note("release.grows" if known else "release.suspected", text, scope=scope)
    return symptoms.feed(ctx, _event(ctx, best.newest, scope, data, text))


def _event(ctx: Context, node: str, scope: str, data: Mapping[str, Scalar], text: str) -> Event:
    return Event(
        id=ctx.cause, node=node, kind=FLEET_RELEASE, component=scope, severity=Severity.ERROR, at="",
        age_s=0.0, boot="", count=1, data=data, evidence=clip(text),
    )  # fmt: skip
