"""The manual's tutorials show real files and commands, and the built site's check finds what is broken."""

import shutil
import tomllib
from pathlib import Path

import pytest

from brain.cli import check
from brain.config import BrainConfig
from docs import site_check, site_hooks
from tests import manual


@pytest.mark.parametrize("page", manual.TUTORIALS)
def test_every_block_is_run_or_loaded(page: str) -> None:
    """Files are those of docs/examples, parts of brain.toml are valid."""
    for block in manual.blocks(page):
        if block.language == "yaml":
            assert block.text == (manual.EXAMPLES / block.title.removeprefix("site/")).read_text(
                encoding="utf-8"
            )
        elif block.language == "toml":
            BrainConfig.model_validate(tomllib.loads(block.text), strict=False)
        else:
            assert block.language in {"console", *manual.NOT_RUN}


def test_few_commands_cannot_run() -> None:
    """All of both pages: one block."""
    blocks = [block for page in manual.TUTORIALS for block in manual.blocks(page)]
    assert len([block for block in blocks if block.language in manual.NOT_RUN]) == 1


def test_the_shown_files_load_beside_gpuwards_own(tmp_path: Path) -> None:
    """With all examples of all rules."""
    for name in ("rules", "runbooks"):
        shutil.copytree(manual.ROOT / name, tmp_path / name)
        shutil.copytree(manual.EXAMPLES / name, tmp_path / name, dirs_exist_ok=True)
    assert check.examine(tmp_path / "rules", tmp_path / "runbooks").faults == []


@pytest.mark.parametrize(
    ("html", "says"),
    [
        ('<h1 id="a">a</h1><a href="#a">', []),
        ('<a href="#b">', ["index.html links to #b, and that page has no such heading"]),
        ('<a href="b.html">', ["index.html links to b.html, which is not there"]),
        ('<script src="https://cdn.example/x.js"></script>', ["index.html loads https://cdn.example/x.js"]),
    ],
)
def test_a_broken_site_is_noticed(tmp_path: Path, html: str, says: list[str]) -> None:
    """A link that leads nowhere, an anchor that is not there, a script from elsewhere."""
    (tmp_path / "index.html").write_text(html)
    found = list(site_check.problems(tmp_path))
    assert len(found) == len(says)
    assert all(message.startswith(start) for message, start in zip(found, says, strict=True))


def test_a_list_below_a_sentence_stays_a_list_and_code_stays_as_it_is() -> None:
    """The site's Markdown wants an empty line before a list."""
    text = "A sentence:\n- one\n- two\n\n```yaml\na:\n- one\n```\n"
    changed = site_hooks.outside_fences(text, site_hooks.spaced_lists)
    assert changed == "A sentence:\n\n- one\n- two\n\n```yaml\na:\n- one\n```\n"
