"""Who is hit by an incident, as `gpuward explain` says it: the jobs on its nodes, or why nobody knows."""

from collections.abc import Iterator

from agent.shared.words import later, many, t
from brain.cli.answers import HitJson
from brain.cli.queries import clock
from brain.cli.terminal import labelled, title

_UNKNOWN = {  # why it is not known who is hit, and who must do what
    "asked": later("the scheduler is being asked"),
    "silent": later(
        "the scheduler does not answer: whoever runs it sees to it; it is asked again for half an hour"
    ),
    "no_table": later(
        "no table [schedulers.*] has these nodes: whoever runs gpuward adds their scheduler to brain.toml"
    ),
    "no_scheduler": later(
        "no scheduler is configured: whoever runs gpuward adds a table [schedulers.<name>] to brain.toml"
    ),
    "not_asked": later(
        "it was not asked: it settles still, is about no node, or was open before this version led"
    ),
}


def who_is_hit(hit: HitJson | None, width: int) -> Iterator[str]:
    """Whose jobs ran on its nodes; an earlier brain does not say."""
    if hit is None:
        return
    yield ""
    yield title(t("WHO IS HIT"))
    if hit["known"] != "known":
        yield from labelled(t("not known"), t(_UNKNOWN.get(hit["known"], hit["known"])), width)
    elif not hit["jobs"]:
        yield from labelled(t("nobody"), t("no job runs there, as of {at}", at=clock(hit["at"])), width)
    for job in hit["jobs"]:
        gone = (
            t("; not there any more since {gone_at}", gone_at=clock(job["gone_at"])) if job["gone_at"] else ""
        )
        yield from labelled(clock(job["since"])[6:14], f"{job['text']}{gone}", width)
    if hit["more_jobs"]:
        yield from labelled("", t("and {more_jobs}", more_jobs=many(hit["more_jobs"], "more job")), width)
    if hit["why"]:
        yield from labelled("", t("not answered: {why}", why=hit["why"]), width)
    if hit["left_out"]:
        yield from labelled(
            "",
            t("{more_nodes} of it were not asked about", more_nodes=many(hit["left_out"], "more node")),
            width,
        )
