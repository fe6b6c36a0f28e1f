"""Who somebody is, and the tokens by which people come in."""

from typing import Annotated

from pydantic import FailFast, Field

from brain.console.api.base import Asked, Shape, Time
from brain.console_config import Role

DAY_S = 86400.0
LONGEST_S = 366 * DAY_S
# Every request that shows a token reads them: 20 of up to 200 letters, 4 KB at most.
Glob = Annotated[str, Field(min_length=1, max_length=200)]
Globs = Annotated[tuple[Glob, ...], Field(max_length=20), FailFast()]


class GrantShape(Shape):
    """A role and its limits (globs; empty: none)."""

    role: Role
    scopes: tuple[str, ...]
    runbooks: tuple[str, ...]


class MeShape(Shape):
    """Who you are, and what you may do."""

    name: str
    role: Role
    how: str = Field(description="By which credential you have come in; empty: by none.")
    grants: list[GrantShape]


class TokenShape(Shape):
    """A token, without its secret."""

    id: str
    user: str
    role: Role = Field(description="What it may do at most.")
    scopes: tuple[str, ...] = Field(description="Only commands on these (globs); empty: no limit.")
    runbooks: tuple[str, ...] = Field(description="Only commands about these (globs); empty: no limit.")
    made_at: Time | None
    made_by: str
    made_with: str = Field(description="The id of the token with which it was made; empty: none.")
    expires_at: Time | None


class ListedTokenShape(TokenShape):
    """A token in the list."""

    void: str = Field(description="Why it counts no more; empty: it does.")


class TokenListShape(Shape):
    """Your tokens; for administrators: everybody's."""

    tokens: list[ListedTokenShape]


class MadeTokenShape(TokenShape):
    """A token that was made."""

    token: str = Field(description="The token itself. It is shown once: the brain keeps only its hash.")
    said: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Why no second person was asked, where one must be.",
    )


class RevokedShape(Shape):
    """What was taken away."""

    revoked: list[TokenShape]
    sessions: int = Field(description="How many logins at this brain have ended.")


class WantedToken(Asked):
    """A token to be made."""

    user: str = Field(default="", description="Whose; empty: yours.")
    role: Role | None = Field(default=None, description="What it may do at most; none: what its user may do.")
    scopes: Globs = Field(default=(), description="Only commands on these (globs).")
    runbooks: Globs = Field(default=(), description="Only commands about these (globs).")
    lasts_s: float = Field(default=90 * DAY_S, ge=60, le=LONGEST_S, description="For how long it counts.")


class RevokedTokens(Asked):
    """Tokens to be taken away."""

    ids: Annotated[tuple[str, ...], FailFast()] = Field(default=(), description="Ids of tokens.")
    user: str = Field(default="", description="Or all of one user, and the user's logins at this brain.")
