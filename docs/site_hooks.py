"""What mkdocs does not know of our pages, which are written to be read in the repository too (`hooks` of mkdocs.yml)."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

DECISIONS = "decisions/README.md"

_FENCE = re.compile(r"(?ms)^( *)(```|~~~).*?^\1\2[ ]*$")
_DIAGRAM = re.compile(r"(?ms)^```mermaid\nstateDiagram-v2\n(.*?)^```$")
_ARROW = re.compile(r"(?m)^ *(\S+) --> (\S+): (.*)$")
_LINK = re.compile(r"\[([^\]]*)\]\(([^):#]+)(?:#[^)]*)?\)")
_LIST = re.compile(r"(?m)^(?![ ]*(?:[-*]|\d+\.) )(?! {4})(\S.*)\n(?=(?:[-*]|1\.) )")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 - mkdocs calls it by these names
    """The text of a page as the site needs it."""
    path: str = page.file.src_uri
    text = _DIAGRAM.sub(lambda found: _transitions(found[1]), markdown)
    text = outside_fences(text, spaced_lists)
    text = outside_fences(text, lambda part: _LINK.sub(lambda found: _inside(found, path), part))
    return text + _decisions(files) if path == DECISIONS else text


def spaced_lists(text: str) -> str:
    """With an empty line before each list, which this Markdown wants."""
    return _LIST.sub(r"\1\n\n", text)


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text with each part that is not a fenced block changed."""
    done, parts = 0, []
    for fence in _FENCE.finditer(text):
        parts += [change(text[done : fence.start()]), fence[0]]
        done = fence.end()
    return "".join([*parts, change(text[done:])])


def _transitions(arrows: str) -> str:
    """A state diagram as a table: what draws it would be a script from elsewhere."""
    into: dict[tuple[str, str], list[str]] = {}
    for before, after, why in _ARROW.findall(arrows):
        into.setdefault((after, why), []).append(f"`{before}`")
    rows = [f"| {', '.join(before)} | `{after}` | {why} |" for (after, why), before in into.items()]
    return "\n".join(["| from | to | when |", "|---|---|---|", *rows])


def _inside(link: re.Match[str], path: str) -> str:
    """The link; of one to a file beside the manual, which only the repository has, its text."""
    parts: list[str] = []
    for part in (*PurePosixPath(path).parent.parts, *PurePosixPath(link[2]).parts):
        if part == ".." and not parts:
            return link[1]
        parts = parts[:-1] if part == ".." else [*parts, part]
    return link[0]


def _decisions(files: Any) -> str:
    """A line for each decision, the newest first."""
    pages = [file for file in files.documentation_pages() if re.match(r"decisions/\d", file.src_uri)]
    titles = [(file, file.content_string.partition("\n")[0].lstrip("# ")) for file in pages]
    return "\n" + "\n".join(f"- [{title}]({file.name}.md)" for file, title in reversed(titles)) + "\n"
