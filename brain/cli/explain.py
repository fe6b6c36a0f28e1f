"""`gpuward explain`: from the page back to the kernel line, for someone who is woken at three in the morning."""

import shlex
from collections.abc import Iterator
from urllib.parse import urlencode

import click

from agent.shared.words import either, later, many, t
from brain.cli import completing, why_not
from brain.cli.answers import (
    ChainJson,
    ChangeJson,
    ExplainedRunJson,
    FoundJson,
    IncidentJson,
    LineJson,
    PageJson,
    PlaceConsideredJson,
    RuleJson,
    SurenessJson,
    TwoLanguagesJson,
    WhyNotJson,
)
from brain.cli.client import Client, for_client
from brain.cli.queries import clock, told_hold
from brain.cli.terminal import as_json, labelled, page_width, print_json, title
from brain.cli.who_is_hit import who_is_hit
from brain.hold_words import to_hold

_TURNS = {
    "ends": later("its end"),
    "fresh": later("fresh news"),
    "wider": later("wider cause"),
    "other": later("other cause"),
}
_LEVELS = {"sure": later("sure"), "likely": later("likely"), "unclear": later("unclear")}
_MOST_NODES, _MOST_NOTES = 20, 40  # that are named; --json has all of them


@click.command()
@click.argument("id_", metavar="ID|SCOPE", shell_complete=completing.explained)
@click.option("--notes", is_flag=True, help="Every audit line of it, too.")
@click.option(
    "--why-not",
    "rule",
    metavar="RULE",
    default="",
    shell_complete=completing.rule,
    help="Why this rule does not match at SCOPE now, or what became of its match.",
)
@as_json
@for_client
def explain(client: Client, id_: str, notes: bool, rule: str, plain: bool) -> None:
    """What is known of whatever has an id, and the whole chain of its incident.

    ID: an incident (or the beginning of its id), a page, run, step, alert group, hold, evidence event or note; what an operator's
    command answers as its id; a node's command. With --why-not: SCOPE, such as gpu/n1/0000:3b:00, node/n1, leaf/l3 or cell.
    """
    if rule:
        answer: WhyNotJson = client.get("why-not", query=urlencode({"rule": rule, "scope": id_}))
        if plain:
            print_json(answer)
            return
        for line in why_not.render(answer, width=page_width()):
            click.echo(line)
        return
    found: ChainJson = client.get("explain", id_)
    if plain:
        print_json(found)
        return
    for line in render(found, notes=notes, width=page_width()):
        click.echo(line)


def render(found: ChainJson, *, notes: bool, width: int) -> Iterator[str]:
    """Yields the text, line by line."""
    named, incident, rule = found["found"], found["incident"], found["rule"]
    if named["kind"] != "incident":
        yield from _named(named, width)
    if incident is None or rule is None:
        yield from _incidents(named, width)
        return
    if named["kind"] != "incident":
        yield ""
    yield from _head(incident, width)
    for hold in found.get("holds", []):
        yield from labelled(t("hold"), told_hold(hold), width)
    if kinds := found.get("places_unknown"):
        yield from labelled(
            t("not known"),
            t("its {kinds}: the topology has them of other nodes", kinds=", ".join(kinds)),
            width,
        )
    if found.get("trace_id"):
        yield from labelled(t("trace"), found["trace_id"], width)
    yield from who_is_hit(incident.get("hit"), width)
    yield ""
    yield title(t("WHY WE THINK SO"))
    yield from _rule(rule, width)
    for symptom in found["symptoms"]:
        yield from labelled(
            t("symptom"), t("{name} at {scope}", name=symptom["name"], scope=symptom["scope"]), width
        )
    yield from _sureness(found.get("sureness"), width)
    yield from _places(found.get("places", []), width)
    yield from _changes(found.get("changes", []), width)
    yield ""
    yield title(t("WHAT IT RESTS ON"))
    yield from _evidence(incident, width)
    yield ""
    yield title(t("WHAT WAS DONE"))
    if not found["runs"]:
        yield from labelled("", t("no runbook was started"), width)
    for run in found["runs"]:
        yield from _run(run, width)
    yield ""
    yield title(t("WHO WAS TOLD"))
    yield from _pages(found["pages"], width)
    yield ""
    yield from _todo(rule, width)
    yield from _commands(incident, found["runs"], found.get("out_of_service", []), width)
    if notes:
        yield ""
        yield title(t("EVERY NOTE"))
        for note in found["notes"]:
            yield from labelled(
                clock(note["at"])[6:14], f"{note['kind']}: {note['text']} [{note['caused_by']}]", width
            )


