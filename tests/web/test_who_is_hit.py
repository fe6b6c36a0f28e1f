"""Who is hit, on an incident's page: a drill's job, whose it is and how much of it; and names that want to be more than names."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, Route

from brain.console.words import LANGUAGES
from tests.e2e.up import Up, running
from tests.web.kit import DESK, PHONE, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
XSS = "<img src=x onerror=document.body.dataset.hit=1>"
JOB = {
    "id": f"1{XSS}", "name": f"</li>{XSS}", "user": f"a\x1b[2J{XSS}", "nodes": 16, "here": 1, "on": [XSS], "gpus": 8,
    "since": "2026-01-01T00:00:00.000Z", "gone_at": None, "text": XSS,
}  # fmt: skip
HIT: dict[str, Any] = {
    "known": "known", "why": XSS, "since": "2026-01-01T00:00:00.000Z", "at": "2026-01-01T00:01:00.000Z", "asked": 16,
    "answered": 15, "left_out": 9, "more_jobs": 3,
    "jobs": [
        JOB, JOB | {"nodes": 0}, JOB | {"nodes": 1}, JOB | {"here": 16},
        JOB | {"gone_at": "2026-01-01T00:01:00.000Z", "name": "", "user": "", "gpus": 0},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One for all."""
    with running(tmp_path_factory.mktemp("hit") / "data") as one:
        yield one


@pytest.fixture(scope="module")
def incident(up: Up) -> str:
    """Of a drill in which a job hangs; it waits for an approval, once it is known who is hit."""
    up.gpuward("mode", "*", "approve", "--nodes", "sim-*")
    drill = next(one["name"] for one in up.get("/api/v1/drill")["drills"] if "NCCL" in one["summary"])
    up.gpuward("drill", drill, "--node", "sim-02")

    def known() -> str:
        found = [one["id"] for one in up.get("/api/v1/incidents")["incidents"] if one["node"] == "sim-02"]
        return next((id_ for id_ in found if up.get(f"/api/v1/incidents/{id_}")["hit"]["jobs"]), "")

    return str(up.until(known, "it is known who is hit"))


def answered(page: Page, hit: dict[str, Any]) -> None:
    """The page gets the real answer, with this in place of who is hit."""

    def change(route: Route) -> None:
        body = route.fetch().json()
        body["incident"]["hit"] = hit
        route.fulfill(content_type="application/json", body=json.dumps(body))

    page.route("**/api/v1/explain/*", change)


def test_a_drill_s_job_is_told_with_its_user_and_its_share(up: Up, browser: Browser, incident: str) -> None:
    """As the simulated scheduler has it; on a phone, in both languages, and the same in the terminal."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        page = one.open(f"/incidents/{incident}")
        told = page.inner_text(".hit .jobs li")
        assert told.startswith("job 4711 of ann: its only node"), told
        assert "Known since" in page.inner_text(".hit")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        one.language("zh")
        assert "作业 4711" in page.inner_text(".hit .jobs li")
        assert "其唯一的节点" in page.inner_text(".hit .jobs li")
        one.language("en")
    assert "job 4711 of ann: its only node" in up.gpuward("explain", incident)
    (job,) = json.loads(up.gpuward("explain", incident, "--json"))["incident"]["hit"]["jobs"]
    assert (job["id"], job["user"], job["nodes"], job["on"]) == ("4711", "ann", 1, ["sim-02"])
    assert "hit" not in up.get("/api/v1/incidents")["incidents"][0], "lists are short"


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_of_jobs_and_users_stay_names(up: Up, browser: Browser, incident: str, language: str) -> None:
    """Whatever they are called: none becomes an element or a script, in either language, and none breaks the page's width."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE, language=language) as one:
        answered(one.page, HIT)
        page = one.open(f"/incidents/{incident}")
        lines = page.locator(".hit .jobs li")
        assert lines.count() == 5
        assert XSS in lines.first.inner_text()
        assert page.locator("main img").count() == 0
        assert not page.evaluate("document.body.dataset.hit")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        text = page.inner_text(".hit")
        expected = (
            ("1 of its 16 nodes", "all of its 16 nodes", "its only node", "8 GPUs", "not there any more since", "and 3 more",
             "Not answered:", "9 more nodes of it were not asked about.", "as of")
            if language == "en"
            else ("其 16 个节点中的 1 个", "其全部 16 个节点", "其唯一的节点", "8 块 GPU", "已不在，自", "另有 3 个", "未答复：",
                  "另有 9 个受影响节点未查询。", "最近一次")
        )  # fmt: skip
        for part in expected:
            assert part in text.replace("\u2068", "").replace("\u2069", ""), part


@pytest.mark.parametrize(
    ("known", "en", "zh"),
    [
        ("no_scheduler", "no scheduler is configured. Whoever runs gpuward adds a table", "未配置调度器"),
        ("no_table", "no table [schedulers.*] has these nodes", "没有 [schedulers.*] 表包含这些节点"),
        ("silent", "the scheduler does not answer", "调度器没有应答"),
        ("asked", "the scheduler is being asked", "正在查询调度器"),
        ("not_asked", "nobody has asked", "未曾查询"),
        ("known", "Nobody: no job runs there.", "那里没有作业在运行"),
    ],
)
def test_what_is_not_known_says_who_must_do_what(
    up: Up, browser: Browser, incident: str, known: str, en: str, zh: str
) -> None:
    """In both languages."""
    empty = HIT | {"known": known, "jobs": [], "why": "", "more_jobs": 0, "left_out": 0}
    for language, text in (("en", en), ("zh", zh)):
        with look(browser, f"http://127.0.0.1:{up.port}", language=language) as one:
            answered(one.page, empty)
            assert text in one.open(f"/incidents/{incident}").inner_text(".hit")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(up: Up, browser: Browser, incident: str, theme: Literal["light", "dark"]) -> None:
    size = PHONE if theme == "dark" else DESK
    for language in LANGUAGES:
        with look(browser, f"http://127.0.0.1:{up.port}", size, language=language, theme=theme) as one:
            answered(one.page, HIT)
            one.log_in(token(up))
            one.open(f"/incidents/{incident}")
            assert not one.violations()
