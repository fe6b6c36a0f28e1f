"""What people stumble over at three in the morning: where the keyboard is after a question, which page is open, what a word does,
and whose word it may be.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from brain.console.words import LANGUAGES
from tests.e2e.up import BIN, Up, running
from tests.web.kit import DESK, PHONE, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]


PEOPLE: dict[str, dict[str, object]] = {
    "bob": {"role": "operator"},
    "far": {"role": "approver", "scopes": ["node/sim-01"]},
    "near": {"role": "approver", "scopes": ["node/sim-02"]},
}


def toml_of(people: dict[str, dict[str, object]]) -> str:
    """As the values of one line."""
    tables = (
        f'"{name}" = {{' + ", ".join(f'"{key}" = {json.dumps(value)}' for key, value in table.items()) + "}"
        for name, table in people.items()
    )
    return "{" + ", ".join(tables) + "}"


def token_of(up: Up, name: str, folder: Path) -> str:
    """A token of one of PEOPLE, once the brain knows them."""
    file = folder / f"{name}.token"
    args = [str(BIN / "gpuward"), "token", "create", name, "--for", "1h", "--out", str(file)]

    def made() -> bool:
        return subprocess.run(args, env=up.env(), capture_output=True).returncode == 0

    up.until(made, f"{name} may come in")
    return file.read_text().strip()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A step waits for an approval, and a hold ends soon."""
    with running(tmp_path_factory.mktemp("hours") / "data") as one:
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        one.gpuward("drill", "gpu-needs-reset", "--node", "sim-02")
        one.gpuward("hold", "node/sim-03", "--why", "cables", "--for", "30m")
        config = one.data / "config" / "brain.toml"  # the brain reads [console.users] again
        config.write_text(
            config.read_text().replace('"console" = {', f'"console" = {{"users" = {toml_of(PEOPLE)}, ', 1)
        )
        yield one


@pytest.fixture(scope="module")
def incident(up: Up) -> str:
    """Its id."""

    def waiting() -> str:
        return next(
            (one["id"] for one in up.get("/api/v1/needs")["people"] if "approval" in one["kinds"]), ""
        )

    return str(up.until(waiting, "a step waits for an approval"))


def url(up: Up) -> str:
    return f"http://127.0.0.1:{up.port}"