def _named(named: FoundJson, width: int) -> Iterator[str]:
    """What was asked for, where it is no incident."""
    yield click.style(f"{named['kind']} {named['id']}", bold=True)
    if (hold := named["hold"]) is not None:
        until = (
            t("until {until}", until=clock(hold["until"]))
            if hold["until"]
            else t("until somebody releases it")
        )
        yield from labelled(t("in force"), f"{hold['scope']}, {until}: {hold['why']} ({hold['who']})", width)
    elif named["kind"] == "hold":
        yield from labelled("", t("not in force any more"), width)
    for note in named["notes"][:_MOST_NOTES]:
        yield from labelled(clock(note["at"])[6:14], f"{note['kind']}: {note['text']}", width)
    if (more := len(named["notes"]) - _MOST_NOTES) > 0:
        yield from labelled(
            "", t("and {more_notes}: --json has them", more_notes=many(more, "more note")), width
        )
    if named["kind"] == "hold" and named["hold"] is not None:
        yield from labelled("", f"gpuward release {named['id']}", width)


def _incidents(named: FoundJson, width: int) -> Iterator[str]:
    """Where to go on, where it is of several incidents."""
    for number, one in enumerate(named["incidents"][:_MOST_NODES]):
        yield from labelled(t("incidents") if not number else "", f"gpuward explain {one}", width)
    if (more := len(named["incidents"]) - _MOST_NODES) > 0:
        yield from labelled(
            "",
            t("and {more_incidents}: --json has them", more_incidents=many(more, "more incident")),
            width,
        )


def _head(incident: IncidentJson, width: int) -> Iterator[str]:
    others = t(" and others") if incident["node"] else ""
    where = incident["scope"] + (
        t("{others}, {nodes} nodes", others=others, nodes=incident["nodes"]) if incident["nodes"] > 1 else ""
    )
    state = (
        "approval" if incident.get("asks") else incident["state"]
    )  # nobody heals it until somebody gives it
    yield click.style(f"{incident['id']}  {incident['severity']}  {state.upper()}", bold=True)
    yield from labelled(t("what"), incident["cause"].replace("_", " "), width)
    yield from labelled(t("where"), where, width)
    yield from labelled(t("since"), clock(incident["opened_at"]), width)
    if incident["closed_at"]:
        yield from labelled(t("until"), f"{clock(incident['closed_at'])}: {incident['closed_why']}", width)
    if (times := incident.get("times", 1)) > 1:
        yield from labelled(t("again"), t("it came back {times}", times=many(times - 1, "time")), width)
    for number, one in enumerate(incident.get("episodes", [])):
        was = t(
            "{since} to {until}: {why}",
            since=clock(one["opened_at"]),
            until=clock(one["closed_at"]),
            why=one["why"],
        )
        yield from labelled(t("before") if not number else "", was, width)
    if incident["explained_by"]:
        yield from labelled(t("explained by"), incident["explained_by"], width)
    pages = incident["pages"]
    if passed_to := pages.get("passed_to"):
        yield from labelled(
            t("alert"),
            t("goes on as that of {passed_to}: gpuward explain {passed_to}", passed_to=passed_to),
            width,
        )
    elif (alert := pages.get("alert", incident["id"])) != incident["id"]:
        yield from labelled(t("alert"), t("{alert}, which began with that incident", alert=alert), width)
    for channel, key in pages.get("tickets", {}).items():
        yield from labelled(t("ticket"), f"{key} ({channel})", width)
    if incident["waits"]:
        yield from labelled(t("waits"), incident["waits"], width)
    if incident["explains"]:
        yield from labelled(t("explains"), many(incident["explains"], "other finding"), width)
    if incident["stale"]:
        yield from labelled(t("old"), t("every fact was old when it arrived; it may be over"), width)


