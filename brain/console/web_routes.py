"""The console's pages: files of brain/console/web, the same for everybody. What they show they ask the API for.

They are read once, at the start. A path of a page answers with the frame of all pages, which finds out what to show.
"""

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from aiohttp import hdrs, web

from brain.console.access.route import Handler, Route

FOLDER = Path(__file__).parent / "web"
PREFIX = "/web/"
# The pages, in aiohttp's form; each has a module in web/pages (web/router.js names the same paths)
PAGES = (
    "/",
    "/sign-in",
    "/incidents",
    "/incidents/{id}",
    "/fleet",
    "/nodes/{name}",
    "/cards/{serial}",
    "/rules",
    "/rules/{name}",
    "/runbooks/{name}",
    "/diagnose",
    "/rehearse",
    "/reports",
    "/audit",
    "/evidence/{id:.+}",
)
# Scripts and styles come from here only, and nothing in a page can make text into code: lit-html alone makes elements of its
# templates (trusted types). Plots set single properties of style, which a policy does not count as inline style.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
WORDS = ".ftl"  # Project Fluent; a language's files are one catalogue
LANGUAGES = ("en", "zh")
_TYPES = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    body: bytes
    type: str
    tag: str


def routes() -> list[Route]:
    """Returns the routes; everybody may have the files."""
    served = {
        file.relative_to(FOLDER).as_posix(): _file(file.read_bytes(), file.name)
        for file in sorted(FOLDER.rglob("*"))
        if file.is_file() and file.suffix != WORDS
    }
    for language in LANGUAGES:
        files = sorted((FOLDER / "words" / language).glob(f"*{WORDS}"))
        served[f"words/{language}{WORDS}"] = _file(b"\n".join(file.read_bytes() for file in files), WORDS)
    frame = served["index.html"]

    async def page(request: web.Request) -> web.Response:
        return _answer(request, frame)

    def one(found: _File) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            return _answer(request, found)

        return answer

    return [
        *(Route(method="GET", path=path, least=None, handler=page) for path in PAGES),
        *(
            Route(method="GET", path=PREFIX + path, least=None, handler=one(found))
            for path, found in served.items()
        ),
    ]


def _file(body: bytes, name: str) -> _File:
    kind = _TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    charset = "; charset=utf-8" if kind.startswith("text/") or kind.endswith(("json", "+xml")) else ""
    return _File(body=body, type=kind + charset, tag=f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _answer(request: web.Request, found: _File) -> web.Response:
    headers = {
        hdrs.CONTENT_TYPE: found.type,
        hdrs.ETAG: found.tag,
        hdrs.CACHE_CONTROL: "no-cache",  # kept, and asked for again: an upgrade is seen at once
        "Content-Security-Policy": POLICY,
    }
    if request.headers.get(hdrs.IF_NONE_MATCH) == found.tag:
        return web.Response(status=304, headers=headers)
    answer = web.Response(body=found.body, headers=headers)
    if found.type.startswith(("text/", "image/svg")):
        answer.enable_compression()
    return answer
