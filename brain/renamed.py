"""Keys, kinds of events and states that had another name in version 0.1.

What people wrote and what is on a log or disk is read under its old name for one version. A file with old names gets a
warning for each that gives the new one.

A path leads to a key within one body; `*` is any element of a list or mapping.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

UNTIL = "0.3"  # the first version that does not read the old names

Path = tuple[str, ...]
Where = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """The old names in one body of a file or of the log."""

    # Path to the old key -> new key
    keys: Mapping[Path, str]
    # Paths to values that are kinds of events
    kinds: tuple[Path, ...] = ()


# Old kind of event -> new one
KINDS = {"node.silent": "node.unreachable"}
# Old state of an incident -> new one
STATES = {"person": "needs_human", "mended": "recovered"}
SYMPTOM = Renaming(keys={}, kinds=(("on", "*", "kind"), ("clear", "*", "kind")))
RULE = Renaming(
    keys={
        ("settle_s",): "hold_off_s",
        ("quiet_s",): "resolve_delay_s",
        ("examples", "*", "given", "*", "silent"): "unreachable",
    },
    kinds=(("examples", "*", "given", "*", "event"),),
)
OVERRIDE = Renaming(keys={}, kinds=(("on", "kind"),))
RUNBOOK = Renaming(
    keys={
        ("way_back",): "return_to_service",
        ("rungs", "*", "verify", "anew"): "reset_on_act",
        ("return_to_service", "*", "verify", "anew"): "reset_on_act",
    }
)
SETTINGS = Renaming(
    keys={
        ("settle_s",): "hold_off_s",
        ("bundle_at_least",): "group_at_least",
        ("bundle_within_s",): "group_within_s",
    }
)
# brain.toml
CONFIG = Renaming(
    keys={
        ("silent_after_s",): "unreachable_after_s",
        **{("settings", *path): new for path, new in SETTINGS.keys.items()},
    }
)
# Keys of the JSON output that are still written beside the new ones: "<command>: <old key>" -> new key
OUTPUT = {
    "status: nodes_silent": "nodes_unreachable",
    "explain: rule.support": "rule.matching_rules",
}
# Sections of a pack of rules
BODIES = {"symptoms": SYMPTOM, "rules": RULE, "overrides": OVERRIDE, "runbooks": RUNBOOK}


def rename(
    body: Any, renaming: Renaming, warn: Callable[[Where, str], None] = lambda _where, _text: None
) -> None:
    """Replaces the old names in `body`, in place; calls `warn` with the path to each of them and a text.

    Where both names are present the old one is left: it is then an unknown key, which is an error.
    """
    for path, new in renaming.keys.items():
        for where, holder in _holders(body, path, ()):
            if path[-1] in holder and new not in holder:
                holder[new] = holder.pop(path[-1])
                warn((*where, path[-1]), f"is called {new} now: the old name is read until version {UNTIL}")
    for path in renaming.kinds:
        for where, holder in _holders(body, path, ()):
            old = str(holder.get(path[-1]))
            if old in KINDS:
                holder[path[-1]] = KINDS[old]
                text = f"{old} is called {KINDS[old]} now: the old name is read until version {UNTIL}"
                warn((*where, path[-1]), text)


def rename_in_pack(raw: Any) -> None:
    """Replaces the old names in a whole pack as it is on the log, in place."""
    if not isinstance(raw, dict):
        return
    for section, renaming in BODIES.items():
        bodies = raw.get(section)
        for body in bodies if isinstance(bodies, list) else ():
            rename(body, renaming)
    rename(raw.get("settings"), SETTINGS)
    if isinstance(settings := raw.get("settings"), dict):
        settings.setdefault("reopens_s", 0.0)  # as it was when the pack was put on the log


def rename_in_message(what: str, raw: dict[str, Any]) -> str:
    """Replaces the old names in an input of an older log, in place, and returns the token that it has today.

    The ids of alert groups began with `bun-`.
    """
    if what == "timer" and isinstance(name := raw.get("name"), str):
        raw["name"] = name.replace("bundle:", "group:", 1).replace(":bun-", ":grp-", 1)
    if what == "delivery" and isinstance(page := raw.get("page"), str) and page.startswith("bun-"):
        raw["page"] = f"grp-{page[4:]}"
    if what == "said":
        args = raw.get("args")
        if isinstance(args, dict) and str(args.get("id", "")).startswith("bun-"):
            args["id"] = f"grp-{str(args['id'])[4:]}"
        return "operator"
    return what


def rename_in_incident(row: dict[str, Any]) -> dict[str, Any]:
    """Replaces the old names in an incident of an older read model, in place, and returns it."""
    if "support" in row:
        row["matching_rules"] = row.pop("support")
    row["state"] = STATES.get(row["state"], row["state"])
    return row


def _holders(body: Any, path: Path, where: Where) -> list[tuple[Where, dict[str, Any]]]:
    """Returns the mappings that can hold the last key of a path, each with the path to it."""
    if len(path) == 1:
        return [(where, body)] if isinstance(body, dict) else []
    first, rest = path[0], path[1:]
    if first != "*":
        if not isinstance(body, dict) or first not in body:
            return []
        return _holders(body[first], rest, (*where, first))
    entries: list[tuple[str | int, Any]] = []
    if isinstance(body, dict):
        entries = list(body.items())
    elif isinstance(body, list):
        entries = list(enumerate(body))
    return [found for key, entry in entries for found in _holders(entry, rest, (*where, key))]
