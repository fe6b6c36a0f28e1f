"""Is the built manual whole? Every link and anchor leads somewhere inside it, and no page loads anything from elsewhere.

python -m docs.site_check build/site
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
NOT_FOUND = "404.html"  # it may be shown below any address, so its links begin at the root of the server


@dataclass(slots=True)
class Page(HTMLParser):
    """The anchors of a page, and what it links to and loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects one element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loads.append(given["href"])
        if given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])


def read(path: Path) -> Page:
    """One page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path) -> Iterator[str]:
    """One message for each link that leads nowhere, and for each thing from elsewhere."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html")) if path.name != NOT_FOUND}
    if not pages:
        yield f"{site}: there is no page"
    for path, page in pages.items():
        here = path.relative_to(site)
        for url in page.loads:
            if urlsplit(url).netloc:
                yield f"{here} loads {url}: the manual must work without a network"
        for url in (*page.links, *page.loads):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue  # another site, which cannot be asked here
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file() or site.resolve() not in (target.parents):
                yield f"{here} links to {url}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{here} links to {url}, and that page has no such heading"


def main(site: Path) -> int:
    """Prints what is wrong; the exit status."""
    found = list(problems(site.resolve()))
    for message in found:
        print(message, file=sys.stderr)  # noqa: T201 - a command
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
