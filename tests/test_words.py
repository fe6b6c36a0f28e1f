"""The command lines in Chinese: nothing is missing, nothing is left over, columns stand, and scripts see nothing of it."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest
from rich.cells import cell_len

from agent import app
from agent.cli import main as agent_cli
from agent.config import AgentConfig
from agent.contract.counted import span as english_span
from agent.shared.columns import columns_of, wrapped
from agent.shared.words import (
    by_locale,
    id_of,
    language,
    many,
    read,
    span,
    speaking,
    t,
    values_of,
    wanted,
    without_lang,
)
from brain.__main__ import MOUNTS
from brain.cli.main import FOLDERS, group, run
from brain.cli.terminal import padded
from brain.console import speech
from tests import words

CHINESE = {
    "agent": agent_cli.FOLDERS[0] / "zh",
    "brain": FOLDERS[0] / "zh",
    "console": speech.FOLDERS[0] / "zh",
}
LIBRARIES = ("argparse.ftl", "click.ftl")  # what these say themselves
DMESG = "[   12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"


def needed(of: str) -> tuple[dict[str, set[str]], set[str]]:
    """What a catalogue must have: ids of sentences with their values, and of what is counted."""
    folders = {"agent": words.OF_AGENT, "brain": words.OF_BRAIN, "console": words.OF_CONSOLE}[of]
    texts = words.said(folders)
    more = {"agent": words.agent_helped, "brain": words.helped, "console": set}[of]()
    ids = words.by_id({*texts, *more})
    values = {id_of(one): texts.get(one, set()) for one in {*texts, *more}}
    assert set(values) == set(ids)
    return values, {f"count-{id_of(one)}" for one in words.counted(folders)}


def own(folder: Path) -> dict[str, str]:
    """A catalogue without what is libraries'."""
    found = read(folder)
    for name in LIBRARIES:
        file = folder / name
        if file.exists():
            for key in re.findall(r"^([\w-]+) =", file.read_text(encoding="utf-8"), re.MULTILINE):
                found.pop(key, None)
    return found


@pytest.mark.parametrize("of", ["agent", "brain", "console"])
def test_nothing_is_missing_and_nothing_is_left_over(of: str) -> None:
    """Each sentence, each text of help and each thing that is counted is there in Chinese, with no value that the code does not
    give.
    """
    values, counts = needed(of)
    there = read(CHINESE[of])
    assert sorted(id_ for id_ in {*values, *counts} if id_ not in there) == []
    units = {f"count-{one}" for one in ("day", "hour", "minute", "second")}
    assert sorted(set(own(CHINESE[of])) - set(values) - counts - units) == []
    wrong = [id_ for id_, takes in values.items() if not values_of(there[id_]) <= takes]
    assert wrong == []
    assert [id_ for id_ in counts if values_of(there[id_]) != {"n"}] == []


