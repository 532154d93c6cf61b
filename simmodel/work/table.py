"""Tables: named numpy columns of one length."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import numpy as np

from simmodel.foundation.display import Cells, Shown, counted, figures, html_table, plus_minus, shown_rows, text_table
from simmodel.foundation.errors import InputError, UnknownKey, optional_imports, unknown
from simmodel.foundation.writing import text_file

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "Columns",
    "Rows",
    "Table",
    "Words",
    "cell_text",
    "column_of",
    "distinct",
    "joined_words",
    "rows_of",
    "text_cell",
]


_SHOWN = 1000  # rows above which a text shows the first and the last only, as numpy's


class Words:
    """A column of a few different words: one byte a row, and an array of texts to all who read it.

    Compared with a word, it gives a mask; numpy's functions and methods see the words. It cannot be written to.

    Parameters
    ----------
    codes
        for each row, the number of its word
    words
        the words

    >>> status = Words(np.array([0, 1, 0], dtype=np.uint8), ("completed", "waiting"))
    >>> status == "completed", status[1:].tolist(), status[0]
    (array([ True, False,  True]), ['waiting', 'completed'], np.str_('completed'))
    >>> status
    array(['completed', 'waiting', 'completed'], dtype='<U9')
    >>> np.unique(status, return_counts=True)
    (array(['completed', 'waiting'], dtype='<U9'), array([2, 1]))
    """

    __slots__ = ("codes", "words")
    __hash__ = None  # type: ignore[assignment] # as an array

    def __init__(self, codes: NDArray[np.unsignedinteger[Any]], words: Sequence[str]) -> None:
        self.codes = codes
        self.words = tuple(words)

    @classmethod
    def of(cls, texts: Iterable[Any]) -> Words:
        """Return the column of these texts.

        >>> Words.of(["failed", "lost", "failed"]).codes
        array([0, 1, 0], dtype=uint8)
        """
        if isinstance(texts, Words):
            return texts
        known = texts.tolist() if isinstance(texts, np.ndarray) and texts.dtype.kind == "U" else list(map(str, texts))
        numbers = {text: number for number, text in enumerate(dict.fromkeys(known))}
        kind = np.uint8 if len(numbers) <= 256 else np.uint32
        return cls(np.fromiter(map(numbers.__getitem__, known), kind, len(known)), tuple(numbers))

    # ------------------------------------------------------------------ as an array

    @property
    def dtype(self) -> np.dtype[np.str_]:
        """The type of the words as an array."""
        return np.dtype(f"<U{max(map(len, self.words), default=1)}")

    @property
    def shape(self) -> tuple[int]:
        return (len(self.codes),)

    @property
    def nbytes(self) -> int:
        """The bytes of the rows."""
        return self.codes.nbytes

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        texts: NDArray[Any] = np.array(self.words, dtype=self.dtype)[self.codes]
        return texts if dtype is None else texts.astype(dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __getitem__(self, rows: Any) -> Any:
        codes = self.codes[rows]
        return Words(codes, self.words) if isinstance(codes, np.ndarray) else np.str_(self.words[codes])

    def __eq__(self, other: object) -> Any:
        if isinstance(other, str):
            return self.isin((other,))
        if isinstance(other, Words) and other.words == self.words:
            return self.codes == other.codes
        return np.asarray(self) == np.asarray(other)

    def __ne__(self, other: object) -> Any:
        return np.logical_not(self == other)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Words, (self.codes, self.words)

    def __repr__(self) -> str:
        return self._shown(repr, ", ")

    def __str__(self) -> str:
        return self._shown(str, " ")

    def _shown(self, text: Callable[[object], str], gap: str) -> str:
        """Return the text of the array, made of its ends only if it is long."""
        if len(self) <= _SHOWN:
            return text(np.asarray(self))
        first, *rest = text(np.asarray(self[[0, 1, 2, -3, -2, -1]])).split(gap)
        return gap.join([first, *rest[:2], "...", *rest[2:]])

    def tolist(self) -> list[str]:
        return list(map(self.words.__getitem__, self.codes.tolist()))

    # ------------------------------------------------------------------ faster than on texts

    def isin(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """Return a mask of the rows with one of these words.

        >>> Words.of(["failed", "lost", "failed"]).isin(("lost", "done"))
        array([False,  True, False])
        """
        wanted = set(words)
        mask: NDArray[np.bool_] = np.array([word in wanted for word in (*self.words, "")])[self.codes]
        return mask

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each word that occurs, in the order of the words as texts.

        >>> Words.of(["lost", "failed", "failed"]).counts()
        {'failed': 2, 'lost': 1}
        """
        found = np.bincount(self.codes, minlength=len(self.words)).tolist()
        return dict(sorted((word, count) for word, count in zip(self.words, found, strict=True) if count))


