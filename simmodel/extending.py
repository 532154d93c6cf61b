"""What packages beside simmodel may take beyond the public names: for errors, tables, commands and futures.

The names are documented where they are defined, and may change in any version. The stub of this module,
``extending.pyi``, says where each is; it is imported when it is first asked for.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_HOMES = {
    name.asname or name.name: (node.module or "", name.name)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for name in node.names
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _HOMES[name]
    package = import_module(module)
    found = globals()[name] = getattr(package, there) if hasattr(package, there) else import_module(f"{module}.{there}")
    return found


def __dir__() -> list[str]:
    return list(__all__)
