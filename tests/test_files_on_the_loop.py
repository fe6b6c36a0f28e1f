"""A brain does not stand still with its disk (decision 111): neither its coroutines nor what they call in their modules look at
a file.

What they call elsewhere is not followed: tests/e2e/test_file_server_hangs.py plays it.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.test_house_rules import ROOT, modules

# What waits for a disk: methods of a path, and functions.
LOOKS = re.compile(
    r".*\.(l?stat|exists|is_file|is_dir|is_symlink|readlink|resolve|iterdir|rglob|mkdir|unlink|touch|(read|write)_(text|bytes))"
    r"|files\.(read|write)(_json)?|os\.(open|stat|access)|open|secret|nkey_seed"
)
# Beside the event loop there are few threads, and name lookups need them. These compute, load code, or ask a server and do not
# wait for ever.
SHARED_THREADS = {
    "brain/actions/kube_api.py": "imports a library",
    "brain/adapters/pack_process.py": "a process of its own reads the files; tests read them here",
    "brain/adapters/state_copy.py": "packs",
    "brain/console/diagnosis.py": "writes below /tmp, one at a time",
    "brain/console/packing.py": "packs",
    "brain/notify/mail.py": "has a time limit",
}
# A server ends with the thread that has started it: brain/leader/server_keeper.py tries the disk first.
STARTS_A_SERVER = {"brain/adapters/nats_server.py"}


def files_on_the_loop(root: Path = ROOT) -> list[str]:
    """One message for each look at a file on the event loop, and for each use of the shared threads."""
    messages = []
    for file, nodes in modules(root):
        if not file.startswith("brain/") or file.startswith("brain/cli/"):
            continue
        functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        coroutines = [node for node in nodes if isinstance(node, ast.AsyncFunctionDef)]
        calls = {call for one in coroutines for call in _calls(one, functions, set())}
        for line, name in sorted(calls):
            if LOOKS.fullmatch(name) and file not in STARTS_A_SERVER:
                messages.append(
                    f"{file}:{line}: `{name}` waits for a disk: see brain/glance.py, brain/aside.py"
                )
            if name.endswith(".to_thread") and file not in SHARED_THREADS:
                messages.append(f"{file}:{line}: `abandonable`, or `aside` where somebody waits for it")
    return messages


def _calls(of: ast.AST, functions: Mapping[str, ast.FunctionDef], seen: set[str]) -> set[tuple[int, str]]:
    """(line, name) of what a function calls: not in one that it only hands on, to a thread perhaps."""
    found: set[tuple[int, str]] = set()
    for node in ast.iter_child_nodes(of):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found.add((node.lineno, name))
            own = name.removeprefix("self.")
            if own in functions and own not in seen:
                seen.add(own)
                found |= _calls(functions[own], functions, seen)
        found |= _calls(node, functions, seen)
    return found


def test_no_coroutine_of_the_brain_looks_at_a_file() -> None:
    """Each has a thread for it."""
    assert files_on_the_loop() == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("async def f(path):\n    return path.exists()\n", True),
        ("async def f(path):\n    await asyncio.to_thread(path.exists)\n", True),
        ("async def f(path):\n    return await abandonable(lambda: path.exists(), 'x')\n", False),
        ("def f(path):\n    return path.exists()\n", False),
        ("def g(path):\n    path.stat()\n\n\nasync def f(path):\n    g(path)\n", True),
        ("def g(path):\n    path.stat()\n\n\nasync def f(path):\n    await aside(g, path)\n", False),
    ],
)
def test_a_look_is_named(tmp_path: Path, text: str, found: bool) -> None:
    """With its file and line; what only looks alike is left alone."""
    file = tmp_path / "brain" / "dog.py"
    file.parent.mkdir()
    file.write_text(text)
    messages = files_on_the_loop(tmp_path)
    assert len(messages) == found
    assert all(message.startswith("brain/dog.py:") for message in messages)
