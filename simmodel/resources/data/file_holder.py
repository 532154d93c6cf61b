"""Files in limited room: reservations, pins and eviction, the part of storages that does not depend on bandwidths."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from simmodel.environment import Environment
from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.resources.data.eviction import CandidateState, EvictionLike, EvictionOrder, eviction_rule

if TYPE_CHECKING:
    from simmodel.resources.data.catalogue import Catalogue

__all__ = ["FileHolder", "HeldFile", "RoomState"]


class HeldFile(NamedTuple):
    """A file in a storage at one instant: its bytes, its pins, and its past if it may be evicted."""

    file: str
    size: float
    pins: int = 0
    past: CandidateState | None = None


class RoomState(NamedTuple):
    """Room for a file to come: its bytes, and since when it waits (s); ``None``: it is reserved."""

    file: str
    size: float
    since: float | None = None


class _Claim(NamedTuple):
    size: float
    room: int
    call: Callable[[], object]
    since: float


class FileHolder:
    """Files in limited room: the base class of :class:`~simmodel.resources.data.storage.Storage`, which says how it
    works.

    Parameters
    ----------
    env
        the environment
    name, capacity
        its name, and its size in bytes
    evict
        the eviction rule
    catalogue
        the catalogue that registers its files, in which it has its name as site; ``None``: no replica is protected

    >>> holder = FileHolder(Environment(), "disk", 100.0); holder.add("a", 60.0); holder.free
    40.0
    """

    overtaking: ClassVar[bool] = False
    """Whether claims for room may be served before an earlier one that must wait."""

    def __init__(
        self,
        env: Environment,
        name: str,
        capacity: float = inf,
        evict: EvictionLike = "lru",
        catalogue: Catalogue | None = None,
    ) -> None:
        self.env = env
        self.name = name
        self.capacity = capacity
        self.catalogue = catalogue
        self.files: dict[str, float] = {}
        self.used = 0
        self._pins: dict[str, int] = {}
        self._reserved: dict[str, int] = {}
        self._claims: OrderedDict[str, _Claim] = OrderedDict()
        self._serving = False
        self._boundless = capacity == inf and type(self).admit is FileHolder.admit  # there is always room
        self._rule = eviction_rule(evict, f"storage {name}, evict")
        self._order = EvictionOrder(self._rule) if capacity < inf and self._rule.evicts else None
        self._kept: dict[str, None] = {}  # last replicas that the order came to: out of it until there is another
        self._loose = 0  # bytes of the files in the order
        self._on_added: tuple[Callable[..., object], ...] = ()
        self._on_dropped: tuple[Callable[..., object], ...] = ()
        if catalogue is not None:
            catalogue.watch(name, self.reconsider)
            catalogue.share(name, self.files)
        env.on_hooks_changed(self._find_hooks)
        env.register_waits(self)

    def _find_hooks(self) -> None:
        self._on_added = self.env.hooks("file_added")
        self._on_dropped = self.env.hooks("file_dropped")

    def __repr__(self) -> str:
        used = f"{self.used:g} of {self.capacity:g} bytes used"
        return f"<{type(self).__name__} {self.name}: {used}, {counted(len(self.files), 'file')}>"

    def admit(self, file: str, size: float) -> bool:
        """Return whether a file may come in now, given room for it; :meth:`look_again` asks again. Default: always."""
        return True

    # ------------------------------------------------------------------ questions

    @property
    def free(self) -> float:
        """Free bytes, not reserved."""
        return self.capacity - self.used

    @property
    def waiting(self) -> int:
        """The number of files that wait for room."""
        return len(self._claims)

    def expects(self, file: str) -> bool:
        """Return whether room for a file is reserved or waited for."""
        return file in self._reserved or file in self._claims

    def pins(self, file: str) -> int:
        """Return the number of pins of a file."""
        return self._pins.get(file, 0)

    def why_not(self, file: str, size: float) -> str | None:
        """Return why room for a file can never be reserved; ``None``: it can.

        >>> FileHolder(Environment(), "disk", 100).why_not("a", 200.0)
        'file a of 200 bytes is larger than storage disk of 100 bytes'
        """
        if size > self.capacity:
            return f"file {file} of {size:.15g} bytes is larger than storage {self.name} of {self.capacity:.15g} bytes"
        return None

    def why_keep(self, file: str) -> str | None:
        """Return why a file may not be dropped: it is not there, in use, or the last replica; ``None``: it may.

        >>> disk = FileHolder(Environment(), "disk"); disk.add("a", 60, pins=1); disk.why_keep("a")
        'file a is in use at storage disk'
        """
        if file not in self.files:
            return f"file {file} is not in storage {self.name}"
        if file in self._pins:
            return f"file {file} is in use at storage {self.name}"
        if self.catalogue is not None and not self.catalogue.may_drop(file):
            return f"file {file} has its last replica at storage {self.name}"
        return None

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each file that waits for room, for the report of stalled waiters."""
        for file, claim in self._claims.items():
            yield (
                f"file {file} waits for {claim.size:.15g} bytes in storage {self.name} since {claim.since:g}: "
                f"{self.free:.15g} of {self.capacity:.15g} free, {len(self._pins):,} of {len(self.files):,} files used"
            )

    # ------------------------------------------------------------------ room

    def reserve(self, file: str, size: float, call: Callable[[], object]) -> None:
        """Reserve room for a file to come: now if there is room after evictions, otherwise in turn.

        Parameters
        ----------
        file, size
            its name and its bytes
        call
            ``call()`` is called once room is reserved, at once if there is room

        Raises
        ------
        InputError
            the file is larger than the storage, already there, or already expected
        """
        if not 0 <= size < inf:
            raise InputError(f"must be finite and >= 0, got {size!r}", place=f"file {file!r}, size")
        if (why := self.why_not(file, size)) is not None:
            raise InputError(why)
        if file in self.files or self.expects(file):
            raise InputError(f"file {file} is in storage {self.name} already, or on its way")
        if self._boundless and not self._claims:
            self.used += ceil(size)
            self._reserved[file] = ceil(size)
            call()
            return
        self._claims[file] = _Claim(size, ceil(size), call, self.env._now)
        if len(self._claims) == 1 or self.overtaking:
            self.look_again()

    def release(self, file: str) -> None:
        """Give up the room reserved for a file, or the claim for it; raises :class:`InputError` if there is neither."""
        if self._claims.pop(file, None) is None:
            if file not in self._reserved:
                raise InputError(f"no room is reserved for file {file} in storage {self.name}")
            self.used -= self._reserved.pop(file)
        self.look_again()

    def look_again(self) -> None:
        """Serve the claims that can be served; happens by itself when files, pins or claims change."""
        claims = self._claims
        if not claims or self._serving:
            return
        self._serving = True
        try:
            if self.overtaking:
                while any(self._serve(file, claim) for file, claim in list(claims.items()) if file in claims):
                    pass
            else:
                while claims and self._serve(*next(iter(claims.items()))):
                    pass
        finally:
            self._serving = False

    def _serve(self, file: str, claim: _Claim) -> bool:
        if not (self.admit(file, claim.size) and self._make_room(claim.room)):
            return False
        del self._claims[file]
        self.used += claim.room
        self._reserved[file] = claim.room
        claim.call()
        return True

    def _make_room(self, room: int) -> bool:
        """Evict files until there is room; return whether there is. None goes unless enough can."""
        lacking = self.used + room - self.capacity
        if lacking <= 0:
            return True
        order = self._order
        chosen: list[str] = []
        found = 0
        while found < lacking:
            if order is None or found + self._loose < lacking or (candidate := order.pop()) is None:
                for name in chosen:
                    self._loosen(name)
                return False
            name = candidate.name
            room_of = ceil(self.files[name])
            self._loose -= room_of
            if not self._rule.last and self.catalogue is not None and not self.catalogue.may_drop(name):
                self._kept[name] = None
            else:
                chosen.append(name)
                found += room_of
        for name in chosen:
            last = self.catalogue is not None and not self.catalogue.may_drop(name)
            self._remove(name, "last replica evicted" if last else "evicted")
        return True

    def _loosen(self, file: str) -> None:
        """Put a file without pins into the order."""
        if self._order is not None:
            self._order.free(file)
            self._loose += ceil(self.files[file])

    def reconsider(self, file: str) -> None:
        """Note that a file here may go after all: it has got another replica."""
        if file in self._kept:
            del self._kept[file]
            self._loosen(file)
            self.look_again()

    # ------------------------------------------------------------------ files

    def add(self, file: str, size: float, cause: str = "given", *, pins: int = 0) -> None:
        """Place a file, in the room reserved for it or else in free room.

        Parameters
        ----------
        file, size
            its name and its bytes, those reserved if there is a reservation
        cause
            why it comes, for observers
        pins
            pins that it has from the beginning, each a use

        Raises
        ------
        InputError
            it is already here, its size differs from that reserved or in the catalogue, or there is no room
        """
        if file in self.files:
            raise InputError(f"file {file} is in storage {self.name} already")
        if not 0 <= size < inf:
            raise InputError(f"must be finite and >= 0, got {size!r}", place=f"file {file!r}, size")
        room = ceil(size)
        reserved = self._reserved.get(file)
        if reserved is None:
            if file in self._claims or not self._make_room(room):
                raise InputError(f"no room for file {file} of {size:.15g} bytes in storage {self.name}")
        elif reserved != room:
            raise InputError(f"file {file} has {size:.15g} bytes, but {reserved:,} are reserved in {self.name}")
        if self.catalogue is not None:
            self.catalogue.declare(file, size)  # raises if it is known with another size
        if reserved is None:
            self.used += room
        else:
            del self._reserved[file]
        self.files[file] = size
        if self._order is not None:
            self._order.add(file, size, held=pins > 0)
            self._loose += 0 if pins else room
            for _ in range(pins):
                self._order.use(file)
        if pins:
            self._pins[file] = pins
        if self.catalogue is not None:
            self.catalogue.add(file, self.name)
        for call in self._on_added:
            call(self, file, size, cause)
        self.look_again()

    def pin(self, file: str) -> None:
        """Use a file: it stays until :meth:`unpin`; raises :class:`InputError` if it is not here."""
        if file not in self.files:
            raise InputError(f"file {file} is not in storage {self.name}")
        pins = self._pins.get(file, 0)
        self._pins[file] = pins + 1
        order = self._order
        if order is None:
            return
        if not pins:
            order.hold(file)
            if file in self._kept:
                del self._kept[file]
            else:
                self._loose -= ceil(self.files[file])
        order.use(file)

    def unpin(self, file: str) -> None:
        """End a use of a file; raises :class:`InputError` if it has no pins."""
        pins = self._pins.get(file, 0)
        if not pins:
            raise InputError(f"file {file} is not in use at storage {self.name}")
        if pins > 1:
            self._pins[file] = pins - 1
            return
        del self._pins[file]
        self._loosen(file)
        self.look_again()

    def drop(self, file: str, cause: str = "dropped", *, last: bool = False) -> None:
        """Drop a file.

        Parameters
        ----------
        file
            its name
        cause
            why it goes, for observers
        last
            whether it may be the last replica

        Raises
        ------
        InputError
            it is not here, in use, or the last replica
        """
        if (why := self.why_keep(file)) is not None and not (last and file in self.files and file not in self._pins):
            raise InputError(why)
        if file in self._kept:
            del self._kept[file]
        elif self._order is not None:
            self._loose -= ceil(self.files[file])
        self._remove(file, cause)
        self.look_again()

    def _remove(self, file: str, cause: str) -> None:
        """Remove a file that is out of the account of loose bytes."""
        size = self.files[file]
        self.used -= ceil(size)
        if self._order is not None:
            self._order.remove(file)
        if self.catalogue is not None:
            self.catalogue.remove(file, self.name)  # which reads the size from here
        del self.files[file]
        for call in self._on_dropped:
            call(self, file, size, cause)

    # ------------------------------------------------------------------ snapshots

    def held(self) -> tuple[int, Iterator[HeldFile]]:
        """Return the position in the order of all arrivals and uses, and the files, for a snapshot."""
        clock, pasts = self._order.state() if self._order is not None else (0, {})
        return clock, (HeldFile(name, size, self.pins(name), pasts.get(name)) for name, size in self.files.items())

    def rooms(self) -> Iterator[RoomState]:
        """Iterate over the room reserved and the room waited for, each in order, for a snapshot."""
        yield from (RoomState(file, float(room)) for file, room in self._reserved.items())
        yield from (RoomState(file, claim.size, claim.since) for file, claim in self._claims.items())

    def put_back(
        self,
        clock: int,
        files: Sequence[HeldFile],
        rooms: Iterable[RoomState],
        calls: Mapping[str, Callable[[], object]],
    ) -> None:
        """Put the files and the room of a snapshot into an empty holder; ``calls``: for files that wait for room."""
        for held in files:
            self.files[held.file] = held.size
            self.used += ceil(held.size)
            if self._order is not None:
                self._order.add(held.file, held.size, held=held.pins > 0)
                self._loose += 0 if held.pins else ceil(held.size)
            if held.pins:
                self._pins[held.file] = held.pins
        if self._order is not None:
            self._order.restore(clock, {held.file: held.past for held in files if held.past is not None})
        for room in rooms:
            if room.since is None:
                self._reserved[room.file] = ceil(room.size)
                self.used += ceil(room.size)
            else:
                self._claims[room.file] = _Claim(room.size, ceil(room.size), calls[room.file], room.since)
