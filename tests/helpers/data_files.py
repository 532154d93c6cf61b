"""Real logs, workflows and reference schedules."""

from pathlib import Path

import pytest

from tests.helpers.paths import DATA


def data_file(name: str) -> Path:
    """Return the path of a data file, or skip the test if it is absent."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in {DATA}; set SIMMODEL_DATA to the folder of the data")
    return path
