"""Who is hit by several incidents that one page tells of."""

from dataclasses import replace

import pytest

from brain.core import hit_words
from brain.core.jobs_seen import JobSeen
from brain.core.state import HitJob, HitNode
from tests.brain.core.test_hit import SMALL, TRAIN


def lines(*jobs: JobSeen, at: float = 10.0, gone_at: float = 0.0) -> HitNode:
    """What is known of one node."""
    kept = [HitJob(job=job, since=at, gone_at=gone_at) for job in jobs]
    return HitNode(asked=1, at=at, known_since=at, scheduler="slurm", jobs=kept)


@pytest.mark.parametrize(
    ("hits", "says"),
    [
        ([], ""),
        ([{}], ""),
        ([{"n1": HitNode(asked=1)}], ""),
        ([{"n1": lines()}], "nobody: no job runs there"),
        ([{"n1": lines(TRAIN)}, {}], "alice's 4711 (1 of its 16 nodes)"),
        (
            [{"n1": lines(TRAIN)}, {"n1": lines(TRAIN), "n2": lines(TRAIN)}],
            "alice's 4711 (2 of its 16 nodes)",
        ),
        (
            [{"n1": lines(TRAIN)}, {"n2": lines(SMALL)}],
            "2 jobs of 2 users; the largest: alice's 4711 (1 of its 16 nodes)",
        ),
        (
            [
                {"n1": lines(TRAIN, SMALL), "n3": HitNode(asked=1, why="away", scheduler="slurm")},
                {"n2": lines(TRAIN)},
            ],
            "2 jobs of 2 users; the largest: alice's 4711 (2 of its 16 nodes); not known of 1 node",
        ),
        ([{"n1": lines(TRAIN, at=5.0)}, {"n1": lines(at=9.0)}], "nobody: no job runs there"),
        (
            [{"n1": lines(replace(TRAIN, user="")), "n2": lines(replace(SMALL, user=""))}],
            "2 jobs; the largest: job 4711 (1 of its 16 nodes)",
        ),
        ([{"n1": lines(TRAIN, gone_at=11.0)}], "alice's 4711 (1 of its 16 nodes, which is gone by now)"),
    ],
)
def test_a_page_about_several_says_whose_jobs_users_and_how_much(
    hits: list[dict[str, HitNode]], says: str
) -> None:
    """Each job counts once, on all the nodes of all the incidents; of a node that several have, the newest answer."""
    assert hit_words.of_several(hits) == says
