"""Which scheduler has a node, whose a drain is, and what slurmrestd of 23.02 and later is asked."""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.contract.errors import ActionError, ConfigError, Refused, Transient, Unreachable
from brain import actions
from brain.actions import scheduler
from brain.actions import slurm as module
from brain.actions.base import Job, Order, Scheduler, Wanted, always
from brain.actions.marks import Mark, written
from brain.actions.slurm import Slurm
from brain.actions.slurm_cli import parse_node
from brain.config import parse
from brain.hostlist import expand
from tests.brain.actions.idle_fleet import FLEET

WHY = Mark(incident="inc-1", why="why")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("gpu1", ["gpu1"]),
        ("gpu[1-3,07],cpu4", ["gpu1", "gpu2", "gpu3", "gpu07", "cpu4"]),
        ("r[1-2]n[08-10]", ["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"]),
        ("a-b,c", ["a-b", "c"]),
    ],
)
def test_hostlists(text: str, names: list[str]) -> None:
    """Slurm's short form, read as `scontrol show hostnames` reads it."""
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    ["gpu[1-", "gpu[a-b]", "[1-999999999]", ",", "gpu[]", "[1-9999][1-9999][1-9999]", "n[1-60000,1-60000]"],
)
def test_what_is_no_hostlist(text: str) -> None:
    """It is refused, and does not fill the memory."""
    with pytest.raises(ValueError):
        expand(text)


def test_states_as_older_versions_write_them() -> None:
    """`DOWN*` does not answer; what slurmctld appends at a reboot is not part of the reason."""
    row = parse_node(
        "NodeName=a\n   State=DOWN*+DRAIN ThreadsPerCore=1\n"
        "   Reason=mine : reboot issued : reboot timed out [slurm@2026-01-01T00:00:00]\n      second line\n"
    )
    assert row.flags == {"DOWN", "DRAIN", "NOT_RESPONDING"}
    assert (row.by, row.reason) == ("slurm", "mine : reboot issued : reboot timed out\n      second line")
    with pytest.raises(ActionError):
        parse_node("something else")


async def test_the_first_table_that_fits_has_the_node() -> None:
    """A node that nobody has is refused with what to do; only its return to service is allowed, since nothing was drained."""
    tables = {
        "train": {"type": "slurm", "nodes": "gpu*"},
        "serve": {"type": "kubernetes", "nodes": "*", "url": "https://127.0.0.1:1"},
    }
    config = parse({"schedulers": tables}, "brain.toml", Path("/"))
    async with AsyncExitStack() as stack:
        built = actions.build(config, FLEET, stack).actions
        assert {name for name in built if name.startswith("scheduler.")} == {
            f"scheduler.{name}" for name in ("drain", "idle", "resume", "requeue", "reboot", "jobs")
        }
        choice = scheduler.choose(tables, stack.push_async_callback)
        names = [found.name for node in ("gpu1", "web1") if (found := choice(node)) is not None]
        assert names == ["train", "serve"]
        nobody = scheduler.Drain(scheduler.choose({}, stack.push_async_callback))
        with pytest.raises(Refused, match="no table"):
            await nobody.plan(_order("gpu1"))
    async with AsyncExitStack() as stack:
        without = actions.build(parse({}, "brain.toml", Path("/")), FLEET, stack).actions
        assert [name for name in without if name.startswith("scheduler.")] == ["scheduler.resume"]
        assert (await without["scheduler.resume"].plan(_order("gpu1")))[0].startswith("nothing")
        done = await without["scheduler.resume"].run(_order("gpu1"))
        assert (done.text, done.data) == (
            "no scheduler has gpu1, so nothing was drained",
            {"resumed": False},
        )


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"type": "lsf"}, "type: unknown type 'lsf'"),
        ({"type": "slurm", "scontrol": "scontrol"}, "scontrol: must be an absolute path"),
        ({"type": "slurm", "rest_url": "http://s:6820"}, "token_file: is missing"),
        (
            {"type": "slurm", "rest_url": "http://s:6820", "token_file": "t", "rest_version": "1"},
            "rest_version",
        ),
        ({"type": "slurm", "protected": {"user": ["root"]}}, "protected.*user: is not an option here"),
        ({"type": "slurm", "protected": {"users": "root"}}, "protected.*users"),
        ({"type": "slurm", "node_name": "gpu"}, "node_name: must contain"),
    ],
)
def test_tables_that_the_operator_must_mend(table: dict[str, Any], says: str) -> None:
    """The message names the key; a typing error in what is protected is one too."""
    with pytest.raises(ConfigError, match=f"schedulers.x.{says}"):
        scheduler.choose({"x": table}, lambda _: None)


@pytest.mark.parametrize(
    "params", [{"wait_s": -1.0}, {"wait_s": 2_600_000.0}, {"then": "kill"}, {"wait_s": "long"}]
)
async def test_parameters_out_of_their_limits(params: dict[str, Any]) -> None:
    """Refused before the scheduler is asked for anything."""
    with pytest.raises(Refused):
        await scheduler.Drain(lambda _: Flaky()).run(_order("gpu1", **params))


