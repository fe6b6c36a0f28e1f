"""`gpuward explain`: from the page back to the kernel line, for someone who is woken at three in the morning."""

from collections.abc import Iterator
from urllib.parse import urlencode

import click

from agent.contract.counted import counted
from brain.cli import completing, why_not
from brain.cli.answers import (
    ChainJson,
    ChangeJson,
    ExplainedRunJson,
    FoundJson,
    HitJson,
    IncidentJson,
    LineJson,
    PageJson,
    PlaceConsideredJson,
    RuleJson,
    SurenessJson,
    WhyNotJson,
)
from brain.cli.client import Client, for_client
from brain.cli.queries import clock
from brain.cli.terminal import as_json, hanging, page_width, print_json
from brain.hold_words import to_hold

_LABEL = 12
_TURNS = {"ends": "its end", "fresh": "fresh news", "wider": "wider cause", "other": "other cause"}
_UNKNOWN = {  # why it is not known who is hit, and who must do what
    "asked": "the scheduler is being asked",
    "silent": "the scheduler does not answer: whoever runs it sees to it; it is asked again for half an hour",
    "no_table": "no table [schedulers.*] has these nodes: whoever runs gpuward adds their scheduler to brain.toml",
    "no_scheduler": "no scheduler is configured: whoever runs gpuward adds a table [schedulers.<name>] to brain.toml",
    "not_asked": "it was not asked: it settles still, is about no node, or was open before this version led",
}
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
    if kinds := found.get("places_unknown"):
        yield from labelled(
            "not known", f"its {', '.join(kinds)}: the topology has them of other nodes", width
        )
    if found.get("trace_id"):
        yield from labelled("trace", found["trace_id"], width)
    yield from _hit(incident.get("hit"), width)
    yield ""
    yield title("WHY WE THINK SO")
    yield from _rule(rule, width)
    for symptom in found["symptoms"]:
        yield from labelled("symptom", f"{symptom['name']} at {symptom['scope']}", width)
    yield from _sureness(found.get("sureness"), width)
    yield from _places(found.get("places", []), width)
    yield from _changes(found.get("changes", []), width)
    yield ""
    yield title("WHAT IT RESTS ON")
    yield from _evidence(incident, width)
    yield ""
    yield title("WHAT WAS DONE")
    if not found["runs"]:
        yield from labelled("", "no runbook was started", width)
    for run in found["runs"]:
        yield from _run(run, width)
    yield ""
    yield title("WHO WAS TOLD")
    yield from _pages(found["pages"], width)
    yield ""
    yield from _todo(rule, width)
    yield from _commands(incident, found["runs"], found.get("out_of_service", []), width)
    if notes:
        yield ""
        yield title("EVERY NOTE")
        for note in found["notes"]:
            yield from labelled(
                clock(note["at"])[6:14], f"{note['kind']}: {note['text']} [{note['caused_by']}]", width
            )


def _named(named: FoundJson, width: int) -> Iterator[str]:
    """What was asked for, where it is no incident."""
    yield click.style(f"{named['kind']} {named['id']}", bold=True)
    if (hold := named["hold"]) is not None:
        until = f"until {clock(hold['until'])}" if hold["until"] else "until somebody releases it"
        yield from labelled("in force", f"{hold['scope']}, {until}: {hold['why']} ({hold['who']})", width)
    elif named["kind"] == "hold":
        yield from labelled("", "not in force any more", width)
    for note in named["notes"][:_MOST_NOTES]:
        yield from labelled(clock(note["at"])[6:14], f"{note['kind']}: {note['text']}", width)
    if (more := len(named["notes"]) - _MOST_NOTES) > 0:
        yield from labelled("", f"and {counted(more, 'more note')}: --json has them", width)
    if named["kind"] == "hold" and named["hold"] is not None:
        yield from labelled("", f"gpuward release {named['id']}", width)


def _incidents(named: FoundJson, width: int) -> Iterator[str]:
    """Where to go on, where it is of several incidents."""
    for number, one in enumerate(named["incidents"][:_MOST_NODES]):
        yield from labelled("incidents" if not number else "", f"gpuward explain {one}", width)
    if (more := len(named["incidents"]) - _MOST_NODES) > 0:
        yield from labelled("", f"and {counted(more, 'more incident')}: --json has them", width)


