"""Elements of HTML, made so that no text becomes one: whatever is not made here is escaped. Pure."""

from html import escape

from agent.contract.inert import inert


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *content: object, **attributes: str) -> Html:
    """Returns an element. Content that is no Html is text. Attributes: `class_` is `class`, `aria_label` is `aria-label`."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(inert(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{joined(*content)}</{name}>")


def joined(*content: object) -> Html:
    """Returns them one after the other; None is nothing."""
    return Html("".join(map(_html, content)))


def _html(one: object) -> str:
    if one is None:
        return ""
    return one if isinstance(one, Html) else escape(inert(str(one)))