def _rule(rule: RuleJson, width: int) -> Iterator[str]:
    yield from labelled(
        t("rule"), t("{name} (rules {version})", name=rule["name"], version=rule["version"]), width
    )
    yield from labelled(t("because"), either(rule["because"], rule.get("because_zh", "")), width)
    if knowledge := rule.get("knowledge"):
        yield from labelled(t("cause"), _either(knowledge["cause"]), width)


def _sureness(sure: SurenessJson | None, width: int) -> Iterator[str]:
    if sure is None:
        return
    yield ""
    yield title(t("HOW SURE"))
    yield from labelled(
        t(_LEVELS.get(sure["level"], sure["level"])),
        _either(sure["reasons"][0])
        if sure["reasons"]
        else ""
        if sure["against"]
        else t("nothing speaks for or against it"),
        width,
    )
    for reason in sure["reasons"][1:]:
        yield from labelled("", _either(reason), width)
    for number, reason in enumerate(sure["against"]):
        yield from labelled(t("but") if not number else "", _either(reason), width)
    if sure["alternatives"]:
        yield from labelled(t("it may be"), "; ".join(_either(one) for one in sure["alternatives"]), width)


def _places(places: list[PlaceConsideredJson], width: int) -> Iterator[str]:
    if not places:
        return
    yield ""
    yield title(t("WHICH PLACE"))
    for one in places:
        shown = (
            one["place"]
            if one["best"]
            else t("{place} ({ill} of {of} nodes)", place=one["place"], ill=one["ill"], of=one["of"])
        )
        yield from labelled(t("it is") if one["best"] else t("not"), f"{shown}: {one['why']}", width)


def _changes(changes: list[ChangeJson], width: int) -> Iterator[str]:
    if not changes:
        return
    yield ""
    yield title(t("WHAT WOULD CHANGE IT"))
    for one in changes:
        yield from labelled(t(_TURNS.get(one["turn"], one["turn"])), _either(one["text"]), width)


def _evidence(incident: IncidentJson, width: int) -> Iterator[str]:
    for item in incident["evidence"]:
        yield from labelled(
            clock(item["at"])[6:14],
            f"{item['node']} {item['component']}: {item['kind']}  [{item['id']}]",
            width,
        )
        # The quoted line is broken as little as possible: people search for it.
        yield from labelled("", f"| {item['text']}", width)
    more = incident["symptom_count"] - len(incident["symptoms"])
    if more > 0:
        yield from labelled("", t("and {more_symptoms}", more_symptoms=many(more, "more symptom")), width)


def _run(run: ExplainedRunJson, width: int) -> Iterator[str]:
    yield from labelled(t("run"), f"{run['id']}: {run['runbook']} — {run['summary']}", width)
    yield from labelled(t("state"), f"{run['state']}: {run['why']}", width)
    for line in run["plan"]:
        yield from labelled(t("plan"), line, width)
    for plan in run["would"]:
        begins = t("would do") if plan["ok"] else t("would be refused")
        rung = plan["step"].rsplit(".", 2)[1]
        number = f"{(t('back ') if rung.startswith('b') else '')}{rung[1:]}."  # as in the plan
        yield from labelled(t("asked"), f"{number} {begins}: {'; '.join(plan['lines'])}", width)
    for gate in _unique(run["gates"]):
        yield from labelled(t("gate"), gate, width)
    for command in run["approvals"]:
        yield from labelled(t("operator"), command["text"], width)
    for step in run["steps"]:
        params = ", ".join(f"{key}={value}" for key, value in step["params"].items())
        proof = {None: "", True: t("; verified: it helped"), False: t("; verified: it did not help")}[
            step["verified"]
        ]
        outcome = step["outcome"] or (
            t("under way ({doing})", doing=step["doing"]) if step["doing"] else t("under way")
        )
        why = f": {step['why']}" if step["why"] else ""
        yield from labelled(
            f"{clock(step['at'])[6:14]}",
            f"{step['rung']}: {step['action']}({params}) → {outcome}{why}{proof}",
            width,
        )
        yield from labelled("", f"[{step['id']}]", width)
        if step["evidence"]:
            yield from labelled(
                "",
                t("bundle {evidence}: gpuward evidence {id}", evidence=step["evidence"], id=step["id"]),
                width,
            )