def _head(incident: IncidentJson, width: int) -> Iterator[str]:
    others = " and others" if incident["node"] else ""
    where = incident["scope"] + (f"{others}, {incident['nodes']} nodes" if incident["nodes"] > 1 else "")
    yield click.style(f"{incident['id']}  {incident['severity']}  {incident['state'].upper()}", bold=True)
    yield from labelled("what", incident["cause"].replace("_", " "), width)
    yield from labelled("where", where, width)
    yield from labelled("since", clock(incident["opened_at"]), width)
    if incident["closed_at"]:
        yield from labelled("until", f"{clock(incident['closed_at'])}: {incident['closed_why']}", width)
    if incident["explained_by"]:
        yield from labelled("explained by", incident["explained_by"], width)
    pages = incident["pages"]
    if passed_to := pages.get("passed_to"):
        yield from labelled("alert", f"goes on as that of {passed_to}: gpuward explain {passed_to}", width)
    elif (alert := pages.get("alert", incident["id"])) != incident["id"]:
        yield from labelled("alert", f"{alert}, which began with that incident", width)
    for channel, key in pages.get("tickets", {}).items():
        yield from labelled("ticket", f"{key} ({channel})", width)
    if incident["waits"]:
        yield from labelled("waits", incident["waits"], width)
    if incident["explains"]:
        yield from labelled("explains", counted(incident["explains"], "other finding"), width)
    if incident["stale"]:
        yield from labelled("old", "every fact was old when it arrived; it may be over", width)


def _hit(hit: HitJson | None, width: int) -> Iterator[str]:
    """Whose jobs ran on its nodes; an earlier brain does not say."""
    if hit is None:
        return
    yield ""
    yield title("WHO IS HIT")
    if hit["known"] != "known":
        yield from labelled("not known", _UNKNOWN.get(hit["known"], hit["known"]), width)
    elif not hit["jobs"]:
        yield from labelled("nobody", f"no job runs there, as of {clock(hit['at'])}", width)
    for job in hit["jobs"]:
        gone = f"; not there any more since {clock(job['gone_at'])}" if job["gone_at"] else ""
        yield from labelled(clock(job["since"])[6:14], f"{job['text']}{gone}", width)
    if hit["more_jobs"]:
        yield from labelled("", f"and {counted(hit['more_jobs'], 'more job')}", width)
    if hit["why"]:
        yield from labelled("", f"not answered: {hit['why']}", width)
    if hit["left_out"]:
        yield from labelled("", f"{counted(hit['left_out'], 'more node')} of it were not asked about", width)


def _rule(rule: RuleJson, width: int) -> Iterator[str]:
    yield from labelled("rule", f"{rule['name']} (rules {rule['version']})", width)
    yield from labelled("because", rule["because"], width)
    if knowledge := rule.get("knowledge"):
        yield from labelled("cause", knowledge["cause"]["en"], width)
        yield from labelled("", knowledge["cause"]["zh"], width)


def _sureness(sure: SurenessJson | None, width: int) -> Iterator[str]:
    if sure is None:
        return
    yield ""
    yield title("HOW SURE")
    yield from labelled(sure["level"], sure["reasons"][0]["en"] if sure["reasons"] else "", width)
    for reason in sure["reasons"][1:]:
        yield from labelled("", reason["en"], width)
    for number, reason in enumerate(sure["against"]):
        yield from labelled("but" if not number else "", reason["en"], width)
    if sure["alternatives"]:
        yield from labelled("it may be", "; ".join(one["en"] for one in sure["alternatives"]), width)


def _places(places: list[PlaceConsideredJson], width: int) -> Iterator[str]:
    if not places:
        return
    yield ""
    yield title("WHICH PLACE")
    for one in places:
        shown = one["place"] if one["best"] else f"{one['place']} ({one['ill']} of {one['of']} nodes)"
        yield from labelled("it is" if one["best"] else "not", f"{shown}: {one['why']}", width)


def _changes(changes: list[ChangeJson], width: int) -> Iterator[str]:
    if not changes:
        return
    yield ""
    yield title("WHAT WOULD CHANGE IT")
    for one in changes:
        yield from labelled(_TURNS.get(one["turn"], one["turn"]), one["text"]["en"], width)


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
        yield from labelled("", f"and {counted(more, 'more symptom')}", width)


