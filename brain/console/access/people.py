"""Who somebody is, and what they may do. Pure.

A person has one grant or several (one from the configuration, or one for each of their groups at the identity provider):
a command is allowed if one grant allows it. A token can have a limit of its own, which must allow it, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from brain.console_config import GrantConfig, Role
from brain.core.pack.spec import Place
from brain.core.pack.topology import CELL, WIDE, node_of

RANK = {role: rank for rank, role in enumerate(Role)}
STARTER = "local token"  # how whoever started the brain has come in
EVERYTHING = "all"  # a scope that only people without limits may name


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What a command is about."""

    # The scopes; a command about no scope in particular names EVERYTHING
    scopes: tuple[str, ...]
    # The names of the runbooks that may go on by it; EVERY_RUNBOOK: whichever; empty: it lets none go on
    runbooks: tuple[str, ...]


EVERY_RUNBOOK = "*"
WHOLE_CELL = Touched(scopes=(EVERYTHING,), runbooks=(EVERY_RUNBOOK,))  # only for people without limits
OWN_AFFAIR = Touched(scopes=(), runbooks=())  # of whoever asks, e.g. a token that can do no more than they


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A role and its limits (globs; empty: none)."""

    role: Role
    scopes: tuple[str, ...] = ()
    runbooks: tuple[str, ...] = ()

    def refuses(self, least: Role, touched: Touched, places: Mapping[str, Place]) -> str:
        """Returns why it does not allow something that `least` may do; empty: it does."""
        if RANK[self.role] < RANK[least]:
            return f"that needs the role {least.value}; this is {self.role.value}"
        for scope in touched.scopes if self.scopes else ():
            if not any(_covers(pattern, scope, places) for pattern in self.scopes):
                return f"{scope} is outside {', '.join(self.scopes)}"
        for runbook in touched.runbooks if self.runbooks else ():
            if not any(_fits(pattern, runbook) for pattern in self.runbooks):
                only = f"only commands about the runbooks {', '.join(self.runbooks)} are allowed"
                return only if runbook == EVERY_RUNBOOK else f"runbook {runbook}: {only}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who has logged in, and how. Only a credential makes one, never what a client says."""

    # The name in the log
    name: str
    grants: tuple[Grant, ...]
    # Of the token; None: none but those of the grants
    limit: Grant | None = None
    # `token <id>`, `session`, or empty for somebody who has shown nothing
    how: str = ""
    # The id of the token, if it was one
    token: str = ""

    @property
    def starter(self) -> bool:
        """Is it who started this brain, by the file that only they can read?"""
        return self.how == STARTER

    @property
    def role(self) -> Role:
        """The strongest role anywhere."""
        own = max((grant.role for grant in self.grants), key=RANK.__getitem__)
        return own if self.limit is None else min(own, self.limit.role, key=RANK.__getitem__)

    @property
    def role_everywhere(self) -> Role | None:
        """The strongest role that no limit narrows; None: there is none."""
        roles = [role for role in Role if not self.refuses(role, WHOLE_CELL, {})]
        return max(roles, key=RANK.__getitem__, default=None)

    def refuses(self, least: Role, touched: Touched, places: Mapping[str, Place]) -> str:
        """Returns why this person may not do it; empty: they may."""
        answers = [grant.refuses(least, touched, places) for grant in self.grants]
        if all(answers):
            return answers[0]
        return self.limit.refuses(least, touched, places) if self.limit else ""


def grant(table: GrantConfig) -> Grant:
    """Returns the grant of a configuration table."""
    return Grant(role=table.role, scopes=table.scopes, runbooks=table.runbooks)


def _fits(pattern: str, named: str) -> bool:
    """A name fits a glob; a glob (`mode` takes one) fits only when it is the same or the pattern allows everything."""
    if set("*?[") & set(named):
        return pattern in ("*", named)
    return fnmatchcase(named, pattern)


def _covers(pattern: str, scope: str, places: Mapping[str, Place]) -> bool:
    """Is the scope, its node, or what its node stands in, allowed?"""
    if scope == EVERYTHING:
        return pattern in ("*", EVERYTHING)
    node = node_of(scope) if scope != CELL else ""
    place = places.get(node)
    above = [f"{kind}/{name}" for kind in WIDE if place for name in place.names(kind)]
    names = [scope, *([f"node/{node}"] if node else []), *above]
    return any(_fits(pattern, name) for name in names)
