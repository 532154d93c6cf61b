"""Paths of the checkout, the package, the data and the reference cases."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "simmodel"
SITE = ROOT / "simmodel_site"
"""The package beside it, of which no test of the core takes anything; nothing in a checkout without it."""
TESTS = ROOT / "tests"
DATA = Path(os.environ.get("SIMMODEL_DATA", ROOT.parent / "shared" / "data")).absolute()
REFERENCE = Path(os.environ.get("SIMMODEL_REFERENCE", ROOT.parent / "shared" / "reference")).absolute()
