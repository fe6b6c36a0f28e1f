"""Law of freshness: what is generated is up to date, and what is written by hand names things that exist."""

import re
from pathlib import Path

import click
import pytest

from agent import __version__
from brain.cli.main import MOUNTED, group
from brain.config import BrainConfig
from docs import generate

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = "agent|brain|simulations|tests|deploy|docs|rules|runbooks"
PAGES = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")),
]


SLOW = "brain/cli/answers.py"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=[pytest.mark.nightly(".ci/run makes it and compares")] if page == SLOW else []
        )
        for page in generate.PAGES
    ],
)
def test_generated_documents_are_fresh(page: str) -> None:
    """`make docs` would change nothing."""
    if (ROOT / page).read_text() != generate.PAGES[page]():
        pytest.fail(f"{page} is out of date: run `make docs`", pytrace=False)


def test_ci_looks_at_all_that_is_generated() -> None:
    """It runs `make docs` before the tests, so a stale page is fresh when they see it: only `git diff` can tell."""
    (paths,) = re.findall(r"git diff --exit-code -- ([^|]*)", (ROOT / ".ci" / "run").read_text())
    places = paths.split()
    for page in generate.PAGES:
        assert any(page == place or page.startswith(f"{place}/") for place in places), (
            f".ci/run forgets {page}"
        )


@pytest.mark.parametrize(
    "place",
    [
        "pyproject.toml",
        "deploy/ansible/inventory.yml",
        "docs/kubernetes.md",
        *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "deploy/kubernetes").glob("*/kustomization.yaml")),
    ],
)
def test_what_names_this_version_names_the_present_one(place: str) -> None:
    """A release changes `agent.__version__`, and everything that people install by it."""
    named = re.findall(
        r"""(?:^version = "|newTag: |gpuward_version: |gpuward/(?:brain|agent):)(\d+\.\d+\.\d+)""",
        (ROOT / place).read_text(),
        re.MULTILINE,
    )
    assert set(named) <= {__version__}
    assert named or place in (f"deploy/kubernetes/{part}/kustomization.yaml" for part in ("rbac", "nvme"))


@pytest.mark.parametrize("page", PAGES)
def test_links_and_paths_exist(page: str) -> None:
    """Every relative link and every path below a folder of ours, also in a picture, is there."""
    text = (ROOT / page).read_text()
    # The commands of the manual's consoles are run in a folder of their own (tests/e2e/test_manual.py).
    text = re.sub(r"(?ms)^```console\n.*?^```$", "", text)
    here = (ROOT / page).parent
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (here / target).exists(), f"{page} links to {target}, which is not there"
    for path in re.findall(rf"(?<![\w./<>-])((?:{FOLDERS})/[\w./-]*)(?![\w<*{{])", text):
        place = path.rstrip("./")
        assert (ROOT / place).exists() or (ROOT / f"{place}.py").exists(), (
            f"{page} names {path}, which is not there"
        )
    for folder in re.findall(r"`(\w+)/`", text):
        assert (ROOT / folder).is_dir(), f"{page} names the folder {folder}, which is not there"


def test_every_option_of_the_brain_stands_in_the_example() -> None:
    """deploy/brain.toml, which the reference shows, names every key of the configuration."""
    text = (ROOT / "deploy" / "brain.toml").read_text()
    for name, option in BrainConfig.model_fields.items():
        assert re.search(rf"\b{name}\b", text), f"deploy/brain.toml does not name {name}"
        for inner in getattr(option.annotation, "model_fields", {}):
            assert re.search(rf"\b{inner}\b", text), f"deploy/brain.toml does not name {name}.{inner}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_documents_exist(page: str) -> None:
    """Every `gpuward <command>` and `make <target>` that a page shows is one."""
    whole = group({})
    known = {*whole.list_commands(click.Context(whole)), *MOUNTED}
    text = (ROOT / page).read_text()
    named = set(re.findall(r"(?m)(?:^    (?:.*\| )?|`)gpuward ([a-z]+)", text))
    assert named <= known, named - known
    targets = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text()))
    made = set(re.findall(r"(?m)(?:^    |`)make ([a-z]+)", text))
    assert made <= targets, made - targets


@pytest.mark.parametrize("unit", [path.name for path in (ROOT / "deploy" / "systemd").glob("*.service")])
def test_units_start_commands_that_exist(unit: str) -> None:
    """With a file of its own in deploy/ as the example of its configuration."""
    text = (ROOT / "deploy" / "systemd" / unit).read_text(encoding="utf-8")
    (program, command, config) = re.findall(r"(?m)^ExecStart=\S+/(\S+) (\S+) --config \S+/(\S+)$", text)[0]
    whole = group({})
    known = {"gpuward": whole.list_commands(click.Context(whole)), "gpuward-agent": ["run"]}
    assert command in known[program], f"{program} has no command {command}"
    assert (ROOT / "deploy" / config).exists()


def test_what_the_readme_installs_by_is_what_the_pages_say() -> None:
    """Each command of its installations stands, word for word, on the page of that kind of site, which other tests type."""
    text = (ROOT / "README.md").read_text().partition("for each kind of site")[2].partition("\n## ")[0]
    commands = [
        one.strip()
        for line in re.findall(r"(?m)^    (.*)$", text)
        for one in line.partition("   #")[0].split("&&")
    ]
    pages = "\n".join((ROOT / f"docs/{page}.md").read_text() for page in ("install", "kubernetes", "slurm"))
    typed = {line.partition("   #")[0].strip() for line in re.findall(r"(?m)^    (.*)$", pages)}
    assert len(commands) > 12
    assert [one for one in commands if one not in typed] == []


def test_no_document_names_a_private_place() -> None:
    """Nothing in the documents depends on the machine on which it was written."""
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(?:home|root|work)/", (ROOT / page).read_text()), page
