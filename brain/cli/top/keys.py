"""The keys of `gpuward top`, and when each is one. Pure."""

from brain.cli.top.rows import Tab

# By Textual's names, with the actions of the app
KEYS = {
    "q": "end",
    "tab": "tab(1)",
    "shift+tab": "tab(-1)",
    **{str(n): f"open('{tab}')" for n, tab in enumerate(Tab, 1)},
    "enter": "read",
    "escape": "leave",
    "slash": "find",
    "a": "act",
    "n": "beside(1)",
    "p": "beside(-1)",
    "r": "anew",
    "question_mark": "keys",
}
_ACTIONS = frozenset(action.partition("(")[0] for action in KEYS.values())
_WHILE_TYPING = ("tab", "leave")


def allowed(action: str, *, asked: bool, typing: bool) -> bool | None:
    """A question (`asked`) has the keys to itself, and whoever types a filter types letters. None: it is no action of ours."""
    if action not in _ACTIONS:
        return None
    return not asked and (not typing or action in _WHILE_TYPING)
