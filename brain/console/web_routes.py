"""The console's pages: files of brain/console/web, the same for everybody. What they show they ask the API for.

They are read once, at the start. A path of a page answers with the frame of all pages, which finds out what to show.
"""

import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aiohttp import hdrs, web

from brain.console.access.route import Handler, Route
from brain.console.packing import PACKED_FROM, takes_gzip
from brain.console.words import LANGUAGES, SUFFIX

FOLDER = Path(__file__).resolve().parent / "web"
PREFIX = "/web/"
# Below these an address is a program's, whoever opens it
OF_PROGRAMS = ("/api/", PREFIX, "/chat/", "/metrics", "/healthz", "/readyz")
# The pages, in aiohttp's form, each with its module in web/pages (web/router.js names the same)
PAGES = {
    "/": "now",
    "/sign-in": "sign_in",
    "/incidents": "incidents",
    "/incidents/{id}": "incident",
    "/fleet": "fleet",
    "/nodes/{name}": "node",
    "/cards/{serial}": "card",
    "/rules": "rules",
    "/rules/{name}": "rule",
    "/runbooks/{name}": "runbook",
    "/diagnose": "diagnose",
    "/rehearse": "rehearse",
    "/reports": "reports",
    "/audit": "audit",
    "/evidence/{id:.+}": "evidence",
}
# Scripts and styles come from here only, and nothing in a page can make text into code: lit-html alone makes elements of its
# templates (trusted types).
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
_IMPORT = re.compile(r"^(?:import|export) [^'\n]*'(\.[^']+)'", re.MULTILINE)
_TYPES = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    body: bytes
    # The same with gzip; empty: it would be no shorter
    packed: bytes
    type: str
    tag: str


def routes() -> list[Route]:
    """Returns the routes; everybody may have the files."""
    served = {
        file.relative_to(FOLDER).as_posix(): _file(file.read_bytes(), file.name)
        for file in sorted(FOLDER.rglob("*"))
        if file.is_file() and file.suffix != SUFFIX
    }
    for language in LANGUAGES:
        files = sorted((FOLDER / "words" / language).glob(f"*{SUFFIX}"))
        served[f"words/{language}{SUFFIX}"] = _file(b"\n".join(file.read_bytes() for file in files), SUFFIX)
    frames = {page: _file(frame_of(page).encode(), "index.html") for page in PAGES.values()}

    def one(found: _File) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            return _answer(request, found)

        return answer

    return [
        *(
            Route(method="GET", path=path, least=None, handler=one(frames[page]))
            for path, page in PAGES.items()
        ),
        *(
            Route(method="GET", path=PREFIX + path, least=None, handler=one(found))
            for path, found in served.items()
        ),
    ]


def missing(request: web.Request) -> web.Response | None:
    """The answer to an address that is no page, for people: the frame, which says so. None: a program asks, or asks the API."""
    if request.method not in (hdrs.METH_GET, hdrs.METH_HEAD) or request.path.startswith(OF_PROGRAMS):
        return None
    if not _wants_page(request.headers.get(hdrs.ACCEPT, "")):
        return None
    headers = {hdrs.CONTENT_TYPE: "text/html; charset=utf-8", "Content-Security-Policy": POLICY}
    return web.Response(status=404, body=frame_of("missing").encode(), headers=headers)


def _wants_page(accepted: str) -> bool:
    """Does the client name HTML (RFC 9110, 12.5.1)? Browsers do for an address that somebody opens; programs do not."""
    for part in accepted.lower().split(","):
        kind, *given = (one.strip() for one in part.split(";"))
        if kind in ("text/html", "application/xhtml+xml"):
            return not any(one.removeprefix("q=").strip("0.") == "" for one in given if one.startswith("q="))
    return False


@cache
def frame_of(page: str) -> str:
    """Returns the frame of a page. It names all scripts that the page needs: a browser far away asks for them at once, not one
    layer of imports after the other.
    """
    needed: dict[Path, None] = {}
    ahead = [FOLDER / "app.js", FOLDER / "pages" / f"{page}.js"]
    while ahead:
        file = ahead.pop(0)
        if file in needed or not file.is_file():
            continue
        needed[file] = None
        ahead += [
            (file.parent / name).resolve() for name in _IMPORT.findall(file.read_text(encoding="utf-8"))
        ]
    paths = (PREFIX + file.relative_to(FOLDER).as_posix() for file in needed)
    links = "\n".join(f'<link rel="modulepreload" href="{path}">' for path in paths)
    return (FOLDER / "index.html").read_text(encoding="utf-8").replace("</head>", f"{links}\n</head>")


def _file(body: bytes, name: str) -> _File:
    kind = _TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    text = kind.startswith("text/") or kind.endswith(("json", "+xml"))
    return _File(
        body=body,
        packed=gzip.compress(body, mtime=0) if text and len(body) >= PACKED_FROM else b"",
        type=kind + ("; charset=utf-8" if text else ""),
        # Weak: the bytes differ between packed and plain
        tag=f'W/"{hashlib.sha256(body).hexdigest()[:32]}"',
    )


def _answer(request: web.Request, found: _File) -> web.Response:
    headers = {
        hdrs.CONTENT_TYPE: found.type,
        hdrs.ETAG: found.tag,
        hdrs.VARY: hdrs.ACCEPT_ENCODING,
        hdrs.CACHE_CONTROL: "no-cache",  # kept, and asked for again: an upgrade is seen at once
        "Content-Security-Policy": POLICY,
    }
    if found.tag in request.headers.get(hdrs.IF_NONE_MATCH, ""):
        return web.Response(status=304, headers=headers)
    if found.packed and takes_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
        return web.Response(body=found.packed, headers=headers | {hdrs.CONTENT_ENCODING: "gzip"})
    return web.Response(body=found.body, headers=headers)