def _run(run: ExplainedRunJson, width: int) -> Iterator[str]:
    yield from labelled("run", f"{run['id']}: {run['runbook']} — {run['summary']}", width)
    yield from labelled("state", f"{run['state']}: {run['why']}", width)
    for line in run["plan"]:
        yield from labelled("plan", line, width)
    for plan in run["would"]:
        begins = "would do" if plan["ok"] else "would be refused"
        rung = plan["step"].rsplit(".", 2)[1]
        number = f"{'back ' if rung.startswith('b') else ''}{rung[1:]}."  # as in the plan
        yield from labelled("asked", f"{number} {begins}: {'; '.join(plan['lines'])}", width)
    for gate in _unique(run["gates"]):
        yield from labelled("gate", gate, width)
    for command in run["approvals"]:
        yield from labelled("operator", command["text"], width)
    for step in run["steps"]:
        params = ", ".join(f"{key}={value}" for key, value in step["params"].items())
        proof = {None: "", True: "; verified: it helped", False: "; verified: it did not help"}[
            step["verified"]
        ]
        outcome = step["outcome"] or (f"under way ({step['doing']})" if step["doing"] else "under way")
        why = f": {step['why']}" if step["why"] else ""
        yield from labelled(
            f"{clock(step['at'])[6:14]}",
            f"{step['rung']}: {step['action']}({params}) → {outcome}{why}{proof}",
            width,
        )
        yield from labelled("", f"[{step['id']}]", width)
        if step["evidence"]:
            yield from labelled("", f"bundle {step['evidence']}: gpuward evidence {step['id']}", width)


def _pages(pages: list[PageJson], width: int) -> Iterator[str]:
    if not pages:
        yield from labelled("", "nobody yet", width)
    for page in pages:
        how = f" — delivered {page['delivered']}" if page["delivered"] else " — NOT DELIVERED YET"
        yield from labelled(clock(page["at"])[6:14], f"{page['text']}{how}  [{page['id']}]", width)
        for failure in page["failures"]:
            yield from labelled("", f"failed: {failure}", width)
    for ack in pages[-1]["acked"] if pages else ():
        yield from labelled(clock(ack["at"])[6:14], ack["text"], width)


def _todo(rule: RuleJson, width: int) -> Iterator[str]:
    knowledge = rule.get("knowledge")
    if not knowledge:
        return
    yield title("WHAT TO DO")
    yield from labelled("", knowledge["todo"]["en"], width)
    yield from labelled("", knowledge["todo"]["zh"], width)
    for link in knowledge["links"]:
        yield from labelled("see", link, width)
    yield ""


def _commands(
    incident: IncidentJson, runs: list[ExplainedRunJson], out_of_service: list[str], width: int
) -> Iterator[str]:
    if incident["state"] in ("closed", "explained"):
        return
    yield title("WHAT YOU CAN TYPE")
    if not incident["pages"]["acked_by"]:
        yield from labelled("", f"gpuward ack {incident['id']}", width)
    for run in runs:
        if run["state"] == "approval":
            yield from labelled(
                "", f"gpuward approve {run['id']}     or: gpuward deny {run['id']} --why '...'", width
            )
    yield from _return(incident, out_of_service, width)
    where = to_hold(incident["node"], incident["scope"])
    yield from labelled("", f"gpuward hold {where} --why '...'", width)


def _return(incident: IncidentJson, out_of_service: list[str], width: int) -> Iterator[str]:
    """What many nodes share does not end with one of them."""
    if incident["nodes"] <= 1 and out_of_service == [incident["node"]]:
        ends = "when it is well: gives it back, which ends this"
        yield from labelled("", f"gpuward return {incident['node']}     {ends}", width)
    elif out_of_service:
        yield from labelled("", "gpuward return NODE     when it is well: gives it back", width)
        shown = ", ".join(out_of_service[:_MOST_NODES])
        more = f" and {len(out_of_service) - _MOST_NODES} more" if len(out_of_service) > _MOST_NODES else ""
        yield from labelled("", f"out of service for this: {shown}{more}", width)


def title(text: str) -> str:
    """A head line."""
    return click.style(text, fg="cyan", bold=True)


def labelled(label: str, text: str, width: int) -> Iterator[str]:
    """Yields `  label   text`, wrapped with a hanging indent."""
    yield from hanging(f"  {label:<{_LABEL}} ", text, width)


def _unique(gates: list[LineJson]) -> list[str]:
    """Returns each text once, with its count: a gate that is evaluated every few seconds repeats itself."""
    counts: dict[str, int] = {}
    for gate in gates:
        counts[gate["text"]] = counts.get(gate["text"], 0) + 1
    return [text + (f" ({times} times)" if times > 1 else "") for text, times in counts.items()]
