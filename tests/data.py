"""Where the tests find real logs, workflows and reference schedules."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data")).absolute()


def data_file(name: str) -> Path:
    """Return the path of a data file, or skip the test where it is absent."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not in {FOLDER}; set SIMMODEL_DATA to the folder of the data")
    return path
