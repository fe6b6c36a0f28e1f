"""What the brain and the nodes say, and what shipped rules and runbooks do: for the catalogue by which it is told in another
language.

Each text in the code of `SPEAKERS` that people could read is a sentence, an f-string with a slot for each of its values. What
else is text there is named in LEFT_OUT, with the reason.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from agent.shared.words import id_of, read
from brain.adapters import pack
from brain.core.pack.spec import PAGE, Pack
from docs import pack_words

ROOT = Path(__file__).resolve().parents[1]
SPEAKERS = (
    "brain/core",
    "brain/actions",
    "brain/leader",
    "brain/unreadable.py",
    "brain/glance.py",
    "brain/adapters/lost_folder.py",
    "agent/actions",
    "agent/commands",
    "agent/contract/coverage.py",
    "brain/console",
    "brain/notify/alertmanager.py",
    "brain/notify/app_answers.py",
    "brain/notify/apprise.py",
    "brain/notify/compose.py",
    "brain/notify/dead_mans_switch.py",
    "brain/notify/dingtalk.py",
    "brain/notify/feishu.py",
    "brain/notify/http.py",
    "brain/notify/jira.py",
    "brain/notify/mail.py",
    "brain/notify/notifier.py",
    "brain/notify/pagerduty.py",
    "brain/notify/slack.py",
    "brain/notify/ticket.py",
    "brain/notify/wecom.py",
    "brain/outgoing.py",
    "brain/ufm",
    "brain/adapters/archive_store.py",
    "brain/adapters/evidence.py",
    "brain/adapters/evidence_store.py",
    "brain/adapters/lost_folder.py",
    "brain/adapters/node_requests.py",
    "brain/adapters/pack_process.py",
    "brain/adapters/signing_key.py",
    "brain/adapters/signing_key_log.py",
    "brain/adapters/streams.py",
    "brain/adapters/unsent_words.py",
    "brain/cell",
    "agent/shared/reasons.py",
    "simulations/actions",
    "simulations/node.py",
    "simulations/fleet_requests.py",
)
# Where sentences are said by `t` that the console is told in English, as any script is
SAID_BY_T = ("brain/cli/diagnosis.py",)
LEFT_OUT = {
    "brain/core/pack": "errors in a site's files, and what documents the code",
    "brain/core/rehearsal": "the examples of rules, for whoever writes them",
    "brain/leader/brain_knowledge.py": "written in both languages",
    "brain/actions/kube_tell.py": "what stands on Node objects, in English as all of it; its errors are sentences of kube.py",
    "brain/console/api/openapi.py": "the API's document",
    "brain/console/api/table.py": "the API's document",
    "brain/console/api/endpoint.py": "the API's document",
    "brain/console/chat": "what platforms of chats are told, and what a chat is answered in its own language",
    "brain/console/reports": "written in both languages",
    "brain/console/web_routes.py": "makes HTML",
    "brain/leader/replay.py": "what `gpuward log replay` says",
    "brain/core/why/xid_candidates.py": "written in both languages",
    "brain/core/why/sureness.py": "written in both languages",
    "brain/core/why/changes.py": "written in both languages",
}
# Calls whose texts nobody reads but in a log file, or that are no sentences
_UNREAD = re.compile(
    r"^(_log|_LOG|logger|logging)\.|^re\.|^(BugError|Field|Kind|ActionSpec|Parameter|t|later|many|NewType)$"
)
# Headers, elements, queries and patterns
_NO_WORDS = re.compile(r"attachment;|\s*Debug source|Bearer |Basic |labels = |<|count\(|\(\?i\)")
_CHINESE = re.compile("[\u3400-\u9fff]")
# Where English has two words and Chinese one: both are one sentence
_NUMBERS = (
    ("does", "do"), ("shows", "show"), ("is", "are"), ("has", "have"), ("stands", "stand"), ("it does", "they do"),
    ("it tests", "they test"), ("node shows", "nodes show"), (" is", "s are"), ("waits", "wait"),
)  # fmt: skip
_PLACED = (
    "name",
    "value",
    "en",
    "id",
    "text",
    "component",
)  # of a thing: the thing is what the slot is named after


class Sentence(NamedTuple):
    """One sentence of the catalogue."""

    # English, `{name}` for each value
    english: str
    # the same in the other number
    also: tuple[str, ...]


@cache
def sentences() -> tuple[list[Sentence], dict[str, str]]:
    """(the sentences, one -> many of what is counted), both sorted."""
    found: dict[tuple[str, ...], Sentence] = {}
    nouns: dict[str, str] = {}
    for file in _files():
        for one in _Speaker(file, nouns).said():
            found.setdefault(_literals(one.english), one)
    for name in SAID_BY_T:
        for call in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and _called(call) == "t" and isinstance(call.args[0], ast.Constant):
                one = Sentence(str(call.args[0].value), ())
                found.setdefault(_literals(one.english), one)
    for one in _of_the_pack():
        found.setdefault(_literals(one.english), one)
    by_id: dict[str, Sentence] = {}
    for one in sorted(found.values()):
        same = by_id.setdefault(id_of(one.english), one)
        if same is not one:  # they differ in signs or in case only: one text for both
            by_id[id_of(one.english)] = same._replace(also=(*same.also, one.english, *one.also))
    return list(by_id.values()), dict(sorted(nouns.items()))


def _of_the_pack() -> Iterator[Sentence]:
    """What symptoms mean, and what the pages of runbooks say: sentence by sentence, around what has happened (`$done`)."""
    whole = _pack()
    for symptom in whole.symptoms:
        yield Sentence(symptom.summary, ())
    for runbook in whole.runbooks:
        for rung in (*runbook.rungs, *runbook.return_to_service):
            text = str(rung.params.get("text", "")) if rung.do == PAGE else ""
            for part in re.split(r"\$(?!node)\w+", text):
                for english in filter(None, re.split(r"(?<=[.?!]) ", part.strip())):
                    yield Sentence(english.replace("$node", "{node}"), ())


def written() -> dict[str, str]:
    """What has its Chinese elsewhere: why rules think so (in the rule), and what runbooks do (the catalogue of the pages)."""
    pages = read(ROOT / "brain/console/web/words/zh")
    found = {rule.because: rule.because_zh for rule in _pack().rules if rule.because_zh}
    for key, english in pack_words.texts().items():
        if key.startswith("said-of-runbook-"):
            found[english] = pages[key]
    for file in _files():
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and _called(call) == "Text":
                texts = {
                    one.arg: one.value.value for one in call.keywords if isinstance(one.value, ast.Constant)
                }
                if {"en", "zh"} <= texts.keys():
                    found[str(texts["en"])] = str(texts["zh"])
    return dict(sorted(found.items()))


@cache
def _pack() -> Pack:
    return pack.assemble(pack.scan(ROOT / "rules", ROOT / "runbooks"), None, None)


def catalogue() -> str:
    """The file brain/sentences/english.json."""
    said, nouns = sentences()
    lines = ",\n".join(f"  {json.dumps([one.english, *one.also], ensure_ascii=False)}" for one in said)
    pairs = ",\n".join(
        f"  {json.dumps(one, ensure_ascii=False)}: {json.dumps(zh, ensure_ascii=False)}"
        for one, zh in written().items()
    )
    counted = json.dumps(nouns, ensure_ascii=False)
    return f'{{"counted": {counted},\n"written": {{\n{pairs}\n}},\n"sentences": [\n{lines}\n]}}\n'


def _files() -> Iterator[Path]:
    for name in SPEAKERS:
        path = ROOT / name
        for file in (path,) if path.is_file() else sorted(path.rglob("*.py")):
            where = file.relative_to(ROOT).as_posix()
            if not any(where == out or where.startswith(f"{out}/") for out in LEFT_OUT):
                yield file


def _literals(english: str) -> tuple[str, ...]:
    return tuple(re.split(r"\{\w+\}", english))


class _Speaker:
    """One file."""

    def __init__(self, file: Path, nouns: dict[str, str]) -> None:
        self._tree = ast.parse(file.read_text(encoding="utf-8"))
        self._nouns = nouns
        self._mute: set[ast.AST] = set()
        if not re.search(r"brain/core|simulations", file.as_posix()):
            self._leave_out_configuration()

    def _leave_out_configuration(self) -> None:
        """What a site's configuration has wrong, and the texts by which answers of others are known."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("ConfigError", "wrong.add"):
                self._mute.update(ast.walk(node))
        for line in self._tree.body:
            value = line.value if isinstance(line, (ast.Assign, ast.AnnAssign)) else None
            if isinstance(value, (ast.Tuple, ast.Set, ast.Call, ast.Constant)):
                self._mute.update(ast.walk(value))

    def said(self) -> Iterator[Sentence]:
        """What it says."""
        for node in ast.walk(self._tree):
            self._leave_out(node)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and _called(node) == "counted" and len(node.args) > 1:
                self._count(node)
            if node in self._mute:
                continue
            if isinstance(node, ast.JoinedStr):
                yield from self._made(node)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and is_sentence(node.value)
                and not _CHINESE.search(node.value)
            ):
                yield Sentence(node.value.replace("{", "(").replace("}", ")"), ())
            elif (
                isinstance(node, ast.Call)
                and _called(node) == "said"
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                yield Sentence(str(node.args[0].value), ())

    def _leave_out(self, node: ast.AST) -> None:
        """Docstrings, what is only logged, what has its Chinese beside it, and the parts of f-strings."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            self._mute.add(node.value)
        if isinstance(node, ast.JoinedStr):
            self._mute.update(one for one in node.values if isinstance(one, ast.Constant))
            self._mute.update(
                inner
                for one in node.values
                if isinstance(one, ast.FormattedValue) and one.format_spec is not None
                for inner in ast.walk(one.format_spec)
            )
        if isinstance(node, ast.Call):
            name = _called(node)
            if _UNREAD.match(ast.unparse(node.func)) or name in ("Text", "TwoLanguagesShape"):
                self._mute.update(ast.walk(node))
            if name == "said" and node.args:
                self._mute.update(ast.walk(node.args[0]))
            if name == "counted":
                self._mute.update(inner for one in node.args[1:] for inner in ast.walk(one))
        if isinstance(node, ast.keyword) and node.arg == "zh":
            self._mute.update(ast.walk(node.value))

    def _count(self, node: ast.Call) -> None:
        words = [str(one.value) for one in node.args[1:] if isinstance(one, ast.Constant)]
        if words:
            self._nouns[words[0]] = words[1] if len(words) > 1 else f"{words[0]}s"

    def _made(self, node: ast.JoinedStr) -> Iterator[Sentence]:
        """An f-string, with the ways in which its words differ by number."""
        ways: list[tuple[str, ...]] = []
        names: dict[str, int] = {}
        for part in node.values:
            if isinstance(part, ast.Constant):
                ways.append((str(part.value).replace("{", "(").replace("}", ")"),))
            elif isinstance(part, ast.FormattedValue):
                ways.append(_ways(part.value, names))
        english, *also = ("".join(way) for way in product(*ways))
        if is_sentence("\0".join(_literals(english)), made=True) and not _CHINESE.search(english):
            yield Sentence(english, tuple(also))


def is_sentence(text: str, *, made: bool = False) -> bool:
    """Does it have words that people read? `made`: it is what stands around the values of an f-string, with `\0` for each."""
    if _NO_WORDS.match(text):
        return False
    if made:
        return " " in text.strip() and bool(re.search(r"(?<![\w./=-])[A-Za-z]{2,}(?=[\s:,;).]|$)", text))
    return bool(re.search(r"[A-Za-z]{2,},? [a-z]+", text) or re.fullmatch(r"[;,] [a-z ]+", text))


def _ways(value: ast.expr, names: dict[str, int]) -> tuple[str, ...]:
    """What stands for a value: a slot, or the words themselves where they only differ in number."""
    if (
        isinstance(value, ast.IfExp)
        and isinstance(value.body, ast.Constant)
        and isinstance(value.orelse, ast.Constant)
    ):
        pair = (value.body.value, value.orelse.value)
        if pair in _NUMBERS or pair[::-1] in _NUMBERS:
            return tuple(map(str, pair))
    if (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Mult)
        and isinstance(value.left, ast.Constant)
        and value.left.value == "s"
    ):
        return ("", "s")
    if isinstance(value, ast.Call) and _called(value) == "do":
        verb = ast.literal_eval(value.args[1])
        slot = _slot(value.args[0], names)
        return (f"{slot} {verb}", f"{slot} {verb.removesuffix('s')}")
    return (_slot(value, names),)


def _slot(value: ast.expr, names: dict[str, int]) -> str:
    name = _name(value)
    names[name] = number = names.get(name, 0) + 1
    return f"{{{name}{number if number > 1 else ''}}}"


def _name(value: ast.expr) -> str:
    """What a slot is called: after what it is filled with."""
    match value:
        case ast.Name():
            return value.id.strip("_").lower()
        case ast.Attribute():
            return _name(value.value) if value.attr in _PLACED else value.attr.strip("_")
        case ast.Subscript() | ast.Starred() | ast.Await():
            return _name(value.value)
        case ast.BoolOp():
            return _name(value.values[0])
        case ast.IfExp():
            return _name(value.body) if not isinstance(value.body, ast.Constant) else _name(value.test)
        case ast.BinOp():
            return _name(value.left) if not isinstance(value.left, ast.Constant) else _name(value.right)
        case ast.Compare():
            return _name(value.left)
        case ast.UnaryOp():
            return _name(value.operand)
        case ast.Call():
            return _name_of_call(value)
        case ast.JoinedStr():
            return next(
                (_name(one.value) for one in value.values if isinstance(one, ast.FormattedValue)), "part"
            )
        case ast.GeneratorExp() | ast.ListComp():
            return _name(value.generators[0].iter)
    return "part"


def _name_of_call(call: ast.Call) -> str:
    name = _called(call)
    if name == "counted" and isinstance(call.args[1], ast.Constant):
        return re.sub(r"\W", "_", str(call.args[1].value)) + "s"
    if name in ("span", "ago"):
        return name
    if name == "join" and call.args:
        return _name(call.args[0])
    if isinstance(call.func, ast.Attribute) and name in (
        "replace",
        "split",
        "strip",
        "removeprefix",
        "get",
        "values",
        "items",
    ):
        return _name(call.func.value)
    if (
        name in ("clip", "len", "repr", "str", "int", "round", "max", "min", "sorted", "sum", "map")
        and call.args
    ):
        return _name(call.args[-1] if name == "map" else call.args[0])
    return name.strip("_") or "part"


def _called(call: ast.Call) -> str:
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )


def keys(said: Iterable[Sentence]) -> dict[str, Sentence]:
    """The sentences by the ids of the catalogues."""
    return {id_of(one.english): one for one in said}


if __name__ == "__main__":
    (ROOT / "brain/sentences/english.json").write_text(catalogue(), encoding="utf-8")
