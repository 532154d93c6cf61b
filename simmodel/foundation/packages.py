"""What other packages add, by entry points; nothing of them is imported to know their names.

Read from the folders of ``sys.path`` as importlib.metadata does, which takes 50 ms where 150 packages are installed:
the help of the command line takes 30.
"""

import os
import sys
from functools import cache

__all__ = ["offered", "unseen"]

_MOST = 1 << 20  # bytes of a table of entry points


@cache
def _tables() -> dict[str, bytes]:
    """Return the tables of entry points, by the name of the distribution; the first on the path counts."""
    found: dict[str, bytes] = {}
    own = os.path.dirname(os.__file__)  # Python's own modules, which are no distributions
    for folder in sys.path:
        if folder.startswith(own) and not folder.endswith("-packages"):
            continue
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if "-info" not in name or not name.endswith((".dist-info", ".egg-info")):  # "in" is the cheaper question
                continue
            if (distribution := name.partition("-")[0]) in found:
                continue
            found[distribution] = b""
            path = f"{folder or '.'}/{name}/entry_points.txt"
            if os.access(path, os.R_OK):  # most have none, and an error costs more
                file = os.open(path, os.O_RDONLY)  # by its number: a file object costs as much as all else here
                found[distribution] = os.read(file, _MOST)
                os.close(file)
    return found


@cache
def offered(group: str) -> dict[str, str]:
    """Return what packages add to a group of entry points: by name, in order, the ``"module"`` or ``"module:name"``.

    Looked up once per process.

    >>> offered("simmodel.no-such-group")
    {}
    """
    found: dict[str, str] = {}
    head = f"[{group}]".encode()
    for table in [each for each in _tables().values() if head in each]:
        inside = False
        for line in table.decode().splitlines():
            name, sign, value = line.partition("=")
            if line.startswith("["):
                inside = line.strip() == f"[{group}]"
            elif inside and sign:
                found.setdefault(name.strip(), value.partition("[")[0].strip())
    return dict(sorted(found.items()))


def unseen() -> str:
    """Return the end of sentences about unknown names: in a folder that nobody installed no others are found."""
    if "simmodel" in _tables():
        return ""
    return "; simmodel runs from a folder and is not installed, so that names of other packages are not found"
