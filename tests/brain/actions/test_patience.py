"""A scheduler that is away for a moment, denies for a moment, or fails with words: what a step makes of it."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import inf

import pytest

from agent.contract.errors import ActionError, Refused, TimedOut, Transient, Unreachable
from brain.actions import scheduler as actions
from brain.actions.base import Job, Order, Wanted, always
from brain.actions.marks import Mark, added, read, without, written
from brain.actions.patience import Grants

AWAY, LOST, BROKEN = (
    Unreachable("connection refused"),
    TimedOut("no answer"),
    Transient("500 etcd leader changed"),
)
NO = Refused("403 nodes is forbidden")


class Stumbling:
    """A scheduler that fails with the next of `errors` before it does what it is asked."""

    name = "stumbling"

    def __init__(self, errors: Sequence[ActionError], *, lost: bool = False) -> None:
        """`lost`: changes are made although their answer is lost."""
        self.errors, self.lost = list(errors), lost
        self.reason = ""
        self.changes = 0

    def _stumble(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    async def drained(self, node: str) -> str:
        """As in Scheduler."""
        self._stumble()
        return self.reason

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """As in Scheduler."""
        self._stumble()
        return read(self.reason)

    async def drain(self, node: str, mark: Mark) -> None:
        """As in Scheduler."""
        wanted = written(added(read(self.reason), mark))
        if self.lost:
            self._change(wanted)
        self._stumble()
        self._change(wanted)

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """As in Scheduler."""
        marks = read(self.reason)
        left = without(marks, owners)
        wanted = written(left) if left else "" if marks else self.reason
        if self.lost:
            self._change(wanted)
        self._stumble()
        self._change(wanted)
        return len(left) != len(marks)

    def _change(self, reason: str) -> None:
        self.changes += reason != self.reason
        self.reason = reason

    async def jobs(self, node: str) -> list[Job]:
        """As in Scheduler."""
        self._stumble()
        return []

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """As in Scheduler."""
        self._stumble()

    async def reboot(self, node: str, mark: Mark) -> None:
        """As in Scheduler."""
        self.changes += 1
        self._stumble()


def order(incident: str = "inc-1", *, timeout_s: float = 60.0, **params: str) -> Order:
    """What a runbook orders."""
    return Order(id="s", incident=incident, node="gpu1", params=params, timeout_s=timeout_s, why="xid 79")


@pytest.mark.parametrize("errors", [[AWAY], [BROKEN], [LOST], [AWAY, BROKEN, LOST, AWAY]])
@pytest.mark.parametrize("lost", [False, True])
async def test_a_blip_ends_no_drain_and_no_resume(errors: list[ActionError], lost: bool) -> None:
    """Wherever it comes, and whether or not the change was made before its answer was lost: done once."""
    for at in range(4):
        there = Stumbling([], lost=lost)
        drain, resume = actions.Drain(lambda _: there), actions.Resume(lambda _: there)  # noqa: B023
        there.errors = [*errors]
        assert (await drain.run(order())).data["ours"] is True
        assert there.changes == 1
        there.errors = [*errors][at % len(errors) :]
        assert (await resume.run(order())).data == {"resumed": True, "takes_jobs": True}
        assert there.changes == 2


async def test_a_refusal_is_asked_once() -> None:
    """The counterpart's words reach the operator."""
    there = Stumbling([NO, AWAY])
    with pytest.raises(Refused, match="403 nodes is forbidden"):
        await actions.Drain(lambda _: there).run(order())
    assert there.errors == [AWAY]


@pytest.mark.parametrize(
    ("errors", "kind", "says"),
    [
        ([AWAY] * 99, Unreachable, "connection refused"),
        ([BROKEN] * 99, Transient, "500 etcd leader changed"),
        ([LOST, *[AWAY] * 98], TimedOut, "connection refused; before that: no answer"),
    ],
)
async def test_what_is_told_when_the_steps_time_is_over(
    errors: list[ActionError], kind: type[ActionError], says: str
) -> None:
    """Nobody answered: nothing was done. It answered 500: its words. One answer was lost: nobody knows."""
    with pytest.raises(kind, match=says):
        await actions.Drain(lambda _: Stumbling(errors)).run(order(timeout_s=1.0))


async def test_a_drain_that_stands_is_not_denied_when_the_scheduler_goes_away() -> None:
    """After the drain was made, no error says that nothing was done."""
    there = Stumbling([])

    class Gone(Stumbling):
        async def jobs(self, node: str) -> list[Job]:
            raise AWAY

    there = Gone([])
    with pytest.raises(
        ActionError, match="gpu1 was drained; what runs there is not known: connection refused"
    ) as it:
        await actions.Drain(lambda _: there).run(order(timeout_s=1.0))
    assert type(it.value) is ActionError


async def test_a_retry_goes_on_with_the_wait() -> None:
    """Jobs that have not ended within `wait_s` are told; the next attempt of the same rung does not wait once more."""

    class Busy(Stumbling):
        async def jobs(self, node: str) -> list[Job]:
            return [Job(id="4711")]

    busy = Busy([])
    drain = actions.Drain(lambda _: busy)
    took_s = []
    for step in ("run-1.s2.a1", "run-1.s2.a2", "run-2.s2.a1"):
        began_s = time.monotonic()
        with pytest.raises(ActionError, match="drained by us, and there still run 1 job: 4711"):
            await drain.run(replace(order(), id=step, params={"wait_s": 0.4}))
        took_s.append(time.monotonic() - began_s)
    assert (took_s[0] >= 0.4, took_s[1] < 0.4, took_s[2] >= 0.4) == (True, True, True)


