"""The report of a month: data with stable keys, and the page for a terminal. Pure: the same month gives the same bytes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from typing import Any

from agent.shared.words import later, t
from brain.cli.terminal import hanging, padded
from simulations.month.draw import Month
from simulations.month.tally import ActVerdict, FaultStory, Tally

IDEAL = "the ideal"
LEAVES_OUT = (
    "scheduled inspections of idle nodes",
    "planned maintenance and releases",
    "AMD GPUs and NVLink domains of several nodes",
    "fabrics beyond the leaf switch, file servers",
    "budgets of people: everybody who is called has time",
    "remedies that make a fault worse, and faults that come back after a remedy that seemed to help",
)


def data(month: Month, tallies: Sequence[Tally], summaries: Sequence[str]) -> dict[str, Any]:
    """All of it."""
    profile = month.profile
    own = tallies[0]
    stories = [story for story in own.stories.values() if not story.case.noise]
    whole = fsum(cause.count for cause in profile.causes.values())
    expected = profile.faults_per_1000_node_days * len(month.nodes) * month.days / 1000
    causes = []
    for name, cause in profile.causes.items():
        mine = [story for story in stories if story.case.cause == name]
        causes.append(
            {
                "cause": name,
                "published": cause.count,
                "expected": _round(expected * cause.count / whole),
                "drawn": len(mine),
                "seen_as": dict(sorted(Counter(story.seen_as for story in mine if story.seen_as).items())),
                **_handled(mine),
            }
        )
    policies = [policy_data(tally, summary, month) for tally, summary in zip(tallies, summaries, strict=True)]
    return {
        "title": profile.title,
        "source": profile.source,
        "nodes": len(month.nodes),
        "days": month.days,
        "seed": month.seed,
        "faults": {
            "expected": _round(expected),
            "drawn": len(stories),
            "need_hands": sum(not story.case.remote for story in stories),
            "look_alikes": len(own.stories) - len(stories),
            "holds": len(month.holds),
        },
        "causes": causes,
        "policies": policies,
        "people_needed": _people_needed(stories),
        "goals": goals(policies),
        "leaves_out": list(LEAVES_OUT),
    }


def _people_needed(stories: Iterable[FaultStory]) -> list[dict[str, Any]]:
    """Why gpuward called people about faults that needed no hands, most often first."""
    found = Counter(story.why_people for story in stories if story.people and story.case.remote)
    return [
        {"why": why or "people had found it by themselves", "faults": count}
        for why, count in sorted(found.items(), key=lambda one: (-one[1], one[0]))
    ]


def _round(value: float) -> float:
    return round(value, 3)


def _handled(stories: Iterable[FaultStory]) -> dict[str, int]:
    """How many began, needed no hands, and were over without people."""
    begun = [story for story in stories if story.begun]
    remote = [story for story in begun if story.case.remote]
    return {
        "begun": len(begun),
        "without_hands": len(remote),
        "without_people": sum(not story.people for story in remote),
    }


def policy_data(tally: Tally, summary: str, month: Month) -> dict[str, Any]:
    """What came of a month under one policy."""
    stories = [story for story in tally.stories.values() if story.begun and not story.case.noise]
    on_nodes = [story for story in stories if not story.case.kind.benign]
    remote = [story for story in on_nodes if story.case.remote]
    handled = _handled(stories)
    acts = len(tally.acts)
    jobs = tally.jobs
    return {
        "policy": tally.policy,
        "summary": summary,
        "faults": handled,
        "share_without_people": _share(handled["without_people"], handled["without_hands"]),
        "actions": {
            "all": acts,
            **{verdict.value: tally.count(verdict) for verdict in ActVerdict},
            "harmful": tally.harmful,
            "under_hold": sum(bool(act.hold) for act in tally.acts),
            "needless_share": _share(tally.count(ActVerdict.NEEDLESS), acts),
        },
        "returned_broken": tally.returned_broken,
        "times_s": {
            "detect": _times(story.detected_s for story in on_nodes),
            "decide": _times(story.decided_s for story in on_nodes),
            "heal": _times(story.healed_s for story in on_nodes),
            "heal_without_hands": _times(story.healed_s for story in remote),
        },
        "node_hours": {
            "out_of_service": _hours(tally.out_s),
            "awaiting_hands": _hours(tally.hands_s),
            "out_though_well": _hours(tally.well_out_s),
        },
        "job_node_hours": {
            "work_since_checkpoint": _hours(jobs.work),
            "not_running": _hours(jobs.away),
            "hanging": _hours(jobs.hanging),
            "slower": _hours(jobs.slow),
            "all": _hours(jobs.total),
        },
        "node_hours_lost": _hours(tally.out_s + jobs.total),
        "share_lost": _round((tally.out_s + jobs.total) / (len(month.nodes) * month.days * 86400)),
        "job_failures": jobs.failures,
        "failed_starts": jobs.failed_starts,
        "pages": tally.pages,
    }


def _hours(seconds: float) -> float:
    return round(seconds / 3600, 1)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _times(values: Iterable[float | None]) -> dict[str, float | None]:
    known = sorted(value for value in values if value is not None)
    return {name: _quantile(known, share) for name, share in (("p50", 0.5), ("p90", 0.9))}


def _quantile(known: Sequence[float], share: float) -> float | None:
    """The smallest value that has this share of all at or below it."""
    if not known:
        return None
    at = max(0, -int(-share * len(known) // 1) - 1)
    return round(known[at], 1) + 0.0  # of a fault that is known at once: not -0.0


def goals(policies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What gpuward wants to reach, and whether it has. The ratios of what is lost count all of it; `the_ideal` is what the
    ideal reaches, and `beyond_the_ideal` leaves out what even the ideal loses.
    """
    own = policies[0]
    by_name = {policy["policy"]: policy for policy in policies}
    found = [
        _goal(
            later("share without people, where no hands are needed"),
            own["share_without_people"],
            0.99,
            least=True,
        )
    ]
    for name, most in (("alerting only", 0.2), ("drain and reboot", 0.5)):
        if name in by_name:
            ideal = by_name.get(IDEAL, {"node_hours_lost": 0.0})["node_hours_lost"]
            mine, theirs = own["node_hours_lost"], by_name[name]["node_hours_lost"]
            goal = _goal(f"node-hours lost, beside {name}", _ratio(mine, theirs), most)
            beyond = _ratio(mine - ideal, theirs - ideal)
            found.append(goal | {"the_ideal": _ratio(ideal, theirs), "beyond_the_ideal": beyond})
    found += [
        _goal(later("needless disruptive actions, share"), own["actions"]["needless_share"], 0.001),
        _goal(later("disruptive actions under a hold"), own["actions"]["under_hold"], 0),
        _goal(later("nodes returned broken"), own["returned_broken"], 0),
    ]
    return found