@pytest.mark.parametrize("of", ["agent", "brain", "console"])
def test_no_key_stands_twice(of: str) -> None:
    """The second would be read, and nobody would know."""
    keys = [
        key
        for file in sorted(CHINESE[of].glob("*.ftl"))
        if file.name not in LIBRARIES
        for key in re.findall(r"^([\w-]+) =", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []


def test_texts_are_filled_and_keep_their_layout() -> None:
    """Values are put in; line ends and indents around a sentence stay, a blank before a part of one goes."""
    with speaking("zh", FOLDERS):
        assert t("no runs") == "没有运行"
        assert t("no brain has this sentence {n}", n=1) == "no brain has this sentence 1"
        assert t("\nnothing is said of: {nobody}", nobody="n1").startswith("\n没有提到")
        assert t(" ({nodes} nodes)", nodes=3) == "（3 个节点）"
        assert (many(1, "node"), many(2, "node"), span(90)) == ("1 个节点", "2 个节点", "90 秒")
    assert (t("{n} lines", n=2), many(2, "node"), span(90)) == ("2 lines", "2 nodes", english_span(90))


@pytest.mark.parametrize(
    ("args", "environment", "spoken"),
    [
        ([], {}, "en"),
        ([], {"LANG": "zh_CN.UTF-8"}, "zh"),
        ([], {"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ([], {"LC_ALL": "", "LC_MESSAGES": "zh_CN", "LANG": "C"}, "zh"),
        ([], {"LANG": "zhuang"}, "en"),
        (["--lang", "en", "status"], {"LANG": "zh_CN.UTF-8"}, "en"),
        (["status", "--lang=zh"], {}, "zh"),
        (["status", "--lang"], {}, "en"),
        (["note", "--", "--lang", "zh"], {}, "en"),
        (["status", "--json", "--lang", "zh"], {"LANG": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_who_says_which_language(args: list[str], environment: Mapping[str, str], spoken: str) -> None:
    """The option before the locale, and scripts before both."""
    assert wanted(args, environment) == spoken


def test_the_locale_is_read_as_setlocale_does() -> None:
    """The first of the three that says anything."""
    assert by_locale({"LC_ALL": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}) == "zh"


def test_an_unknown_language_is_left_for_the_parser() -> None:
    """It says what is wrong, and what stands behind `--` is not ours."""
    assert without_lang(["--lang", "zh", "status", "--lang=en"]) == ["status"]
    assert without_lang(["status", "--lang", "fr"]) == ["--lang", "fr", "status"]
    assert without_lang(["note", "--lang=fr", "x"]) == ["--lang=fr", "note", "x"]
    assert without_lang(["status", "--lang"]) == ["status", "--lang"]
    assert without_lang(["note", "--", "--lang", "zh"]) == ["note", "--", "--lang", "zh"]


@contextlib.contextmanager
def chinese() -> Iterator[click.Group]:
    """`gpuward` in Chinese."""
    with speaking("zh", FOLDERS):
        yield group(MOUNTS)


def test_help_fits_its_columns() -> None:
    """Every page of help: no line is wider than the page, by the columns that a terminal gives it."""
    with chinese() as whole:
        for ctx in contexts(
            whole.context_class(whole, info_name="gpuward", max_content_width=78, terminal_width=78)
        ):
            text = ctx.get_help()
            assert "用法：" in text
            for line in text.splitlines():
                assert cell_len(line) <= 78 or " " not in line.strip(), (ctx.command_path, line)


def contexts(ctx: click.Context) -> Iterator[click.Context]:
    """Those of a command and of all below it."""
    yield ctx
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, name)
            assert command is not None
            yield from contexts(
                command.context_class(
                    command, info_name=name, parent=ctx, max_content_width=78, terminal_width=78
                )
            )


@pytest.mark.parametrize("text", ["abc", "没有运行", "GPU 掉线", "e\u0301", "（locale）", "…→"])
def test_columns_are_those_of_a_terminal(text: str) -> None:
    """As rich counts them, by which tables are laid out."""
    assert columns_of(text) == cell_len(text)
    assert cell_len(padded(text, 12)) == cell_len(padded(text, 12, right=True)) == 12


def test_no_line_ends_with_an_opening_bracket() -> None:
    """Nor begins with a closing one, or a stop."""
    text = "默认：由区域设置（locale）决定，也可以写在命令（command）之后。" * 3
    for columns in range(20, 60):
        lines = [*wrapped(text, columns)]
        assert all(columns_of(line) <= columns for line in lines)
        assert not any(line.endswith("（") or line.startswith(("）", "，", "。")) for line in lines), lines
        assert "".join(lines) == text


def typed(program: str, *args: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line as somebody types it."""
    return subprocess.run(
        [sys.executable, "-m", program, *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "LC_ALL": "C.UTF-8", "GPUWARD_URL": "http://127.0.0.1:9", **environment},
    )


def test_what_is_wrong_is_said_in_the_readers_language() -> None:
    """By the locale and by the option: what click and argparse find, and what we find."""
    zh = {"LC_ALL": "zh_CN.UTF-8"}
    assert "错误：没有选项 '--nope'" in typed("brain", "incidents", "--nope", **zh).stderr
    found = typed("brain", "incidents", "--lang", "zh")
    assert (found.returncode, "没有 brain 回答" in found.stderr) == (1, True)
    assert "no brain answers" in typed("brain", "incidents").stderr
    assert "--lang" in typed("brain", "--lang", "fr", "incidents").stderr
    assert "缺少必需的参数" in typed("agent", "join", "--lang", "zh").stderr
    assert "这不是加入令牌" in typed("agent", "join", "nonsense", **zh).stderr
    assert "用法" in typed("agent", "check", "--help", **zh).stdout
    assert "agent 没有回答" in typed("agent", "check", "--socket", "/nonexistent", **zh).stderr
    assert "the agent does not answer" in typed("agent", "check", "--socket", "/nonexistent").stderr


@pytest.mark.parametrize("program", ["brain", "agent"])
def test_a_locale_without_these_letters_is_no_bug(program: str) -> None:
    """They stand as their numbers, as Python writes them on standard error: no traceback."""
    done = typed(program, "--help", "--lang", "zh", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u" in done.stdout


@pytest.mark.parametrize(
    "args", [("status", "--lang", "fr"), ("status", "--lang=fr"), ("--lang", "fr", "status")]
)
def test_a_language_that_there_is_not(args: tuple[str, ...]) -> None:
    """Wherever it stands, the languages are told."""
    done = typed("brain", *args)
    assert done.returncode == 2
    assert "'fr' is not one of 'en', 'zh'" in done.stderr


def test_a_diagnosis_in_chinese_has_the_same_facts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are Chinese, the kernel's line is as it was; and as JSON it is the same, to the letter, in every language."""

    monkeypatch.setenv("COLUMNS", "120")

    def said(*args: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(DMESG.encode())))
        with pytest.raises(SystemExit):
            run(MOUNTS, ["diagnose", *args])
        return capsys.readouterr().out

    text = said("--lang", "zh")
    assert "把握" in text
    assert "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus." in text
    assert "gpuward would run" not in text
    plain = said("--json")
    assert said("--json", "--lang", "zh") == plain
    assert json.loads(plain)["incidents"][0]["sure"] == "one line says so, nothing else confirms it"
    assert language() == "en"


def test_the_agent_that_runs_holds_no_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a Chinese locale, too: its memory is a promise. What only reads the configuration speaks."""
    seen: list[str] = []
    read_: list[Path] = []

    def begun(_loaded: AgentConfig) -> int:
        seen.append(language())
        return 0

    monkeypatch.setattr(app, "run", begun)

    def seen_reading(folder: Path) -> dict[str, str]:
        read_.append(folder)
        return read(folder)

    monkeypatch.setattr("agent.shared.words.read", seen_reading)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    config = tmp_path / "agent.toml"
    config.write_text('node = "n1"\ncell = "c1"\n', encoding="utf-8")
    args = ["run", "--config", str(config), "--set", f"data_dir={tmp_path}"]
    assert agent_cli.main(args) == 0
    assert (seen, read_) == (["en"], [])
    assert agent_cli.main([*args, "--check"]) == 0
    assert len(read_) == 1


def test_a_thing_has_one_word() -> None:
    """In Chinese an agent is `agent` and a brain `brain`: 代理 is a proxy, and somebody who reads both would not know which."""
    root = Path(__file__).parents[1]
    for folder in ("agent", "brain", "rules", "runbooks", "simulations"):
        for file in (
            one for kind in ("py", "ftl", "yaml", "js") for one in (root / folder).rglob(f"*.{kind}")
        ):
            for line in file.read_text(encoding="utf-8").splitlines():
                assert "大脑" not in line, f"{file}: {line}"
                assert "代理" not in line or "proxy" in line.lower() or "Host" in line, f"{file}: {line}"
