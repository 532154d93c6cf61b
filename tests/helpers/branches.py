"""The branches of functions: ``python -m tests.helpers.branches FOLDER`` prints those that have most."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.package_imports import MODULES, parsed
from tests.helpers.paths import PACKAGE

_ONE = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.match_case)


def branches(function: ast.AST) -> int:
    """Count the branches of a function: conditions, loops, also of comprehensions, and further parts of and, or.

    >>> branches(ast.parse("for i in j:\\n  if i and (j or k): pass"))
    4
    """
    found = 0
    for node in ast.walk(function):
        if isinstance(node, _ONE):
            found += 1
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
    return found


def by_function(folder: str) -> Iterator[tuple[int, str]]:
    """Yield the branches and the name of each function in a folder of the package, inner functions also apart."""
    for module, path in MODULES.items():
        if Path(path).is_relative_to(PACKAGE / folder):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield branches(node), f"{module}.{node.name}"


if __name__ == "__main__":
    for count, name in sorted(by_function(sys.argv[1]), reverse=True)[:20]:
        print(f"{count:4} {name}")
