"""What other packages add, by entry points; nothing of them is imported to know their names.

Read from the folders of ``sys.path`` as importlib.metadata does, which takes 50 ms where 150 packages are installed:
the help of the command line takes 30.
"""

import os
import sys
from functools import cache

__all__ = ["UNSEEN", "installed", "offered"]

UNSEEN = "; simmodel runs from a folder and is not installed, so that names of other packages are not found"
"""The end of sentences about unknown names there."""


@cache
def _tables() -> dict[str, str]:
    """Return the texts of the tables of entry points, by the name of the distribution; the first on the path counts."""
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            distribution = name.partition("-")[0].lower()
            if name.endswith((".dist-info", ".egg-info")) and distribution not in found:
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                        found[distribution] = file.read()
                except OSError:
                    found[distribution] = ""
    return found


@cache
def offered(group: str) -> dict[str, str]:
    """Return what packages add to a group of entry points: by name, in order, the ``"module"`` or ``"module:name"``.

    Looked up once per process.

    >>> offered("simmodel.no-such-group")
    {}
    """
    found: dict[str, str] = {}
    for text in _tables().values():
        inside = False
        for line in text.splitlines() if f"[{group}]" in text else ():
            name, sign, value = line.partition("=")
            if line.startswith("["):
                inside = line.strip() == f"[{group}]"
            elif inside and sign:
                found.setdefault(name.strip(), value.partition("[")[0].strip())
    return dict(sorted(found.items()))


def installed() -> bool:
    """Return whether simmodel is installed, or a folder that Python runs from: then no names of others are found."""
    return "simmodel" in _tables()
