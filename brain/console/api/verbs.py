"""The operator commands that the API accepts, checked before they go on the log. The engine decides their effect."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import Field, RootModel, create_model

from agent.contract.errors import ConfigError
from brain.console.api.base import Asked
from brain.console.globs import glob
from brain.console.speech import told
from brain.console_config import Role
from brain.core.operators import scopes
from brain.core.pack.spec import Mode, Pack, Scalar
from brain.core.said import said

MAX_TEXT = 1000
# verb -> (required arguments, optional arguments, the weakest role that may say it)
VERBS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Role]] = {
    "hold": (("scope", "why"), ("for_s",), Role.OPERATOR),
    "release": (("scope",), (), Role.OPERATOR),
    "approve": (("id", "rung"), ("seen",), Role.APPROVER),
    "deny": (("id",), ("why",), Role.OPERATOR),
    "ack": (("id",), (), Role.OPERATOR),
    "note": (("id", "text"), (), Role.OPERATOR),
    "close": (("id",), ("why",), Role.OPERATOR),
    "mode": (("runbook", "mode"), ("nodes",), Role.ADMINISTRATOR),  # observe: operators, too (touched.py)
    "return": (("node",), (), Role.OPERATOR),
    "forget": (("node",), ("why",), Role.OPERATOR),
    "start": (("runbook",), ("node", "fabric", "why"), Role.APPROVER),
    "reset": ((), (), Role.APPROVER),
}
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Needed = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
# The arguments that are no text
_KINDS: Mapping[str, Any] = {
    "for_s": Annotated[float, Field(gt=0, lt=1e9, strict=True, description="Seconds.")],
    "mode": Literal[tuple(mode.value for mode in Mode)],
}
ROLES: Mapping[str, Role] = {verb: role for verb, (_, _, role) in VERBS.items()}


class InvalidCommand(ValueError):
    """The request is not a valid command; the text says what the operator must change."""


def _args_of(verb: str, needs: tuple[str, ...], may: tuple[str, ...]) -> type[Asked]:
    fields: dict[str, Any] = {name: (_KINDS.get(name, Needed), ...) for name in needs}
    fields |= {name: (_KINDS.get(name, Text), None) for name in may}
    return create_model(f"{verb.capitalize()}Args", __base__=Asked, **fields)


def _said(verb: str, needs: tuple[str, ...], may: tuple[str, ...]) -> type[Asked]:
    args = _args_of(verb, needs, may)
    default = ... if needs else Field(default_factory=args)
    fields: dict[str, Any] = {"verb": (Literal[verb], ...), "args": (args, default)}
    return create_model(f"{verb.capitalize()}Command", __base__=Asked, **fields)


_EACH: Any = Union[tuple(_said(verb, needs, may) for verb, (needs, may, _) in VERBS.items())]  # noqa: UP007 - of a tuple


class CommandBody(RootModel[Annotated[_EACH, Field(discriminator="verb")]]):
    """An operator command. Who says it is whoever has logged in."""

    @property
    def said(self) -> tuple[str, dict[str, Scalar]]:
        """(verb, args): the arguments that were given."""
        return str(self.root.verb), self.root.args.model_dump(exclude_unset=True)


def check_words(chosen: Collection[str]) -> None:
    """ConfigError when a word of console.two_persons is no command: the rule would hold for nothing, silently."""
    words = [*VERBS, *(f"mode {mode.value}" for mode in Mode)]
    for word in chosen:
        if word not in words:
            raise ConfigError(f"console.two_persons: no command {word!r} (have: {', '.join(words)})")


def check_names(verb: str, args: Mapping[str, Scalar], pack: Pack, nodes: Collection[str]) -> None:
    """InvalidCommand when a hold or a mode is for something that does not exist: it would have no effect, silently.

    `nodes`: those that have been heard of. A release is not checked, so that a hold of an earlier version can be ended.
    """
    if verb == "hold" and (text := scopes.mistake(str(args["scope"]), nodes, pack.places)):
        raise InvalidCommand(told(text))
    if verb == "mode":
        _want_match("runbook", str(args["runbook"]), [runbook.name for runbook in pack.runbooks])
        _want_match("node", str(args.get("nodes", "*")), [*nodes, *pack.places, ""])


def _want_match(what: str, pattern: str, names: list[str]) -> None:
    """A pattern for nodes may be for those to come; one plain name is not."""
    if any(map(glob(pattern), names)) or (what == "node" and set("*?[") & set(pattern)):
        return
    have = scopes.have(pattern, sorted(set(names) - {""}))
    wrong = said(
        "no runbook {name}{have}" if what == "runbook" else "no node {name}{have}",
        name=repr(pattern),
        have=have,
    )
    raise InvalidCommand(told(wrong))
