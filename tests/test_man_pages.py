"""The manual pages: one for each command, and troff has nothing to say against any."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from agent.shared.columns import columns_of
from brain.cli.main import COMMANDS, MOUNTED
from docs import man_pages

PROGRAMS = (man_pages.ROOT, man_pages.AGENT)
SENTENCE = re.compile(r"(?:[a-z]+ ){5}")  # in English


def test_each_command_has_a_page() -> None:
    """Also those of groups, with their arguments, options, exit status and environment."""
    pages = man_pages.pages()
    assert {f"gpuward-{name}.1" for name in (*COMMANDS, *MOUNTED)} < set(pages)
    assert "gpuward-log-export.1" in pages
    assert "\\-\\-notes" in pages["gpuward-explain.1"]
    assert ".SH EXIT STATUS" in pages["gpuward.1"]
    assert "GPUWARD_TOKEN_FILE" in pages["gpuward.1"]


def test_each_command_of_the_agent_has_a_page() -> None:
    """As its help tells it: each option with what it means, and nothing that argparse fills in is left as it is in the code."""
    pages = man_pages.pages(program=man_pages.AGENT)
    below = ("check", "decode", "join", "list", "once", "run")
    assert sorted(pages) == sorted(["gpuward-agent.1", *(f"gpuward-agent-{name}.1" for name in below)])
    for name in below:
        assert f"\\fBgpuward\\-agent\\-{name}(1)\\fR" in pages["gpuward-agent.1"]
        assert pages[f"gpuward-agent-{name}.1"].endswith(".SH SEE ALSO\ngpuward\\-agent(1)\n")
    assert "\\fB\\-\\-drain\\-reason\\fR\nprints one line" in pages["gpuward-agent-check.1"]
    assert "\\fBTOKEN\\fR\nor \\- to read it" in pages["gpuward-agent-join.1"]
    assert "the node is unfit for jobs" in pages["gpuward-agent.1"]
    assert "%(" not in "".join(pages.values())
    assert not any("==SUPPRESS==" in page or "\nNone\n" in page for page in pages.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_page_is_there_in_chinese(program: str) -> None:
    """Beside the English one, under the same name, with the same options; its words are Chinese."""
    english, chinese = (man_pages.pages(of, program) for of in ("en", "zh"))
    assert set(chinese) == set(english)
    for name, page in english.items():
        assert re.findall(r"^\\fB.*", chinese[name], re.MULTILINE) == re.findall(
            r"^\\fB.*", page, re.MULTILINE
        ), name
        assert ".SH 描述" in chinese[name]
        assert "Show this message" not in chinese[name]
        left = [
            line for line in page.splitlines() if SENTENCE.search(line) and line in chinese[name].splitlines()
        ]
        assert left == [], name
    assert ".SH 退出状态" in chinese[f"{program}.1"]


def test_no_line_of_a_text_is_a_request() -> None:
    """A sentence may begin with a point, and hold a backslash."""
    command = click.Command("x", help=".so /etc/passwd\n\n'br and \\fB")
    (page,) = [
        "\n".join(man_pages._page(one)) for one in man_pages._of_click(click.Context(command, info_name="x"))
    ]
    lines = [line for line in page.splitlines() if "etc" in line or "br and" in line]
    assert all(line.startswith("\\&") or "\\- " in line for line in lines), lines
    assert "\\efB" in page


@pytest.mark.component("groff")
def test_troff_takes_every_page(tmp_path: Path) -> None:
    """With all its warnings on; and what is read is the text."""
    if shutil.which("groff") is None:
        pytest.skip("needs groff")
    for program in PROGRAMS:
        man_pages.main(tmp_path, program)
    paths = sorted(tmp_path.rglob("*.1"))
    done = subprocess.run(
        ["groff", "-K", "utf8", "-man", "-Tutf8", "-ww", "-z", *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    read = subprocess.run(
        ["groff", "-man", "-Tascii", "-P-cbou", str(tmp_path / "gpuward-explain.1")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "gpuward-explain" in read.stdout
    assert "--notes" in read.stdout
    wide = subprocess.run(
        ["groff", "-K", "utf8", "-man", "-Tutf8", "-P-cbou", str(tmp_path / "zh_CN" / "gpuward-explain.1")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "因果链" in wide.stdout
    assert all(columns_of(line) <= 80 for line in wide.stdout.splitlines()), "lines of Chinese break, too"
