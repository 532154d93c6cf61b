"""The location of bundled platforms, workloads and experiments: in a checkout at its top, else inside the package."""

from __future__ import annotations

from pathlib import Path

__all__ = ["bundled_file", "bundled_folder", "bundled_names"]


def bundled_folder(kind: str) -> Path:
    """Return the folder of bundled ``"platforms"``, ``"workloads"`` or ``"experiments"``; it may be missing.

    >>> bundled_folder("workloads").name
    'workloads'
    """
    package = Path(__file__).parents[1]
    installed = package / "_data" / kind
    return installed if installed.is_dir() else package.parent / kind


def _files(kind: str) -> dict[str, Path]:
    folder = bundled_folder(kind)
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    return {path.name.split(".")[0]: path for path in files if not path.name.startswith((".", "_"))}


def bundled_names(kind: str) -> list[str]:
    """Return the names of bundled ``"platforms"``, ``"workloads"`` or ``"experiments"``, sorted.

    >>> "lublin-256" in bundled_names("workloads")
    True
    """
    return sorted(_files(kind))


def bundled_file(kind: str, name: str) -> Path | None:
    """Return the file of a bundled platform, workload or experiment, or ``None`` if the name is unknown.

    >>> bundled_file("workloads", "no such") is None
    True
    """
    return _files(kind).get(name)
