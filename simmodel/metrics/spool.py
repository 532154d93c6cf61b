"""Exact percentiles of more values than memory should hold: they wait in a file until all are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from tempfile import TemporaryFile
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Spool"]

_BLOCK = 1 << 16
_DIGIT = 16  # bits that a pass over the file decides
_SIGN = np.uint64(1 << 63)


class Spool:
    """Values in a temporary file, of which any percentile can be asked.

    A percentile takes four passes over the file, each of which decides 16 more bits of the value at a rank.

    >>> with Spool() as spool:
    ...     spool.add(np.array([3.0, 1.0])); spool.add(np.array([2.0]))
    ...     spool.percentiles(50, 95)
    [2.0, 2.9]
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 # closed by __exit__
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def add(self, values: NDArray[np.float64]) -> None:
        """Add values, none of which is nan."""
        self._file.write(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        self._count += len(values)

    def percentiles(self, *percents: float) -> list[float]:
        """Return percentiles as ``numpy.percentile``, linear between two values; nan if there are no values."""
        if not self._count:
            return [math.nan] * len(percents)
        places = [(self._count - 1) * percent / 100 for percent in percents]
        ranks = sorted({rank for at in places for rank in (math.floor(at), math.ceil(at))})
        values = dict(zip(ranks, self._at(ranks), strict=True))
        found = []
        for at in places:
            low, high = values[math.floor(at)], values[math.ceil(at)]
            found.append(low + (high - low) * (at - math.floor(at)))
        return found

    def _keys(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the values as whole numbers of the same order, block by block."""
        self._file.seek(0)
        while block := self._file.read(8 * _BLOCK):
            bits = np.frombuffer(block, dtype=np.uint64)
            yield np.where(bits & _SIGN, ~bits, bits | _SIGN)

    def _at(self, ranks: list[int]) -> list[float]:
        """Return the values at these ranks, from 0."""
        prefix = dict.fromkeys(ranks, 0)
        left = {rank: rank for rank in ranks}  # the rank among the values with the same prefix
        for shift in range(64 - _DIGIT, -1, -_DIGIT):
            counts = {each: np.zeros(1 << _DIGIT, dtype=np.int64) for each in prefix.values()}
            for keys in self._keys():
                upper = keys >> np.uint64(shift)
                for each, count in counts.items():
                    here = upper[upper >> np.uint64(_DIGIT) == each] if shift < 64 - _DIGIT else upper
                    count += np.bincount((here & np.uint64((1 << _DIGIT) - 1)).astype(np.int64), minlength=1 << _DIGIT)
            for rank in ranks:
                upto = np.cumsum(counts[prefix[rank]])
                digit = int(np.searchsorted(upto, left[rank], side="right"))
                left[rank] -= int(upto[digit - 1]) if digit else 0
                prefix[rank] = prefix[rank] << _DIGIT | digit
        keys = np.array([prefix[rank] for rank in ranks], dtype=np.uint64)
        values: list[float] = np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64).tolist()
        return values
