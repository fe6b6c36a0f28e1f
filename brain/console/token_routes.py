"""The routes of tokens: who am I, which tokens are there, make one, take one away."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from agent.contract.errors import ConfigError, Refused
from agent.contract.messages import clip
from brain.aside import aside
from brain.cell.void_tokens import VoidTokens
from brain.config import BrainConfig
from brain.console import shapes
from brain.console.access.credentials import Credentials
from brain.console.access.door import Door
from brain.console.access.people import OWN_AFFAIR, RANK, WHOLE_CELL, Grant, Person, grant
from brain.console.access.route import Route, person
from brain.console.access.sessions import Sessions
from brain.console.access.tokens import Token, Tokens
from brain.console.access.two_persons import Proposals
from brain.console.api import table
from brain.console.api.access_shapes import (
    GrantShape,
    ListedTokenShape,
    MadeTokenShape,
    MeShape,
    RevokedShape,
    RevokedTokens,
    TokenListShape,
    TokenShape,
    WantedToken,
)
from brain.console.api.base import Nothing
from brain.console.api.serving import Checked, serve
from brain.console.brain_view import BrainView
from brain.console.operator_commands import waits
from brain.console_config import Role
from brain.glance import FileHangs


def routes(
    brain: BrainView, door: Door, credentials: Credentials, sessions: Sessions, proposals: Proposals
) -> list[Route]:
    """Returns the routes."""
    tokens = credentials.tokens

    def listed(one: Token) -> ListedTokenShape:
        return ListedTokenShape(**_fields(one), void=credentials.void(one))

    async def me(asked: Checked[Nothing, Nothing]) -> MeShape:
        who = person(asked.http)
        limits = [GrantShape(role=one.role, scopes=one.scopes, runbooks=one.runbooks) for one in who.grants]
        return MeShape(name=who.name, role=who.role, how=who.how, grants=limits)

    async def show(asked: Checked[Nothing, Nothing]) -> TokenListShape:
        who = person(asked.http)
        every = who.role_everywhere is Role.ADMINISTRATOR
        try:
            return TokenListShape(
                tokens=[listed(one) for one in tokens.all() if every or one.user == who.name]
            )
        except ConfigError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error

    async def make(asked: Checked[Nothing, WantedToken]) -> MadeTokenShape | web.Response:
        request, wanted = asked.http, asked.body
        who = person(request)
        user, users = wanted.user or who.name, credentials.users.now()
        # One for somebody else may be used for whatever that person may do.
        others = user != who.name
        least, touched = (Role.ADMINISTRATOR, WHOLE_CELL) if others else (Role.VIEWER, OWN_AFFAIR)
        door.demand(request, who, least, touched)
        if user not in users:
            raise web.HTTPBadRequest(
                text=f"{clip(user, 80)!r} is not in [console.users] (it has: {', '.join(users) or '-'}): list them there first"
            )
        role = wanted.role or users[user].role
        if not others:
            role = min(role, _most(who, grant(users[user])), key=RANK.__getitem__)
        by, said = who.name, ""
        try:
            alone = _alone(credentials, who)
        except ConfigError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        if others and brain.config.console.two_persons and alone:
            said = f"no second person was asked: {alone}"
        elif others and brain.config.console.two_persons:
            text = f"token for {user}: {wanted.model_dump_json(exclude_defaults=True)}"
            proposed = proposals.agreed(text, by, door.credential(request), time.monotonic())
            if proposed is None:
                return waits(brain, by, text)
            first = proposed.who
            by = f"{first} and {by}"
        try:
            make_it = partial(
                tokens.make,
                user,
                role,
                now=credentials.now(),
                lasts_s=wanted.lasts_s,
                by=by,
                scopes=wanted.scopes,
                runbooks=wanted.runbooks,
                parent="" if others else who.token,
            )
            token, text = await aside(make_it, tokens.path)
        except Refused as error:
            raise web.HTTPForbidden(text=str(error)) from error
        except ConfigError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        more = f"; {said}" if said else ""
        brain.note("access.token", f"{by} made token {token.id} of {user} ({role.value}){more}", by)
        return MadeTokenShape(**_fields(token), token=text, said=said or None)

    async def revoke(asked: Checked[Nothing, RevokedTokens]) -> RevokedShape:
        request, body = asked.http, asked.body
        who = person(request)
        try:
            ids = frozenset(body.ids)
            chosen = [one for one in tokens.all() if one.id in ids or (body.user and one.user == body.user)]
            others = body.user not in ("", who.name) or any(one.user != who.name for one in chosen)
            least, touched = (Role.ADMINISTRATOR, WHOLE_CELL) if others else (Role.VIEWER, OWN_AFFAIR)
            door.demand(request, who, least, touched)
            gone = await aside(
                partial(_revoked_for_good, brain.config, tokens, chosen, who.name), tokens.path
            )
        except FileHangs as error:
            brain.note(
                "access.token",
                f"{who.name} revoked tokens ({', '.join(one.id for one in chosen) or '-'}): the disk of their file hangs, and "
                "until it answers they are worth nothing at this brain alone, as long as it runs",
                who.name,
            )
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        except ConfigError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        ended = sessions.close_all_of(body.user) if body.user else 0
        if not gone and not ended:
            raise web.HTTPNotFound(
                text="there is no such token, and no such session: see `gpuward token list`"
            )
        for one in gone:
            brain.note("access.token", f"{who.name} revoked token {one.id} of {one.user}", who.name)
        if ended:
            brain.note(
                "access.token",
                f"{who.name} ended the sessions of {body.user} at this brain ({ended})",
                who.name,
            )
        return RevokedShape(revoked=[TokenShape(**_fields(one)) for one in gone], sessions=ended)

    return [
        serve(table.ME, me),
        serve(table.TOKENS, show),
        # Everybody may make and revoke their own.
        serve(table.MAKE_TOKEN, make),
        serve(table.REVOKE_TOKENS, revoke),
    ]


def _revoked_for_good(config: BrainConfig, tokens: Tokens, chosen: Sequence[Token], who: str) -> list[Token]:
    """Takes them away, and has the log say so: no file of tokens from a backup lets anybody in by them. Returns those that
    there were.
    """
    tokens.distrust({one.id for one in chosen})  # before anything that waits for a disk
    config.cell_dir.mkdir(parents=True, exist_ok=True, mode=0o750)
    void, now = VoidTokens(config.registry_file), time.time()
    for one in chosen:  # first: whoever is interrupted in between has one that counts no more
        void.add(one.id, by=who, at=now)
    gone = tokens.revoke({one.id for one in chosen})
    for one in gone:
        if one not in chosen:  # made with one of them
            void.add(one.id, by=who, at=now)
    return gone


def _most(who: Person, own: Grant) -> Role:
    """The strongest role of a token that somebody makes for themselves: a weak credential does not make a strong one.
    HTTPForbidden: theirs has limits that the new one would not have.

    `own`: what brain.toml gives the person of this name, which counts for the token. Who has come by another way (a group of
    the identity provider) may have less.
    """
    if who.limit and (who.limit.scopes or who.limit.runbooks):
        raise web.HTTPForbidden(text="a token with limits makes no other tokens")
    most = who.role if who.grants == (own,) else who.role_everywhere
    if most is None:
        raise web.HTTPForbidden(
            text="who has logged in with limits makes no tokens: ask an administrator for one"
        )
    return most


def _alone(credentials: Credentials, who: Person) -> str:
    """Why nobody else could agree to a token that the starter of this brain makes; empty: somebody could, or it is not they.

    A second person must be an administrator, as who makes tokens for others must be.
    """
    by_group = (one.role is Role.ADMINISTRATOR for one in credentials.users.groups().values())
    if not who.starter or any(by_group):
        return ""
    users = credentials.users.now()
    able = {
        one.user
        for one in credentials.tokens.all()
        if not credentials.void(one)
        and one.role is Role.ADMINISTRATOR
        and (one.login or users[one.user].role is Role.ADMINISTRATOR)
    }
    if len(able) >= 2:
        return ""
    have = f"only {next(iter(able))} has" if able else "nobody has"
    return f"{have} the token of an administrator yet; from two on, a second one must agree"


def _fields(token: Token) -> dict[str, Any]:
    """All but the hash."""
    return {
        "id": token.id,
        "user": token.user,
        "role": token.role,
        "scopes": token.scopes,
        "runbooks": token.runbooks,
        "made_at": shapes.iso(token.made_at),
        "made_by": token.made_by,
        "made_with": token.parent,
        "expires_at": shapes.iso(token.expires_at),
    }
