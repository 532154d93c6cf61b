"""SimPy's environment with end-of-instant callbacks, named random streams, observers and a report of stalled waiters.

Any SimPy scenario runs in it unchanged.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from numbers import Integral
from threading import RLock
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import simpy
from simpy.core import EmptySchedule, StopSimulation
from simpy.events import NORMAL, PENDING, URGENT, Event, EventPriority, Process

from simmodel.foundation.errors import InputError, Stalled, StateError
from simmodel.foundation.tracebacks import note, shorten
from simmodel.foundation.units import seconds_in

__all__ = [
    "END",
    "GIVE_UP",
    "NEVER",
    "SUBMIT",
    "WAKE_UP",
    "Call",
    "Environment",
    "Occurrence",
    "RealtimeEnvironment",
    "ToCome",
    "Waits",
    "heard",
    "hook",
    "is_hook",
    "quiet_garbage_collector",
]

# The order within one instant, as priorities of SimPy's event queue. SimPy's own URGENT (0) and NORMAL (1) come first:
# user processes act before simmodel's ends, then come submissions and, last, the decisions of the schedulers.
END = EventPriority(2)
SUBMIT = EventPriority(3)
NEVER = sys.float_info.max
"""An instant (s) at or after which nothing happens: where work without an expected end ends."""
WAKE_UP = ("wake-up",)
"""``what`` of a planned call that only wakes a scheduler: it does not keep a simulation going whose work has ended."""
GIVE_UP = ("give up",)
"""``what`` of a planned call that cancels work, which may be waiting for that alone."""
_BOUND = ("process", "timeout", "event", "all_of", "any_of", "schedule", "plan")


class Occurrence:
    """A minimal event: callbacks and nothing else, at a fifth of the cost of an event.

    A subclass with slots sets ``callbacks`` to a tuple of callables, which are called with the occurrence. An
    occurrence cannot fail, and no process can wait for it.
    """

    __slots__ = ("callbacks",)
    _ok = True
    _defused = True
    callbacks: Any


class ToCome(NamedTuple):
    """A planned event as its owner lists it for a snapshot; the first three fields define the order of events.

    ``at``: the instant (s); ``priority``: the order within an instant; ``number``: the order within a priority;
    ``what``: its kind; ``about``: the names and numbers that identify it.
    """

    at: float
    priority: float
    number: float
    what: str
    about: tuple[Any, ...] = ()


class Call(Occurrence):
    """A call planned for an instant in seconds (see :meth:`Environment.call_at`).

    ``what`` identifies it as (owner, kind, ...), so that its owner can include it in a snapshot.
    """

    __slots__ = ("at", "call", "number", "priority", "what")

    def __init__(
        self, call: Callable[[], object], at: float, priority: float, what: tuple[Any, ...] | None = None
    ) -> None:
        self.call = call
        self.at = at
        self.priority = priority
        self.number = 0  # in the order of events, once it is planned
        self.what = what
        self.callbacks = _FIRE

    @property
    def pending(self) -> bool:
        """Whether it has neither fired nor been withdrawn."""
        return self.callbacks is not None

    def to_come(self, what: str, *about: Any) -> ToCome:
        """Return the call as its owner lists it among the planned events of a snapshot."""
        return ToCome(float(self.at), float(self.priority), self.number, what, about)


def _fire(call: Call) -> None:
    call.call()


_FIRE = (_fire,)


F = TypeVar("F", bound=Callable[..., object])


def hook(method: F) -> F:
    """Mark an empty base class method as a hook, which :meth:`Environment.hooks` skips unless overridden."""
    method.is_hook = True  # type: ignore[attr-defined]
    return method


def is_hook(method: object) -> bool:
    """Whether a method is an empty hook, marked by :func:`hook`."""
    return getattr(method, "is_hook", False)


def heard(observer: object, name: str) -> Callable[..., object] | None:
    """Return an observer's method for a hook, or ``None`` if it does not implement the hook.

    >>> class Base:
    ...     @hook
    ...     def light_on(self, room): "A light was switched on."
    >>> heard(Base(), "light_on") is heard(Base(), "light_off") is None
    True
    """
    found = getattr(observer, name, None)
    return None if is_hook(found) else found


class Waits(Protocol):
    """A resource that can report who waits for it."""

    def waiting_report(self) -> Iterable[str]:
        """Yield one sentence for each waiter: who, for which resource, since when, and who holds it."""
        ...


class _WakeUp:
    """A callback at the end of an instant, kept outside the event queue, which would cost twice as much."""

    __slots__ = ("_env", "_rank", "armed", "call")

    def __init__(self, env: Environment, call: Callable[[], object], rank: float) -> None:
        self._env = env
        self.call = call
        self._rank = rank
        self.armed = False

    def __call__(self) -> None:
        """Request the callback at the end of this instant; repeated requests before it fires have no effect."""
        if not self.armed:
            self.armed = True
            env = self._env
            heappush(env._at_end, (self._rank, next(env._eid), self))

    def fire(self) -> None:
        self.armed = False
        self.call()


class Environment(simpy.Environment):
    """A ``simpy.Environment`` for models of computing systems.

    Parameters
    ----------
    initial_time
        the time at which the simulation starts, in the unit of time
    seed
        the seed of all random streams; ``None`` draws one from the operating system (see ``env.seed``)
    unit
        the unit of time of the model, such as ``"min"``: summaries, plots and pages of what it records count in it;
        numbers stay those of the model. Networks and policies that name seconds count one of it as a second

    Raises
    ------
    InputError
        the seed is not a whole number >= 0, or the unit is not one of time

    >>> env = Environment(seed=0)
    >>> def clock(env):
    ...     yield env.timeout(3)
    ...     return env.now
    >>> env.run(env.process(clock(env)))
    3
    """

    def __init__(self, initial_time: float = 0, seed: int | None = 0, *, unit: str = "s") -> None:
        seconds_in(unit)  # raises if it is none
        self.unit = unit
        given: Any = seed
        if given is not None and (not isinstance(given, Integral) or given < 0):
            raise InputError(f"must be a whole number >= 0, or None, got {seed!r}", place="seed")
        self.seed: int = (
            int(seed) if seed is not None else int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        )
        self._streams: dict[str, np.random.Generator] = {}
        self._observers: list[object] = []
        self._hooks: dict[str, tuple[Callable[..., object], ...]] = {}
        self._hook_listeners: list[Callable[[], object]] = []
        self._waits: list[Waits] = []
        self._other: Any = None  # the entry of an event to come that is no wake-up of a scheduler
        self._withdrawn = 0
        self._at_end: list[tuple[float, int, _WakeUp]] = []  # a heap of requested callbacks
        self._leaving = False
        super().__init__(initial_time)
        # SimPy binds only the event classes in type(self) itself; without this a subclass would be 15 % slower.
        for name in _BOUND:
            setattr(self, name, getattr(self, name))

    # ------------------------------------------------------------------ the end of an instant

    def at_instant_end(self, call: Callable[[], object], rank: float = 0) -> _WakeUp:
        """Return a function that, when called, requests ``call()`` after all other events of the current instant.

        Repeated requests in one instant result in one call, until it has been made: if the call schedules further
        events at the same instant, these can request another. Calls of one instant are made by ``rank``, then in the
        order of their requests.

        Parameters
        ----------
        call
            a function without arguments
        rank
            0 for a broker, 1 for clusters, 2 for machines; lower is earlier

        >>> env = Environment()
        >>> decide = env.at_instant_end(lambda: print("decided at", env.now))
        >>> def work(env):
        ...     yield env.timeout(1)
        ...     decide(); decide()
        ...     yield env.timeout(0)
        ...     print("last event at", env.now)
        >>> _ = env.process(work(env)); env.run()
        last event at 1
        decided at 1
        """
        return _WakeUp(self, call, rank)

    def leave(self) -> None:
        """Make :meth:`run` return ``None`` after this callback of :meth:`at_instant_end`; the next ``run`` continues.

        The clock does not move, and the other callbacks requested at the end of this instant remain pending.

        >>> env = Environment()
        >>> decide = env.at_instant_end(env.leave)
        >>> _ = env.call_at(2, decide); _ = env.call_at(3, lambda: print("called at", env.now))
        >>> env.run(); env.now
        2
        >>> env.run()
        called at 3
        """
        self._leaving = True

    def event_at(self, at: float) -> Event:
        """Return an event at exactly this instant (s), which must not be past.

        >>> env = Environment(initial_time=0.1)
        >>> env.run(env.event_at(0.3)); env.now
        0.3
        """
        event = Event(self)
        event._ok = True
        event._value = None
        self.plan(event, at, NORMAL)
        return event

    def call_at(
        self, at: float, call: Callable[[], object], priority: float = END, what: tuple[Any, ...] | None = None
    ) -> Call:
        """Schedule ``call()`` at an instant (s), or now if that is past; return the planned call, for :meth:`withdraw`.

        ``what`` identifies the call in snapshots, as (owner, kind, ...).

        >>> env = Environment()
        >>> _ = env.call_at(5, lambda: print("called at", env.now)); env.run()
        called at 5
        """
        if at < self._now:
            at = self._now
        planned = Call(call, at, priority, what)
        planned.number = self.plan(planned, at, priority)
        return planned

    def schedule(self, event: Event, priority: float = NORMAL, delay: float = 0) -> None:
        """Schedule an event after a delay (s), as ``simpy.Environment.schedule``.

        Raises
        ------
        ValueError
            the delay is negative or nan: SimPy would put it into its queue and break the order of all events

        >>> Environment().timeout(float("nan"))
        Traceback (most recent call last):
        ...
        ValueError: an event must be scheduled at an instant >= now (0 s), got nan
        """
        now = self._now
        at = now + delay
        if not at >= now:
            raise self._refused(at)
        heappush(self._queue, (at, priority, next(self._eid), event))  # type: ignore[misc]

    def _refused(self, at: float) -> ValueError:
        return ValueError(f"an event must be scheduled at an instant >= now ({self._now:g} s), got {at!r}")

    def plan(self, occurrence: Occurrence | Event, at: float, priority: float) -> int:
        """Schedule an occurrence at an instant (s) that is not past; return its sequence number.

        The entry for whatever knows an instant instead of a delay: the instant is met exactly. What is planned for
        infinity never happens.

        Raises
        ------
        ValueError
            the instant is past or nan

        >>> class Alarm(Occurrence):
        ...     callbacks = (lambda alarm: print("alarm"),)
        >>> env = Environment(); _ = env.plan(Alarm(), 5, END); env.run()
        alarm
        """
        if not self._now <= at <= NEVER:
            if at > NEVER:
                return next(self._eid)
            raise self._refused(at)
        number = next(self._eid)
        heappush(self._queue, (at, priority, number, occurrence))  # type: ignore[misc]
        return number

    def happen(self, event: Event, value: object = None) -> None:
        """Let an event succeed as the last act of the current one: at once if nothing precedes it, else in its turn.

        All callbacks run in the order in which ``event.succeed(value)`` would run them, without passing the queue. For
        events inside a resource: no run ends with one.

        >>> env = Environment(); event = env.event()
        >>> event.callbacks.append(lambda event: print("happened at", env.now))
        >>> _ = env.call_at(5, lambda: env.happen(event)); env.run()
        happened at 5
        """
        event._ok = True
        event._value = value
        queue = self._queue
        if queue and queue[0][0] <= self._now and queue[0][1] <= NORMAL:
            self.schedule(event)
            return
        callbacks: Any = event.callbacks
        event.callbacks = None  # type: ignore[assignment]
        for callback in callbacks:
            callback(event)

    def put_in_order(self, occurrences: Iterable[Occurrence | Event]) -> list[int]:
        """Have scheduled occurrences of one instant and priority happen in this order; return their new numbers.

        For restored systems, whose parts plan their events one after another.

        >>> env = Environment(); late, early = (env.call_at(5, lambda word=word: print(word)) for word in ("b", "a"))
        >>> _ = env.put_in_order([early, late]); env.run()
        a
        b
        """
        numbers = {id(each): next(self._eid) for each in occurrences}
        queue: list[Any] = self._queue
        queue[:] = [(at, priority, numbers.get(id(each), number), each) for at, priority, number, each in queue]
        heapify(queue)
        return list(numbers.values())

    def withdraw(self, occurrence: Occurrence | Event) -> None:
        """Withdraw a scheduled occurrence: it does not fire, and the clock does not stop at its time.

        The amortised cost is O(1): withdrawn entries are removed from the queue before they make up half of it.

        >>> class Alarm(Occurrence):
        ...     callbacks = (print,)
        >>> env = Environment(); alarm = Alarm()
        >>> env.schedule(alarm, END, 10)
        >>> env.withdraw(alarm); env.run(); env.now
        0
        """
        occurrence.callbacks = None
        self._withdrawn += 1
        if self._withdrawn > 64 and 2 * self._withdrawn > len(self._queue):
            # In place: the run loop holds the same list.
            self._queue[:] = [entry for entry in self._queue if entry[3].callbacks is not None]
            heapify(self._queue)
            self._withdrawn = 0

    def _skip_withdrawn(self) -> None:
        queue: list[Any] = self._queue
        while queue and queue[0][3].callbacks is None:
            heappop(queue)
            self._withdrawn -= 1

    def peek(self) -> float:
        """Return the time of the next event (s), infinity if there are no events."""
        self._skip_withdrawn()
        return self._now if self._at_end else super().peek()

    @property
    def only_wake_ups(self) -> bool:
        """Whether wake-ups of schedulers are the only events left before infinity; O(events) if none is known."""
        if self._other is None or self._other[0] <= self._now or self._other[3].callbacks is None:
            left: Any = (each for each in self._queue if each[0] < NEVER and each[3].callbacks is not None)
            others = (each for each in left if type(each[3]) is not Call or each[3].what is not WAKE_UP)
            self._other = next(others, None)
        return self._other is None

    def only(self, *kinds: tuple[Any, ...]) -> bool:
        """Whether planned calls of these kinds (their ``what``) are the only events left before infinity; O(events).

        >>> env = Environment(); _ = env.call_at(5, print, what=WAKE_UP)
        >>> env.only(WAKE_UP, GIVE_UP), env.only(GIVE_UP)
        (True, False)
        """
        left: Any = (each for each in self._queue if each[0] < NEVER and each[3].callbacks is not None)
        return all(type(each[3]) is Call and each[3].what in kinds for each in left)

    def step(self) -> None:
        """Process the next event; raises ``simpy.core.EmptySchedule`` if there are no events."""
        self._skip_withdrawn()
        if self._at_end and super().peek() > self._now:
            heappop(self._at_end)[2].fire()
        else:
            super().step()

    def advance(self, to: float) -> None:
        """Process all events up to an instant (s), its own included, and go on to it: for times that come from outside.

        :meth:`run` would look after the garbage collector each time, which costs more than an event.

        >>> env = Environment(); _ = env.call_at(5, lambda: print("called at", env.now))
        >>> env.advance(5); env.advance(7.5); env.now
        called at 5
        7.5
        """
        while self.peek() <= to:
            self.step()
        self._now = max(self._now, to)

    # ------------------------------------------------------------------ random streams

    def rng(self, name: str) -> np.random.Generator:
        """Return the random stream of this name, the same generator at each call.

        Streams are spawned from the seed by name: an additional stream does not change the others.

        >>> a = Environment(seed=0).rng("arrivals").integers(1000, size=3)
        >>> env = Environment(seed=0); _ = env.rng("failures").random(5)
        >>> bool((env.rng("arrivals").integers(1000, size=3) == a).all())
        True
        """
        stream = self._streams.get(name)
        if stream is None:
            import hashlib

            words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype="<u4")
            key = tuple(int(word) for word in words)
            stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))
            self._streams[name] = stream
        return stream

    # ------------------------------------------------------------------ observers

    def observe(self, observer: object) -> None:
        """Add an observer: each of its methods named like a hook is called when the hook fires.

        :class:`~simmodel.scheduling.observer.Observer`, the base class, documents the hooks of the systems. An observer
        may be any object that has methods of these names.

        >>> class Watch:
        ...     def light_on(self, room): print(room)
        >>> env = Environment(); env.observe(Watch())
        >>> for call in env.hooks("light_on"): call("kitchen")
        kitchen
        """
        self._observers.append(observer)
        self._hooks.clear()
        for listener in self._hook_listeners:
            listener()

    def unobserve(self, observer: object) -> None:
        """Remove an observer; raises ``ValueError`` if it was not added."""
        self._observers.remove(observer)
        self._hooks.clear()
        for listener in self._hook_listeners:
            listener()

    def hooks(self, name: str) -> tuple[Callable[..., object], ...]:
        """Return the observers' methods for a hook; an empty tuple if no observer implements it."""
        found = self._hooks.get(name)
        if found is None:
            calls = (heard(observer, name) for observer in self._observers)
            found = tuple(call for call in calls if call is not None)
            self._hooks[name] = found
        return found

    def on_hooks_changed(self, listener: Callable[[], object]) -> None:
        """Call ``listener()`` now and whenever observers change, so that a system can cache its hooks."""
        self._hook_listeners.append(listener)
        listener()

    def forget(self, *parts: object) -> None:
        """Forget parts of a system that has ended: as resources that report waiters, and as owners of listeners."""
        self._waits = [each for each in self._waits if not _is_among(each, parts)]
        self._hook_listeners = [
            each for each in self._hook_listeners if not _is_among(getattr(each, "__self__", None), parts)
        ]

    # ------------------------------------------------------------------ who is stuck

    def register_waits(self, resource: Waits) -> None:
        """Register a resource to report its waiters if the events run out."""
        self._waits.append(resource)

    def waiting_report(self) -> list[str]:
        """Return one sentence for each waiter of the registered resources."""
        return [line for resource in self._waits for line in resource.waiting_report()]

    def _stuck_processes(self) -> list[str]:
        """Describe the live processes of this environment, found through the garbage collector: no bookkeeping."""
        gc.unfreeze()
        alive = [
            thing
            for thing in gc.get_objects()
            if isinstance(thing, Process) and getattr(thing, "env", None) is self and thing._value is PENDING
        ]
        return sorted(f"process {process.name} waits for {_describe(process.target)}" for process in alive)

    # ------------------------------------------------------------------ the run loop

    def run(self, until: float | Event | None = None) -> Any:
        """Run until an event or a time, or until no events are left, as ``simpy.Environment.run``.

        Raises
        ------
        Stalled
            events ran out while a resource of simmodel has waiters, or before ``until`` happened (then it lists the
            live processes too); a ``RuntimeError``, as in SimPy
        """
        own = until is not None and not hasattr(until, "callbacks")  # live work is an Event for type checkers only
        event = cast("Event | None", self._until(cast("float", until)) if own else until)
        if event is not None:
            if event.processed:
                return event.value
            event.callbacks.append(StopSimulation.callback)
        self._leaving = False
        try:
            with quiet_garbage_collector():
                if getattr(self.step, "__func__", None) is Environment.step:  # step() is not overridden or traced
                    self._loop()
                else:
                    while not self._leaving:
                        self.step()
            if event is not None:
                self._forget_stop(event, own)
        except StopSimulation as stop:
            return stop.args[0]
        except EmptySchedule:
            waiters = self.waiting_report()
            if event is not None:
                waiters += self._stuck_processes()
                message = f'No scheduled events left but "until" event was not triggered: {event}'
                raise Stalled(message, tuple(waiters)) from None
            if waiters:
                raise Stalled(f"no events left at {self._now}, {len(waiters)} still wait:", tuple(waiters)) from None
        except Exception as error:
            note(error, error.__traceback__, self._now)
            shorten(error, error.__traceback__)
            raise
        return None

    def _forget_stop(self, until: Event, own: bool) -> None:
        """Remove the stop of a run that :meth:`leave` ended early."""
        if own:
            self.withdraw(until)
        elif until.callbacks is not None:
            until.callbacks.remove(StopSimulation.callback)

    def _until(self, instant: float) -> Event:
        """Return an event that precedes all others of an instant."""
        at = instant if isinstance(instant, int) else float(instant)
        if not at > self._now:  # also refuses nan
            raise InputError(f"until ({at}) must be greater than the current simulation time")
        event = Event(self)
        event._ok = True
        event._value = None
        if at > NEVER:
            self.schedule(event, URGENT, at)
        else:
            self.plan(event, at, URGENT)  # a delay would be rounded
        return event

    def _loop(self) -> None:
        # SimPy's step() inlined: the call would double its cost.
        queue = self._queue
        at_end = self._at_end
        pop = heappop
        while True:
            if at_end:
                if not queue or queue[0][0] > self._now:
                    wake = pop(at_end)[2]  # wake.fire(), inlined
                    wake.armed = False
                    wake.call()
                    if self._leaving:
                        return
                    continue
            elif not queue:
                raise EmptySchedule
            now, _, _, event = pop(queue)
            callbacks: Any = event.callbacks
            if callbacks is None:
                self._withdrawn -= 1
                continue
            self._now = now
            event.callbacks = None  # type: ignore[assignment]
            try:
                for callback in callbacks:
                    callback(event)
            except StopSimulation:
                event.callbacks = list(callbacks[callbacks.index(callback) + 1 :])
                self.schedule(event, EventPriority(-1))
                raise
            if type(callbacks) is list and not event._ok and not hasattr(event, "_defused"):  # occurrences cannot fail
                exc = type(event._value)(*event._value.args)
                exc.__cause__ = event._value
                for note in getattr(event._value, "__notes__", ()):
                    exc.add_note(note)
                raise exc

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.now:g} s, seed {self.seed}>"


