"""How sure a verdict is, in plain words: a table of what speaks for it and what against it. Pure.

Nothing is counted that people cannot check in the incident itself: its facts, where they come from, how old they are, and what
the catalogue of XIDs says that a code can come from.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from agent.contract import xid
from agent.contract.look import RESTATED
from agent.contract.messages import Severity
from brain.core import ids
from brain.core.context import Context
from brain.core.faults import places
from brain.core.pack.lint_symptoms import KINDS
from brain.core.pack.spans import span_text
from brain.core.pack.spec import Text
from brain.core.pack.vocabulary import COMPARED, NODE_UNREACHABLE
from brain.core.state import Evidence, Incident
from brain.core.why.xid_candidates import CANDIDATES, XidOrigin

REPEATED = 3  # facts that say the same
OLD_S = 600.0  # a single fact that is older, of something that does not last, is weak
BOOT_JITTER_S = 1.0
JOB_LOG = "job log"  # the source of what a job says of itself
FROM_START = "slow_from_start"  # what the symptoms of rules/stragglers.yaml carry


class Level(StrEnum):
    """How sure it is."""

    SURE = "sure"  # something speaks for it, and nothing against it
    LIKELY = "likely"  # as much speaks for it as against it, or nothing either way
    UNCLEAR = "unclear"  # more speaks against it


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What an incident rests on. Times in seconds."""

    # facts so far, of symptoms that are active, or else of its evidence
    facts: int
    # distinct places that they come from: kernel log, NVML, ...; bounded
    sources: tuple[str, ...]
    # whether an active symptom rests on a condition that the node reads again when it is asked, and tells when it ends
    lasts: bool
    # age of the newest fact
    newest_s: float
    # nodes that show it
    nodes: int
    # every fact was old when it arrived
    stale: bool
    # its node has started anew since the newest fact
    earlier_boot: bool
    # one of its symptoms ended without a fact that says so
    unproven: bool
    # it rests on the brain's not hearing the node
    silence: bool
    # a fact is of a kind or code that nobody knows
    unknown: bool
    # how sure it is of the place that it was found to share, as places.word says; empty: it was not judged
    place: str
    # codes of its XIDs, and what the catalogue says that they can come from
    codes: tuple[int, ...]
    candidates: tuple[XidOrigin, ...]
    # it was never as its peers of the same job, so that may be by design
    from_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sureness:
    """How sure, and why; and what else it may be."""

    level: Level
    # what speaks for it, and against it
    reasons: tuple[Text, ...]
    against: tuple[Text, ...]
    alternatives: tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One line of the table."""

    name: str
    # whether it speaks for the verdict
    favours: bool
    applies: Callable[[Grounds], bool]
    text: Callable[[Grounds], Text]


def of(ctx: Context, incident: Incident) -> Sureness:
    """How sure an incident is now."""
    return judged(grounds(ctx, incident))


def judged(given: Grounds) -> Sureness:
    """The table, applied."""
    rows = [row for row in TABLE if row.applies(given)]
    favours, against = [row for row in rows if row.favours], [row for row in rows if not row.favours]
    level = Level.LIKELY
    if favours and not against:
        level = Level.SURE
    elif len(against) > len(favours):
        level = Level.UNCLEAR
    several = given.candidates if len(given.candidates) > 1 else ()
    silence = SILENCE if given.silence else ()
    return Sureness(
        level=level,
        reasons=tuple(row.text(given) for row in favours),
        against=tuple(row.text(given) for row in against),
        alternatives=(*(one.text for one in several), *silence),
    )


def grounds(ctx: Context, incident: Incident) -> Grounds:
    """What the incident rests on now."""
    active = [
        state
        for key in incident.symptoms
        if (state := ctx.state.symptoms.get(key)) is not None and state.active
    ]
    newest = max([state.last for state in active] or [fact.at for fact in incident.evidence] or [ctx.now])
    node = ctx.state.nodes.get(incident.node)
    kinds = list(dict.fromkeys(fact.kind for fact in incident.evidence))
    codes = tuple(dict.fromkeys(_codes(ctx, incident)))
    known = [CANDIDATES[code] for code in codes if code in CANDIDATES]
    return Grounds(
        facts=sum(state.total for state in active if not state.members)
        or max(len(incident.evidence), sum(len(state.members) for state in active)),
        sources=tuple(dict.fromkeys(KINDS[kind].source for kind in kinds if kind in KINDS)),
        lasts=any(
            fact.kind in RESTATED or fact.kind in COMPARED for state in active for fact in state.evidence
        ),
        newest_s=max(0.0, ctx.now - newest),
        nodes=incident.nodes,
        stale=incident.stale,
        earlier_boot=node is not None and newest < node.booted_at - BOOT_JITTER_S,
        unproven=incident.unproven,
        silence=NODE_UNREACHABLE in kinds,
        unknown=any(kind not in KINDS or KINDS[kind].severity is Severity.UNKNOWN for kind in kinds)
        or any(code not in CANDIDATES for code in codes),
        place=places.word(incident.sure),
        codes=codes,
        candidates=tuple(dict.fromkeys(one for each in known for one in each)),
        from_start=any(state.carried.get(FROM_START) is True for state in active),
    )


def _codes(ctx: Context, incident: Incident) -> Iterator[int]:
    """Codes of XIDs: those that the kernel lines have, else the one that its symptom is about."""
    for fact in incident.evidence:
        if fact.kind == "gpu.xid":
            yield from _code(ctx, incident, fact)


def _code(ctx: Context, incident: Incident, fact: Evidence) -> Iterator[int]:
    line = xid.parse(fact.text)
    if line is not None:
        yield line.code
        return
    for key in incident.symptoms:
        spec = ctx.compiled.symptoms.get(ids.name_of(key))
        for match in spec.on if spec is not None else ():
            code = match.where.get("code")
            if match.kind == fact.kind and isinstance(code, int):
                yield code


def _repeated(given: Grounds) -> Text:
    return Text(
        en=f"it was told {given.facts} times",
        zh=f"已报告 {given.facts} 次",
    )


def _sources(given: Grounds) -> Text:
    named = given.sources[:3]
    return Text(
        en=f"{len(given.sources)} independent sources say so: {', '.join(named)}",
        zh=f"{len(given.sources)} 个独立来源一致：{'、'.join(named)}",
    )


def _nodes(given: Grounds) -> Text:
    return Text(en=f"{given.nodes} nodes show it", zh=f"{given.nodes} 个节点出现该现象")


def _one_cause(given: Grounds) -> Text:
    code, cause = given.codes[0], given.candidates[0].text
    return Text(
        en=f"the catalogue knows one thing that XID {code} comes from: {cause.en}",
        zh=f"按目录，XID {code} 只有一种来源：{cause.zh}",
    )


def _several(given: Grounds) -> Text:
    en = [one.text.en for one in given.candidates]
    zh = [one.text.zh for one in given.candidates]
    listed = ", ".join(str(code) for code in given.codes[:3])
    return Text(
        en=f"the catalogue knows several things that XID {listed} can come from: {'; '.join(en)}",
        zh=f"按目录，XID {listed} 可能有多种来源：{'；'.join(zh)}",
    )


def _old(given: Grounds) -> Text:
    age = span_text(given.newest_s)
    return Text(en=f"it rests on one fact, {age.en} old", zh=f"仅有一条事实，已过去 {age.zh}")


def _said(en: str, zh: str) -> Callable[[Grounds], Text]:
    return lambda _: Text(en=en, zh=zh)


SILENCE = (
    Text(en="the node is down", zh="节点已停机"),
    Text(en="its network is down", zh="其网络中断"),
    Text(en="its agent is not running", zh="其 agent 未运行"),
)
# What speaks for a verdict, then what speaks against it; each line counts once.
TABLE: tuple[Reason, ...] = (
    Reason(name="repeated", favours=True, applies=lambda given: given.facts >= REPEATED, text=_repeated),
    Reason(name="sources", favours=True, applies=lambda given: len(given.sources) > 1, text=_sources),
    Reason(
        name="lasts",
        favours=True,
        applies=lambda given: given.lasts and not given.silence,
        text=_said(
            "it is a state that the node has read, and it would say when that ends",
            "这是节点读到的状态，结束时会报告",
        ),
    ),
    Reason(name="nodes", favours=True, applies=lambda given: given.nodes >= REPEATED, text=_nodes),
    Reason(
        name="one_cause",
        favours=True,
        applies=lambda given: len(given.candidates) == 1 and not given.unknown,
        text=_one_cause,
    ),
    Reason(
        name="place",
        favours=True,
        applies=lambda given: given.place == "high",
        text=_said(
            "nearly all nodes that show it are in this place, and much of the place shows it",
            "出现该现象的节点几乎都在此处，且此处大部分节点都出现",
        ),
    ),
    Reason(
        name="stale",
        favours=False,
        applies=lambda given: given.stale,
        text=_said(
            "every fact was old when it arrived: it may be over", "所有事实到达时都已过时，故障可能已结束"
        ),
    ),
    Reason(
        name="place_unsure",
        favours=False,
        applies=lambda given: given.place == "low",
        text=_said(
            "few nodes, or another place as well, could be what they share: see the places considered",
            "节点较少，或另有位置同样可能是共同点：参见已考虑的位置",
        ),
    ),
    Reason(
        name="earlier_boot",
        favours=False,
        applies=lambda given: given.earlier_boot,
        text=_said("the node has started anew since its newest fact", "最新事实之后节点已重新启动"),
    ),
    Reason(
        name="one_old_fact",
        favours=False,
        applies=lambda given: (
            given.facts <= 1 and given.newest_s > OLD_S and not (given.lasts or given.stale)
        ),
        text=_old,
    ),
    Reason(
        name="several_causes", favours=False, applies=lambda given: len(given.candidates) > 1, text=_several
    ),
    Reason(
        name="job_only",
        favours=False,
        applies=lambda given: given.sources == (JOB_LOG,),
        text=_said(
            "only a job's own output says so: the program may be at fault",
            "仅来自作业自身的输出：也可能是程序的问题",
        ),
    ),
    Reason(
        name="from_start",
        favours=False,
        applies=lambda given: given.from_start,
        text=_said(
            "it has differed since its job came to it: its rank may have other work by design, and the next job would show",
            "自作业开始就不同：该 rank 可能本就承担不同的工作，下一个作业会给出答案",
        ),
    ),
    Reason(
        name="silence",
        favours=False,
        applies=lambda given: given.silence,
        text=_said(
            "it rests on silence: nobody has looked at the node", "依据是节点没有消息：无人查看过该节点"
        ),
    ),
    Reason(
        name="unknown",
        favours=False,
        applies=lambda given: given.unknown,
        text=_said(
            "a fact is of a kind or code that the catalogue does not know", "有事实的类型或代码不在目录中"
        ),
    ),
    Reason(
        name="unproven",
        favours=False,
        applies=lambda given: given.unproven,
        text=_said("a part of it ended without a fact that says so", "其中一部分结束时没有事实证明"),
    ),
)
