"""The arithmetic of each policy on four nodes with one fault, by hand.

The job has three nodes; its checkpoint is 15 minutes old when the fault ends it: 3 x 900 node-seconds of work. It is requeued
a minute later, starts for ten minutes, and fails again as long as the node is not drained.
"""

import pytest

from simulations.month.baselines import (
    AlertingOnly,
    BaselineFleet,
    DrainAndReboot,
    Ideal,
    NvSentinel,
    PeopleAlone,
)
from simulations.month.draw import Month
from simulations.month.tally import ActVerdict, FaultStory, Tally
from tests.simulations.month.kit import HANDS_S, LOOK_S, NOTICE_S, ON, case, month

RESET_S, BOOT_S, SETTLE_S = 100.0, 720.0, 60.0
REQUEUE_S, START_S = 60.0, 600.0
NODES = 3  # of the job


def played(policy: type[BaselineFleet], given: Month) -> Tally:
    fleet = policy(given)
    fleet.run(given.days * 86400)
    return fleet.world.close()


def only(tally: Tally) -> FaultStory:
    (story,) = tally.stories.values()
    return story


def waits(fleet: BaselineFleet, every_s: float) -> float:
    """How long after the fault something looks at the node."""
    now = fleet.start + 2700.0
    return fleet.next_look(ON, now, every_s) - now


def test_the_ideal_resets_at_once_and_the_job_starts_once() -> None:
    """Ten minutes and a half of three nodes, and a node out for the reset."""
    tally = played(Ideal, month(case()))
    assert only(tally).healed_s == pytest.approx(RESET_S + 1, abs=0.2)
    assert tally.jobs.work == NODES * 900
    assert tally.jobs.away == NODES * (REQUEUE_S + START_S)
    assert tally.jobs.failed_starts == 0
    assert tally.out_s == pytest.approx(RESET_S + 1, abs=0.2)
    assert [(act.action, act.verdict) for act in tally.acts] == [
        ("scheduler.drain", ActVerdict.RIGHT),
        ("gpu.reset", ActVerdict.RIGHT),
    ]


def test_people_alone_come_after_they_have_noticed_and_looked() -> None:
    """Meanwhile the job fails twice when it starts, and people end its third start."""
    tally = played(PeopleAlone, month(case()))
    knows_s = (
        NOTICE_S + LOOK_S
    )  # 1800: the job has failed at 660 and 1320, and starts for the third time since 1380
    story = only(tally)
    assert story.detected_s == NOTICE_S
    assert story.decided_s == knows_s
    assert story.people
    assert story.healed_s == pytest.approx(knows_s + RESET_S + SETTLE_S, abs=0.2)
    assert tally.jobs.failed_starts == 3
    assert tally.jobs.away == NODES * (knows_s + REQUEUE_S + START_S)


def test_alerting_only_pages_five_minutes_after_the_next_scrape() -> None:
    """Then somebody looks: the job has failed once when it started, and people end its second start."""
    tally = played(AlertingOnly, month(case()))
    paged_s = waits(AlertingOnly(month(case())), 15.0) + 300
    story = only(tally)
    assert story.detected_s == pytest.approx(paged_s, abs=0.001)
    assert story.healed_s == pytest.approx(paged_s + LOOK_S + RESET_S + SETTLE_S, abs=0.2)
    assert tally.jobs.failed_starts == 2
    assert tally.jobs.away == pytest.approx(NODES * (paged_s + LOOK_S + REQUEUE_S + START_S))
    assert tally.pages == 1


def test_drain_and_reboot_reboots_at_the_next_check() -> None:
    """It waits for the start that is under way, if there is one: here the check comes before it or after it."""
    tally = played(DrainAndReboot, month(case()))
    checked_s = waits(DrainAndReboot(month(case())), 300.0)
    story = only(tally)
    assert story.detected_s == pytest.approx(checked_s, abs=0.001)
    assert not story.people
    begun_s = checked_s if checked_s < REQUEUE_S else REQUEUE_S + START_S
    assert story.healed_s == pytest.approx(begun_s + BOOT_S + SETTLE_S, abs=1.0)
    assert [act.action for act in tally.acts] == ["scheduler.drain", "node.reboot"]
    assert tally.returned_broken == 0


def test_drain_and_reboot_gives_a_broken_node_back_twice_then_calls_a_person() -> None:
    """A reboot does not help against a part that must be replaced."""
    tally = played(DrainAndReboot, month(case(cured=False)))
    assert [act.action for act in tally.acts].count("node.reboot") == 2
    assert tally.returned_broken == 2
    assert tally.harmful >= 2
    assert tally.pages == 1
    assert only(tally).people


def test_nvsentinel_resets_after_its_look_and_gives_a_broken_node_back_five_times() -> None:
    """What its monitors see is reset within seconds; what a reset does not cure is given back broken, then a person comes."""
    tally = played(NvSentinel, month(case()))
    seen_s = waits(NvSentinel(month(case())), 15.0)
    assert only(tally).healed_s == pytest.approx(seen_s + RESET_S + SETTLE_S, abs=0.2)
    assert not only(tally).people
    broken = played(NvSentinel, month(case(cured=False)))
    assert broken.returned_broken == 5
    assert [act.verdict for act in broken.acts if act.action == "gpu.reset"] == [ActVerdict.WRONG] * 5
    assert broken.pages == 1


def test_what_nvsentinel_does_not_see_is_alerted_on() -> None:
    """A hung driver is none of its events."""
    tally = played(NvSentinel, month(case("driver-hung")))
    assert only(tally).people
    assert tally.pages == 1


@pytest.mark.parametrize("policy", [PeopleAlone, AlertingOnly, DrainAndReboot, NvSentinel, Ideal])
def test_hands_take_the_same_time_under_every_policy(policy: type[BaselineFleet]) -> None:
    """The start is a Tuesday, 22:13 UTC: hands come on Wednesday at 08:00."""
    tally = played(policy, month(case("memory-broken", cured=False)))
    until_eight_s = (24 - 22) * 3600 + 8 * 3600 - 800 - 2700  # from the fault at 22:58:20
    story = only(tally)
    assert story.healed_s == pytest.approx(until_eight_s + HANDS_S, abs=SETTLE_S + 1)
    assert story.people


@pytest.mark.parametrize("policy", [PeopleAlone, AlertingOnly, DrainAndReboot, NvSentinel, Ideal])
def test_nothing_is_done_about_a_jobs_own_bug(policy: type[BaselineFleet]) -> None:
    """The job starts again; no policy here is worse than that."""
    tally = played(policy, month(case("program-fails")))
    assert tally.acts == []
    assert tally.jobs.away == NODES * (REQUEUE_S + START_S)


def test_without_faults_nothing_is_lost() -> None:
    """Under no policy."""
    for policy in (PeopleAlone, AlertingOnly, DrainAndReboot, NvSentinel, Ideal):
        tally = played(policy, month())
        assert (tally.out_s, tally.jobs.total, tally.acts) == (0.0, 0.0, [])