def _describe(event: Event | None) -> str:
    """Name the event that a process waits for, by its ``describe()`` if it has one."""
    if event is None:
        return "nothing"
    described = getattr(event, "describe", event._desc)
    return str(described())


class RealtimeEnvironment(Environment):
    """An environment synchronised with the wall clock, as ``simpy.rt.RealtimeEnvironment``.

    Parameters
    ----------
    initial_time, seed
        as for :class:`Environment`
    factor
        wall-clock seconds per simulated second
    strict
        raise a ``RuntimeError`` if an event is more than ``factor`` seconds late

    >>> env = RealtimeEnvironment(factor=0.001, strict=False)
    >>> _ = env.timeout(5); env.run(); env.now
    5
    """

    def __init__(self, initial_time: float = 0, factor: float = 1.0, strict: bool = True, seed: int | None = 0) -> None:
        super().__init__(initial_time, seed)
        self.env_start = initial_time
        self.real_start = monotonic()
        self._factor = factor
        self._strict = strict

    @property
    def factor(self) -> float:
        """Wall-clock seconds per simulated second."""
        return self._factor

    @property
    def strict(self) -> bool:
        """Whether a late event is an error."""
        return self._strict

    def sync(self) -> None:
        """Set the wall-clock start of the simulation to the current time."""
        self.real_start = monotonic()

    def step(self) -> None:
        """Wait for the wall-clock time of the next event and process it.

        Raises ``RuntimeError`` in strict mode if that time passed more than ``factor`` seconds ago.
        """
        self._skip_withdrawn()
        if self.peek() == float("inf"):
            raise EmptySchedule
        due = self.real_start + (self.peek() - self.env_start) * self._factor
        late = monotonic() - due
        if self._strict and late > self._factor:
            raise StateError(f"Simulation too slow for real time ({late:.3f}s).")
        while (left := due - monotonic()) > 0:
            sleep(left)
        super().step()