async def test_an_attempt_does_not_drain_again_what_a_person_has_given_back_since_the_one_before() -> None:
    """Jobs were left, and the rung is tried again; meanwhile somebody has taken the drain off. Another run may drain."""

    class Busy(Stumbling):
        async def jobs(self, node: str) -> list[Job]:
            return [Job(id="4711")]

    busy = Busy([])
    drain = actions.Drain(lambda _: busy)
    first = replace(order(), id="run-1.s2.a1")
    with pytest.raises(ActionError, match="there still run 1 job"):
        await drain.run(first)
    busy.reason = ""
    with pytest.raises(Refused, match="someone has taken the drain off gpu1 since the attempt before"):
        await drain.run(replace(first, id="run-1.s2.a2"))
    assert (busy.reason, busy.changes) == ("", 1)
    with pytest.raises(ActionError, match="there still run 1 job"):
        await drain.run(replace(first, id="run-2.s2.a1"))
    assert busy.reason


async def test_a_node_is_not_rebooted_again_when_the_answer_is_lost() -> None:
    """Away is asked again; a lost answer ends the step as unknown."""
    there = Stumbling([*[AWAY] * 2], lost=True)
    reboot = actions.Reboot(lambda _: there)
    await reboot.run(order())
    there.changes = 0

    class Lost(Stumbling):
        async def reboot(self, node: str, mark: Mark) -> None:
            self.changes += 1
            raise LOST

    lost = Lost([])
    with pytest.raises(TimedOut):
        await actions.Reboot(lambda _: lost).run(order())
    assert lost.changes == 1


async def test_the_scheduler_gets_the_node_back_from_its_last_owner() -> None:
    """Each incident takes its own mark off; a person's word takes all of them."""
    there = Stumbling([])
    drain, resume = actions.Drain(lambda _: there), actions.Resume(lambda _: there)
    for incident in ("inc-1", "inc-2", "inc-1", "inc-3"):
        assert (await drain.run(order(incident))).data["ours"] is True
    assert [mark.incident for mark in read(there.reason)] == ["inc-1", "inc-2", "inc-3"]

    kept = {"resumed": False, "takes_jobs": False}
    done = await resume.run(order("inc-1"))
    assert (done.data, done.text.partition(":")[0]) == (kept, "gpu1 stays drained by us, for other incidents")
    assert (await resume.run(order("inc-1"))).data == kept, "asked twice"
    assert (await resume.plan(order("inc-1")))[0].startswith("nothing: gpu1 has no mark of inc-1")
    assert (await resume.plan(order("inc-2")))[0].startswith("take the mark of inc-2 off gpu1")
    assert (await resume.run(order("request-1", owners="inc-2 inc-1"))).data == kept
    assert (await resume.run(order("inc-3"))).data == {"resumed": True, "takes_jobs": True}

    for incident in ("inc-1", "inc-2"):
        await drain.run(order(incident))
    assert (await resume.run(order("request-2"))).data == kept
    assert (await resume.run(order("request-2", owners="all"))).data == {"resumed": True, "takes_jobs": True}


@pytest.mark.parametrize("reason", ["admin: new PSU", "gpuward: xid 79 [inc-1] #0000", "cordoned by kubectl"])
async def test_a_persons_drain_is_never_resumed(reason: str) -> None:
    """Not by its incident, and not by a person's word about ours."""
    there = Stumbling([])
    there.reason = reason
    for wanted in (order(), order(owners="all")):
        done = await actions.Resume(lambda _: there).run(wanted)
        assert done.data == {"resumed": False, "takes_jobs": False}
        assert reason in done.text
    assert there.reason == reason


def test_a_denial_is_passing_only_for_an_account_that_is_known() -> None:
    """Never let in: refused, with the right that is missing. Let in, or after an outage: asked again for a while."""
    grants = Grants()
    stranger = grants.denied("patch nodes", "403 forbidden")
    assert isinstance(stranger, Refused)
    assert str(stranger) == "the brain's account has no right to patch nodes: 403 forbidden"
    grants.away()
    assert isinstance(grants.denied("patch nodes", "403 forbidden"), Transient)
    other = Grants()
    other.allowed("get nodes")
    assert isinstance(other.denied("patch nodes", "403 forbidden"), Transient)


def test_a_right_that_was_withdrawn_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """After half a minute of denials; other rights that still hold do not make it look passing."""
    now = [100.0]
    monkeypatch.setattr("brain.actions.patience.monotonic", lambda: now[0])
    grants = Grants()
    grants.allowed("patch nodes")
    assert isinstance(grants.denied("patch nodes", "403"), Transient)
    now[0] += 31
    grants.allowed("get nodes")
    assert isinstance(grants.denied("patch nodes", "403"), Refused)
    grants.allowed("patch nodes")
    assert isinstance(grants.denied("patch nodes", "403"), Transient)
