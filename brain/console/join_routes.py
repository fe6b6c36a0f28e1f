"""GET and POST /api/join: a node joins the cell with its token (docs/cell.md).

The authority's certificate is for everybody, and believed by nobody but by its fingerprint in the token. The token goes only
over a connection that this authority vouches for.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from aiohttp import hdrs, web

from agent.contract.errors import ConfigError, Refused
from agent.contract.messages import clip
from brain.aside import aside
from brain.cell import by_hand
from brain.cell.authority import Authority
from brain.cell.registry import CellRegistry, TokenRefusal, TurnedOut
from brain.cell.trust import TrustFile
from brain.config import BrainConfig
from brain.console.access.door import Door
from brain.console.access.route import Route
from brain.console.answers import json_answer
from brain.console.brain_view import BrainView
from brain.console.speech import told
from brain.glance import Latest

PATH = "/api/join"  # without a version: agents of any version join there
BEHIND_S = 60.0  # by less, clocks differ anywhere
_TWO_KEYS = "two_keys"  # of the troubles of a brain (brain/leader/key_claim.py)
_KEYS = ("id", "secret", "node", "public")


def routes(
    brain: BrainView, door: Door, registry: CellRegistry, authority: Authority, clock: Callable[[], float]
) -> list[Route]:
    """Returns the routes; the token decides. `clock`: what tokens are judged by, in seconds since 1970."""
    trust = TrustFile(brain.config.cell_dir)
    files = _Files(brain.config, authority)

    def why(error: Refused) -> str:
        """With what `gpuward cell token`, which goes by this machine's clock, has to make up for."""
        behind_s = clock() - time.time()
        if str(error) != TokenRefusal.EXPIRED or behind_s < BEHIND_S:
            return str(error)
        return (
            f"{error}. This brain's clock is {behind_s / 3600:.1f} hours behind the log's time: set it right, or make the token "
            f"for longer (--for)"
        )

    async def show(_: web.Request) -> web.Response:
        try:
            return json_answer({"cell": brain.config.cell, "ca": files.ca()})
        except (ConfigError, OSError) as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error

    async def join(request: web.Request) -> web.Response:
        door.count_login(request)
        given = await _given(request)
        calls_itself = f"a node that calls itself {clip(given['node'], 63)!r} may not join"
        try:
            newest = trust.state().newest
            if not registry.knows(given["id"], given["secret"]):
                door.refused("join", f"{calls_itself}: {TokenRefusal.UNKNOWN}")
                door.count_wrong_join()
                raise web.HTTPForbidden(text=told(TokenRefusal.UNKNOWN))
            _check_key(brain, registry)
            take = partial(
                registry.join,
                given["id"],
                given["secret"],
                given["node"],
                given["public"],
                now=clock(),
                turned_out=_turned_out(brain),
            )
            node = await aside(take, brain.config.registry_file)
            # Where one was never read, and hangs: the node comes again, by the same key and without another token.
            ca, ca_of_nats = files.ca(), files.ca_of_nats()
            keys = dict(newest.keys) if newest else dict(files.trusted())
        except Refused as error:
            door.refused(f"join {given['id']}", f"{calls_itself}: {why(error)}")
            raise web.HTTPForbidden(text=told(why(error))) from error
        except ConfigError as error:
            raise web.HTTPServiceUnavailable(text=told(str(error))) from error
        except OSError as error:  # of a file that a node is told of
            raise web.HTTPServiceUnavailable(text=f"{error.filename}: {error.strerror}") from error
        brain.note("access.joined", f"node {given['node']} has joined by token {given['id']}")
        return json_answer(
            {
                "cell": brain.config.cell,
                "node": given["node"],
                "nats_url": brain.config.nats_url_for_nodes(request.url.host or "", tls=bool(ca)),
                "nats_jwt": brain.node_jwt(given["node"], node),
                "ca": ca_of_nats,
                "trusted_keys": keys,
                "trust_serial": newest.serial if newest else 0,
                "todo": told(by_hand.todo(brain.config, given["node"], joined=True)),
            }
        )

    return [
        Route(method="GET", path=PATH, least=None, handler=show),
        Route(method="POST", path=PATH, least=None, handler=join),
    ]


class _Files:
    """What a node is told out of the brain's files: as they are now or, while their disk hangs, as they were read last."""

    def __init__(self, config: BrainConfig, authority: Authority) -> None:
        self.ca = Latest(partial(_ca, authority), authority.ca_file)
        of_nats = config.nats.ca_file or authority.ca_file
        self.ca_of_nats = Latest(partial(_ca_of_nats, config, authority), of_nats)
        self.trusted: Latest[Mapping[str, str]] = Latest(
            partial(_trusted, config.signing_key), config.signing_key
        )
        for read in (self.ca, self.ca_of_nats, self.trusted):
            with suppress(ConfigError, OSError):  # whoever joins hears of it
                read()


def refused(error: web.HTTPException) -> web.Response:
    """Returns the answer to a node that may not join, or not now, as agents of any version read it."""
    answer = json_answer({"error": error.text or error.reason}, error.status)
    if hdrs.RETRY_AFTER in error.headers:
        answer.headers[hdrs.RETRY_AFTER] = error.headers[hdrs.RETRY_AFTER]
    return answer


def _check_key(brain: BrainView, registry: CellRegistry) -> None:
    """HTTPServiceUnavailable: other nodes obey another brain's key, as far as is known, and none this one's."""
    if not registry.had_nodes() and any(cause == _TWO_KEYS for cause, _, _ in brain.troubles()):
        raise web.HTTPServiceUnavailable(
            text=told(
                "this brain's key is not the one of the cell, as `gpuward status` says there: join at another brain, or later"
            )
        )


def _turned_out(brain: BrainView) -> TurnedOut:
    """What the log says. HTTPServiceUnavailable: it is not read yet, and the registry alone may be from a backup."""
    if not brain.live.caught_up:
        raise web.HTTPServiceUnavailable(
            text=told("this brain has not read its log yet: try again in a moment")
        )
    state = brain.live.state
    return TurnedOut(nodes=dict(state.shut_out), tokens=frozenset(state.void_tokens))


async def _given(request: web.Request) -> dict[str, str]:
    try:
        raw: Any = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise web.HTTPBadRequest(text=told("the body must be JSON")) from error
    if not isinstance(raw, dict) or any(not isinstance(raw.get(key), str) for key in _KEYS):
        raise web.HTTPBadRequest(text=told(f"needs the texts {', '.join(_KEYS)}"))
    return {key: raw[key] for key in _KEYS}


def _ca(authority: Authority) -> str:
    return authority.bundle() if authority.exists() else ""


def _ca_of_nats(config: BrainConfig, authority: Authority) -> str:
    """The CA of the servers that nodes connect to; empty: the system's CAs."""
    if config.embedded:
        return _ca(authority)
    return config.nats.ca_file.read_text(encoding="ascii") if config.nats.ca_file else ""


def _trusted(signing_key: Path) -> dict[str, str]:
    """The public half of the key that signs commands, as an agent's configuration has it."""
    key_id, _, public = (
        signing_key.with_name(signing_key.name + ".pub").read_text("ascii").strip().partition(" = ")
    )
    return {key_id: public}