class _Quiet:
    """The number of active ``quiet_garbage_collector`` blocks, and the thresholds before the first."""

    def __init__(self) -> None:
        self.lock = RLock()  # the collector itself may end a block, that of a simulation that nobody uses any more
        self.blocks = 0
        self.thresholds: tuple[int, int, int] | None = None  # none: no block is active
        self.pending = 0  # about how many objects were frozen young: the collector forgets to count them
        self.limit = _MANY


_RARE = (200_000, 50, 100)
_MANY = 50_000
_quiet = _Quiet()


def _is_among(part: object, parts: tuple[object, ...]) -> bool:
    return any(part is each for each in parts)


@contextmanager
def quiet_garbage_collector() -> Iterator[None]:
    """Freeze the existing objects and collect rarely inside the block; the collector takes a fifth of a large run.

    The end of the block undoes both; of nested or concurrent blocks, the end of the last. Garbage of many short
    blocks is collected before one of the next. ``env.run()`` uses it for its events, ``simulate`` for building and
    reading too.

    >>> with quiet_garbage_collector():
    ...     gc.get_threshold()[0]
    200000
    """
    with _quiet.lock:
        _quiet.blocks += 1
        if _quiet.thresholds is None:
            _quiet.thresholds = gc.get_threshold()
            _quiet.pending += 100 + gc.get_count()[0]
            many = _quiet.pending > _quiet.limit and gc.isenabled()
            if many:
                gc.collect()
            gc.freeze()
            if many:
                _quiet.pending, _quiet.limit = 0, max(_MANY, gc.get_freeze_count() // 4)
            gc.set_threshold(*_RARE)
    try:
        yield
    finally:
        with _quiet.lock:
            _quiet.blocks -= 1
            if _quiet.blocks == 0 and _quiet.thresholds is not None:
                gc.set_threshold(*_quiet.thresholds)
                gc.unfreeze()
                _quiet.thresholds = None
