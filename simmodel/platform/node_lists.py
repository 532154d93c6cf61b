"""Lists of nodes in short, as schedulers write them, and the switches of nodes.

Such as ``n[1-32]``, ``cn[001-080,101-532],login`` or ``r[0-1]n[1-4]``. Source: the node name expressions of
slurm.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Protocol, TypeAlias

import attrs

from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import check_count

__all__ = ["NodeList", "node_list", "node_names", "resized", "switch_names", "switch_numbers"]


_PIECE = re.compile(r"\[[^\[\]]*\]|[^\[\],]+")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)


@attrs.frozen
class _Range:
    """The whole numbers from first to last, written with a least number of digits."""

    first: int
    last: int
    digits: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    def texts(self) -> Iterator[str]:
        return (f"{number:0{self.digits}d}" for number in range(self.first, self.last + 1))

    def index(self, text: str) -> int | None:
        """Return the place of a text of digits in it, if it is there."""
        number = int(text)
        inside = self.first <= number <= self.last and text == f"{number:0{self.digits}d}"
        return number - self.first if inside else None


_Item: TypeAlias = "tuple[str | tuple[_Range, ...], ...]"


@attrs.frozen
class NodeList:
    """The names of a list of nodes, in order, found without spelling them all out.

    Each item is a sequence of texts and of tuples of ranges; its names are all combinations, the last part first.

    >>> names = NodeList.of("n[08-10,12],r[0-1]n[1-2]")
    >>> len(names), list(names)
    (8, ['n08', 'n09', 'n10', 'n12', 'r0n1', 'r0n2', 'r1n1', 'r1n2'])
    >>> [names.index(name) for name in ("n12", "r1n1", "n8", "n11", "x")]
    [3, 6, None, None, None]
    """

    items: tuple[_Item, ...]

    @classmethod
    def of(cls, text: str) -> NodeList:
        """Return the list that a text writes.

        Raises
        ------
        InputError
            a bracket is not closed, a range is invalid, or there are more names than the limit ``count``
        """
        found = _parsed(text)
        check_count("nodes", sum(map(_size, found.items)))
        return found

    def __len__(self) -> int:
        return sum(map(_size, self.items))

    def __iter__(self) -> Iterator[str]:
        for item in self.items:
            choices = [(part,) if isinstance(part, str) else _spelled(part) for part in item]
            yield from map("".join, product(*choices))

    def index(self, name: str) -> int | None:
        """Return the place of a name in the list, the first one; ``None``: it is not there."""
        before = 0
        for item in self.items:
            match = _pattern(item).fullmatch(name)
            found = _place(item, match) if match is not None else None
            if found is not None:
                return before + found
            before += _size(item)
        return None


def node_names(text: str) -> tuple[str, ...]:
    """Return the names that a list of nodes stands for, in order.

    Raises
    ------
    InputError
        as :meth:`NodeList.of`

    >>> node_names("n[1-3,7],login")
    ('n1', 'n2', 'n3', 'n7', 'login')
    >>> node_names("n[1-3")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: must be a list of nodes such as 'n[1-32]' or 'a1,a2', got 'n[1-3'
    """
    return tuple(NodeList.of(text))


def resized(text: str, count: int) -> str:
    """Return the first nodes of a list, or more than it has: their numbers follow that of the last one.

    >>> resized("a,n[08-10]", 2), resized("n[08-10]", 5), resized("login", 3)
    ('a,n08', 'n[08-12]', 'login,login[1-2]')
    """
    names = list(node_names(text))
    match = _NUMBERED.fullmatch(names[-1])
    head, last = match.groups() if match else (names[-1], "0")
    more = (f"{head}{int(last) + i:0{len(last)}d}" for i in range(1, count - len(names) + 1))
    return node_list([*names, *more][:count])


def node_list(names: Iterable[str]) -> str:
    """Return names as a list of nodes in short; :func:`node_names` gives them back in the same order.

    Raises
    ------
    InputError
        a name is empty, or has a comma or a bracket

    >>> node_list(["n08", "n09", "n10", "n12", "login"])
    'n[08-10,12],login'
    """
    items: list[tuple[str, list[_Range]]] = []
    for name in names:
        if not name or any(letter in name for letter in "[],"):
            raise InputError(f"must be a name of a node, without commas and brackets, got {shown(name)}")
        match = _NUMBERED.fullmatch(name)
        if match is None:
            items.append((name, []))
            continue
        prefix, text = match.groups()
        number, digits = int(text), len(text)
        if not items or items[-1][0] != prefix or not items[-1][1]:
            items.append((prefix, [_Range(number, number, digits)]))
            continue
        ranges = items[-1][1]
        last = ranges[-1]
        if number == last.last + 1 and text == f"{number:0{last.digits}d}":
            ranges[-1] = _Range(last.first, number, last.digits)
        else:
            ranges.append(_Range(number, number, digits))
    return ",".join(map(_written, items))


def _written(item: tuple[str, list[_Range]]) -> str:
    prefix, ranges = item
    if not ranges:
        return prefix
    texts = [_ends(each) for each in ranges]
    alone = len(ranges) == 1 and len(ranges[0]) == 1
    return f"{prefix}{texts[0]}" if alone else f"{prefix}[{','.join(texts)}]"


def _ends(each: _Range) -> str:
    first, last = (f"{number:0{each.digits}d}" for number in (each.first, each.last))
    return first if each.first == each.last else f"{first}-{last}"


def _wrong(text: str) -> InputError:
    return InputError(f"must be a list of nodes such as 'n[1-32]' or 'a1,a2', got {shown(text)}")


@lru_cache(4096)
def _parsed(text: str) -> NodeList:
    if not text:
        return NodeList(())
    if "[" not in text and "]" not in text:
        names = text.split(",")
        if not all(names):
            raise _wrong(text)
        return NodeList(tuple((name,) for name in names))
    items: list[_Item] = []
    at = 0
    while at < len(text):
        item: list[str | tuple[_Range, ...]] = []
        while match := _PIECE.match(text, at):
            piece, at = match[0], match.end()
            if piece.startswith("[") and item and not isinstance(item[-1], str):
                raise _wrong(text)
            item.append(_ranges(piece, text) if piece.startswith("[") else piece)
        if not item or (at < len(text) and text[at] != ",") or at == len(text) - 1:
            raise _wrong(text)
        at += 1
        items.append(tuple(item))
    return NodeList(tuple(items))


def _ranges(piece: str, text: str) -> tuple[_Range, ...]:
    """Return the ranges between brackets in a text."""
    found = []
    for each in piece[1:-1].split(","):
        match = _RANGE.fullmatch(each)
        if match is None:
            raise _wrong(text)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _wrong(text)
        found.append(_Range(first, last, len(match[1])))
    return tuple(found)


def _size(item: _Item) -> int:
    return prod(sum(map(len, part)) for part in item if not isinstance(part, str))


def _spelled(ranges: tuple[_Range, ...]) -> list[str]:
    return [text for each in ranges for text in each.texts()]


@lru_cache(1024)
def _pattern(item: _Item) -> re.Pattern[str]:
    return re.compile("".join(re.escape(part) if isinstance(part, str) else "([0-9]{1,18})" for part in item))


def _place(item: _Item, match: re.Match[str]) -> int | None:
    """Return the place of a name of this pattern among the names of an item."""
    place = 0
    for ranges, text in zip((part for part in item if not isinstance(part, str)), match.groups(), strict=True):
        before = 0
        for each in ranges:
            found = each.index(text)
            if found is not None:
                break
            before += len(each)
        else:
            return None
        place = place * sum(map(len, ranges)) + before + found
    return place


class Connected(Protocol):
    """Nodes of one kind, as the spec of nodes has it."""

    @property
    def count(self) -> int:
        """Number of nodes."""
        ...

    @property
    def switch(self) -> int | str | None:
        """Name or number of their switch."""
        ...

    @property
    def nodes_per_switch(self) -> int | None:
        """Nodes on each of several switches."""
        ...


def switch_names(kinds: Iterable[Connected]) -> Iterator[str | None]:
    """Yield the name of the switch of each node of some kinds; ``None`` if it has none.

    >>> from simmodel.platform import NodeSpec
    >>> list(switch_names([NodeSpec(count=3, switch="s", nodes_per_switch=2), NodeSpec(switch=4), NodeSpec()]))
    ['s0', 's0', 's1', '4', None]
    """
    counts: dict[str, int] = {}
    for kind in kinds:
        each, named = kind.nodes_per_switch, kind.switch
        if each is None:
            yield from [None if named is None else str(named)] * kind.count
            continue
        if isinstance(named, int):
            name, first = "", named
        else:
            name = "switch" if named is None else named
            first = counts.get(name, 0)
            counts[name] = first - (-kind.count // each)
        yield from (f"{name}{first + node // each}" for node in range(kind.count))


def switch_numbers(kinds: Sequence[Connected]) -> list[int] | None:
    """Return the number of the switch of each node, ``None`` if none has one; a node without has a number of its own.

    >>> from simmodel.platform import NodeSpec
    >>> switch_numbers([NodeSpec(count=3, switch="s", nodes_per_switch=2), NodeSpec(count=2), NodeSpec(switch="s0")])
    [0, 0, 1, 2, 3, 0]
    """
    if all(kind.switch is None and kind.nodes_per_switch is None for kind in kinds):
        return None
    numbers: dict[str | int, int] = {}
    names = (node if name is None else name for node, name in enumerate(switch_names(kinds)))
    return [numbers.setdefault(name, len(numbers)) for name in names]
