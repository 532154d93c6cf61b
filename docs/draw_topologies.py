"""Draws ``topologies.png``: a torus, a fat tree and a dragonfly, each with one route.

``python docs/draw_topologies.py`` takes a second. The links are those that the routes of all pairs of hosts use.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import cos, pi, sin
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from simmodel.platform import Dragonfly, FatTree, Torus
from simmodel.platform.topology import Interconnect
from simmodel.view.style import BLUE, GREY, INK, ORANGE

Point = tuple[float, float]

TORUS = Torus(dimensions=(5, 4), bandwidth="1GBps")
FAT_TREE = FatTree(levels=2, down=(4, 4), up=(1, 2), parallel=(1, 1), bandwidth="1GBps")
DRAGONFLY = Dragonfly(groups=4, chassis=2, routers=4, nodes=1, bandwidth="1GBps")
SHADES = {"green": "#4d9a5b", "black": "#555555", "blue": BLUE}


def ends(name: str) -> tuple[str, str]:
    """Return the two ends of a link."""
    one, _, other = name.partition(":")[0].partition("-")
    return one, other


def on_torus(node: str) -> Point:
    """Return the place of a host: its coordinates."""
    return float(int(node) % 5), float(int(node) // 5)


def on_fat_tree(node: str) -> Point:
    """Return the place of a host or of a switch."""
    level, dot, number = node.partition(".")
    if not dot:
        return float(node), 0.0
    return (1.5 + 4 * int(number), 1.2) if level == "1" else (5.5 + 4 * int(number), 2.4)


def on_dragonfly(node: str) -> Point:
    """Return the place of a host or of a router: groups at the corners, chassis as rows."""
    if "." not in node:
        x, y = on_dragonfly(".".join(map(str, (int(node) // 8, int(node) // 4 % 2, int(node) % 4))))
        return x, y + (0.42 if int(node) // 4 % 2 == 0 else -0.42)
    group, chassis, router = map(int, node.split("."))
    angle = pi * (0.75 - group / 2)
    return 3.0 * cos(angle) + 0.8 * (router - 1.5), 2.3 * sin(angle) - 0.85 * (chassis - 0.5)


def shade(name: str) -> str:
    """Return the colour of a link of the dragonfly."""
    one, other = (end.split(".") for end in ends(name))
    if len(one) < 3 or len(other) < 3:
        return GREY
    return SHADES["blue" if one[0] != other[0] else "black" if one[1] != other[1] else "green"]


def line(ax: Axes, name: str, place: Callable[[str], Point], colour: str, width: float, bend: float = 0.0) -> None:
    """Draw a link; one round the edge of the torus is an arc."""
    a, b = (place(end) for end in ends(name))
    style = f"arc3,rad={bend}"
    arrow = {"arrowstyle": "-", "connectionstyle": style, "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", a, b, arrowprops=arrow, zorder=1)


def bent(name: str) -> float:
    """Return the bend of a link: of the torus if it is one round the edge, of a chassis if it skips a router."""
    one, other = ends(name)
    parts, others = one.split("."), other.split(".")
    if len(parts) == len(others) == 3 and parts[:2] == others[:2]:
        return 0.25 * (abs(int(parts[2]) - int(others[2])) > 1)
    if len(parts) == len(others) == 3 and parts[0] != others[0]:
        side_by_side = abs(on_dragonfly(one)[1] - on_dragonfly(other)[1]) < 0.1
        return 0.22 * side_by_side * (1 if on_dragonfly(one)[1] < 0 else -1)
    if one.isdecimal() and other.isdecimal() and abs(int(one) - int(other)) not in (1, 5):
        return 0.22 if int(one) - int(other) == 4 else -0.22
    return 0.0


def draw(
    ax: Axes, topology: Interconnect, place: Callable[[str], Point], pair: tuple[int, int], title: str, by_kind: bool
) -> None:
    """Draw a topology and one route."""
    names = {name for a, b in permutations(range(len(topology.hosts)), 2) for name in topology.route(a, b)}
    for name in sorted(name for name in names if name.endswith(":up")):
        line(ax, name, place, shade(name) if by_kind else GREY, 0.9, bent(name))
    for name in topology.route(*pair):
        line(ax, name, place, ORANGE, 2.6, bent(name))
    for node in sorted({end for name in names for end in ends(name)}):
        x, y = place(node)
        host = node.isdecimal()
        ax.plot(x, y, "o" if host else "s", ms=5.5 if host else 7, color=INK if host else "white", mec=INK, zorder=3)
        if host and int(node) in pair:
            ax.plot(x, y, "o", ms=8, color=ORANGE, mec=INK, zorder=4)
    ax.set_title(title, fontsize=9, color=INK)
    ax.margins(0.12)
    ax.axis("off")


def main() -> None:
    """Draw the picture beside the others."""
    mpl.use("Agg")
    figure, panels = plt.subplots(1, 3, figsize=(12.0, 3.6), width_ratios=(1, 1.25, 1.35))
    route = "torus:5,4\nfirst along x, round the edge, then along y"
    draw(panels[0], TORUS, on_torus, (3, 10), route, False)
    route = "fat-tree:2;4,4;1,2;1,1\nthe destination chooses the upper switch"
    draw(panels[1], FAT_TREE, on_fat_tree, (1, 14), route, False)
    route = "dragonfly:4,1;2,1;4,1;1\ngreen, black, blue, green, black"
    draw(panels[2], DRAGONFLY, on_dragonfly, (4, 15), route, True)
    figure.tight_layout()
    figure.savefig(Path(__file__).parents[1] / "images" / "topologies.png", dpi=110)


if __name__ == "__main__":
    main()
