"""`gpuward top` in a real terminal, as whoever is on call has it: a drill's step is approved, brokers and brains are killed."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from brain.cli.client import Client
from tests.e2e.stack import Stack
from tests.e2e.tmux import Tmux
from tests.e2e.up import BIN, running

pytestmark = [pytest.mark.component("tmux"), pytest.mark.component("nats-server"), pytest.mark.slow]


@contextlib.contextmanager
def terminal(
    folder: Path, *options: str, env: dict[str, str], size: tuple[int, int] = (80, 24), background: str = ""
) -> Iterator[Tmux]:
    """`gpuward top` in it, ended whatever happens."""
    shown = Tmux(folder, str(BIN / "gpuward"), "top", *options, env=env, size=size, background=background)
    try:
        yield shown
    finally:
        shown.end()


@pytest.mark.timeout(400)
def test_a_drill_is_approved_and_heals(tmp_path: Path) -> None:
    """On 80 columns: what waits stands there within a moment, `a` shows exactly what would be done, and what was agreed is done.
    In the end nothing needs anybody, and the terminal is left as it was.
    """
    with running(tmp_path / "data", nodes=4) as up, terminal(tmp_path, env=up.env()) as at:
        at.sees("Needs a person: Nothing needs you.", "administrator")
        up.gpuward("mode", "reset-gpu", "approve", "--nodes", "sim-*")
        up.gpuward("drill", "gpu-needs-reset", "--node", "sim-02")
        at.sees("waits for an approval", "gpu/sim-02/")
        at.press("/")
        at.type("sim-02")
        at.press("Enter")
        at.sees("/sim-02 (1 of")

        def over() -> bool:
            found = up.get("/api/v1/incidents?all=1")["incidents"]
            return any(one["node"] == "sim-02" and one["state"] == "closed" for one in found)

        approved: list[str] = []
        while not over():  # the drain and the reset are asked for one by one
            people = up.get("/api/v1/needs")["people"]
            what = next((one["approval"]["what"] for one in people if one["approval"]), "")
            if not what or what in approved or "waits for an approval" not in at.screen():
                time.sleep(0.2)  # before it looks again
                continue
            at.press("a")
            at.sees("What do you say?", "Approve")
            at.press("Enter")
            at.sees("Exactly this is done, and nothing else:", "Disrupts:")
            shown = " ".join(at.screen().split())
            if (
                what not in shown
            ):  # the list was of a moment ago: the question says so, and nobody agrees to it
                at.sees("This has changed since")
                at.press("Escape")
                at.until(lambda screen: "Exactly this is done" not in screen, "the question is left")
                continue
            at.press("Tab", "Enter")
            at.until(lambda screen: "Exactly this is done" not in screen, "the question is answered")
            approved.append(what)
        assert len(up.get("/api/v1/notes?kind=operator.approve")["notes"]) == len(approved) >= 1
        at.press("Escape")  # alone: with a key at once behind it a terminal says Alt and that key
        at.until(lambda screen: "/sim-02" not in screen, "all rows are shown")
        at.press("5")
        at.sees("incident.closed")
        at.press("4")
        at.sees("sim-01", "well", "auto")
        at.press("q")
        at.until(lambda _: at.ended() is not None, "it has ended")
        assert at.ended() == 0


@pytest.mark.timeout(400)
def test_broker_and_brain_are_killed(tmp_path: Path) -> None:
    """Each is said at once, with the age of what is shown; both come back, and what was said meanwhile stands there once."""
    whole = Stack(tmp_path / "stack")
    env = {"GPUWARD_URL": whole.url, "GPUWARD_TOKEN_FILE": str(whole.ann)}
    client = Client(whole.url, whole.ann)

    def hold(number: int) -> None:
        def said() -> bool:
            try:
                client.submit("hold", scope="all", why=f"look {number}.")
            except click.ClickException:
                return False
            return True

        whole.wait_for(said, "a hold is taken")

    try:
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config()
        whole.start_brain()
        with terminal(tmp_path, env=env, size=(120, 40)) as at:
            at.sees("ann, administrator", "Nothing needs you.")
            hold(0)
            at.press("5")
            at.sees("holds all: look 0.")
            whole.nats.kill()
            at.sees("OUTDATED: nodes, incidents and runs are shown as of", "not connected to NATS")
            whole.nats.start()
            whole.wait_for(lambda: whole.get("/api/v1/status").get("leads"), "the brain leads again")
            at.until(lambda screen: "OUTDATED" not in screen, "the broker is back")
            hold(1)
            at.sees("holds all: look 1.")
            whole.kill("brain")
            began = time.monotonic()
            at.sees("NOT CONNECTED since", "What you see is as of")
            assert time.monotonic() - began < 30, "it is said as soon as it is so"
            whole.start_brain()
            hold(2)
            at.until(lambda screen: "NOT CONNECTED" not in screen, "the brain is back")
            at.sees("holds all: look 2.")
            at.press("/")
            at.type("holds all:")
            at.press("Enter")
            screen = at.sees("/holds all: (3 of")
            lines = [line for line in screen.splitlines() if "operator.hold  all" in line]
            assert [line.partition("look ")[2][:1] for line in lines] == ["2", "1", "0"], screen
    finally:
        whole.end()


@pytest.mark.timeout(300)
def test_a_pipe_a_wrong_url_and_a_terminal_without_colours(tmp_path: Path) -> None:
    """What is wrong is one line, and the terminal is not touched; NO_COLOR sends no colour."""
    nobody = {"GPUWARD_URL": "http://127.0.0.1:9"}
    with terminal(tmp_path, env=nobody) as at:
        at.until(lambda _: at.ended() is not None, "it has ended")
        assert at.ended() == 1
        assert "no brain answers at http://127.0.0.1:9" in " ".join(at.screen(scrolled=True).split())
    whole = Stack(tmp_path / "stack")
    try:
        whole.nats.start()
        whole.start_receiver()
        whole.write_brain_config()
        whole.start_brain()
        env = {"GPUWARD_URL": whole.url, "GPUWARD_TOKEN_FILE": str(whole.ann), "NO_COLOR": "1"}
        with terminal(tmp_path, "--lang", "zh", env=env) as at:
            at.sees("目前没有需要您处理的事项。")
            drawn = at.screen(colours=True)
            assert "\x1b[7m" in drawn, "the list that is shown is marked"
            for colour in ("[31", "[33", "[36", "[38", "[41", "[48"):
                assert f"\x1b{colour}" not in drawn
            at.press("C-c")
            at.until(lambda _: at.ended() is not None, "it has ended")
    finally:
        whole.end()
