"""Lengths of time in both languages. Pure."""

from typing import Final

from agent.contract.counted import span
from brain.core.pack.spec import Text

_UNITS_ZH: Final = (("天", 86_400, 3600), ("小时", 3600, 60), ("分钟", 60, 1))


def span_text(seconds: float) -> Text:
    """A length of time in both languages, rounded as `span` does."""
    for unit, unit_s, smaller_s in _UNITS_ZH:
        if round(seconds / smaller_s) * smaller_s >= 2 * unit_s:
            return Text(en=span(seconds), zh=f"{int(seconds / unit_s + 0.5)} {unit}")
    return Text(en=span(seconds), zh=f"{int(seconds + 0.5)} 秒")