def _ratio(mine: float, theirs: float) -> float | None:
    return _round(mine / theirs) if theirs > 0 else None


def _goal(name: str, value: float | None, wanted: float, *, least: bool = False) -> dict[str, Any]:
    reached = value is None or (value >= wanted if least else value <= wanted)
    return {
        "goal": name,
        "value": value,
        "wanted": f"{'>=' if least else '<='} {wanted:g}",
        "reached": reached,
    }


# --- for people ---

_LABEL, _COLUMN = 28, 12
_OF_CAUSES = (10, 10, 8, 10, 11)  # columns


def page(found: dict[str, Any], width: int) -> Iterator[str]:
    """The report for a terminal."""
    faults = found["faults"]
    yield t(
        "{title}: {nodes} nodes, {days} days, seed {seed}",
        title=found["title"],
        nodes=found["nodes"],
        days=f"{found['days']:g}",
        seed=found["seed"],
    )
    yield from hanging(t("Source: "), found["source"], width)
    yield from hanging(
        "",
        t(
            "{drawn} faults were drawn ({expected} expected), {hands} of them need hands; {alike} look-alikes; "
            "{holds} holds of people.",
            drawn=faults["drawn"],
            expected=f"{faults['expected']:.0f}",
            hands=faults["need_hands"],
            alike=faults["look_alikes"],
            holds=faults["holds"],
        ),
        width,
    )
    yield ""
    heads = (t("published"), t("expected"), t("drawn"), t("no hands"), t("no people"))
    yield padded(t("cause"), 34) + "".join(
        padded(head, columns, right=True) for head, columns in zip(heads, _OF_CAUSES, strict=True)
    )
    for row in found["causes"]:
        yield (
            f"{row['cause'][:33]:34}{row['published']:>10g}{row['expected']:>10.1f}{row['drawn']:>8}"
            f"{row['without_hands']:>10}{row['without_people']:>11}"
        )
    yield from ("", *_table(found["policies"]), "")
    for policy in found["policies"]:
        yield from hanging(f"{policy['policy']}: ", policy["summary"], width, below="  ")
    yield ""
    if found["people_needed"]:
        yield t("Why gpuward called people though no hands were needed:")
        for row in found["people_needed"]:
            yield from hanging(f"  {row['faults']:>4}  ", row["why"], width)
        yield ""
    for goal in found["goals"]:
        head = f"  {padded(t('reached') if goal['reached'] else t('MISSED'), 9)}"
        yield from hanging(head, goal_text(goal), width)
    yield ""
    yield from hanging(t("Left out: "), "; ".join(found["leaves_out"]) + ".", width, below="  ")


