"""The map of the fleet, on a real `gpuward up`: what a drill does to a node is seen, found, opened."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.up import Up, running
from tests.web.kit import DESK, PHONE, Look, look, token

pytestmark = [pytest.mark.component("chromium"), pytest.mark.component("nats-server"), pytest.mark.slow]

NODE = "sim-03"
# Pixels of the map whose colour is that of a variable of the style, about its middle or everywhere.
_PIXELS = """([name, middle]) => {
    const canvas = document.getElementById('fleet-map')
    const copy = document.createElement('canvas')
    copy.width = canvas.width
    copy.height = canvas.height
    const ctx = copy.getContext('2d', { willReadFrequently: true })
    ctx.fillStyle = getComputedStyle(canvas).getPropertyValue(name)
    ctx.fillRect(0, 0, 1, 1)
    const [r, g, b] = ctx.getImageData(0, 0, 1, 1).data
    ctx.drawImage(canvas, 0, 0)
    const [w, h] = [canvas.width, canvas.height]
    const [x, y, wide, high] = middle ? [w / 2 - 70, h / 2 - 70, 140, 140] : [0, 0, w, h]
    const { data } = ctx.getImageData(x, y, wide, high)
    let found = 0
    for (let n = 0; n < data.length; n += 4) found += data[n] === r && data[n + 1] === g && data[n + 2] === b
    return found
}"""
_URGENT = ("--bad", "--accent", "--warn")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """With twelve simulated nodes; whatever would heal waits for a person."""
    with running(tmp_path_factory.mktemp("up") / "data", nodes=12) as one:
        one.gpuward("mode", "*", "approve", "--nodes", "sim-*")
        yield one


@pytest.fixture(scope="module")
def desk(up: Up, browser: Browser) -> Iterator[Look]:
    """A person at a desk who has logged in."""
    with look(browser, f"http://127.0.0.1:{up.port}", DESK) as one:
        one.log_in(token(up))
        yield one


@pytest.fixture(scope="module")
def broken(up: Up, desk: Look) -> float:
    """A GPU of NODE needs a reset; the time before that. The map that is open shows it without being loaded anew."""
    page = desk.open("/fleet")
    page.wait_for_selector(".legend [data-state=well]:has-text('13')")
    assert colours(page) == 0, "nothing is urgent"
    before = time.time()
    page.evaluate("window.same = true")
    up.gpuward("drill", "gpu-needs-reset", "--node", NODE)
    page.wait_for_selector(".legend [data-state=needs_human]:has-text('1')")
    page.wait_for_function(f"([name, middle]) => ({_PIXELS})([name, middle]) > 20", arg=["--bad", False])
    assert page.evaluate("window.same"), "the page was not loaded anew"
    return before


def colours(page: Page, *, middle: bool = False) -> int:
    """How much of the map has an urgent colour."""
    return sum(page.evaluate(_PIXELS, [name, middle]) for name in _URGENT)


def near(one: Look) -> Page:
    """The map with NODE in its middle, found by the filter."""
    page = one.open("/fleet")
    page.fill("input[name=q]", NODE)
    page.press("input[name=q]", "Enter")
    page.wait_for_selector(f"#fleet-readout:has-text('{NODE}')")
    return page


def test_a_drill_colours_its_node(desk: Look, broken: float) -> None:
    """And the node is what the pointer says it is; a click opens it."""
    page = near(desk)
    page.wait_for_function(f"([name, middle]) => ({_PIXELS})([name, middle]) > 100", arg=["--bad", True])
    box = page.locator("#fleet-map").bounding_box()
    assert box
    page.mouse.move(5, 5)
    page.mouse.move(box["x"] + box["width"] / 2 - 22, box["y"] + box["height"] / 2)
    said = page.inner_text("#fleet-readout")
    assert NODE in said
    assert "needs a person" in said
    assert re.search(r"\bP[0-3]\b", said), "its severity"
    page.mouse.click(box["x"] + box["width"] / 2 - 22, box["y"] + box["height"] / 2)
    page.wait_for_url(f"**/nodes/{NODE}")
    page.wait_for_selector(f"h1:has-text('{NODE}')")
    assert page.locator(".row .severity").count() >= 1, "its incident is there"


def test_the_filter_finds_nodes(desk: Look, broken: float) -> None:
    """By name, state, leaf and what is not wanted; on the map and in the list alike, and it stays in the address."""
    page = desk.open("/fleet")
    for text, wanted in (
        ("sim-0*", "9 of 13"),
        ("state:well leaf:leaf-1", "of 13"),
        ("-state:well", "1 of 13"),
        (f"{NODE},sim-04 -{NODE}", "1 of 13"),
        ("nothing-like-that", "0 of 13"),
    ):
        page.fill("input[name=q]", text)
        page.wait_for_selector(f".fleet-head p:has-text('{wanted}')")
    page.fill("input[name=q]", "rock:r1")
    page.wait_for_selector(".fleet-head .bad-text:has-text('rock')")
    page.fill("input[name=q]", "")
    page.wait_for_selector(".fleet-head p:has-text('13 nodes')")
    page.evaluate(  # at once, while what was typed is still waited for
        """() => { const box = document.querySelector("input[name=q]")
        box.value = "sim-0"; box.dispatchEvent(new Event("input", { bubbles: true }))
        box.value = ""; box.dispatchEvent(new Event("input", { bubbles: true }))
        document.querySelector(".legend [data-state=needs_human]").click() }"""
    )
    page.wait_for_url("**q=state*needs_human*")
    page.wait_for_timeout(1_000)  # longer than the page waits for a further letter
    page.wait_for_selector(".fleet-head p:has-text('1 of 13')")
    page.reload()
    desk.ready()
    page.click("button:has-text('List')")
    page.wait_for_selector("table.nodes tbody tr")
    assert page.locator("table.nodes tbody th").all_inner_texts() == [NODE]
    page.click(".legend [data-state=needs_human]")
    page.wait_for_selector("table.nodes tbody tr:nth-child(13)")
    assert page.locator("table.nodes tbody th").first.inner_text() == NODE, "the most urgent first"


def test_the_slider_goes_back_in_time(desk: Look, broken: float) -> None:
    """Before the drill all was well; the way back is one press."""
    page = desk.open("/fleet")
    page.wait_for_selector(".legend [data-state=needs_human]:has-text('1')")
    page.focus("input[type=range]")
    for _ in range(400):
        page.keyboard.press("ArrowLeft")
        if float(page.input_value("input[type=range]")) <= 600:
            break
    page.wait_for_url("**at=*")
    page.wait_for_selector(".past.then")
    desk.open(f"/fleet?at={broken:.0f}")
    page.wait_for_selector(".past.then")
    page.wait_for_selector(".legend [data-state=needs_human]:has-text('0')")
    assert page.locator("#fleet-map").count() == 1
    assert colours(page) == 0
    page.click(".past button.main")
    page.wait_for_selector(".legend [data-state=needs_human]:has-text('1')")
    assert "at=" not in page.url


def test_by_keyboard_alone(desk: Look, broken: float) -> None:
    """The map is reached, says aloud what it means, moves, and opens the most urgent node."""
    page = desk.open("/fleet")
    page.focus("button:has-text('List')")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "fleet-map":
            break
    page.wait_for_selector(f"#fleet-spoken:has-text('{NODE}')", state="attached")
    page.keyboard.press("n")
    page.wait_for_selector("#fleet-spoken:not(:has-text('needs a person'))", state="attached")
    page.keyboard.press("p")
    page.wait_for_selector(f"#fleet-spoken:has-text('{NODE}')", state="attached")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(f"#fleet-spoken:not(:has-text('{NODE}'))", state="attached")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/nodes/{NODE}")


def test_on_a_phone(up: Up, browser: Browser, broken: float) -> None:
    """A tap says what is under the finger and offers to open it; two fingers zoom; nothing stands out to the right."""
    with look(browser, f"http://127.0.0.1:{up.port}", PHONE, theme="dark", language="zh") as one:
        one.log_in(token(up))
        page = near(one)
        before = page.evaluate("document.getElementById('fleet-map').toDataURL()")
        pinch(one)
        page.wait_for_function(
            "before => document.getElementById('fleet-map').toDataURL() !== before", arg=before
        )
        page = near(one)
        box = page.locator("#fleet-map").bounding_box()
        assert box
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector(f"#fleet-readout a[href='/nodes/{NODE}']")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.tap("#fleet-readout a")
        page.wait_for_selector(f"h1:has-text('{NODE}')")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        one.open("/fleet?view=list")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def pinch(one: Look) -> None:
    """Two fingers on the map that go apart."""
    box = one.page.locator("#fleet-map").bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = one.context.new_cdp_session(one.page)

    def touch(kind: str, apart: float) -> None:
        points = [{"x": x - apart, "y": y, "id": 1}, {"x": x + apart, "y": y, "id": 2}] if apart else []
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 20)
    for apart in range(25, 100, 15):
        touch("touchMove", apart)
    touch("touchEnd", 0)


@pytest.mark.parametrize("path", ["/fleet", "/fleet?view=list", f"/nodes/{NODE}"])
def test_everybody_can_use_it(path: str, desk: Look, broken: float) -> None:
    """axe-core finds nothing, in both themes and languages."""
    desk.open(path)
    try:
        for theme in ("dark", "light"):
            for language in ("zh", "en"):
                desk.theme("dark" if theme == "dark" else "light")
                desk.language("zh" if language == "zh" else "en")
                assert desk.violations() == [], (theme, language)
    finally:
        desk.theme("")
