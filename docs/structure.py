"""Draws the imports of a package, layer by layer, and counts them: `python -m docs.structure brain.core > core.svg`.

A box is a module, or with `--rooms` a package directly below the one that is drawn. A box stands above all that it imports;
arrows go down. What imports itself in a circle is drawn in red. The figures go to stderr.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from html import escape

import grimp

Graph = Mapping[str, frozenset[str]]  # importer -> imported
WIDTH, HEIGHT, GAP = 118, 26, 62
PITCH = WIDTH + 36  # from box to box in a row


def modules(package: str) -> Graph:
    """The modules below a package, without those that only hold others, and what each imports of them."""
    graph = grimp.build_graph(package.partition(".")[0], cache_dir=None)
    below = [
        name for name in graph.modules if name.startswith(f"{package}.") and not graph.find_children(name)
    ]
    return {
        name: frozenset(graph.find_modules_directly_imported_by(name)) & frozenset(below)
        for name in sorted(below)
    }


def rooms(found: Graph, package: str) -> Graph:
    """The same between the packages (or single modules) directly below `package`."""

    def room(name: str) -> str:
        return name.removeprefix(f"{package}.").partition(".")[0]

    drawn: dict[str, set[str]] = {}
    for name, imported in found.items():
        drawn.setdefault(room(name), set()).update(room(other) for other in imported)
    return {name: frozenset(imported - {name}) for name, imported in drawn.items()}


def layers(found: Graph) -> tuple[dict[str, int], frozenset[str]]:
    """(layer of each box, the lowest is 0; the boxes of circles)."""
    reached = {name: _reached(found, name) for name in found}
    circles = frozenset(name for name in found if name in reached[name])
    depth: dict[str, int] = {}

    def layer(name: str) -> int:
        if name not in depth:
            below = [other for other in found[name] if name not in reached[other]]
            depth[name] = max((layer(other) + 1 for other in below), default=0)
        return depth[name]

    return {name: layer(name) for name in found}, circles


def _reached(found: Graph, start: str) -> set[str]:
    """All that a box imports, also by way of others."""
    reached: set[str] = set()
    left = list(found[start])
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left.extend(found[name])
    return reached


def svg(found: Graph, package: str) -> str:
    """The picture."""
    depth, circles = layers(found)
    top = max(depth.values(), default=0)
    rows = [[name for name in found if depth[name] == layer] for layer in range(top, -1, -1)]
    width = (max(len(row) for row in rows) + 1) * PITCH + 2 * WIDTH
    place: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        # Every other row stands aside, so that arrows between far rows do not hide behind the boxes between them.
        left = (width - (len(row) - 1) * PITCH) / 2 + (WIDTH * 0.75 if number % 2 else -WIDTH * 0.75)
        for index, name in enumerate(_ordered(row, place, found)):
            place[name] = (left + index * PITCH, 20 + number * (HEIGHT + GAP))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {len(rows) * (HEIGHT + GAP)}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for name, imported in found.items():
        for other in sorted(imported):
            (x1, y1), (x2, y2) = place[name], place[other]
            colour = "#c33" if name in circles and other in circles else "#8899aa"
            lines.append(
                f'<line x1="{x1:.0f}" y1="{y1 + HEIGHT:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="{colour}" '
                'stroke-opacity="0.55"/>'
            )
    for name, (x, y) in place.items():
        short = escape(name.removeprefix(f"{package}."))
        lines.append(
            f'<rect x="{x - WIDTH / 2:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#eef3f8" '
            'stroke="#456"/>'
        )
        lines.append(f'<text x="{x:.0f}" y="{y + 17:.0f}" text-anchor="middle">{short}</text>')
    return "\n".join([*lines, "</svg>"])


def _ordered(row: Iterable[str], place: Mapping[str, tuple[float, float]], found: Graph) -> list[str]:
    """A row in the order of what imports it, so that fewer arrows cross."""

    def middle(name: str) -> float:
        above = [place[other][0] for other, imported in found.items() if name in imported and other in place]
        return sum(above) / len(above) if above else 0.0

    return sorted(row, key=lambda name: (middle(name), name))


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m docs.structure", description=__doc__.split("\n")[0])
    parser.add_argument("package", help="for instance brain.core")
    parser.add_argument("--rooms", action="store_true", help="packages instead of modules")
    given = parser.parse_args()
    found = modules(given.package)
    if given.rooms:
        found = rooms(found, given.package)
    depth, circles = layers(found)
    arrows = sum(map(len, found.values()))
    figures = f"{len(found)} boxes, {arrows} arrows, {max(depth.values()) + 1} layers, {len(circles)} boxes in circles"
    sys.stderr.write(f"{given.package}: {figures}\n")
    sys.stdout.write(svg(found, given.package) + "\n")


if __name__ == "__main__":
    main()
