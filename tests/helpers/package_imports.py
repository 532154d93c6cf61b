"""The modules of the packages, and what each imports, read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.util import resolve_name
from pathlib import Path

from tests.helpers.paths import PACKAGE, ROOT, SITE


def module_name(path: Path) -> str:
    """Return the dotted name of the module that a file, or a folder, holds."""
    top = next((each for each in (PACKAGE.parent, SITE.parent) if path.is_relative_to(each)), ROOT)
    parts = path.relative_to(top).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


CORE = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if "_data" not in path.parts}
MODULES = CORE | {module_name(path): path for path in sorted(SITE.rglob("*.py"))}
# A module imports only from its own row and from rows before it.
ROWS = (
    *("moved", "form"),
    *(
        "foundation",
        "environment",
        "work",
        "platform",
        "resources",
        "scheduling",
        "policies",
        "predictors",
        "records",
        "metrics",
    ),
    *("formats", "generators", "catalogue", "view", "results", "snapshots", "systems", "runs", "futures"),
    *("experiments", "studies", "learn", "referee", "testing", "commands", "extending", "cli", "__main__"),
    "simmodel_site",
)
_NAMES_A_MODULE = re.compile(r"simmodel(_site)?(\.\w+)+[.:]?")


def row_of(name: str) -> int:
    """Return the number of the row of a module."""
    package, *parts = name.split(".")
    return ROWS.index(parts[0] if package == "simmodel" else package)


@lru_cache(maxsize=2)
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"), path)


def imports(path: Path, *, on_import_only: bool = False) -> Iterator[str]:
    """Yield what a file imports as dotted names, ``from a import b`` as ``a.b``.

    All of it: at the top, in functions and for typing alike; ``on_import_only``: what importing the module runs.
    """
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(path, node) if node.level else node.module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif not on_import_only:
            waiting.extend(_statements(node))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(_statements(node))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a statement: imports stand in no expression."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, name, ())


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    assert path.suffix == ".pyi", f"{path}:{node.lineno}: absolute imports only"
    return resolve_name("." * node.level + (node.module or ""), module_name(path.parent))


def imported_modules(path: Path) -> set[str]:
    """Return the modules of the package that a file imports anywhere in it, names of packages from their modules."""
    found = set()
    for name in imports(path):
        module = name if name in MODULES else _HOMES.get(name, name.rpartition(".")[0])
        if module in MODULES and name != "simmodel.__version__":
            found.add(module)
    return found


def modules_in_strings(path: Path) -> set[str]:
    """Return the modules of the package that strings of a file name: ``"module"``, ``"module:Class"``, f-strings."""
    if not re.search(r"""["']simmodel\.""", path.read_text("utf-8")):
        return set()
    tree = parsed(path)
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    return {
        module
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts
        if (match := _NAMES_A_MODULE.match(node.value)) and (module := match[0].rstrip(".:")) in MODULES
    }


STUBS = {name: stub for name, path in MODULES.items() if (stub := path.with_suffix(".pyi")).exists()}
OPEN = "simmodel.extending"  # its names are for packages beside, without a promise
PUBLIC = {name: stub for name, stub in STUBS.items() if name != OPEN}
_HOMES = {
    f"{package}.{name.rpartition('.')[2]}": name.rpartition(".")[0]
    for package, stub in STUBS.items()
    if package != "simmodel"
    for name in imports(stub)
}
"""Of each name that a package loads when it is asked for: the module that has it."""
_PUBLIC = {name: home for name, home in _HOMES.items() if name.rpartition(".")[0] != OPEN}
EXPORTED = {*_PUBLIC} | {f"{home}.{name.rpartition('.')[2]}" for name, home in _PUBLIC.items()}
"""The names that packages export, and as their modules have them."""


def through_walls(paths: Iterable[Path]) -> set[str]:
    """Return the names that files take from other packages of simmodel, and that these do not export."""
    found = set()
    for path in paths:
        own = ".".join(module_name(path).split(".")[:2])
        for name in imports(path):
            is_other = name.startswith("simmodel.") and not name.startswith(f"{own}.")
            open_to = ("simmodel", OPEN)
            if is_other and name not in MODULES and name.rpartition(".")[0] not in open_to and name not in EXPORTED:
                found.add(name)
    return found
