"""Columns of the cells of logs."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["columns_of", "names"]

_WHOLE = re.compile(r"[+-]?\d{1,18}")


def names(texts: Sequence[str]) -> NDArray[Any]:
    """Return a column of users, queues or jobs: integers if all cells are, else text; unknown is -1 or empty text.

    >>> names(["3", "-1"]), names(["ann", "-1"])
    (array([ 3, -1]), array(['ann', ''], dtype='<U3'))
    """
    unknown = ("", "-1")
    if all(_WHOLE.fullmatch(text) or not text for text in dict.fromkeys(texts)):
        return np.array([int(text or -1) for text in texts], dtype=np.int64)
    return np.array(["" if text in unknown else text for text in texts])


def columns_of(rows: Sequence[Mapping[str, float | str]], always: Container[str]) -> dict[str, NDArray[Any]]:
    """Turn rows with the same keys into columns; omit columns without any known value, except those in ``always``.

    >>> columns_of([{"run": 1.0, "user": "ann", "nodes": -1}], ())
    {'run': array([1.]), 'user': array(['ann'], dtype='<U3')}
    """
    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        column = names([str(value) for value in values]) if isinstance(values[0], str) else np.array(values)
        if column.dtype == object:
            raise OverflowError(f"{name}: must be numbers of 64 bits")
        nothing = ("",) if column.dtype.kind == "U" else (0, -1) if name == "gpus_per_node" else (-1,)
        empty = np.isnan(column).all() if column.dtype.kind == "f" else np.isin(column, nothing).all()
        if name in always or not empty:
            columns[name] = column
    return columns
