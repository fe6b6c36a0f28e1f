"""House rules that neither ruff nor mypy can check. Each is a function, so that the last tests can show it a gap."""

import ast
import configparser
import functools
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
CODE = ("agent", "brain", "simulations")
KEYS = "brain/core/ids.py"
# A dataclass whose parts are made when they are first needed (`cached_property`) has a `__dict__`.
WITHOUT_SLOTS = {"agent/actions/action_setup.py"}
# The supervisors, and a helper that raises in its caller what it has caught.
CATCH_ALL = {"agent/supervisor.py", "agent/shared/tried.py", "brain/leader/supervisor.py"}
# What the agent and the brain both have, in the same meaning: an action, and what it did.
ON_BOTH_SIDES = {"Action", "Done"}
MAKERS = re.compile(r"\b(?:nvidia|amd|amdgpu|ascend|huawei)\b", re.IGNORECASE)
OUR_FOLDERS = (*CODE, "docs", "rules", "runbooks", "deploy", "tests")


@functools.cache
def modules(root: Path) -> list[tuple[str, list[ast.AST]]]:
    """(path, nodes of the syntax tree) of each module below the packages."""
    return [
        (str(path.relative_to(root)), list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
        for package in CODE
        for path in sorted((root / package).rglob("*.py"))
    ]


def enums(root: Path = ROOT) -> Mapping[str, set[str]]:
    """StrEnum -> its values; of two with one name, those of both."""
    found: dict[str, set[str]] = {}
    for _, nodes in modules(root):
        for node in nodes:
            if isinstance(node, ast.ClassDef) and "StrEnum" in map(ast.unparse, node.bases):
                values = (one.value for one in node.body if isinstance(one, ast.Assign))
                found.setdefault(node.name, set()).update(
                    str(one.value) for one in values if isinstance(one, ast.Constant)
                )
    return found


def bare_strings(root: Path = ROOT) -> list[str]:
    """One message for each comparison of a text with a field that some dataclass declares as a StrEnum.

    mypy lets it pass, and nothing would notice when a value is renamed.
    """
    known = enums(root)
    fields: dict[str, set[str]] = {}
    for _, nodes in modules(root):
        for node in nodes:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                for name in set(re.findall(r"\w+", ast.unparse(node.annotation))) & set(known):
                    fields.setdefault(node.target.id, set()).update(known[name])
    messages = []
    for file, nodes in modules(root):
        for node in (one for one in nodes if isinstance(one, ast.Compare)):
            sides = [node.left, *node.comparators]
            names = {side.attr for side in sides if isinstance(side, ast.Attribute)}
            texts = {one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)}
            if any(texts & fields.get(name, set()) for name in names):
                messages.append(
                    f"{file}:{node.lineno}: `{ast.unparse(node)}`: compare with the member of the StrEnum"
                )
    return messages


def keys_by_hand(root: Path = ROOT) -> list[str]:
    """One message for each key `name@scope` that is made or taken apart elsewhere than in brain.core.ids."""
    messages = []
    for file, nodes in modules(root):
        for node in nodes if file.startswith("brain/") and file != KEYS else ():
            made = isinstance(node, ast.JoinedStr) and any(
                isinstance(before, ast.FormattedValue)
                and ast.unparse(middle) == "'@'"
                and isinstance(after, ast.FormattedValue)
                for before, middle, after in zip(node.values, node.values[1:], node.values[2:], strict=False)
            )
            taken_apart = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("partition", "rpartition", "split", "rsplit")
                and [ast.unparse(one) for one in node.args[:1]] == ["'@'"]
            )
            if made or taken_apart:
                messages.append(
                    f"{file}:{getattr(node, 'lineno', 0)}: use `key`, `name_of` or `split` of brain.core.ids"
                )
    return messages


def without_slots(root: Path = ROOT) -> list[str]:
    """One message for each dataclass to which a misspelt field could be assigned."""
    return [
        f"{file}:{node.lineno}: {node.name}: @dataclass(frozen=True, slots=True, kw_only=True); state: without frozen"
        for file, nodes in modules(root)
        for node in nodes
        if isinstance(node, ast.ClassDef) and file not in WITHOUT_SLOTS
        for one in map(ast.unparse, node.decorator_list)
        if one.startswith("dataclass") and "slots=True" not in one
    ]