def column_of(values: Any) -> Any:
    """Return values as a column of a table: an array, or words as they are."""
    return values if isinstance(values, Words) else np.asarray(values)


def joined_words(parts: Sequence[Words]) -> Words:
    """Return the rows of several columns of words as one.

    >>> joined_words([Words.of(["a", "b"]), Words.of(["b", "c"])])
    array(['a', 'b', 'b', 'c'], dtype='<U1')
    """
    words = tuple(dict.fromkeys(word for part in parts for word in part.words))
    number = {word: code for code, word in enumerate(words)}
    kind = np.uint8 if len(words) <= 256 else np.uint32
    codes = [np.array([number[word] for word in part.words], dtype=kind)[part.codes] for part in parts if len(part)]
    return Words(np.concatenate(codes) if codes else np.zeros(0, dtype=kind), words)


Rows: TypeAlias = "slice | NDArray[np.bool_] | NDArray[np.integer] | list[int]"
"""A selection of rows of a table: a slice, a mask, or row numbers."""


class Table(Shown):
    """Named columns of one length.

    Parameters
    ----------
    columns
        a mapping of names to one-dimensional arrays or sequences, or a table

    The length is the number of rows. ``table[name]``, ``keys()``, ``values()``, ``items()`` and ``in`` work as in a
    mapping of column names to arrays. A table is not iterable: use ``table.names`` or ``table.rows()``.

    Raises
    ------
    InputError
        the lengths differ

    >>> table = Table({"job": [1, 2, 3], "wait": [0.0, 5.0, 1.0]})
    >>> len(table), table["wait"].max()
    (3, np.float64(5.0))
    >>> table.where(table["wait"] > 0)["job"]
    array([2, 3])
    >>> print(Table({"case": ["easy"], "wait": [34.234], "wait_low": [32.97], "wait_high": [35.49]}).to_markdown())
    | case | wait |
    |:---|---:|
    | easy | 34.2 ± 1.3 |
    """

    __slots__ = ("_columns", "_length")

    def __init__(self, columns: Columns) -> None:
        self._columns: dict[str, NDArray[Any]] = {name: column_of(column) for name, column in columns.items()}
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns: must have the same length, got {lengths}")
        self._length = next(iter(lengths.values()), 0)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self._columns[name]
        except KeyError:
            raise UnknownKey(unknown("column", name, self._columns).message) from None

    __iter__ = None  # ambiguous: names or rows

    def __len__(self) -> int:
        """The number of rows."""
        return self._length

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __bool__(self) -> bool:
        return bool(self._columns)

    def keys(self) -> KeysView[str]:
        """Return the names of the columns; with them ``{**table}`` is a dictionary of the columns."""
        return self._columns.keys()

    def values(self) -> ValuesView[NDArray[Any]]:
        """Return the columns."""
        return self._columns.values()

    def items(self) -> ItemsView[str, NDArray[Any]]:
        """Return names and columns."""
        return self._columns.items()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    def where(self, rows: Rows) -> Table:
        """Return the rows selected by a boolean mask, a slice or an array of row numbers."""
        return Table({name: column[rows] for name, column in self._columns.items()})

    def with_columns(self, **columns: Any) -> Table:
        """Return the table with these columns added or replaced."""
        return Table({**self._columns, **columns})

    def renamed(self, **names: str) -> Table:
        """Return the table with columns renamed: ``renamed(job="holder")``.

        >>> Table({"job": [1], "start": [0.0]}).renamed(job="holder").names
        ('holder', 'start')
        """
        return Table({names.get(name, name): column for name, column in self._columns.items()})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows as dictionaries of plain Python values."""
        names = self.names
        for values in zip(*(column.tolist() for column in self._columns.values()), strict=True):
            yield dict(zip(names, values, strict=True))

    def to_pandas(self) -> pd.DataFrame:
        """Return a ``pandas.DataFrame`` of the columns; raises ``MissingExtra`` if pandas is not installed."""
        with optional_imports():
            import pandas as pd

        return pd.DataFrame({name: np.asarray(column) for name, column in self._columns.items()})

    def to_csv(self, file: str | Path | TextIO, *, head: bool = True) -> None:
        """Write comma-separated values with a header line; whole numbers without a decimal point, nan as empty.

        Parameters
        ----------
        file
            a path, or a file open for writing with ``newline=""``
        head
            whether to write the header line

        A text that a spreadsheet would take for a formula is written with an apostrophe before it (see
        :func:`text_cell`). A file whose name ends in ``.gz`` is compressed. The file is replaced as a whole.

        Raises ``InputError`` if the file cannot be written (see :func:`simmodel.foundation.writing.replacing`).
        """
        if isinstance(file, str | Path):
            with text_file(file, ".csv") as opened:
                self.to_csv(opened, head=head)
            return
        writer = csv.writer(file)
        if head:
            writer.writerow(map(text_cell, self.names))
        writer.writerows(zip(*(_csv_cells(column) for column in self._columns.values()), strict=True))

    def _cells(self) -> Cells:
        """Return all rows as texts: floats with four figures, intervals beside their mean."""
        bounds = {name: pair for name in self.names if (pair := self._bounds_of(name))}
        hidden = {each for pair in bounds.values() for each in pair}
        shown = [name for name in self.names if name not in hidden]
        columns = []
        for name in shown:
            column = self._columns[name]
            if name in bounds:
                of = [column, *(self._columns[each] for each in bounds[name])]
                columns.append(list(map(_interval_text, *(each.tolist() for each in of))))
            else:
                columns.append([figures(v, 4) if isinstance(v, float) else str(v) for v in _texts(column)])
        return [shown, *map(list, zip(*columns, strict=True))]

    def _bounds_of(self, name: str) -> tuple[str, str] | tuple[()]:
        """Return the columns with the bounds of a column: ``NAME_low`` and ``NAME_high``, or ``low, high`` after it."""
        after = self.names[self.names.index(name) + 1 :][:2]
        pair = (f"{name}_low", f"{name}_high")
        return pair if all(each in self for each in pair) else ("low", "high") if after == ("low", "high") else ()

    def _ends(self) -> tuple[list[list[str]], int]:
        """Return the head and the first and last rows as texts, and the number of rows left out between them."""
        shown, left_out = shown_rows(self._length)
        columns = [[_text(value) for value in _texts(column[shown])] for column in self._columns.values()]
        return [list(self._columns), *map(list, zip(*columns, strict=True))], left_out

    def _repr_html_(self) -> str:
        cells, left_out = self._ends()
        return html_table(cells, left=0, left_out=left_out) if self._columns else "<table></table>"

    def __str__(self) -> str:
        """Return the first and the last rows as text."""
        if not self._columns:
            return repr(self)
        cells, left_out = self._ends()
        lines = text_table(cells, left=0)
        if left_out:
            lines.insert(11, f"... {left_out:,} more rows ...")
        return "\n".join(lines)

    def __repr__(self) -> str:
        names = ", ".join(self._columns)
        return f"<Table of {counted(self._length, 'row')}: {names if len(names) <= 100 else f'{names[:97]}...'}>"


Columns = Mapping[str, Any] | Table
"""Columns by name: arrays, or sequences to convert to arrays."""


def _texts(column: NDArray[np.generic]) -> list[Any]:
    """Return the values as written to a file: 3.0 as 3, nan as an empty text."""
    if column.dtype.kind != "f":
        return list(column.tolist())
    return (
        [int(v) if v == (w := int(v)) and abs(w) < 2**53 else v for v in column.tolist()]
        if np.isfinite(column).all()
        else [("" if v != v else int(v) if abs(v) < 2**53 and v == int(v) else v) for v in column.tolist()]
    )


def _csv_cells(column: NDArray[np.generic]) -> list[Any]:
    cells = _texts(column)
    if column.dtype.kind not in "OU":
        return cells
    return [text_cell(cell) if isinstance(cell, str) and cell[:1] in _STARTS else cell for cell in cells]


def _interval_text(mean: float, low: float, high: float) -> str:
    """Return a mean and its interval: ``34.2 ± 1.3``, or ``34.2 (32.9 to 36.1)`` if the mean is not in the middle."""
    half = (high - low) / 2
    text = plus_minus(mean, half)
    if not half > 0 or abs(low + half - mean) <= 0.02 * half:
        return text
    bounds = [plus_minus(bound, half).partition(" ±")[0] for bound in (low, high)]
    return f"{text.partition(' ±')[0]} ({' to '.join(bounds)})"


_STARTS = frozenset("'=+-@\t\r")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def text_cell(text: str) -> str:
    """Return a text as a cell of a CSV file that no spreadsheet takes for a formula; :func:`cell_text` reads it back.

    A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return, after any apostrophes, gets one more
    apostrophe before it, which spreadsheets read as "this is text". Numbers stay as they are.

    >>> [text_cell(text) for text in ("=1+2", "-5", "-x", "'=", "ann")]
    ["'=1+2", '-5', "'-x", "''=", 'ann']
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def cell_text(cell: str) -> str:
    """Return the text of a cell that :func:`text_cell` made.

    >>> [cell_text(text_cell(text)) for text in ("=1+2", "-5", "'=", "'ann")]
    ['=1+2', '-5', "'=", "'ann"]
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def distinct(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct values of a column in order, and the number of each row's value; types may be mixed.

    >>> distinct(np.array(["b", 3, None, 3], dtype=object))
    (array([3, 'b', None], dtype=object), array([1, 0, 2, 0]))
    """
    if column.dtype.kind in "iu" and len(column) and int(column.max()) - int(column.min()) <= len(column):
        above = column.astype(np.int64) - column.min().astype(np.int64)  # few numbers, as of users: no need to sort
        met = np.bincount(above) > 0
        return np.flatnonzero(met).astype(column.dtype) + column.min(), (np.cumsum(met) - 1)[above]
    try:
        names, which = np.unique(column, return_inverse=True)
    except TypeError:
        known = sorted(set(column.tolist()), key=lambda value: (value is None, type(value).__name__, value))
        number = {value: at for at, value in enumerate(known)}
        names = np.empty(len(known), dtype=object)
        names[:] = known
        which = np.array([number[value] for value in column.tolist()], dtype=np.intp)
    return names, which


def rows_of(column: NDArray[Any], values: NDArray[Any]) -> NDArray[np.intp]:
    """Return the first row of each of these values in a column that has all of them; types may be mixed.

    >>> rows_of(np.array(["b", 3], dtype=object), np.array([3, "b", 3], dtype=object))
    array([1, 0, 1])
    """
    if not len(column):
        return np.zeros(0, dtype=np.intp)
    try:
        names, first = np.unique(column, return_index=True)
        return np.asarray(first[np.searchsorted(names, values)])
    except TypeError:
        row = {value: at for at, value in reversed(list(enumerate(column.tolist())))}
        return np.array([row[value] for value in values.tolist()], dtype=np.intp)


def _text(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
