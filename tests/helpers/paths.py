"""Paths of the checkout, the packages, the data and the reference cases.

The packages are those that are imported: of the checkout, or installed elsewhere.
"""

import os
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _folder(package: str) -> Path:
    found = find_spec(package)
    return ROOT / package if found is None or found.origin is None else Path(found.origin).parent


PACKAGE = _folder("simmodel")
SITE = _folder("simmodel_site")
"""The package beside it: the tests of the core also run in a checkout without it."""
TESTS = ROOT / "tests"


def is_absent(name: str) -> bool:
    """Return whether a path or a dotted name is of the package beside the core, and that is not in this checkout."""
    return name.startswith("simmodel_site") and not SITE.exists()


DATA = Path(os.environ.get("SIMMODEL_DATA", ROOT.parent / "shared" / "data")).absolute()
REFERENCE = Path(os.environ.get("SIMMODEL_REFERENCE", ROOT.parent / "shared" / "reference")).absolute()
