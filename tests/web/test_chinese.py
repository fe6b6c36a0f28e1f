"""A reader of Chinese alone: what the brain says of a drill is told in Chinese on every page; names and kernel lines stay."""

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.e2e.up import BIN, Up, running
from tests.web.kit import DESK, PHONE, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]

NODE = "sim-02"
# What a site, a kernel or a person has said, and what is typed
FOREIGN = ".evidence, code, pre, .line-text, nav, option, .reports-cell"
PROSE = re.compile(r"\b[a-z]+ [a-z]+ [a-z]+ [a-z]+\b")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A step waits for an approval, a hold ends soon, a link was healed."""
    with running(tmp_path_factory.mktemp("zh") / "data") as one:
        one.gpuward("drill", "link-down", "--node", "sim-01", "--wait")
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        one.gpuward("drill", "gpu-needs-reset", "--node", NODE)
        one.gpuward("hold", "node/sim-03", "--why", "cables", "--for", "30m")
        one.until(lambda: waiting(one), "a step waits for an approval")
        yield one


def waiting(up: Up) -> str:
    """The incident whose step waits for an approval; empty: none yet."""
    return next((one["id"] for one in up.get("/api/v1/needs")["people"] if "approval" in one["kinds"]), "")


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/incidents/WAITING",
        "/incidents",
        "/audit",
        "/reports",
        f"/nodes/{NODE}",
        "/rules/gpu-fatal-xid",
        "/runbooks/reset-gpu",
    ],
)
def test_no_english_is_left_on_a_page(up: Up, browser: Browser, path: str) -> None:
    """What is left are names, and what is quoted: four words of English one after the other are a sentence."""
    with look(browser, url(up), PHONE, language="zh-CN") as one:
        page = one.open(path.replace("WAITING", waiting(up)))
        assert one.violations() == []
        page.evaluate("(what) => document.querySelectorAll(what).forEach((one) => one.remove())", FOREIGN)
        text = page.inner_text("#main")
        assert PROSE.findall(text) == [], text
        assert re.search("[\u4e00-\u9fff]", text)


def test_chinese_is_not_read_by_an_english_voice(up: Up, browser: Browser) -> None:
    """What is marked as English for a screen reader is English: why an incident waits, too."""
    with look(browser, url(up), DESK, language="zh-CN") as one:

        def settling(route: Route) -> None:
            body = route.fetch().json()
            for found in body["incidents"]:
                found["waits"] = "尚不知道其他节点是否也出现"
            route.fulfill(content_type="application/json", body=json.dumps(body))

        one.page.route("**/api/v1/incidents?*", settling)
        page = one.open("/incidents")
        expect(page.locator(".row-why").first).to_contain_text("尚不知道")
        marked = page.locator("main [lang=en]").all_inner_texts()
        assert [text for text in marked if re.search("[\u4e00-\u9fff]", text)] == []


def test_the_language_is_chosen_again(up: Up, browser: Browser) -> None:
    """What the brain says follows, without a reload."""
    with look(browser, url(up), DESK, language="zh-CN") as one:
        page = one.open(f"/incidents/{waiting(up)}")
        expect(page.locator(".ladder").first).to_contain_text("影响")
        one.language("en")
        expect(page.locator(".ladder").first).to_contain_text("disrupts")


def test_the_command_line_tells_it_too_and_scripts_see_english(up: Up) -> None:
    """By its locale; with `--json` nothing changes."""

    def said(*args: str) -> str:
        return subprocess.run(
            [str(BIN / "gpuward"), *args], env=up.env(), capture_output=True, text=True, check=True
        ).stdout

    incident = waiting(up)
    chinese = said("--lang", "zh", "explain", incident)
    assert "需要批准" in chinese
    assert "is in approve mode" not in chinese
    assert "处于 approve 模式" in chinese
    assert "is in approve mode" in json.dumps(json.loads(said("--lang", "zh", "explain", incident, "--json")))
    why_not = said(
        "--lang",
        "zh",
        "explain",
        "--why-not",
        "gpu-lost",
        "node/sim-01/gpu/0000:1b:00".replace("node/sim-01/gpu", "gpu/sim-01"),
    )
    assert "在 gpu/sim-01/0000:1b:00 不匹配" in why_not


def test_an_unknown_drill_is_told_in_chinese(up: Up) -> None:
    """The simulated fleet refuses it in English; whoever asked reads Chinese."""
    done = subprocess.run(
        [str(BIN / "gpuward"), "--lang", "zh", "drill", "gpu-of-bus"],
        env=up.env(),
        capture_output=True,
        text=True,
    )
    assert done.returncode
    assert "没有演练" in done.stderr + done.stdout


@pytest.mark.parametrize(("language", "says"), [("en", "There is no such page"), ("zh-CN", "没有这个页面")])
def test_a_mistyped_address_leads_back(up: Up, browser: Browser, language: str, says: str) -> None:
    """A page with the status 404; the way back is a tap."""
    with look(browser, url(up), PHONE, language=language) as one:
        one.expected = ("404",)
        answer = one.page.goto(f"{url(up)}/incident/{NODE}")
        assert answer is not None
        assert answer.status == 404
        expect(one.page.locator("h1")).to_have_text(says)
        assert f"/incident/{NODE}" in one.page.inner_text("main")
        assert one.violations() == []
        one.page.click("main a[href='/']")
        one.page.wait_for_url(f"{url(up)}/")


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/incident/x", "*/*"),
        ("/incident/x", "application/json"),
        ("/api/v1/nothing", "text/html"),
        ("/incident/x", "text/html;q=0"),
    ],
)
def test_a_program_gets_the_problem(up: Up, path: str, accept: str) -> None:
    """RFC 9457, as everywhere in the API."""
    request = urllib.request.Request(f"{url(up)}{path}", headers={"Accept": accept})  # noqa: S310 - ours
    with pytest.raises(urllib.error.HTTPError) as found:
        urllib.request.urlopen(request, timeout=60)  # noqa: S310 - ours
    assert (found.value.code, found.value.headers["Content-Type"]) == (404, "application/problem+json")
    assert json.loads(found.value.read())["status"] == 404


def test_the_page_of_a_simulated_node_shows_what_it_is_made_of(up: Up, browser: Browser) -> None:
    """As that of a real one: cards with serial numbers, each with a page."""
    with look(browser, url(up), DESK) as one:
        page = one.open(f"/nodes/{NODE}")
        text = page.inner_text("main")
        for wanted in ("Simulated 8-GPU server", "580.82.07", "NVIDIA H100 80GB HBM3 (simulated)"):
            assert wanted in text, wanted
        assert page.locator(".part-card").count() == 16, "8 GPUs and 8 network cards"


def test_a_link_of_a_card_opens_its_question(up: Up, browser: Browser) -> None:
    """As a button in a chat does: after the login the question is open, and says exactly what; of another step none is."""
    incident = waiting(up)
    rung = next(
        run["approval"]["rung"] for run in up.get(f"/api/v1/explain/{incident}")["runs"] if run["approval"]
    )
    with look(browser, url(up), PHONE) as one:
        one.log_in(token(up))
        page = one.open(f"/incidents/{incident}?say=approve&rung={rung.replace(' ', '+')}")
        dialog = page.locator("dialog[open]")
        expect(dialog).to_contain_text(rung)
        assert "say=" not in page.url
        assert one.violations() == []
        page.keyboard.press("Escape")
        page = one.open(f"/incidents/{incident}?say=approve&rung=another")
        page.wait_for_function("!location.search")
        expect(dialog).to_have_count(0)
