"""The statements of the package, by its parts: ``python -m tests.helpers.statements`` prints them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.helpers.package_imports import MODULES, parsed
from tests.helpers.paths import PACKAGE, ROOT


def statements(nodes: Iterable[ast.AST]) -> int:
    """Count statements of a syntax tree; docstrings and ``...`` are none."""
    return sum(
        isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in nodes
    )


def by_part() -> Counter[str]:
    """Return how many statements each folder of the package has, and each module beside them."""
    found: Counter[str] = Counter()
    for path in MODULES.values():
        package, part, *_ = Path(path).relative_to(ROOT).parts
        part = part if package == PACKAGE.name else package
        found[part] += statements(ast.walk(parsed(path)))
    return found


if __name__ == "__main__":
    counted = by_part()
    for part, count in counted.most_common():
        print(f"{part:16} {count:7,}")
    print(f"{'all':16} {counted.total():7,}")