def goal_text(goal: dict[str, Any]) -> str:
    """What is reached of a goal, as a sentence."""
    value = "-" if goal["value"] is None else f"{goal['value']:g}"
    beyond = goal.get("beyond_the_ideal")
    more = ""
    if beyond is not None:
        more = t(
            "; the ideal: {ideal}; of what the ideal does not lose: {beyond}",
            ideal=f"{goal['the_ideal']:g}",
            beyond=f"{beyond:g}",
        )
    return t(
        "{goal}: {value} (goal {wanted}){more}",
        goal=t(goal["goal"]),
        value=value,
        wanted=goal["wanted"],
        more=more,
    )


def _table(policies: Sequence[dict[str, Any]]) -> Iterator[str]:
    heads = [policy["policy"].split(" ", 1) for policy in policies]
    yield " " * _LABEL + "".join(f"{head[0]:>{_COLUMN}}" for head in heads)
    yield " " * _LABEL + "".join(f"{head[1] if len(head) > 1 else '':>{_COLUMN}}" for head in heads)
    for label, *cells in rows(policies):
        yield padded(t(label), _LABEL) + "".join(f"{cell:>{_COLUMN}}" for cell in cells)


def rows(policies: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The table of the policies: a label, and a cell for each."""
    table: tuple[tuple[str, Any], ...] = (
        (later("share without people"), lambda one: _percent(one["share_without_people"])),
        (later("actions: right"), lambda one: one["actions"]["right"]),
        (later("  did not help"), lambda one: one["actions"]["wrong"]),
        (later("  needless"), lambda one: one["actions"]["needless"]),
        (later("  harmful"), lambda one: one["actions"]["harmful"]),
        (later("  under a hold"), lambda one: one["actions"]["under_hold"]),
        (later("nodes returned broken"), lambda one: one["returned_broken"]),
        (later("to detect, p50 / p90"), lambda one: _pair(one["times_s"]["detect"])),
        (later("to decide"), lambda one: _pair(one["times_s"]["decide"])),
        (later("to heal"), lambda one: _pair(one["times_s"]["heal"])),
        (later("to heal without hands"), lambda one: _pair(one["times_s"]["heal_without_hands"])),
        (later("node-hours out of service"), lambda one: _count(one["node_hours"]["out_of_service"])),
        (later("  awaiting hands"), lambda one: _count(one["node_hours"]["awaiting_hands"])),
        (later("job node-hours lost"), lambda one: _count(one["job_node_hours"]["all"])),
        (
            later("  work since checkpoint"),
            lambda one: _count(one["job_node_hours"]["work_since_checkpoint"]),
        ),
        (later("  not running"), lambda one: _count(one["job_node_hours"]["not_running"])),
        (later("  hanging"), lambda one: _count(one["job_node_hours"]["hanging"])),
        (later("  slower"), lambda one: _count(one["job_node_hours"]["slower"])),
        (later("lost of all node-hours"), lambda one: _percent(one["share_lost"])),
        (later("failed starts of jobs"), lambda one: one["failed_starts"]),
        (later("pages"), lambda one: one["pages"]),
    )
    return [(label, *(str(value(policy)) for policy in policies)) for label, value in table]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _pair(times: dict[str, float | None]) -> str:
    return f"{duration(times['p50'])} / {duration(times['p90'])}"


def duration(seconds: float | None) -> str:
    """At most five characters: 0.1s, 12s, 3.5m, 4.1h, 12d."""
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("m", 60.0)):
        if seconds >= size:
            value = seconds / size
            return f"{value:.0f}{unit}" if value >= 10 else f"{value:.1f}{unit}"
    return f"{seconds:.0f}s" if seconds >= 10 else f"{seconds:.1f}s"
