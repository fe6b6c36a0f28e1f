"""What a shell completes: by real shells, from a real brain, and nothing at all where none answers."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from brain.cli import completing
from brain.cli.main import group
from tests.real.brain_kit import lab
from tests.real.test_brain import cli, gpu_lost

ROOT = Path(__file__).resolve().parents[2]
NOBODY = "http://127.0.0.1:9"


def completed(*words: str, **environment: str) -> list[str]:
    """What `gpuward` answers a shell that completes the last of these words."""
    env = os.environ | {
        "_GPUWARD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("gpuward", *words)),
        "COMP_CWORD": str(len(words)),
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-m", "brain"], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == "", done.stderr
    return [line.partition(",")[2] for line in done.stdout.split("\n") if line]


def test_commands_and_options_are_completed_without_a_brain() -> None:
    """Nothing is printed that does not belong into the line."""
    assert completed("ex", GPUWARD_URL=NOBODY) == ["explain"]
    assert "--notes" in completed("explain", "--", GPUWARD_URL=NOBODY)
    assert completed("explain", "inc-", GPUWARD_URL=NOBODY) == []
    assert completed("mode", "x", "a", GPUWARD_URL=NOBODY) == ["approve", "auto"]


def test_a_brain_that_does_not_answer_is_not_waited_for() -> None:
    """A person types: after 300 ms the line is theirs again."""
    began = time.monotonic()
    assert completing._within(lambda: time.sleep(30) or []) == []  # type: ignore[func-returns-value]
    assert time.monotonic() - began < 5


@pytest.mark.component("nats-server")
async def test_what_the_brain_knows_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Incidents, nodes, runbooks, holds and scopes, by what has been typed of them."""
    monkeypatch.setattr(completing, "WITHIN_S", 30.0)  # the brain runs in this process, on a busy machine
    async with lab(tmp_path) as whole:
        node = await whole.node("n1")
        incident = await gpu_lost(whole, node)
        await cli(whole, "hold", "node/n1", "--why", "firmware")
        assert whole.running is not None
        monkeypatch.setenv("GPUWARD_URL", whole.running.console_url)
        monkeypatch.setenv("GPUWARD_TOKEN_FILE", str(whole.ann))

        async def words(*line: str) -> list[str]:
            shell = ShellComplete(group({}), {}, "gpuward", "_GPUWARD_COMPLETE")
            found = await asyncio.to_thread(shell.get_completions, list(line[:-1]), line[-1])
            return [one.value for one in found]

        assert await words("explain", "inc-") == [incident["id"]]
        assert await words("ack", incident["id"][:6]) == [incident["id"]]
        assert await words("--url", NOBODY, "explain", "inc-") == []
        assert await words("return", "n") == ["n1"]
        assert await words("return", "x") == []
        assert "gpu-lost" in " ".join(await words("mode", "gpu"))
        assert await words("hold", "node/") == ["node/n1"]
        assert await words("hold", "a") == ["all"]
        assert await words("release", "node") == ["node/n1"]


def test_a_name_that_a_shell_would_take_apart_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell's script takes a value unquoted: blanks, globs and commas stay out of it."""
    hostile = ["a*", "a b", "a,b", "a$(id)", "a\x1b[2J", "a`id`", "an-honest.one:1/x@y"]

    class Told:
        def get(self, *_: str, query: str = "") -> object:
            return {"nodes": [{"name": name, "alive": True} for name in hostile]}

    monkeypatch.setattr(completing, "of_root", lambda _: Told())
    shell = ShellComplete(group({}), {}, "gpuward", "_GPUWARD_COMPLETE")
    assert [one.value for one in shell.get_completions(["return"], "a")] == ["an-honest.one:1/x@y"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_reads(shell: str, tmp_path: Path) -> None:
    """Each prints its script; bash completes by it."""
    done = subprocess.run(
        [sys.executable, "-m", "brain", "completion", shell],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "_GPUWARD_COMPLETE" in done.stdout
    if shell != "bash" or shutil.which("bash") is None:
        return
    (tmp_path / "gpuward").write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m brain "$@"\n')
    (tmp_path / "gpuward").chmod(0o755)
    (tmp_path / "script").write_text(done.stdout)
    line = f'. {tmp_path}/script; COMP_WORDS=(gpuward expl); COMP_CWORD=1; _gpuward_completion gpuward; echo "${{COMPREPLY[@]}}"'
    told = subprocess.run(
        ["bash", "--norc", "-c", line],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.stdout.split() == ["explain"], told.stderr
