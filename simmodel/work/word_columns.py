"""Columns of a few different words, kept as one byte a row and read as words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Words", "column_of", "joined_words"]

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
        """The number of rows, as a tuple."""
        return (len(self.codes),)

    @property
    def nbytes(self) -> int:
        """The bytes of the rows."""
        return self.codes.nbytes

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the words as an array."""
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
        """Return any other attribute of the array of words."""
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
        """Return the words as a list."""
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
