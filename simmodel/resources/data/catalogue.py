"""The catalogue of the files of a grid: their sizes, and the sites that hold replicas."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from math import ceil, inf
from typing import NamedTuple

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError, unknown

__all__ = ["Catalogue", "CatalogueState"]

Places = tuple[int, ...]


class CatalogueState(NamedTuple):
    """A catalogue at one instant, as columns: the files, their sizes (bytes), and the sites of each, as numbers."""

    files: tuple[str, ...]
    sizes: tuple[float, ...]
    sites: tuple[tuple[int, ...], ...]


class Catalogue:
    """The sizes and replicas of files, as columns.

    Parameters
    ----------
    sites
        the names of the sites (or storages) that may hold replicas; the replicas of a file are listed in this order

    Raises
    ------
    InputError
        a site occurs twice

    >>> catalogue = Catalogue(["CERN", "BNL"])
    >>> catalogue.add("raw", "BNL", 4e9); catalogue.add("raw", "CERN")
    >>> catalogue.sites_of("raw"), catalogue.size("raw"), catalogue.bytes_at("BNL")
    (('CERN', 'BNL'), 4000000000.0, 4000000000)
    """

    def __init__(self, sites: Iterable[str]) -> None:
        self.sites = tuple(sites)
        self._number = {name: number for number, name in enumerate(self.sites)}
        if len(self._number) < len(self.sites):
            twice = next(name for i, name in enumerate(self.sites) if self._number[name] != i)
            raise InputError(f"duplicate name {twice!r}", place="sites")
        self._where: dict[str, Places] = {}
        self._held: list[dict[str, float]] = [{}] * len(self.sites)  # the sizes of the files of storages, theirs
        self._apart: dict[str, float] = {}  # the sizes of files that the storage of their first replica does not have
        self._alone: tuple[Places, ...] = tuple((number,) for number in range(len(self.sites)))
        self._bytes = [0] * len(self.sites)
        self._count = [0] * len(self.sites)
        self._spare: list[Callable[[str], object] | None] = [None] * len(self.sites)

    @classmethod
    def from_columns(
        cls, sites: Iterable[str], file: Iterable[str], size: Iterable[float], site: Iterable[str | None]
    ) -> Catalogue:
        """Return the catalogue of a table with one row for each replica.

        Parameters
        ----------
        sites
            the names of all sites
        file, size, site
            the columns: names of files, bytes, and names of sites (``None`` or empty: a file without a replica)

        Raises
        ------
        InputError
            two sizes of one file, an unknown site, or a size that is negative or not finite

        >>> Catalogue.from_columns(["CERN", "BNL"], ["raw", "raw", "aod"], [4, 4, 1], ["CERN", "BNL", "BNL"])
        <Catalogue: 2 files, 3 replicas at 2 sites>
        """
        made = cls(sites)
        shared: dict[Places, Places] = {}
        for name, each, where in zip(file, size, site, strict=True):
            made.declare(name, each)
            if not where:
                continue
            before = made._where[name]
            made.add(name, where)
            after = made._where[name]
            if after is not before and len(after) > 1:  # equal combinations are one object
                made._where[name] = shared.setdefault(after, after)
        return made

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._where)

    def __contains__(self, file: object) -> bool:
        return file in self._where

    def __repr__(self) -> str:
        replicas = f"{counted(sum(self._count), 'replica')} at {counted(len(self.sites), 'site')}"
        return f"<Catalogue: {counted(len(self), 'file')}, {replicas}>"

    # ------------------------------------------------------------------ questions

    def _found(self, file: str) -> Places:
        try:
            return self._where[file]
        except KeyError:
            raise InputError(f"unknown file {file!r}", place="catalogue") from None

    def _site(self, site: str) -> int:
        try:
            return self._number[site]
        except KeyError:
            raise InputError(unknown("site", site, self.sites).message, place="catalogue") from None

    def names(self) -> list[str]:
        """Return the names of the files, in the order in which they were declared."""
        return list(self._where)

    def size(self, file: str) -> float:
        """Return the size of a file in bytes; raises :class:`InputError` if it is unknown."""
        return self._size(file, self._found(file))

    def _size(self, file: str, where: Places) -> float:
        held = self._held[where[0]] if where else self._apart
        return float(held[file] if file in held else self._apart[file])

    def _put(self, file: str, size: float, where: Places) -> None:
        """Note the sites of a file, and its size unless the storage at the first one has it."""
        self._where[file] = where
        if where and file in self._held[where[0]]:
            self._apart.pop(file, None)
        else:
            self._apart[file] = size

    def sites_of(self, file: str) -> tuple[str, ...]:
        """Return the sites that hold a replica, in the order of the sites; raises :class:`InputError` if it is unknown.

        >>> catalogue = Catalogue(["CERN"]); catalogue.declare("raw", 1.0); catalogue.sites_of("raw")
        ()
        """
        sites = self.sites
        return tuple([sites[number] for number in self._found(file)])

    def numbers_of(self, file: str) -> tuple[int, ...]:
        """Return the positions of the sites that hold a replica; raises :class:`InputError` if the file is unknown."""
        return self._found(file)

    def holds(self, file: str, site: str) -> bool:
        """Return whether a site holds a replica of a file."""
        where = self._where.get(file)
        return where is not None and self._site(site) in where

    def may_drop(self, file: str) -> bool:
        """Return whether a replica may be dropped without losing the file: there is another one."""
        return len(self._found(file)) > 1

    def bytes_at(self, site: str) -> int:
        """Return the bytes of all replicas at a site, each rounded up to whole bytes."""
        return self._bytes[self._site(site)]

    def files_at(self, site: str) -> int:
        """Return the number of replicas at a site."""
        return self._count[self._site(site)]

    # ------------------------------------------------------------------ changes

    def watch(self, site: str, call: Callable[[str], object]) -> None:
        """Let ``call(file)`` be called whenever a replica at a site is no longer the last one of its file."""
        self._spare[self._site(site)] = call

    def share(self, site: str, files: dict[str, float]) -> None:
        """Read the sizes of the replicas at a site from the files of its storage; no effect if there are some already.

        The storage adds a file before it calls :meth:`add`, and takes it out after :meth:`remove`.
        """
        number = self._site(site)
        if not self._count[number]:
            self._held[number] = files

    def declare(self, file: str, size: float) -> None:
        """Add a file that has no replica yet; no effect on a known file of this size.

        Raises
        ------
        InputError
            the file is known with another size, or the size is negative or not finite

        >>> catalogue = Catalogue(["CERN"]); catalogue.declare("raw", 4e9); catalogue.declare("raw", 5e9)
        Traceback (most recent call last):
        ...
        simmodel.foundation.errors.InputError: file 'raw': must have one size, got 4000000000 and 5000000000 bytes
        """
        where = self._where.get(file)
        if where is not None:
            if (known := self._size(file, where)) != size:
                message = f"must have one size, got {known:.15g} and {size:.15g} bytes"
                raise InputError(message, place=f"file {file!r}")
            return
        if not 0 <= size < inf:
            raise InputError(f"must be finite and >= 0, got {size!r}", place=f"file {file!r}, size")
        self._put(file, size, ())

    def add(self, file: str, site: str, size: float | None = None) -> None:
        """Note a replica of a file at a site; no effect if it is noted already.

        Parameters
        ----------
        size
            bytes; required for a new file

        Raises
        ------
        InputError
            an unknown site, an unknown file without a size, or another size of a known file
        """
        if size is not None:
            self.declare(file, size)
        where = self._found(file)
        number = self._site(site)
        if number in where:
            return
        known = self._size(file, where)
        at = bisect_left(where, number)
        self._put(file, known, (*where[:at], number, *where[at:]) if where else self._alone[number])
        self._count_in(number, known, 1)
        if len(where) == 1 and (tell := self._spare[where[0]]) is not None:
            tell(file)

    def _count_in(self, number: int, size: float, sign: int) -> None:
        self._bytes[number] += sign * ceil(size)
        self._count[number] += sign

    def remove(self, file: str, site: str) -> None:
        """Note that a site no longer holds a replica of a file; raises :class:`InputError` if it holds none."""
        where, number = self._found(file), self._site(site)
        if number not in where:
            raise InputError(f"file {file!r} has no replica at {site!r}", place="catalogue")
        left = tuple([each for each in where if each != number])
        size = self._size(file, where)
        self._put(file, size, self._alone[left[0]] if len(left) == 1 else left)
        self._count_in(number, size, -1)

    # ------------------------------------------------------------------ snapshots

    def state(self) -> CatalogueState:
        """Return the files, sizes and replicas as plain values."""
        sizes = tuple([self._size(file, where) for file, where in self._where.items()])
        return CatalogueState(tuple(self._where), sizes, tuple(self._where.values()))

    def restore(self, state: CatalogueState) -> None:
        """Put the files of a snapshot into an empty catalogue of the same sites."""
        for file, size, where in zip(state.files, state.sizes, state.sites, strict=True):
            self._put(file, size, self._alone[where[0]] if len(where) == 1 else tuple(where))
            for number in where:
                self._count_in(number, size, 1)
