"""The statements of the package, by its folders: ``python -m tests.helpers.statements`` prints them.

With ``set``, it writes them as the sizes that ``tests/project/test_structure.py`` holds.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable

from tests.helpers.package_imports import parsed
from tests.helpers.paths import ROOT, TESTS

SIZES = TESTS / "project" / "sizes.txt"
PACKAGES = ("simmodel", "simmodel_site")


def statements(nodes: Iterable[ast.AST]) -> int:
    """Count statements of a syntax tree; docstrings and ``...`` are none."""
    return sum(
        isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in nodes
    )


def by_folder() -> Counter[str]:
    """Return how many statements each package has as a whole, and each of its folders."""
    found: Counter[str] = Counter()
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        package, *rest = path.relative_to(ROOT).parts
        if rest[0] != "_data":
            count = statements(ast.walk(parsed(path)))
            found[package] += count
            if len(rest) > 1:
                found[f"{package}/{rest[0]}"] += count
    return found


def recorded() -> dict[str, int]:
    """Return the sizes as they were last set."""
    return {name: int(count) for name, count in map(str.split, SIZES.read_text("utf-8").splitlines())}


if __name__ == "__main__":
    counted = by_folder()
    lines = [f"{name:24} {count:6}\n" for name, count in sorted(counted.items())]
    print("".join(lines), end="")
    if sys.argv[1:] == ["set"]:
        SIZES.write_text("".join(lines), "utf-8")
