"""`gpuward run --check` names all that is wrong, with its line: whoever corrects a file does so once."""

import subprocess
import sys
from pathlib import Path

import pytest

WRONG = """cel = "x"
[console]
hots = ["a"]
[channels.chat]
type = "slak"
[channels.pager]
type = "pagerduty"
routing_key = "x"
[channels.hook]
type = "webhook"
url = "ftp://x"
[groups]
oncall = ["hook", "nope"]
[schedulers.train]
type = "slurm"
noddes = "gpu*"
[bmc.a]
type = "redfish"
[[modes]]
runbook = "*"
mode = "autto"
"""
# The number of the line, and what stands there
FOUND = [
    (1, "cel: unknown key: did you mean cell?"),
    (3, "console.hots: unknown key"),
    (5, "channels.chat.type: unknown type 'slak'"),
    (6, "channels.pager.routing_key_file: is missing"),
    (8, "channels.pager.routing_key: is not an option here: did you mean routing_key_file?"),
    (11, "channels.hook.url: want http"),
    (13, "groups.oncall: there is no channel 'nope' (have: chat, pager, hook)"),
    (16, "schedulers.train.noddes: is not an option here: did you mean nodes?"),
    (17, "bmc.a.user: is missing"),
    (17, "bmc.a.password_file: is missing"),
    (21, "modes.0.mode: Input should be"),
]
PARTS = {
    "tables": (
        '[channels.a]\ntype = "slak"\n[channels.b]\ntype = "webhook"\n[bmc.c]\ntype = "x"\n[dead_mans_switches.d]\ntype = "y"\n',
        [
            (2, "channels.a.type"),
            (3, "channels.b.url: is missing"),
            (6, "bmc.c.type"),
            (8, "dead_mans_switches.d.type"),
        ],
    ),
    "settings": (
        '[settings]\nhold_off_s = 99999\nbreaker_runs = 0\n[settings.digests.P1]\nto = "nobody"\n',
        [
            (2, "settings.hold_off_s: 99999 is not"),
            (3, "settings.breaker_runs: 0 is not"),
            (4, "settings.digests.P1: what is so urgent"),
            (4, "settings.digests.P1: there is no group 'nobody'"),
        ],
    ),
    "names": (
        'cell = "a b"\nbrain = "c d"\n[settings]\nzone = "Mars/Olympus"\n',
        [(1, "cell 'a b' must be"), (2, "brain 'c d' must be"), (4, "Mars/Olympus")],
    ),
    "modes": (
        '[[modes]]\nrunbook = "none"\nmode = "auto"\n[[modes]]\nrunbook = "nil"\nmode = "auto"\n',
        [(2, "modes.0.runbook: no runbook 'none'"), (5, "modes.1.runbook: no runbook 'nil'")],
    ),
}


def lines(folder: Path, text: str) -> list[str]:
    """What the check says of a file."""
    file = folder / "brain.toml"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "brain", "run", "--check", "--config", str(file)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done
    return done.stderr.removeprefix("gpuward: ").replace(str(file), "FILE").splitlines()


def shown(found: list[tuple[int, str]], said: list[str]) -> list[tuple[str, str]]:
    """Beside each other, as far as there is something on both sides."""
    return [(f"FILE:{number}: {text}", line) for (number, text), line in zip(found, said, strict=False)]


def test_all_that_is_wrong_is_named_in_the_order_of_the_file(tmp_path: Path) -> None:
    """What a type refuses, and what the plug-ins refuse; and nothing that only follows from it."""
    said = lines(tmp_path, WRONG)
    assert len(said) == len(FOUND), said
    assert [pair for pair in shown(FOUND, said) if not pair[1].startswith(pair[0])] == []


@pytest.mark.parametrize(("text", "found"), PARTS.values(), ids=PARTS)
def test_each_part_names_all_of_its_own(tmp_path: Path, text: str, found: list[tuple[int, str]]) -> None:
    """Not the first one only."""
    said = lines(tmp_path, text)
    assert len(said) == len(found), said
    assert [
        (number, part)
        for number, part in found
        if not any(f"FILE:{number}" in one and part in one for one in said)
    ] == [], said


def test_what_follows_from_a_refused_table_is_not_told(tmp_path: Path) -> None:
    """A group of a channel that is refused is not without a channel."""
    said = lines(tmp_path, '[channels.chat]\ntype = "slak"\n[groups]\noncall = ["chat"]\n')
    assert len(said) == 1
    assert "unknown type 'slak'" in said[0]
