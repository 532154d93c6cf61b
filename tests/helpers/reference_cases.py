"""Reference cases of other simulators."""

import json

import pytest

from tests.helpers.paths import REFERENCE

SHARING = REFERENCE / "sharing"


def sharing_cases(kind):
    """Return the cases of a kind ("network", "cpu") as test parameters; a skipped one if there are no cases."""
    cases = [json.loads(path.read_text()) for path in sorted(SHARING.glob("*.json"))]
    chosen = [pytest.param(case, id=case["name"]) for case in cases if case["kind"] == kind]
    absent = pytest.mark.skip(reason=f"no reference cases in {SHARING}; set SIMMODEL_REFERENCE to their folder")
    return chosen or [pytest.param(None, id="absent", marks=absent)]