def _pages(pages: list[PageJson], width: int) -> Iterator[str]:
    if not pages:
        yield from labelled("", t("nobody yet"), width)
    for page in pages:
        how = (
            t(" — delivered {delivered}", delivered=page["delivered"])
            if page["delivered"]
            else t(" — NOT DELIVERED YET")
        )
        yield from labelled(clock(page["at"])[6:14], f"{page['text']}{how}  [{page['id']}]", width)
        for failure in page["failures"]:
            yield from labelled("", t("failed: {failure}", failure=failure), width)
    for ack in pages[-1]["acked"] if pages else ():
        yield from labelled(clock(ack["at"])[6:14], ack["text"], width)


def _todo(rule: RuleJson, width: int) -> Iterator[str]:
    knowledge = rule.get("knowledge")
    if not knowledge:
        return
    yield title(t("WHAT TO DO"))
    yield from labelled("", _either(knowledge["todo"]), width)
    for link in knowledge["links"]:
        yield from labelled(t("see"), link, width)
    yield ""


def _commands(
    incident: IncidentJson, runs: list[ExplainedRunJson], out_of_service: list[str], width: int
) -> Iterator[str]:
    if incident["state"] in ("closed", "explained"):
        return
    yield title(t("WHAT YOU CAN TYPE"))
    if not incident["pages"]["acked_by"]:
        yield from labelled("", f"gpuward ack {incident['id']}", width)
    for run in runs:
        if run["state"] == "approval":
            rung = f" --rung {shlex.quote(run['approval']['rung'])}" if run["approval"] else ""
            yield from labelled("", f"gpuward approve {run['id']}{rung}", width)
            yield from labelled("", f"gpuward deny {run['id']} --why '...'", width)
    yield from _return(incident, out_of_service, width)
    where = to_hold(incident["node"], incident["scope"])
    yield from labelled("", f"gpuward hold {where} --why '...'", width)


def _return(incident: IncidentJson, out_of_service: list[str], width: int) -> Iterator[str]:
    """What many nodes share does not end with one of them."""
    if incident["nodes"] <= 1 and out_of_service == [incident["node"]]:
        ends = t("when it is well: gives it back, which ends this")
        yield from labelled("", f"gpuward return {incident['node']}     {ends}", width)
    elif out_of_service:
        yield from labelled("", t("gpuward return NODE     when it is well: gives it back"), width)
        shown = ", ".join(out_of_service[:_MOST_NODES])
        more = (
            t(" and {out_of_service} more", out_of_service=len(out_of_service) - _MOST_NODES)
            if len(out_of_service) > _MOST_NODES
            else ""
        )
        yield from labelled("", t("out of service for this: {shown}{more}", shown=shown, more=more), width)


def _either(texts: TwoLanguagesJson) -> str:
    return either(texts["en"], texts["zh"])


def _unique(gates: list[LineJson]) -> list[str]:
    """Returns each text once, with its count: a gate that is evaluated every few seconds repeats itself."""
    counts: dict[str, int] = {}
    for gate in gates:
        counts[gate["text"]] = counts.get(gate["text"], 0) + 1
    return [
        text + (t(" ({times} times)", times=times) if times > 1 else "") for text, times in counts.items()
    ]
