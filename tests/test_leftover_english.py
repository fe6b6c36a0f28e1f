"""What people read on a command line or in a chat does not stay English in a Chinese setting: it goes through `t`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.shared.words import id_of, read
from brain import sentences
from brain.cell.registry import TokenRefusal
from brain.console.chat import words
from brain.console.chat.words import NotUnderstood
from brain.console.speech import in_language, told

ROOT = Path(__file__).parents[1]
# Where people are told something on a command line or in a chat
TOLD = (
    "agent/cli",
    "brain/cli",
    "brain/console/chat",
    "simulations/cli.py",
    "simulations/up.py",
    "simulations/local_site.py",
)
# The calls by which they are
SAYS = frozenset(
    [
        "echo",
        "ClickException",
        "UsageError",
        "BadParameter",
        "ConfigError",
        "Refused",
        "Unreachable",
        "ActionError",
        "ChatAnswer",
        "NotUnderstood",
    ]
)
# What stands there in English, with the reason
ALLOWED = {
    "{}: an EncodingAESKey has 43 letters and digits": "an error of brain.toml",
    "gpuward up: {}": "a name",
}
PROSE = re.compile(r"[A-Za-z]{2,},? [a-z]{2,}")


def english(call: ast.Call) -> Iterator[str]:
    """The texts of a call that go nowhere before they are told."""
    for argument in (*call.args, *(one.value for one in call.keywords if one.arg in ("text", "message"))):
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value
        elif isinstance(argument, ast.JoinedStr):
            yield "".join(
                str(one.value) if isinstance(one, ast.Constant) else "{}" for one in argument.values
            )


def leftovers(text: str) -> list[str]:
    """What a module tells in English, whoever reads it."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in SAYS:
                found += [one for one in english(node) if PROSE.search(one) and one not in ALLOWED]
    return found


@pytest.mark.parametrize("where", TOLD)
def test_what_is_told_goes_through_the_catalogue(where: str) -> None:
    """A sentence that is printed as it stands in the code is named here."""
    path = ROOT / where
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files
    found = {file.name: lines for file in files if (lines := leftovers(file.read_text(encoding="utf-8")))}
    assert found == {}


def test_such_a_sentence_is_found() -> None:
    """The search sees constants and f-strings, by position and by name, and nothing that goes through `t`."""
    text = 'click.echo("no way out"); ChatAnswer(text=f"{x} is gone for good"); click.echo(t("no way in"))'
    assert leftovers(text) == ["no way out", "{} is gone for good"]


def test_why_a_node_may_not_join_is_told_in_chinese() -> None:
    """Each refusal of the registry, as the node's administrator reads it."""
    with in_language("zh"):
        for refusal in TokenRefusal:
            assert "令牌" in told(refusal)
        assert "令牌已用完" in told("this join token is used up: make another (`gpuward cell token`)")
    chinese = read(sentences.FOLDER / "zh")
    assert id_of(TokenRefusal.EXPIRED) in chinese


@pytest.mark.parametrize(("language", "says"), [("en", "say one of: ack ID"), ("zh", "请说其中之一：ack ID")])
def test_a_chat_is_answered_in_its_language(language: str, says: str) -> None:
    """`language` of its table in brain.toml."""
    with in_language(language), pytest.raises(NotUnderstood) as refused:
        words.of_text("hello", "U1")
    assert str(refused.value).startswith(says)


def test_a_closed_incident_is_told_in_chinese() -> None:
    """By whom, and with their own words as they are."""
    assert sentences.told("ann: closed", "zh") == "ann：已关闭"
