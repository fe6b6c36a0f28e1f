"""A GPU or node that is slower than its peers of one job, over time. How people see it: simulations/scenarios/stragglers.yaml."""

from hypothesis import given
from hypothesis import strategies as st

from brain.adapters.snapshot import dump, parse
from brain.core.engine import Engine
from brain.core.inputs import NodeState
from brain.core.pack.actions import ACTIONS
from brain.core.state import IncidentState
from brain.core.why import sureness, why_not
from tests.brain.straggler_kit import (
    ADDRESSES,
    COMPILED,
    NODES,
    PACK,
    SLOW,
    USUAL,
    WAITS,
    Figures,
    engine,
    even,
    minute,
    said,
    slow_in,
    tells,
    with_slow,
)
from tests.brain.world import Story


class TestOverTime:
    """What the engine makes of minutes that come one after the other."""

    def test_it_lasts_for_four_minutes_until_it_is_told(self) -> None:
        """And the incident has the value, the peers' median, and for how long it was as they are."""
        story = Story(PACK)
        even(story, 10, 2000)
        tells(story, 700, "n007", with_slow(2))
        story.run(930)
        assert story.incidents("straggler") == []
        story.run(1100)
        (one,) = story.incidents("straggler")
        assert (one.scope, one.severity, one.pages.sent > 0) == (f"gpu/n007/{ADDRESSES[2]}", "P2", True)
        text = one.evidence[0].text
        assert "SM clock 1410 MHz, and 1980 MHz is the median of job 4711 on 63 other nodes" in text
        assert "410 W beside 690 W" in text
        assert "as its peers for 12 minutes" in text
        assert story.actions() == [], "nothing is done without an approval"

    def test_how_sure_it_is_when_its_rank_was_never_as_the_others(self) -> None:
        """It may have other work by design, and the verdict says so; one that became slow may not."""
        story = Story(PACK)
        even(story, 10, 2000, [node for node in NODES if node not in ("n007", "n009")])
        tells(story, 10, "n007", with_slow(2))
        tells(story, 10, "n009", [USUAL] * 8)
        tells(story, 500, "n009", with_slow(3))
        story.run(1000)
        found = {one.node: one for one in story.incidents("straggler")}
        ctx = story.engine.look()
        sure = {node: sureness.of(ctx, ctx.state.incidents[one.id]) for node, one in found.items()}
        assert next(one.en for one in sure["n007"].against).startswith(
            "it has differed since its job came to it"
        )
        assert sure["n007"].level is sureness.Level.LIKELY
        assert sure["n009"].level is sureness.Level.SURE
        assert "by design" in found["n007"].evidence[0].text

    def test_its_words_say_what_it_does_to_its_job(self) -> None:
        """Where the job's log tells its steps: how much longer they take than at their best, or that they do not."""
        for now, words in (
            (7150.0, "its job's steps take 38 % longer than at their best"),
            (5300.0, "as long as before"),
        ):
            story = Story(PACK)
            even(story, 10, 2000, [node for node in NODES if node != "n007"])
            tells(story, 10, "n007", [USUAL] * 8)
            for at, step_s in ((100, 5200.0), (780, now), (790, "fast"), (800, -1.0)):
                story.event(at, "job.steps", "job/4711", "n000", step_s=step_s, job="4711", file="x")
            tells(story, 700, "n007", with_slow(2))
            story.run(1100)
            (one,) = story.incidents("straggler")
            assert words in one.evidence[-1].text
            assert one.evidence[-1].text != one.evidence[0].text

    def test_it_is_over_when_it_is_as_its_peers_or_its_job_is_gone(self) -> None:
        for last in (minute([USUAL] * 8), minute([], active=False)):
            story = Story(PACK)
            even(story, 10, 2400)
            tells(story, 700, "n007", with_slow(2))
            story.event(1300, "gpu.minute", "node", "n007", **last)
            story.run(2400)
            (one,) = story.incidents("straggler")
            assert one.state is IncidentState.CLOSED

    def test_a_node_that_tells_nothing_more_is_no_peer_and_no_straggler(self) -> None:
        """After 25 minutes, with the next word of another one."""
        made = engine()
        for number, node in enumerate(NODES[:8]):
            made.handle(said(node, 1, minute(with_slow(1) if node == "n003" else [USUAL] * 8)), 10 + number)
        assert slow_in(made) == {"n003": f"gpu/{ADDRESSES[1]}"}
        for node in NODES[:8]:
            if node != "n003":
                made.handle(said(node, 2, minute([USUAL] * 8)), 1000)
        assert slow_in(made)
        made.handle(said("n000", 3, minute([USUAL] * 8)), 1530)
        assert slow_in(made) == {}
        assert len(made.state.minutes) == 7

    def test_the_peers_change_and_not_the_node(self) -> None:
        """The job slows down as a whole, node by node: the first of them are stragglers for less than four minutes."""
        story = Story(PACK)
        even(story, 10, 700)
        for number, node in enumerate(NODES):
            tells(story, 700 + number, node, [SLOW] * 8)
        story.run(2000)
        assert story.incidents("straggler") == []
        assert slow_in(story.engine) == {}

    def test_half_of_its_gpus_are_the_node(self) -> None:
        """Four of eight are told as the node; when they are two again, as these."""
        made = engine()
        for node in NODES[:12]:
            made.handle(said(node, 1, minute([USUAL] * 8)), 10)
        made.handle(said("n003", 2, minute(with_slow(0, 1, 2, 3))), 20)
        assert slow_in(made) == {"n003": "node"}
        made.handle(said("n003", 3, minute(with_slow(2, 3))), 30)
        assert slow_in(made) == {"n003": f"gpu/{ADDRESSES[2]} gpu/{ADDRESSES[3]}"}
        keys = [key for key in made.state.symptoms if "straggler" in key]
        assert keys == [f"gpu_straggler@gpu/n003/{ADDRESSES[2]}", f"gpu_straggler@gpu/n003/{ADDRESSES[3]}"]

    def test_a_node_that_is_slow_in_two_jobs_is_so_until_both_are_over(self) -> None:
        """One of them says that it is as its peers; the other one does not."""
        made = engine()
        for job in ("1", "2"):
            for number, node in enumerate(NODES[:12]):
                gpus = [SLOW if node == "n003" else USUAL] * 8
                made.handle(said(node, int(job), minute(gpus, job=job)), 10 + number)
        made.handle(said("n003", 3, minute([USUAL] * 8, job="1")), 30)
        assert made.state.symptoms["node_straggler@node/n003"].on
        made.handle(said("n003", 4, minute([], job="2", active=False)), 40)
        assert "node_straggler@node/n003" not in made.state.symptoms

    def test_what_is_not_judged_is_noted_once(self) -> None:
        """A job of two nodes, of which one is slow; and what no brain can read."""
        story = Story(PACK)
        tells(story, 10, "n000", [USUAL] * 8)
        for at in (20, 620, 1220):
            tells(story, at, "n001", with_slow(2))
        story.event(1300, "gpu.minute", "node", "n002", **{**minute([USUAL]), "sm_mhz": "fast"})
        story.run(2000)
        (note,) = story.notes("straggler.unjudged")
        assert (
            "n001 is slower than the others of job 4711, and that is not judged: 1 other node of the job"
            in note
        )
        assert len(story.notes("straggler.unread")) == 1
        assert story.incidents() == []

    def test_who_asks_why_not_is_told_what_it_was_compared_with(self) -> None:
        """The lowest clock, the peers' median and the limit; why nothing is judged; that a node tells nothing."""
        story = Story(PACK)
        even(story, 10, 100, NODES[:12])
        tells(story, 20, "n040", with_slow(2), job="2")
        tells(story, 20, "n041", [USUAL] * 8, job="2")
        story.event(30, "agent.started", node="n050")
        story.run(100)
        ctx = story.engine.look()
        asked = {
            node: why_not.of(ctx, "straggler-gpu", f"gpu/{node}/{ADDRESSES[2]}").conditions[0].text
            for node in ("n003", "n040", "n050")
        }
        assert asked["n003"].endswith(
            "job 4711 beside 11 other nodes: lowest SM clock 1980 MHz, median 1980 MHz, limit 1881 MHz"
        )
        assert "not judged: 1 other node of the job with such GPUs" in asked["n040"]
        assert asked["n050"].endswith("n050 tells no figures of jobs (compare_gpus in the file of its agent)")


