"""Modules that moved to another package: old names work for one version, with a ``DeprecationWarning``."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["MOVED", "follow"]

MOVED = {
    "simmodel.twin": "simmodel_site.twin",
    "simmodel.policies.slurm": "simmodel_site.policy",
    "simmodel.commands.twin": "simmodel_site.commands",
    "simmodel.commands.slurm": "simmodel_site.commands.slurm",
}
"""New names of packages and modules by their old ones; a module of a package moved with it."""
_OLD = tuple(MOVED)


class _Follower:
    """Finds a module by its old name before the other finders: these would find its file a second time."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module under its new name, or ``None``."""
        if not name.startswith(_OLD):  # nearly all
            return None
        from importlib.machinery import ModuleSpec

        old = next((each for each in MOVED if name == each or name.startswith(f"{each}.")), None)
        return None if old is None else ModuleSpec(name, cls(MOVED[old] + name[len(old) :]))  # type: ignore[arg-type]

    def __init__(self, new: str) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its new name: both names are one module."""
        import warnings
        from importlib import import_module

        found = import_module(self._new)
        self._spec = found.__spec__
        text = f"{spec.name} is now {self._new}; the old name goes in the next version"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return found

    def exec_module(self, module: ModuleType) -> None:
        """Keep the module as it is: it has been executed, and its spec is that of its new name."""
        module.__spec__ = self._spec


def follow() -> None:
    if _Follower not in sys.meta_path:
        sys.meta_path.insert(0, _Follower)