async def test_a_wait_outlives_a_scheduler_that_is_away_and_ends_when_the_drain_is_taken_off() -> None:
    """A controller that restarts is asked again; somebody who resumes the node meanwhile is believed."""
    flaky, said = Flaky(), list[str]()
    order = _order("gpu1", said, wait_s=20.0)
    with pytest.raises(Refused, match="taken the drain off gpu1"):
        await scheduler.Drain(lambda _: flaky).run(order)
    assert any("asked again: away" in text for text in said)


@pytest.mark.parametrize("since_look", [0, 2])
async def test_jobs_of_a_node_that_a_person_has_drained_are_not_ended(since_look: int) -> None:
    """Before our drain or while it waited: "let job 1 finish" stands, and the deadline ends nothing there."""
    taken = TakenOver(since_look)
    order = _order("gpu1", wait_s=1.0, then="requeue")
    with pytest.raises(
        ActionError, match=r"by someone else, left as it is \(ann: let 1 finish\), and there still run"
    ):
        await scheduler.Drain(lambda _: taken).run(order)
    assert taken.requeued == []


@pytest.mark.parametrize("taken", ["", "ann: let 2 finish"])
async def test_no_job_is_stopped_once_a_person_has_the_node(taken: str) -> None:
    """The drain is taken off, or over, while a budget still holds an eviction up: that job runs on, and nobody drains again."""
    held = HeldUp(taken)
    with pytest.raises(Refused, match=r"someone has taken the drain of gpu1 off, or over: its jobs run on"):
        await scheduler.Drain(lambda _: held).run(_order("gpu1", then="requeue"))
    assert (held.stopped, held.asked) == (["1"], 1)


async def test_an_idle_moment_is_waited_for_without_a_drain() -> None:
    """Jobs go on, a controller that is away is asked again, and the node is never drained."""
    said = list[str]()
    busy = Busy([[Job(id="1", user="alice", state="running")], Unreachable("away"), []])
    done = await scheduler.Idle(lambda _: busy).run(_order("gpu1", said, wait_s=20.0))
    assert done.text == "gpu1 has no jobs"
    assert ["waiting for an idle moment: 1 job" in said[0], "away" in said[1]] == [True, True]
    never = Busy([[Job(id="1", user="alice", state="running")]])
    with pytest.raises(ActionError, match="not idle in all that time"):
        await scheduler.Idle(lambda _: never).run(_order("gpu1", wait_s=0.0))
    assert (await scheduler.Idle(lambda _: never).plan(_order("gpu1")))[0].startswith("wait up to 55 s")
    assert (busy.drains, never.drains) == (0, 0)


class Busy:
    """A scheduler that answers so about the node's jobs, the last answer again and again."""

    name = "busy"

    def __init__(self, answers: list[list[Job] | Unreachable]) -> None:
        self.answers = answers
        self.drains = 0

    async def jobs(self, node: str) -> list[Job]:
        """The next answer."""
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Unreachable):
            raise answer
        return answer

    async def drained(self, node: str) -> str:
        """Never."""
        return ""

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """None."""
        return ()

    async def drain(self, node: str, mark: Mark) -> None:
        """Counts."""
        self.drains += 1

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """Never."""
        return False

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Done."""

    async def reboot(self, node: str, mark: Mark) -> None:
        """Done."""


class Flaky:
    """A scheduler whose controller is away at the second look, and whose drain is gone at the third."""

    name = "flaky"

    def __init__(self) -> None:
        self.looks = 0

    async def drained(self, node: str) -> str:
        """Ours, until the third look at the jobs."""
        return written(await self.marks(node)) if self.looks < 3 else ""

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """Ours."""
        return (WHY,)

    async def drain(self, node: str, mark: Mark) -> None:
        """Done."""

    async def resume(self, node: str, owners: Collection[str] | None) -> bool:
        """Never."""
        return False

    async def jobs(self, node: str) -> list[Job]:
        """One that never ends."""
        self.looks += 1
        if self.looks == 2:
            raise Unreachable("away")
        return [Job(id="1", user="alice", state="running")]

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Done."""

    async def reboot(self, node: str, mark: Mark) -> None:
        """Done."""


