"""Paths of the checkout, the package, the data and the reference cases."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "simmodel"
SITE = ROOT / "simmodel_site"
"""The package beside it: the tests of the core also run in a checkout without it."""
TESTS = ROOT / "tests"


def is_absent(name: str) -> bool:
    """Return whether a path or a dotted name is of the package beside the core, and that is not in this checkout."""
    return name.startswith("simmodel_site") and not SITE.exists()


DATA = Path(os.environ.get("SIMMODEL_DATA", ROOT.parent / "shared" / "data")).absolute()
REFERENCE = Path(os.environ.get("SIMMODEL_REFERENCE", ROOT.parent / "shared" / "reference")).absolute()
