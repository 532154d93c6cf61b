"""Refuses tests whose ids may differ between processes: the workers of pytest-xdist must collect the same tests.

Bytes may contain a time (as the header of gzip does), the order of a set follows the hash seed, and the text of an
object may contain its address. A pytest plugin; conftest.py imports its hooks.
"""

import re
from typing import Any

import pytest

ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for mark in metafunc.definition.iter_markers("parametrize"):
        values = mark.args[1] if len(mark.args) > 1 else mark.kwargs.get("argvalues")
        if isinstance(values, set | frozenset):
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: parameters must have a fixed order, got a set")


def pytest_make_parametrize_id(val: object, argname: str) -> None:
    if isinstance(val, bytes | bytearray):
        raise pytest.UsageError(f"{argname}: bytes must have ids=... or pytest.param(..., id=...), got {val[:40]!r}")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if ADDRESS.search(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid}: the id must be the same in every process, got an address")
