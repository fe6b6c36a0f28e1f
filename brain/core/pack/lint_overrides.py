"""Checks of a site's overrides: each names an event kind that exists, changes something, and gives a reason."""

from collections.abc import Iterator

from brain.core.pack.finding import Finding
from brain.core.pack.lint_symptoms import KINDS, where
from brain.core.pack.spec import Pack


def findings(pack: Pack) -> Iterator[Finding]:
    """What is wrong with the pack's overrides."""
    for override in pack.overrides:
        path = ("overrides", override.name)
        if not override.because.strip():
            yield Finding(
                path=(*path, "because"), text="is empty: a verdict of the vendor's is overruled with a reason"
            )
        if override.severity is None and not override.action:
            yield Finding(path=path, text="changes nothing: give it a severity or an action")
        kind = KINDS.get(override.on.kind)
        if kind is None:
            yield Finding(path=(*path, "on", "kind"), text=f"there is no event kind {override.on.kind!r}")
            continue
        if override.action and all(field.name != "action" for field in kind.fields):
            yield Finding(path=(*path, "action"), text=f"{kind.name} has no action")
        yield from where(override.on, kind, (*path, "on"))
