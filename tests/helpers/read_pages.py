"""Reads the data of a page back, as its script does."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TYPES = {"u1": "u1", "u2": "<u2", "i4": "<i4", "f8": "<f8"}


class Read(NamedTuple):
    """The header of a page, and its arrays."""

    head: dict[str, Any]
    arrays: bytes

    def numbers(self, ref: dict[str, Any]) -> NDArray[Any]:
        """Return an array of the page."""
        found = np.frombuffer(self.arrays, TYPES[ref["type"]], ref["count"], ref["at"])
        return np.where(found == -(2**31), np.nan, found) if ref.get("missing") else found

    def column(self, name: str) -> list[Any]:
        """Return a column of the table."""
        column = next(each for each in self.head["table"]["columns"] if each["name"] == name)
        values = self.numbers(column["data"])
        return [column["words"][value] for value in values] if "words" in column else values.tolist()

    def panel(self, title: str) -> dict[str, Any]:
        """Return a part of the page."""
        found: dict[str, Any] = next(each for each in self.head["panels"] if each["title"] == title)
        return found


def read_page(text: str) -> Read:
    """Return the data of a page."""
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert found is not None
    return read_data(b64decode(found[1]))


def read_data(packed: bytes) -> Read:
    """Return what the data of a page say."""
    data = zlib.decompress(packed)
    length = int.from_bytes(data[:8], "little")
    return Read(json.loads(data[8 : 8 + length]), data[8 + length + -length % 8 :])


def page_of(result: Any, **options: Any) -> Read:
    return read_page(result.page(**options).html())


def same(page: list[Any], result: Any) -> bool:
    """Whether a column of the page has the values of the result: texts as texts, numbers bit by bit."""
    values = np.asarray(result)
    if values.dtype.kind in "iuf":
        return np.array_equal(np.asarray(page, dtype=np.float64), values.astype(np.float64), equal_nan=True)
    return page == [str(each) for each in values.tolist()]


def check_rows(page: Read, table: Any, left_out: tuple[str, ...] = ()) -> None:
    for name in table.names:
        if name not in left_out:
            assert same(page.column(name), table[name]), name