class TestLateAndTwice:
    """Facts come late, in another order, or again."""

    def test_what_was_overtaken_counts_no_more(self) -> None:
        """The newer of two minutes holds, whichever comes first; and what is older than five minutes says nothing."""
        made = engine()
        for node in NODES[:12]:
            made.handle(said(node, 1, minute([USUAL] * 8)), 10)
        made.handle(said("n003", 2, minute([USUAL] * 8)), 500)
        made.handle(said("n003", 3, minute(with_slow(2)), age_s=60), 520)
        made.handle(said("n004", 2, minute(with_slow(2)), age_s=400), 500)
        assert slow_in(made) == {}
        made.handle(said("n005", 2, minute(with_slow(2)), age_s=100), 500)
        assert list(slow_in(made)) == ["n005"]

    def test_a_backlog_is_not_taken_for_minutes_that_lasted(self) -> None:
        """A node that was cut off tells four old minutes and a new one at once: only from now on it counts."""
        story = Story(PACK)
        even(story, 10, 2400, [node for node in NODES if node != "n007"])
        tells(story, 10, "n007", [USUAL] * 8)
        for age_s in (290, 230, 170, 110, 50):
            tells(story, 1000, "n007", with_slow(2), age_s=age_s)
        story.run(1200)
        assert story.incidents("straggler") == []
        story.run(1400)
        assert len(story.incidents("straggler")) == 1

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 8),
                st.sampled_from((USUAL, USUAL, USUAL, USUAL, SLOW, WAITS)),
                st.sampled_from(("4711", "4712")),
            ),
            max_size=60,
        )
    )
    def test_who_is_slow_depends_only_on_what_all_told_last(
        self, told: list[tuple[int, Figures, str]]
    ) -> None:
        """After any story, with a restart in the middle, the same nodes are slow as when each had told its last minutes only."""
        made, fresh = engine(), engine()
        last: dict[tuple[str, str], Figures] = {}
        for number, (node, figures, job) in enumerate(told, 1):
            if number == len(told) // 2:
                made = Engine(parse(dump(made.state)), actions=ACTIONS, compile_pack=COMPILED)
            event = said(NODES[node], number, minute([figures] * 8, job=job))
            made.handle(event, number)
            assert made.handle(event, number) == [], "twice"
            last[NODES[node], job] = figures
        for number, ((name, job), figures) in enumerate(last.items(), 1):
            fresh.handle(said(name, number, minute([figures] * 8, job=job)), 100)
        slow, expected = (
            {key for key, minute in one.state.minutes.items() if minute.slow == "node"}
            for one in (made, fresh)
        )
        assert slow == expected
        keys = {key for key, one in made.state.symptoms.items() if "straggler" in key and one.on}
        assert keys == {f"node_straggler@node/{key.split()[0]}" for key in slow}

    def test_a_restarted_brain_tells_the_same(self) -> None:
        """Restarted between any two minutes it notes what the one noted that ran through."""
        events = [said(node, 1, minute([USUAL] * 8)) for node in NODES[:12]]
        events += [said("n003", 2, minute(with_slow(2))), said("n004", 2, minute([SLOW] * 8))]
        events += [said("n004", 3, minute([USUAL] * 8)), said("n003", 3, minute(with_slow(2, 3, 4, 5)))]

        def notes(*, restarts: bool) -> list[str]:
            made, found = engine(), []
            for at, event in enumerate(events, 10):
                if restarts:
                    made = Engine(parse(dump(made.state)), actions=ACTIONS, compile_pack=COMPILED)
                found += [repr(effect) for effect in made.handle(event, at)]
            return found

        assert notes(restarts=True) == notes(restarts=False) != []


