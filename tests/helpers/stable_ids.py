"""Refuses tests whose names could differ from one process to the next: pytest-xdist's workers must collect the same.

Bytes may hold a clock (the header of gzip does), the order of a set follows the hash seed, and the text of an object
may hold its address. A pytest plugin, whose hooks conftest.py imports.
"""

import re
from typing import Any

import pytest

ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for mark in metafunc.definition.iter_markers("parametrize"):
        values = mark.args[1] if len(mark.args) > 1 else mark.kwargs.get("argvalues")
        if isinstance(values, set | frozenset):
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: parameters in a fixed order expected, found a set")


def pytest_make_parametrize_id(val: object, argname: str) -> None:
    if isinstance(val, bytes | bytearray):
        raise pytest.UsageError(
            f"{argname}: ids=... or pytest.param(..., id=...) expected for bytes, found {val[:40]!r}"
        )


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if ADDRESS.search(item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid}: an id that is the same in every process expected, found an address"
            )
