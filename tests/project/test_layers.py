"""The order of the house: who imports whom, at the top of a module, inside functions and for typing alike."""

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from tests.helpers.paths import PACKAGE

# A module imports only from its own row and from rows before it.
ROWS = (
    *("errors", "environment", "work", "platform", "resources", "scheduling", "policies", "records", "metrics"),
    *("formats", "generators", "catalogue", "view", "results", "snapshots", "systems", "runs", "futures"),
    *("experiments", "studies", "learn", "twin", "testing", "commands", "cli", "__main__"),
)
UPWARD: dict[tuple[str, str], str] = {}
"""Importer and imported, of what climbs against the order all the same, and why."""
CIRCLES, LARGEST = 3, 5
"""How many circles of imports there are at most, and of how many modules the largest: to be lowered, never raised."""


def named(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {named(path): path for path in sorted(PACKAGE.rglob("*.py")) if "_data" not in path.parts}


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of the package that a module imports anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in MODULES:
                    yield inner
                elif node.module in MODULES and inner != "simmodel.__version__":
                    yield str(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (
                str(each.value) for each in node.args if isinstance(each, ast.Constant) and each.value in MODULES
            )


IMPORTS = {
    name: set(imported(ast.parse(path.read_text("utf-8")))) - {name}
    for name, path in MODULES.items()
    if name != "simmodel"  # the table of public names stands aside
}


def row_of(name: str) -> int:
    return ROWS.index(name.split(".")[1])


def climbs(name: str) -> set[tuple[str, str]]:
    """Return the imports of a module from rows after its own, or from the table of public names."""
    return {(name, other) for other in IMPORTS[name] if other == "simmodel" or row_of(other) > row_of(name)}


@pytest.mark.parametrize("name", sorted(IMPORTS))
def test_a_module_imports_only_from_rows_before_its_own(name: str) -> None:
    assert name.split(".")[1] in ROWS, f"{name} stands in no row of the house"
    assert sorted(climbs(name) - UPWARD.keys()) == []


def test_every_exception_is_still_one() -> None:
    assert {pair for name in IMPORTS for pair in climbs(name)} >= UPWARD.keys(), "take what is gone out of the table"


def test_few_modules_import_each_other_in_circles() -> None:
    graph = nx.DiGraph([(name, other) for name, others in IMPORTS.items() for other in others if other != "simmodel"])
    circles = sorted((sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1), key=len)
    assert len(circles) <= CIRCLES, circles
    assert max(map(len, circles), default=0) <= LARGEST, circles[-1]
