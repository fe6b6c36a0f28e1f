"""Who is hit by an incident."""

from pydantic import Field

from brain.console.api.base import Shape, Time


class HitJobShape(Shape):
    """One job that ran on nodes of an incident."""

    id: str = Field(description="Slurm's id, or namespace/pod.")
    name: str = Field(description="That its owner gave it; of a pod that of its workload. Empty: none.")
    user: str = Field(description="Its user; of a pod its namespace. Empty: not known.")
    nodes: int = Field(description="How many nodes it has in all; 0: not known.")
    here: int = Field(description="On how many of the nodes that were asked about it ran.")
    on: list[str] = Field(description="On which.")
    gpus: int = Field(description="GPUs that it has on them; 0: none, or not known.")
    since: Time | None = Field(description="When its scheduler first named it.")
    gone_at: Time | None = Field(description="When it first did not any more; null: it still runs there.")
    text: str = Field(description="The same as a sentence.")


class HitShape(Shape):
    """Who is hit by an incident, as the schedulers of its nodes tell. Nothing is decided by it."""

    known: str = Field(
        description="known, asked (the answer is still out), silent (it did not answer), no_table (no scheduler of the "
        "configuration has the nodes), no_scheduler (none is configured), not_asked (it settles, is about no node, or was open "
        "before)."
    )
    why: str = Field(description="Why it is not known of some node; empty: it is.")
    since: Time | None = Field(description="When it was first known.")
    at: Time | None = Field(description="When a scheduler last answered.")
    asked: int = Field(description="About how many nodes their schedulers were asked.")
    answered: int = Field(description="Of how many of them it is known.")
    left_out: int = Field(description="How many nodes of the incident were not asked about.")
    jobs: list[HitJobShape] = Field(description="Those that still run there first, the largest first.")
    more_jobs: int = Field(description="How many more were named.")