class TakenOver(Flaky):
    """A scheduler in which ann writes her own reason over ours at some look at the jobs."""

    def __init__(self, since_look: int) -> None:
        super().__init__()
        self.since_look = since_look
        self.requeued: list[str] = []

    async def drained(self, node: str) -> str:
        """Ours, then hers."""
        marks = await self.marks(node)
        return written(marks) if marks else "ann: let 1 finish"

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """Ours, until she wrote hers."""
        return (WHY,) if self.looks < self.since_look else ()

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Counts."""
        self.requeued.append(job.id)


class HeldUp(Flaky):
    """A scheduler that stops a job only after a while, as a disruption budget makes it; `taken` says whose the drain is then."""

    def __init__(self, taken: str) -> None:
        super().__init__()
        self.taken: str | None = None
        self._then = taken
        self.asked = 0
        self.stopped: list[str] = []

    async def drained(self, node: str) -> str:
        """Ours, then as somebody has left it."""
        return written((WHY,)) if self.taken is None else self.taken

    async def marks(self, node: str) -> tuple[Mark, ...]:
        """Ours, then nobody's."""
        return (WHY,) if self.taken is None else ()

    async def jobs(self, node: str) -> list[Job]:
        """Those that were not stopped."""
        return [Job(id=one) for one in ("1", "2") if one not in self.stopped]

    async def requeue(self, job: Job, *, within_s: float = inf, wanted: Wanted = always) -> None:
        """Job 1 may be stopped at once; by the time that job 2 may, somebody has had the drain."""
        await wanted()
        if job.id == "2":
            self.asked += 1
            self.taken = self._then
            await wanted()
        self.stopped.append(job.id)


def _order(node: str, said: list[str] | None = None, **params: Any) -> Order:
    progress = (said if said is not None else []).append
    return Order(id="s", incident="inc-1", node=node, params=params, timeout_s=60, why="w", progress=progress)


async def test_slurmrestd_of_today_sets_nodes_and_is_believed_only_when_read_back(tmp_path: Path) -> None:
    """v0.0.40's shapes; no scontrol is needed. Trouble is told by who must act."""
    token = tmp_path / "token"
    token.write_text("jwt\n")
    async with _restd() as (state, url):
        slurm = _rest(url, token)
        found: Scheduler = slurm
        assert await found.drained("gpu2") == ""
        await found.drain("gpu2", WHY)
        assert await found.marks("gpu2") == (WHY,)
        assert [(job.id, job.gpus, job.state) for job in await found.jobs("gpu2")] == [
            ("7", ("4", "5"), "running")
        ]
        assert await found.resume("gpu2", {"inc-1"})
        assert state["asked"] == [
            {"state": ["DRAIN"], "reason": written([WHY])},
            {"state": ["RESUME"]},
        ]
        state["lies"] = True
        with pytest.raises(ActionError, match="was not drained"):
            await found.drain("gpu2", WHY)
        state["status"] = 500
        with pytest.raises(Transient, match="trouble"):
            await found.drained("gpu2")
        with pytest.raises(Transient, match="trouble"):
            await slurm._writer.set_state("gpu2", "DRAIN", "x")
        state["status"] = 401
        with pytest.raises(Transient, match="not allowed just now to read nodes"):
            await found.drained("gpu2")
        stranger = _rest(url, token)
        with pytest.raises(Refused, match=r"no right to read nodes and jobs: .*401 trouble"):
            await stranger.drained("gpu2")
        await stranger.close()
        await slurm.close()
    with pytest.raises(Unreachable):
        await found.drain("gpu2", WHY)
    await slurm.close()


def _rest(url: str, token: Path) -> Slurm:
    table = {
        "rest_url": url,
        "rest_version": "v0.0.40",
        "token_file": token,
        "scontrol": Path("/nonexistent/scontrol"),
    }
    return module.build("slurm", table, "schedulers.slurm")


@asynccontextmanager
async def _restd() -> AsyncIterator[tuple[dict[str, Any], str]]:
    """A slurmrestd of v0.0.40 with one node that can be drained."""
    state: dict[str, Any] = {"flags": ["IDLE"], "reason": "", "asked": [], "lies": False, "status": 0}

    async def node(request: web.Request) -> web.Response:
        assert request.headers["X-SLURM-USER-TOKEN"] == "jwt"
        if state["status"]:
            return web.json_response({"errors": [{"error": "trouble"}]}, status=state["status"])
        if request.method == "POST":
            body = await request.json()
            state["asked"].append(body)
            if not state["lies"]:
                state["flags"] = ["IDLE", "DRAIN"] if body["state"] == ["DRAIN"] else ["IDLE"]
                state["reason"] = body.get("reason", "")
            return web.json_response({"errors": [], "meta": {}})
        row = {
            "name": "gpu2",
            "state": state["flags"],
            "reason": state["reason"],
            "reason_set_by_user": "slurm",
        }
        return web.json_response({"nodes": [row], "errors": []})

    async def jobs(_: web.Request) -> web.Response:
        row = {
            "job_id": 7,
            "job_state": ["RUNNING"],
            "nodes": "gpu[1-2]",
            "user_name": "alice",
            "start_time": {"set": True, "number": 1},
            "gres_detail": ["gpu:h200:1(IDX:0)", "gpu:h200:2(IDX:4-5)"],
        }
        ended, elsewhere = row | {"job_state": ["COMPLETED"]}, row | {"nodes": "gpu1"}
        return web.json_response({"jobs": [ended, row, elsewhere], "errors": []})

    app = web.Application()
    app.router.add_route("*", "/slurm/v0.0.40/node/{name}", node)
    app.router.add_get("/slurm/v0.0.40/jobs", jobs)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield state, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
