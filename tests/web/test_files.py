"""The files of the console's pages: others' scripts are what vendor.json says, every word has both languages, and every import
and every page is there.
"""

import hashlib
import json
import re
from pathlib import Path

import pytest

from brain.console import web_routes
from brain.console.web_routes import FOLDER, PAGES
from brain.console.words import LANGUAGES

OURS = sorted(file for file in FOLDER.rglob("*.js") if "vendor" not in file.parts)
DANGEROUS = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "unsafeHTML",
    "unsafeSVG",
)
_KEY = re.compile(r"^([a-zA-Z][\w-]*) =", re.MULTILINE)
_PLACEABLE = re.compile(r"\{ \$(\w+)")


def catalogue(language: str) -> dict[str, dict[str, frozenset[str]]]:
    """File → key → the values that its text takes."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for file in sorted((FOLDER / "words" / language).glob("*.ftl")):
        parts = _KEY.split(file.read_text(encoding="utf-8"))
        found[file.name] = {
            key: frozenset(_PLACEABLE.findall(text))
            for key, text in zip(parts[1::2], parts[2::2], strict=True)
        }
    return found


def test_the_scripts_of_others_are_those_of_the_registry() -> None:
    vendor = FOLDER / "vendor"
    table = json.loads((vendor / "vendor.json").read_text(encoding="utf-8"))
    named = {path: file["sha256"] for package in table["packages"] for path, file in package["files"].items()}
    found = {
        file.relative_to(vendor).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in vendor.rglob("*")
        if file.is_file() and file.name != "vendor.json"
    }
    assert found == named


def test_every_word_has_both_languages() -> None:
    english, chinese = (catalogue(language) for language in LANGUAGES)
    assert chinese == english


def test_one_is_no_plural() -> None:
    """`1 nodes` is no English: what counts has both forms. The terminal view reads texts of one line (brain/console/words.py)."""
    always_more = {"hit-share", "hit-all", "fleet-of"}  # of several nodes
    counts = re.compile(r"\{ \$(?:n|gpus|all|here) \} (?:more |other )?[a-zA-Z]+s\b")
    for file in sorted((FOLDER / "words" / "en").glob("*.ftl")):
        for key, text in re.findall(
            r"^([a-z][\w-]*) = (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            if not key.startswith(("top-", "said-of-")) and key not in always_more:
                assert not counts.search(text), f"{key} = {text}"


def test_no_key_stands_twice() -> None:
    keys = [key for file in catalogue("en").values() for key in file]
    assert sorted(set(keys)) == sorted(keys)


def test_every_word_that_a_page_uses_is_there() -> None:
    """Also those whose last part comes from the brain: at least one of them."""
    keys = {key for file in catalogue("en").values() for key in file}
    for file in OURS:
        text = file.read_text(encoding="utf-8")
        for key in re.findall(r"\bt\('([\w-]+)'", text):
            assert key in keys, f"{file.name}: {key}"
        for prefix in re.findall(r"\bt\(`([\w-]+-)\$", text) + [
            f"{one}-" for one in re.findall(r"\bword\('([\w-]+)'", text)
        ]:
            assert prefix == "note-" or any(key.startswith(prefix) for key in keys), f"{file.name}: {prefix}"


def test_every_word_that_the_terminal_uses_is_there() -> None:
    """Where it is never drawn in a test, too."""
    keys = {key for file in catalogue("en").values() for key in file}
    used = {
        key
        for file in (FOLDER.parents[1] / "cli" / "top").glob("*.py")
        for key in re.findall(r"\bwords\(\"([\w-]+)\"[,)]", file.read_text(encoding="utf-8"))
    }
    assert len(used) > 30
    assert used <= keys


def test_every_word_is_used() -> None:
    by_brain = sorted(
        [*(FOLDER.parent / "reports").glob("*.py"), *(FOLDER.parents[1] / "cli" / "top").glob("*.py")]
    )
    text = "\n".join(file.read_text(encoding="utf-8") for file in (*OURS, *by_brain)).replace('"', "'")
    prefixes = {f"{one}-" for one in re.findall(r"\bword\('([\w-]+)'", text)} | set(
        re.findall(r"`([\w-]+-)\$", text)
    )
    prefixes |= set(re.findall(r"\bf'([a-z][\w-]*-)\{", text))
    prefixes |= {f"{one}-" for one in re.findall(r"\bword\(words, '([\w-]+)'", text)}
    prefixes |= {"run-"}  # stateMark takes it as an argument
    prefixes |= {"state-"}
    prefixes |= {"said-of-"}  # found by the English words of what it is of
    for key in (key for file in catalogue("en").values() for key in file):
        assert f"'{key}'" in text or any(key.startswith(prefix) for prefix in prefixes), key


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.relative_to(FOLDER).as_posix())
def test_every_import_is_a_file(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for name in re.findall(r"(?:from|import)\s*\(?\s*'([^']+)'", text):
        assert name.startswith("."), f"{name}: nothing is loaded from elsewhere"
        assert (file.parent / name).is_file(), name


def test_the_pages_of_the_router_are_those_of_the_server() -> None:
    router = (FOLDER / "router.js").read_text(encoding="utf-8")
    paths = dict(re.findall(r"\['(/[^']*)', '(\w+)'\]", router))
    as_served = [re.sub(r":(\w+)\+", r"{\1:.+}", path) for path in paths]
    assert [re.sub(r":(\w+)", r"{\1}", path) if "{" not in path else path for path in as_served] == list(
        PAGES
    )
    assert list(paths.values()) == list(PAGES.values())
    for page in paths.values():
        assert (FOLDER / "pages" / f"{page}.js").is_file(), page


def test_nothing_in_our_scripts_makes_text_into_code() -> None:
    """lit-html escapes whatever stands in a template. These do not."""
    for file in OURS:
        text = file.read_text(encoding="utf-8")
        for word in DANGEROUS:
            assert word not in text, f"{file.name}: {word}"


def test_a_page_s_frame_names_all_its_scripts() -> None:
    """So that a browser far away asks for them at once; they are served, and the page's own is among them."""
    served = {route.path for route in web_routes.routes()}
    for page in PAGES.values():
        named = re.findall(r'rel="modulepreload" href="([^"]+)"', web_routes.frame_of(page))
        assert set(named) <= served
        assert {"/web/app.js", "/web/vendor/lit-html/lit-html.js"} <= set(named)
        assert len(set(named)) == len(named)
        own = FOLDER / "pages" / f"{page}.js"
        if own.is_file():
            imports = re.findall(r"from '(\.[^']+)'", own.read_text(encoding="utf-8"))
            whole = {
                f"/web/{(own.parent / name).resolve().relative_to(FOLDER).as_posix()}" for name in imports
            }
            assert {f"/web/pages/{page}.js", *whole} <= set(named)


def test_everything_is_served() -> None:
    paths = {route.path for route in web_routes.routes()}
    assert {
        *PAGES,
        "/web/app.js",
        "/web/words/en.ftl",
        "/web/words/zh.ftl",
        "/web/vendor/lit-html/lit-html.js",
    } <= paths