class TestALiar:
    """Law 15: a node speaks for itself only."""

    @given(
        st.lists(
            st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 100_000), st.integers(0, 100)), max_size=16),
            min_size=1, max_size=8,
        )
    )  # fmt: skip
    def test_it_accuses_nobody_else(self, lies: list[list[Figures]]) -> None:
        """Whatever it tells of a job of ten nodes, no honest node is slow."""
        made = engine()
        for node in NODES[:9]:
            made.handle(said(node, 1, minute([USUAL] * 8)), 10)
        for number, gpus in enumerate(lies, 1):
            made.handle(said("n009", number, minute(gpus)), 10 + number)
            assert not slow_in(made).keys() - {"n009"}

    def test_what_is_kept_of_it_is_bounded(self) -> None:
        """Of each node eight jobs; the oldest go."""
        made = engine()
        for number in range(1, 200):
            made.handle(said("n009", number, minute([USUAL] * 8, job=f"j{number}")), 10)
        assert [one.job for one in made.state.minutes.values()] == [
            f"j{number}" for number in range(192, 200)
        ]

    def test_a_node_that_is_forgotten_is_no_peer(self) -> None:
        story = Story(PACK)
        even(story, 10, 100)
        tells(story, 100, "n007", with_slow(2))
        story.time.feed(NodeState(id="gone", node="n007", alive=False, silent_s=60), 150)
        story.say(200, "forget", node="n007")
        even(story, 300, 400, NODES[:3])
        story.run(500)
        assert len(story.engine.state.minutes) == 63
        assert not [key for key in story.engine.state.symptoms if "n007" in key]
