"""Rules and runbooks in the console: found by a filter, explained in the reader's language, and a runbook's mode set."""

from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

from brain import sentences
from brain.console.words import LANGUAGES
from tests.e2e.up import Up, running
from tests.nightly import covering
from tests.web.kit import DESK, PHONE, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]
DISRUPTS = {"nothing": "nothing", "job": "a job", "node": "the node", "fabric": "the fabric"}
XSS = "<img src=x onerror=document.body.dataset.hit=1>"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One for all, in which a link was down once, and was healed."""
    with running(tmp_path_factory.mktemp("rules") / "data") as one:
        one.gpuward("drill", "link-down", "--node", "sim-01", "--wait")
        yield one


def read(up: Up, path: str) -> Any:
    """What the API says."""
    return up.get(f"/api/v1/{path}")


def untouched(page: Page) -> bool:
    """Has nobody's text become an element, or a script that ran?"""
    return page.locator("main img").count() == 0 and not page.evaluate("document.body.dataset.hit")


def test_a_rule_is_found(up: Up, browser: Browser) -> None:
    """By what it is about, by severity, by whether it fired; what was asked for stands in the address."""
    rules = read(up, "rules")["rules"]
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        one.log_in(token(up))
        page = one.open("/rules")
        assert page.locator(".row").count() == len(rules)
        page.select_option("select[name=severity]", "P1")
        first = [rule for rule in rules if rule["severity"] == "P1"]
        page.wait_for_selector(f"main [role=status]:has-text('{len(first)} of {len(rules)}')")
        assert page.locator(".row").count() == len(first)
        page.fill("input[name=q]", "gpu-lost")
        page.wait_for_selector(".row:has-text('gpu-lost')")
        assert page.locator(".row").count() < len(first)
        page.press("input[name=q]", "Enter")
        page.wait_for_url("**/rules?*q=gpu-lost*")
        page.reload()
        page.wait_for_selector(".row")
        assert page.input_value("input[name=q]") == "gpu-lost"
        one.open("/rules?fired=yes")
        assert "link-down" in page.inner_text("ul.rows")
        assert "fired once" in page.inner_text(".row:has-text('link-down')")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.fill("input[name=q]", "no rule is like this")
        page.wait_for_selector(".nothing")
        page.click(".tabs a:has-text('Runbooks')")
        page.wait_for_selector(".row:has-text('gpu-stuck-job')")
        assert page.locator(".row").count() == len(read(up, "runbooks")["runbooks"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_rule_says_what_it_means_and_what_came_of_it(up: Up, browser: Browser, language: str) -> None:
    rule = read(up, "rules/link-down")
    with look(browser, f"http://127.0.0.1:{up.port}", language=language) as one:
        one.log_in(token(up))
        page = one.open("/rules/link-down")
        text = page.inner_text("main")
        for part in (
            rule["because_zh" if language == "zh" else "because"],
            rule["cause_text"][language],
            rule["source"],
            rule["pack"],
        ):
            assert part in text
        assert "$drain" not in text
        for symptom in rule["symptoms"]:
            assert (sentences.told(symptom["summary"], language) in text, symptom["source"] in text) == (
                True,
                True,
            )
        assert page.inner_text(".figures dd >> nth=0").startswith("1"), "it fired once"
        (incident,) = [one for one in read(up, "incidents?all=1")["incidents"] if one["rule"] == "link-down"]
        page.click(".row-link")
        page.wait_for_url(f"**/incidents/{incident['id']}")


def test_a_condition_is_told_in_words(up: Up, browser: Browser) -> None:
    """Alternatives, what must not be, and tests of fields: of every rule nothing but words is shown."""
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open("/rules/gpu-lost")
        told = page.inner_text("section:has(> h2:text-is('What it matches'))")
        assert "at least one of these:" in told
        assert "gpu_nvml_lost" in told
        found = page.evaluate(
            """async () => {
                const { partsOf } = await import('/web/parts/conditions.js')
                const not = { any: [{ b: [1, 2] }, { c: true }] }
                return partsOf({ all: [{ symptom: 'a' }, { count: { gte: 3, lt: 9 } }], not })
            }"""
        )
        assert found == [
            {"symptom": "a"},
            {"field": "count", "test": "gte", "value": 3},
            {"field": "count", "test": "lt", "value": 9},
            {
                "not": [
                    {
                        "any": [
                            [{"field": "b", "test": "in", "value": [1, 2]}],
                            [{"field": "c", "test": "eq", "value": True}],
                        ]
                    }
                ]
            },
        ]


def test_a_ladder_is_a_picture_and_a_list(up: Up, browser: Browser) -> None:
    """Each rung with what it does, disrupts and waits for; a step of the picture leads to its rung."""
    runbook = read(up, "runbooks/gpu-lost")
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        page = one.open("/runbooks/gpu-lost")
        rungs, back = runbook["rungs"], runbook["return_to_service"]
        assert page.locator(".stair").count() == len(rungs)
        listed = page.locator(".flight").all_inner_texts()
        assert len(listed) == len(rungs) + len(back)
        for rung, text in zip((*rungs, *back), listed, strict=True):
            for part in (rung["name"], rung["do"], rung["means"], rung["verify"]):
                assert part in text, rung["name"]
            assert f"disrupts {DISRUPTS[rung['disrupts']]}" in text
        page.click(".stair >> nth=3")
        page.wait_for_selector("#rung-4:focus")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def test_every_runbook_and_rule_is_shown(up: Up, browser: Browser) -> None:
    """None of the shipped ones has something that a page cannot put into words."""
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open("/rules")
        for kind in ("rules", "runbooks"):
            for entry in read(up, kind)[kind]:
                path = f"/{kind}/{entry['name']}"
                page.evaluate("async (path) => { await (await import('/web/app.js')).go(path) }", path)
                page.wait_for_selector(f"h1:text-is('{entry['name']}')")
                text = page.inner_text("main")
                for leftover in ("undefined", "[object", "NaN", "follows-", "refused-", "cond-"):
                    assert leftover not in text, entry["name"]


def test_a_mode_is_set_with_a_question(up: Up, browser: Browser) -> None:
    """Where it counts, and by whom, is seen at once; a runbook that needs an approval offers nothing looser."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE) as one:
        one.log_in(token(up))
        page = one.open("/runbooks/link-bounce")
        page.click("[data-verb=mode]")
        page.wait_for_selector("dialog[open]")
        assert page.locator("dialog select[name=mode] option").count() == 3
        page.select_option("dialog select[name=mode]", "approve")
        page.fill("dialog input[name=nodes]", "sim-02")
        page.click("dialog button[type=submit]")
        page.wait_for_selector(".modes li:first-child:has-text('sim-02'):has-text('approve')")
        me = read(up, "status")["modes"][-1]
        assert (me["runbook"], me["nodes"], me["mode"]) == ("link-bounce", "sim-02", "approve")
        assert me["who"] in page.inner_text(".modes li:first-child")
        page = one.open("/runbooks/gpu-stuck-job")
        page.click("[data-verb=mode]")
        page.wait_for_selector("dialog[open]")
        offered = page.locator("dialog select[name=mode] option").all_inner_texts()
        assert offered == ["observe", "approve"]


def test_whoever_only_reads_sets_nothing(up: Up, browser: Browser) -> None:
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open("/runbooks/link-bounce")
        assert page.locator("[data-verb=mode]").count() == 0
        assert page.locator(".modes li").count() > 0


def test_what_is_not_there_is_said(up: Up, browser: Browser) -> None:
    """The name in the address is foreign text."""
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open(f"/rules/{quote(XSS, safe='')}")
        assert "no rule" in page.inner_text("main")
        assert untouched(page)
        assert all("404" in said for said in one.complaints), "the browser tells of the 404 itself"
        one.complaints.clear()


def test_foreign_text_stays_text(up: Up, browser: Browser) -> None:
    """In what is searched for, and in the nodes of a mode that somebody has set."""
    up.gpuward("mode", "link-bounce", "observe", "--nodes", f"{XSS}*")
    with look(browser, f"http://127.0.0.1:{up.port}") as one:
        page = one.open(f"/rules?q={quote(XSS)}")
        assert page.input_value("input[name=q]") == XSS
        assert untouched(page)
        page = one.open("/runbooks/link-bounce")
        assert XSS in page.inner_text(".modes")
        assert untouched(page)


@pytest.mark.parametrize(
    ("theme", "language"),
    covering("each theme and each language stand in a page that CI looks at", ("light", "dark"), LANGUAGES),
)
def test_axe_finds_nothing(up: Up, browser: Browser, language: str, theme: Literal["light", "dark"]) -> None:
    size = PHONE if theme == "dark" else DESK
    with look(browser, f"http://127.0.0.1:{up.port}", size, language=language, theme=theme) as one:
        one.log_in(token(up))
        for path in ("/rules", "/rules?show=runbooks", "/rules/gpu-lost", "/runbooks/gpu-lost"):
            one.open(path)
            assert not one.violations(), path
