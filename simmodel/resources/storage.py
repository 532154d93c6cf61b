"""Storages: files, room for files to come, eviction, and reading and writing at shared bandwidths."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from math import ceil, inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from simmodel.environment import Environment
from simmodel.errors import InputError
from simmodel.platform.grid import StorageSpec
from simmodel.resources.eviction import CandidateState, EvictionOrder, eviction_rule
from simmodel.resources.models import model_named
from simmodel.resources.shared_channel import Access, ChannelState, SharedChannel

if TYPE_CHECKING:
    from simmodel.resources.catalogue import Catalogue

__all__ = ["HeldFile", "RoomState", "Storage", "StorageState", "make_storage", "register_storage"]


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


class StorageState(NamedTuple):
    """A storage at one instant: files, room reserved and room waited for, each in order, and the accesses.

    ``clock``: the position in the order of all arrivals and uses.
    """

    files: tuple[HeldFile, ...] = ()
    rooms: tuple[RoomState, ...] = ()
    clock: int = 0
    reading: ChannelState = ChannelState()
    writing: ChannelState = ChannelState()


class _Claim(NamedTuple):
    size: float
    room: int
    call: Callable[[], object]
    since: float


class Storage:
    """A place for files, with a capacity and shared bandwidths for reading and writing.

    Room for a file is reserved before it comes, at once or when there is room: claims are served in order. To make
    room, files without pins are evicted in the order of the rule of the spec. The last replica of a file in the
    catalogue stays unless the rule says otherwise. Bytes are counted whole, a begun byte as one.

    A model derives from it and overrides :meth:`admit`, :meth:`read_bandwidth` and :meth:`write_bandwidth`.

    Parameters
    ----------
    env
        the environment
    spec
        its name, capacity, bandwidths and eviction rule
    catalogue
        the catalogue that is told of its files, in which it has its name as site; ``None``: no replica is protected
    name
        its name; default: that of the spec

    Attributes
    ----------
    files
        the size of each file in it, in the order of arrival
    used
        the bytes of these files and those reserved
    reading, writing
        the channels of its accesses

    Observers may have ``file_added(storage, file, size, cause)``, ``file_dropped(storage, file, size, cause)``,
    ``read_started(access)``, ``read_ended(access)``, ``write_started(access)`` and ``write_ended(access)``.

    >>> env = Environment()
    >>> disk = Storage(env, StorageSpec(name="disk", capacity=100, read_bandwidth=10))
    >>> disk.add("a", 60); disk.add("b", 30); disk.pin("b")
    >>> disk.reserve("c", 70, lambda: print("room at", env.now)); list(disk.files), disk.used
    room at 0
    (['b'], 100)
    >>> disk.add("c", 70); _ = disk.read(70, lambda access: print("read at", env.now)); env.run()
    read at 7.0
    """

    overtaking: ClassVar[bool] = False
    """Whether claims for room may be served before an earlier one that must wait."""

    def __init__(
        self, env: Environment, spec: StorageSpec, catalogue: Catalogue | None = None, *, name: str | None = None
    ) -> None:
        self.env = env
        self.spec = spec
        self.name = name = name or spec.name or "storage"
        self.capacity = spec.capacity
        self.catalogue = catalogue
        self.files: dict[str, float] = {}
        self.used = 0
        self._pins: dict[str, int] = {}
        self._reserved: dict[str, int] = {}
        self._claims: OrderedDict[str, _Claim] = OrderedDict()
        self._serving = False
        self._rule = eviction_rule(spec.evict, f"storage {name}, evict")
        self._order = EvictionOrder(self._rule) if spec.capacity < inf and self._rule.evicts else None
        self._kept: dict[str, None] = {}  # last replicas that the order came to: out of it until there is another
        self._loose = 0  # bytes of the files in the order
        own_read = type(self).read_bandwidth is not Storage.read_bandwidth
        own_write = type(self).write_bandwidth is not Storage.write_bandwidth
        self.reading = SharedChannel(env, self.read_bandwidth if own_read else spec.read_bandwidth, name, kind="read")
        self.writing = SharedChannel(
            env, self.write_bandwidth if own_write else spec.write_bandwidth, name, kind="write"
        )
        self._on_added: tuple[Callable[..., object], ...] = ()
        self._on_dropped: tuple[Callable[..., object], ...] = ()
        if catalogue is not None:
            catalogue.spare[self.name] = self.reconsider
        env.on_hooks_changed(self._find_hooks)
        env.register_waits(self)

    def _find_hooks(self) -> None:
        self._on_added = self.env.hooks("file_added")
        self._on_dropped = self.env.hooks("file_dropped")

    def __repr__(self) -> str:
        plural = "" if len(self.files) == 1 else "s"
        return f"<Storage {self.name}: {self.used:g} of {self.capacity:g} bytes used, {len(self.files):,} file{plural}>"

    # ------------------------------------------------------------------ what a model overrides

    def admit(self, file: str, size: float) -> bool:
        """Return whether a file may come in now, given room for it; :meth:`look_again` asks again. Default: always."""
        return True

    def read_bandwidth(self, readers: int) -> float:
        """Return the bytes/s that a number of readers (>= 1) share; default: that of the spec."""
        return self.spec.read_bandwidth

    def write_bandwidth(self, writers: int) -> float:
        """Return the bytes/s that a number of writers (>= 1) share; default: that of the spec."""
        return self.spec.write_bandwidth

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

        >>> Storage(Environment(), StorageSpec(name="disk", capacity=100)).why_not("a", 200.0)
        'file a of 200 bytes is larger than storage disk of 100 bytes'
        """
        if size > self.capacity:
            return f"file {file} of {size:.15g} bytes is larger than storage {self.name} of {self.capacity:.15g} bytes"
        return None

    def why_keep(self, file: str) -> str | None:
        """Return why a file may not be dropped: it is not there, in use, or the last replica; ``None``: it may.

        >>> disk = Storage(Environment(), StorageSpec(name="disk")); disk.add("a", 60, pins=1); disk.why_keep("a")
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
            pins that it has from the beginning

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
            self.used += room
        elif reserved != room:
            raise InputError(f"file {file} has {size:.15g} bytes, but {reserved:,} are reserved in {self.name}")
        if self.catalogue is not None:
            self.catalogue.add(file, self.name, size)
        if reserved is not None:
            del self._reserved[file]
        self.files[file] = size
        if self._order is not None:
            self._order.add(file, size)
            self._loose += room
        for call in self._on_added:
            call(self, file, size, cause)
        for _ in range(pins):
            self._pin(file)
        self.look_again()

    def _pin(self, file: str) -> None:
        pins = self._pins.get(file, 0)
        self._pins[file] = pins + 1
        order = self._order
        if order is not None:
            if not pins:
                order.hold(file)
                if file in self._kept:
                    del self._kept[file]
                else:
                    self._loose -= ceil(self.files[file])
            order.use(file)

    def pin(self, file: str) -> None:
        """Use a file: it stays until :meth:`unpin`; raises :class:`InputError` if it is not here."""
        if file not in self.files:
            raise InputError(f"file {file} is not in storage {self.name}")
        self._pin(file)

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
        size = self.files.pop(file)
        self.used -= ceil(size)
        if self._order is not None:
            self._order.remove(file)
        if self.catalogue is not None:
            self.catalogue.remove(file, self.name)
        for call in self._on_dropped:
            call(self, file, size, cause)

    # ------------------------------------------------------------------ accesses

    def read(self, size: float, call: Callable[[Access], Any] | None = None, about: Any = None) -> Access:
        """Start to read bytes and return the event of the end; ``call(access)`` is called then."""
        return self.reading.start(size, call, about)

    def write(self, size: float, call: Callable[[Access], Any] | None = None, about: Any = None) -> Access:
        """Start to write bytes and return the event of the end; ``call(access)`` is called then."""
        return self.writing.start(size, call, about)

    # ------------------------------------------------------------------ snapshots

    def state(self) -> StorageState:
        """Return the files, the room reserved and waited for, and the accesses as plain values."""
        clock, pasts = self._order.state() if self._order is not None else (0, {})
        files = (HeldFile(name, size, self.pins(name), pasts.get(name)) for name, size in self.files.items())
        rooms = [RoomState(file, float(room)) for file, room in self._reserved.items()]
        rooms += [RoomState(file, claim.size, claim.since) for file, claim in self._claims.items()]
        return StorageState(tuple(files), tuple(rooms), clock, self.reading.state(), self.writing.state())

    def restore(self, state: StorageState, calls: Mapping[str, Callable[[], object]] | None = None) -> None:
        """Put the files and the room of a snapshot into an empty storage; the channels restore their accesses.

        Parameters
        ----------
        state
            of the same instant
        calls
            the function that is called once there is room, for each file that waits for it
        """
        for held in state.files:
            self.files[held.file] = held.size
            self.used += ceil(held.size)
            if self._order is not None:
                self._order.add(held.file, held.size)
                if held.pins:
                    self._order.hold(held.file)
                else:
                    self._loose += ceil(held.size)
            if held.pins:
                self._pins[held.file] = held.pins
        if self._order is not None:
            self._order.restore(state.clock, {held.file: held.past for held in state.files if held.past is not None})
        for room in state.rooms:
            if room.since is None:
                self._reserved[room.file] = ceil(room.size)
                self.used += ceil(room.size)
            else:
                self._claims[room.file] = _Claim(room.size, ceil(room.size), (calls or {})[room.file], room.since)


_MODELS: dict[str, type[Storage]] = {"disk": Storage}


def register_storage(name: str, model: type[Storage]) -> None:
    """Make a class of storages known by a name, which ``StorageSpec(model=)`` and platform files accept from then on.

    Raises
    ------
    InputError
        it is not a subclass of :class:`Storage`

    >>> class Slow(Storage):
    ...     def read_bandwidth(self, readers): return self.spec.read_bandwidth / (1 + 0.5 * (readers - 1))
    >>> register_storage("slow", Slow)
    >>> env = Environment()
    >>> disk = make_storage(env, StorageSpec(name="disk", model="slow", read_bandwidth=30))
    >>> _ = disk.read(30), disk.read(30); env.run(); env.now
    3.0
    """
    _MODELS[name] = model_named(model, Storage, f"model {name!r}")


def make_storage(
    env: Environment, spec: StorageSpec, catalogue: Catalogue | None = None, *, name: str | None = None
) -> Storage:
    """Return the storage of a spec, of the class that its ``model`` names; the other parameters as for the class.

    Raises
    ------
    InputError
        the model or the eviction rule is unknown

    >>> make_storage(Environment(), StorageSpec(capacity=1e12), name="BNL")
    <Storage BNL: 0 of 1e+12 bytes used, 0 files>
    """
    model: type[Storage] = model_named(spec.model, Storage, f"model of storage {name or spec.name}", _MODELS)
    return model(env, spec, catalogue, name=name)