def without_reason(root: Path = ROOT) -> list[str]:
    """One message for each comment that switches a check off and does not say why."""
    bare = re.compile(r"# (?:noqa(?:: ?[A-Z]+\d+(?:, ?[A-Z]+\d+)*)?|type: ignore(?:\[[\w, -]+\])?)\s*$")
    return [
        f"{file}:{number}: say after the code of the rule why it does not hold here"
        for file, _ in modules(root)
        for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1)
        if bare.search(line)
    ]


_ALL = re.compile(r"\b(Base)?Exception\b")


def caught_all(root: Path = ROOT) -> list[str]:
    """One message for each place that hides bugs; ruff lets it pass where the exception is logged."""
    return [
        f"{file}:{getattr(node, 'lineno', 0)}: catch what can be raised here: a bug is for the supervisor"
        for file, nodes in modules(root)
        for node in nodes
        if file not in CATCH_ALL and _catches_all(node)
    ]


def _catches_all(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        last = ast.unparse(node.body[-1])
        if last == "raise" or last.startswith("raise BugError("):
            return False  # it only cleans up, or says where the bug was met
        return node.type is None or bool(_ALL.search(ast.unparse(node.type)))
    named = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "suppress"
    return isinstance(node, ast.Call) and named and any(_ALL.search(ast.unparse(arg)) for arg in node.args)


def named_twice(root: Path = ROOT) -> list[str]:
    """One message for each public class whose name another class has already: one meaning, one name."""
    first: dict[str, str] = {}
    messages = []
    for file, nodes in modules(root):
        for node in nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                other = first.setdefault(node.name, f"{file}:{node.lineno}")
                if other != f"{file}:{node.lineno}" and node.name not in ON_BOTH_SIDES:
                    messages.append(f"{file}:{node.lineno}: class {node.name} is the name of {other}, too")
    return messages


def unpinned(project: str, lock: str) -> list[str]:
    """One message for each dependency that requirements.lock does not have, or not in a version that is allowed."""
    parts = tomllib.loads(project)["project"]
    pinned = dict(re.findall(r"(?m)^([\w.-]+)==([^\s;\\]+)", lock))
    wanted = [Requirement(one) for one in sum(parts["optional-dependencies"].values(), parts["dependencies"])]
    return [
        f"requirements.lock has {version or 'nothing'} for {one}: run `make lock`"
        for one in wanted
        for version in (pinned.get(re.sub(r"[-_.]+", "-", one.name).lower(), ""),)
        if not version or version not in one.specifier
    ]


def untidy(files: Collection[Path], root: Path = ROOT) -> list[str]:
    """One message for each line that an editor with our .editorconfig would not have left so."""
    messages = []
    for file in files:
        text = file.read_bytes().decode("utf-8")
        lines = [
            number
            for number, line in enumerate(text.split("\n"), 1)
            if line != line.rstrip() or (line.startswith("\t") and file.suffix != ".c")
        ]
        if text and not text.endswith("\n"):
            lines.append(text.count("\n") + 1)
        messages += [f"{file.relative_to(root)}:{line}: white space as in .editorconfig" for line in lines]
    return messages


def makers(root: Path = ROOT) -> list[str]:
    """Where a module of the core names NVIDIA, AMD or Huawei's Ascend, in code, comment or text."""
    folder = root / "brain/core"
    return [
        f"{path.relative_to(root)}:{number}: the core names {match[0]}: say GPU or accelerator, and let a kind carry the name"
        for path in sorted(folder.rglob("*.py") if folder.is_dir() else root.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := MAKERS.search(line)) is not None
    ]


def test_no_enum_is_compared_with_a_bare_string() -> None:
    """`state is RunState.HELD`, not `state == "held"`."""
    assert bare_strings() == []


def test_only_one_module_makes_keys_and_takes_them_apart() -> None:
    """brain/core/ids.py says what a key is."""
    assert keys_by_hand() == []


def test_dataclasses_have_slots() -> None:
    """A misspelt field is an error."""
    assert without_slots() == []


def test_an_exemption_carries_its_reason() -> None:
    """Those of whole files stand in pyproject.toml."""
    assert without_reason() == []


def test_only_the_supervisors_catch_everything() -> None:
    """agent/supervisor.py and brain/leader/supervisor.py."""
    assert caught_all() == []


def test_a_class_has_a_name_of_its_own() -> None:
    """Else a reader takes one for the other."""
    assert named_twice() == []


def test_the_core_names_no_maker_of_accelerators() -> None:
    """Kinds, rules and sources know whose a GPU or NPU is; what the core does with their facts is the same for all."""
    assert makers() == []


def test_what_we_depend_on_is_pinned() -> None:
    """`make setup` installs requirements.lock and nothing else."""
    texts = ((ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "requirements.lock"))
    assert unpinned(*texts) == []


def test_files_are_as_the_editorconfig_says() -> None:
    """And its line length is that of ruff."""
    config = configparser.ConfigParser()
    config.read_string("[top]\n" + (ROOT / ".editorconfig").read_text(encoding="utf-8"))
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    assert int(config["*.py"]["max_line_length"]) == ruff["line-length"]
    suffixes = {".py", ".md", ".yaml", ".toml", ".sh", ".service", ".conf", ".txt"}
    ours = [path for folder in OUR_FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    beside = [path for path in ROOT.glob("*") if path.suffix in {".md", ".toml"}]
    assert untidy([path for path in (*ours, *beside) if "fixtures" not in path.parts]) == []


def test_the_licence_is_there() -> None:
    """The one that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    for name in project["license-files"]:
        assert "Apache License\n" in (ROOT / name).read_text(encoding="utf-8")


ENUM = 'class Mood(StrEnum):\n    GLAD = "glad"\n\n\nclass Dog:\n    mood: Mood | None\n\n\n'


@pytest.mark.parametrize(
    ("check", "text", "found"),
    [
        (bare_strings, f'{ENUM}def f(dog):\n    return dog.mood == "glad"\n', True),
        (bare_strings, f'{ENUM}def f(dog):\n    return dog.mood in ("sad", "glad")\n', True),
        (bare_strings, f'{ENUM}def f(dog):\n    return dog.mood is Mood.GLAD or dog.name == "glad"\n', False),
        (keys_by_hand, 'key = f"{name}@{scope}"\n', True),
        (keys_by_hand, 'name = key.partition("@")[0]\n', True),
        (keys_by_hand, 'address = f"{user}@example.org"\n', False),
        (without_reason, "import os  # noqa: F401\n", True),
        (without_reason, "x = y  # type: ignore[assignment]\n", True),
        (without_reason, "import os  # noqa: F401 - for its side effect\n", False),
        (caught_all, "try: ...\nexcept Exception:\n    log.exception('x')\n", True),
        (caught_all, "try: ...\nexcept BaseException:\n    undo()\n    raise\n", False),
        (caught_all, "try: ...\nexcept (OSError, ValueError): ...\n", False),
        (without_slots, "@dataclass\nclass Dog: ...\n", True),
        (without_slots, "@dataclass(slots=True)\nclass Dog: ...\n", False),
        (named_twice, "class Dog: ...\n\n\nclass Dog: ...\n", True),
        (makers, '_WORDS = {"driver": "NVIDIA driver"}\n', True),
        (makers, 'text = "nvidia.com/gpu: 7 of 8"\n', True),
        (makers, "def amended(descending): ...\n", False),
        (named_twice, "class Done: ...\n\n\nclass Done: ...\nclass _Dog: ...\nclass _Dog: ...\n", False),
    ],
)
def test_a_breach_is_named(tmp_path: Path, check: object, text: str, found: bool) -> None:
    """With its file and line; what only looks alike is left alone."""
    file = tmp_path / "brain" / "dog.py"
    file.parent.mkdir()
    file.write_text(text)
    assert callable(check)
    messages = check(tmp_path)
    assert len(messages) == found
    assert all(re.match(r"brain/dog\.py:\d+: ", message) for message in messages)


def test_a_dependency_that_is_not_pinned_is_named() -> None:
    """Absent, or too old."""
    project = '[project]\ndependencies = ["types-PyYAML", "rich>=14"]\noptional-dependencies = {}\n'
    assert unpinned(project, "types-pyyaml==6.0\nrich==14.1\n") == []
    first, second = unpinned(project, "rich==13.9 \\\n")
    assert first == "requirements.lock has nothing for types-PyYAML: run `make lock`"
    assert second == "requirements.lock has 13.9 for rich>=14: run `make lock`"


def test_untidy_white_space_is_named(tmp_path: Path) -> None:
    """A blank at the end of a line, a tab, a last line without an end."""
    file = tmp_path / "a.yaml"
    file.write_text("a: 1 \n\tb: 2\nc: 3")
    assert [message.partition(": ")[0] for message in untidy([file], tmp_path)] == [
        "a.yaml:1",
        "a.yaml:2",
        "a.yaml:3",
    ]
