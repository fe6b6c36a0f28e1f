"""How well a colour can be read on another."""

from rich.color import Color

AA = 4.5  # of text, by WCAG 2


def contrast(one: str, other: str) -> float:
    """As WCAG 2 reckons it: 1 to 21. Colours by rich's names."""

    def luminance(name: str) -> float:
        parts = (part / 255 for part in Color.parse(name).get_truecolor())
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
