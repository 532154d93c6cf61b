"""The form of simmodel that runs: interpreted, or with its inner loops compiled; see docs/how_to/compiled.md."""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

TYPE_CHECKING = False  # typing takes milliseconds
if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_what):
        """Take what the compiler is told of a class, which is nothing to the interpreter."""
        return lambda each: each


__all__ = ["FORM", "form", "interpret", "mypyc_attr"]

_HOME = Path(__file__).parent


def form() -> str:
    """Return ``"compiled"`` or ``"interpreted"``: the form that runs, for storage with a result.

    >>> form() in ("compiled", "interpreted")
    True
    """
    if os.environ.get("SIMMODEL_INTERPRET"):
        return "interpreted"
    built = any((_HOME.parent / f"simmodel__mypyc{suffix}").exists() for suffix in EXTENSION_SUFFIXES)
    return "compiled" if built else "interpreted"


FORM = form()
"""The form that runs in this process."""


def interpret() -> None:
    """Have all modules of simmodel found as ``.py`` files from now on, also where compiled ones stand beside them."""
    sources = FileFinder.path_hook((SourceFileLoader, SOURCE_SUFFIXES))

    def find(folder: str) -> FileFinder:
        if not Path(folder).is_relative_to(_HOME):
            raise ImportError
        return sources(folder)  # type: ignore[return-value]

    sys.path_hooks.insert(0, find)
    sys.path_importer_cache.pop(str(_HOME), None)
