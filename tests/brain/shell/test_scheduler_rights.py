"""What the brain's account may not do at a scheduler is told when the brain starts, not when a runbook needs it."""

from collections.abc import Collection
from math import inf

from agent.contract.errors import Refused, Unreachable
from brain.actions.base import Job, Wanted, always
from brain.actions.marks import Mark
from brain.leader.scheduler_rights import AGAIN_S, AWAY_S, LOOK_S, SCHEDULER_RIGHTS, SchedulerRights
from tests.brain.shell.test_brain_alerts import Site, site, until

__all__ = ["site"]


class Cluster:
    """A scheduler that says which rights are missing, or an error in place of it."""

    name = "k8s"

    def __init__(self) -> None:
        self.says: list[str] | Exception = []
        self.asked = 0

    async def lacking(self) -> list[str]:
        """As in Closing."""
        self.asked += 1
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    async def close(self) -> None:
        """As in Closing."""

    async def drained(self, node: str) -> str:
        """Not asked here."""
        raise NotImplementedError

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """Not asked here."""
        raise NotImplementedError

    async def drain(self, node: str, mark: Mark) -> None:
        """Not asked here."""
        raise NotImplementedError

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """Not asked here."""
        raise NotImplementedError

    async def jobs(self, node: str) -> list[Job]:
        """Not asked here."""
        raise NotImplementedError

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Not asked here."""
        raise NotImplementedError

    async def reboot(self, node: str, mark: Mark) -> None:
        """Not asked here."""
        raise NotImplementedError


class Watched:
    """A brain that has one cluster, and its time."""

    def __init__(self, of: Site) -> None:
        self.site = of
        self.cluster = Cluster()
        self.acts = True
        self.now_s = 0.0
        self.rights = SchedulerRights(
            {"k8s": self.cluster},
            caught_up=self._caught_up,
            acts=lambda: self.acts,
            alerts=of.alerts,
            notes=of.alerts._notes,
            clock=lambda: self.now_s,
        )

    async def _caught_up(self) -> None:
        """At once."""

    async def after(self, seconds: float) -> list[str]:
        """The causes that are open so much later."""
        self.now_s += seconds
        await self.rights.look()
        return [one.cause for one in self.site.alerts.open_now]


async def test_a_missing_right_is_paged_before_anything_needs_it_until_it_is_given(site: Site) -> None:
    """By its name; a denial is looked at twice, as a restarted API server denies for a moment."""
    it = Watched(site)
    it.cluster.says = ["create pods/eviction"]
    assert await it.after(0) == []
    assert await it.after(LOOK_S) == [SCHEDULER_RIGHTS]
    await until(lambda: bool(site.pager.pages))
    assert "scheduler k8s: this brain's account may not create pods/eviction" in site.pager.pages[0].because
    it.cluster.says = []
    assert await it.after(AGAIN_S) == []
    assert f"{SCHEDULER_RIGHTS}.over" in site.notes()


async def test_a_denial_of_a_moment_is_none(site: Site) -> None:
    """Nobody is paged for it."""
    it = Watched(site)
    it.cluster.says = Refused("403")
    await it.after(0)
    it.cluster.says = []
    assert await it.after(LOOK_S) == []
    assert site.notes() == []


async def test_who_only_observes_reads_a_note_and_is_paged_when_a_runbook_may_do_more(site: Site) -> None:
    """Once: a site may observe for weeks. What is asked of the cluster does not grow by it."""
    it = Watched(site)
    it.acts = False
    it.cluster.says = ["patch nodes"]
    await it.after(0)
    for _ in range(3):
        assert await it.after(LOOK_S) == []
    assert site.notes() == ["scheduler.rights"]
    assert it.cluster.asked == 2
    it.acts = True
    assert await it.after(LOOK_S) == [SCHEDULER_RIGHTS]
    assert it.cluster.asked == 2


async def test_one_that_does_not_answer_says_nothing_about_rights(site: Site) -> None:
    """What was known of it stands, and it is asked again soon; so is one whose answer nobody can read."""
    it = Watched(site)
    it.cluster.says = Unreachable("no route")
    assert await it.after(0) == []
    it.cluster.says = ["list pods"]
    await it.after(AWAY_S)
    assert await it.after(LOOK_S) == [SCHEDULER_RIGHTS]
    it.cluster.says = Unreachable("no route")
    assert await it.after(AGAIN_S) == [SCHEDULER_RIGHTS]
    it.cluster.says = KeyError("status")
    assert await it.after(AGAIN_S) == [SCHEDULER_RIGHTS]


async def test_an_account_that_is_not_let_in_is_told_in_the_servers_words(site: Site) -> None:
    """An expired token, for instance."""
    it = Watched(site)
    it.cluster.says = Refused("POST ...: 401 Unauthorized")
    await it.after(0)
    assert await it.after(LOOK_S) == [SCHEDULER_RIGHTS]
    assert site.alerts.open_now[0].text == "scheduler k8s: POST ...: 401 Unauthorized"