def test_the_keyboard_comes_back_to_where_it_was(up: Up, browser: Browser, incident: str) -> None:
    """A question that was left leaves it on its button."""
    with look(browser, url(up), DESK) as one:
        one.log_in(token(up))
        page = one.open(f"/incidents/{incident}")
        page.locator(".bar [data-verb=hold]").focus()
        page.keyboard.press("Enter")
        expect(page.locator("dialog[open]")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        expect(page.locator(".bar [data-verb=hold]")).to_be_focused()


@pytest.mark.parametrize("language", LANGUAGES)
def test_on_a_phone_the_open_page_is_in_sight_and_the_row_says_that_it_goes_on(
    up: Up, browser: Browser, language: str
) -> None:
    """Eight pages do not fit: the last one is shown when one is there, and the row fades where more of it follows."""
    with look(browser, url(up), PHONE, language=language) as one:
        for path in ("/", "/reports", "/audit"):
            page = one.open(path)
            expect(page.locator(".ways [aria-current=page]")).to_be_in_viewport(ratio=1)
        assert "gradient" in page.locator(".ways").evaluate("row => getComputedStyle(row).maskImage")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.parametrize("path", ["/", "/incidents/{}"])
def test_who_takes_a_page_is_told_that_nobody_is_called_again(
    up: Up, browser: Browser, incident: str, path: str
) -> None:
    """One tap takes nothing: a page that is taken by mistake calls nobody else."""
    with look(browser, url(up), PHONE) as one:
        one.log_in(token(up))
        page = one.open(path.format(incident))
        page.locator("[data-verb=ack]").first.tap()
        expect(page.locator("dialog")).to_contain_text("Nobody is called again")
        page.locator("dialog button").first.tap()
        expect(page.locator("dialog")).to_have_count(0)
        assert not up.get(f"/api/v1/incidents/{incident}")["pages"]["acked_by"]


def test_nobody_is_offered_what_is_outside_of_their_limits(
    up: Up, browser: Browser, incident: str, tmp_path: Path
) -> None:
    """An approver of one node on the page of another one's fault: no button, and why; on their own: all of them."""
    for name, buttons in (("far", 0), ("near", 1)):
        with look(browser, url(up), DESK) as one:
            one.log_in(token_of(up, name, tmp_path))
            page = one.open(f"/incidents/{incident}")
            for verb in ("approve", "deny", "ack", "hold", "close", "note"):
                assert page.locator(f"[data-verb={verb}]").count() >= buttons, verb
                assert bool(page.locator(f"[data-verb={verb}]").count()) == bool(buttons), verb
            told = page.get_by_text("outside of what your account is for")
            assert told.count() == 1 - buttons


def test_the_second_who_takes_a_page_is_told_who_has_it(
    up: Up, browser: Browser, incident: str, tmp_path: Path
) -> None:
    """Not that it is done: two people who both believe that they have it are none. Who has it may say so again."""
    up.gpuward("ack", incident)
    up.gpuward("ack", incident)
    with look(browser, url(up), PHONE) as one:
        one.expected = ("409",)
        one.log_in(token_of(up, "bob", tmp_path))

        def as_if_nobody_had_it(route: Route) -> None:
            body = route.fetch().json()
            body["incident"]["pages"]["acked_by"] = ""
            body["verbs"].append({"verb": "ack", "args": {"id": incident}, "asks": [], "two_persons": False})
            route.fulfill(content_type="application/json", body=json.dumps(body))

        one.page.route("**/api/v1/explain/*", as_if_nobody_had_it)
        page = one.open(f"/incidents/{incident}")
        page.tap(".bar [data-verb=ack]")
        page.tap("dialog button[type=submit]")
        expect(page.locator("dialog [role=alert]")).to_contain_text("took it before")


def test_a_hold_that_ends_has_a_name_and_an_end_everywhere(up: Up, browser: Browser) -> None:
    """On the first page by the reader's clocks; in a hand-over it is called what it is."""
    with look(browser, url(up), DESK) as one:
        page = one.open("/")
        row = page.locator(".row", has_text="a hold ends soon")
        expect(row.locator("time")).to_have_count(2)
        page = one.open("/reports")
        expect(page.locator(".card li strong", has_text="a hold ends soon")).to_have_count(1)


def test_runbooks_and_drills_are_told_in_chinese(up: Up, browser: Browser, incident: str) -> None:
    """What they are for, what each rung does, and how a drill ends; a drill is found by these words."""
    with look(browser, url(up), DESK, language="zh-CN") as one:
        one.log_in(token(up))
        page = one.open("/runbooks/reset-gpu")
        expect(page.locator(".head")).to_contain_text("复位需要复位的 GPU")
        expect(page.locator(".flight").first).to_contain_text("收集有上限的证据包")
        page = one.open(f"/incidents/{incident}")
        expect(page.locator(".run").first).to_contain_text("复位需要复位的 GPU")
        page = one.open("/rehearse")
        page.fill("input[type=search]", "停用再启用")
        expect(page.locator(".drill")).to_have_count(1)
        page.locator(".drill input").check()
        expect(page.locator(".drill")).to_contain_text("对其 link.bounce")
        page.click(".bar button[type=submit]")
        expect(page.locator("dialog")).to_contain_text("网络接口失去载波")


def test_why_a_rule_thinks_so_is_told_in_chinese(up: Up, browser: Browser, incident: str) -> None:
    """On the pages of the rule and of its incidents, and in the lists, where it is found by its Chinese words."""
    chinese = "该 GPU 必须恢复"
    with look(browser, url(up), DESK, language="zh-CN") as one:
        for path in (
            "/rules/gpu-fatal-xid",
            "/rules?q=gpu-fatal-xid",
            f"/incidents/{incident}",
            "/incidents",
        ):
            page = one.open(path)
            expect(page.get_by_text(chinese).first).to_be_visible()
        page = one.open("/rules?q=必须恢复")
        assert page.locator(".row", has_text="gpu-fatal-xid").count() == 1
    with look(browser, url(up), DESK) as one:
        page = one.open("/rules/gpu-fatal-xid")
        assert "this GPU must be recovered" in page.inner_text(".head")


def test_a_rule_names_each_of_what_it_explains_once(up: Up, browser: Browser) -> None:
    with look(browser, url(up), DESK) as one:
        page = one.open("/rules/gpu-lost")
        named = page.locator("a[href^='/rules?q=']").all_inner_texts()
        assert len(named) > 10
        assert sorted(set(named)) == sorted(named)


# The middle of what has the focus, and whether anything lies over it there
_UNDER = """() => {
  const one = document.activeElement
  if (!one || one === document.body) return null
  const box = one.getClientRects()[0]
  const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)
  return [one.outerHTML.slice(0, 120), Boolean(at && (at === one || one.contains(at) || at.contains(one)))]
}"""


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("path", ["/incidents/{}", "/nodes/sim-02"])
def test_what_the_keyboard_comes_to_is_in_sight(
    up: Up, browser: Browser, incident: str, path: str, size: tuple[int, int]
) -> None:
    """Forwards and backwards: neither the head nor the row of buttons lies over it, and no button stands out to the right."""
    with look(browser, url(up), size) as one:
        one.log_in(token(up))
        page = one.open(path.format(incident))
        for key in ("Tab", "Shift+Tab"):
            page.evaluate("document.activeElement.blur()")
            hidden, stops = [], 0
            for _ in range(150):
                page.keyboard.press(key)
                if (found := page.evaluate(_UNDER)) is None:
                    break
                stops += 1
                hidden += [] if found[1] else [found[0]]
            assert stops > 10
            assert hidden == [], key
