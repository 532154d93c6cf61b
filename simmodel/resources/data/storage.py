"""Storages: files in limited room, read and written at shared bandwidths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError
from simmodel.platform.models import MODELS
from simmodel.platform.storage import StorageSpec
from simmodel.resources.alarm import Alarm
from simmodel.resources.data.file_holder import FileHolder, HeldFile, RoomState
from simmodel.resources.models import Model, check_model, model_named, read_options
from simmodel.resources.network.shared_channel import Access, ChannelState, SharedChannel

if TYPE_CHECKING:
    from simmodel.resources.data.catalogue import Catalogue

__all__ = ["Call", "Storage", "StorageState", "make_storage", "register_storage"]

Call = Callable[[Access], Any]
"""A function that is called with an access at its end."""


class StorageState(NamedTuple):
    """A storage at one instant: files, room reserved and room waited for, each in order, and the accesses.

    ``clock``: the position in the order of all arrivals and uses; ``own``: the memory of its model, as plain values.
    """

    files: tuple[HeldFile, ...] = ()
    rooms: tuple[RoomState, ...] = ()
    clock: int = 0
    reading: ChannelState = ChannelState()
    writing: ChannelState = ChannelState()
    own: Any = None


class Storage(FileHolder, Model):
    """A place for files, with a capacity and shared bandwidths for reading and writing.

    Room for a file is reserved before it comes, at once or when there is room: claims are served in order. To make
    room, files without pins are evicted in the order of the rule of the spec. The last replica of a file in the
    catalogue stays unless the rule says otherwise. Bytes are counted whole, a begun byte as one.

    A model derives from it and overrides :meth:`admit`, :meth:`read_bandwidth` and :meth:`write_bandwidth`; and
    :meth:`turns` if bandwidths depend on the past. Its options are ``self.options``.

    Parameters
    ----------
    env
        the environment
    spec
        its name, capacity, bandwidths and eviction rule
    catalogue
        the catalogue that registers its files, in which it has its name as site; ``None``: no replica is protected
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

    def __init__(
        self, env: Environment, spec: StorageSpec, catalogue: Catalogue | None = None, *, name: str | None = None
    ) -> None:
        self.spec = spec
        super().__init__(env, name or spec.name or "storage", spec.capacity, spec.evict, catalogue)
        self.options = read_options(type(self), spec.options, f"options of storage {self.name}")
        own_read = type(self).read_bandwidth is not Storage.read_bandwidth
        own_write = type(self).write_bandwidth is not Storage.write_bandwidth
        read = self.read_bandwidth if own_read else spec.read_bandwidth
        write = self.write_bandwidth if own_write else spec.write_bandwidth
        turns = None if type(self).turns is Storage.turns else self.turns
        self.reading = SharedChannel(env, read, self.name, kind="read", turns=turns)
        self.writing = SharedChannel(env, write, self.name, kind="write", turns=turns)

    def read_bandwidth(self, readers: int) -> float:
        """Return the bytes/s that a number of readers (>= 1) share; default: that of the spec."""
        return self.spec.read_bandwidth

    def write_bandwidth(self, writers: int) -> float:
        """Return the bytes/s that a number of writers (>= 1) share; default: that of the spec."""
        return self.spec.write_bandwidth

    def turns(self, channel: SharedChannel, busy: bool) -> None:
        """React to a channel, ``reading`` or ``writing``, whose first access begins now or whose last one has ended.

        When the bandwidth changes while accesses are under way, the model calls ``channel.ask_again()``.
        """

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms of a model, which keep their order in snapshots; default: none."""
        return ()

    # ------------------------------------------------------------------ accesses

    def withhold(self, rate: float) -> None:
        """Keep bytes/s of reading and of writing from the accesses, which share the rest, until the next call."""
        self.reading.withhold(rate)
        self.writing.withhold(rate)

    def read(self, size: float | str, call: Call | None = None, about: Any = None, file: str | None = None) -> Access:
        """Start to read bytes and return the event of the end; ``call(access)`` is called then; ``file``: of which."""
        return self.reading.start(size, call, about)

    def write(self, size: float | str, call: Call | None = None, about: Any = None, file: str | None = None) -> Access:
        """Start to write bytes and return the event of the end; ``call(access)`` is called then; ``file``: of which."""
        return self.writing.start(size, call, about)

    # ------------------------------------------------------------------ snapshots

    def state(self) -> StorageState:
        """Return the files, the room reserved and waited for, and the accesses as plain values."""
        clock, files = self.held()
        channels = self.reading.state(), self.writing.state()
        return StorageState(tuple(files), tuple(self.rooms()), clock, *channels, self.own_state())

    def restore(self, state: StorageState, calls: Mapping[str, Callable[[], object]] | None = None) -> None:
        """Put the files and the room of a snapshot into an empty storage; its channels restore their accesses.

        Parameters
        ----------
        state
            of the same instant
        calls
            the function that is called once there is room, for each file that waits for it
        """
        self.put_back(state.clock, state.files, state.rooms, calls or {})
        if state.own is not None:
            self.restore_own(state.own)


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
    >>> del MODELS["slow"]
    """
    MODELS[name] = model_named(model, Storage, f"model {name!r}")


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
    model: type[Storage] = model_named(spec.model, Storage, f"model of storage {name or spec.name}")
    where = f"storage {name or spec.name}"
    check_model(model, spec, where)
    if model is Storage and spec.options:
        raise InputError(f"must be empty: a disk has none, got {dict(spec.options)!r}", place=f"options of {where}")
    return model(env, spec, catalogue, name=name)
