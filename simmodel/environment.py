"""The environment: SimPy's, with end-of-instant wake-ups, named random streams, observers and a report of who is stuck.

Any SimPy scenario runs in it unchanged.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from numbers import Integral
from threading import Lock
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import simpy
from simpy.core import EmptySchedule, StopSimulation
from simpy.events import NORMAL, PENDING, URGENT, Event, EventPriority, Process

from simmodel.errors import InputError, Stalled

__all__ = [
    "END",
    "SUBMIT",
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

# The order inside one instant, as priorities of SimPy's queue: SimPy's own URGENT 0 and NORMAL 1 come first, so that a
# user's processes act before simmodel's ends, submissions and, last of all, the decisions of the schedulers.
END = EventPriority(2)
SUBMIT = EventPriority(3)
_BOUND = ("process", "timeout", "event", "all_of", "any_of")


class Occurrence:
    """The least that an environment can fire: callbacks, nothing else (a fifth of the cost of an event).

    A subclass with slots sets ``callbacks`` to a tuple of callables; they get the occurrence itself. It cannot fail,
    and no process can wait for it.
    """

    __slots__ = ("callbacks",)
    _ok = True
    _defused = True
    callbacks: Any


class ToCome(NamedTuple):
    """Something that is planned, as its owner lists it for a snapshot; the first three say in which order things come.

    ``at``: the instant (s); ``priority``: within the instant; ``number``: where instant and priority are one; ``what``
    it is, and the names and numbers that it is ``about``.
    """

    at: float
    priority: float
    number: float
    what: str
    about: tuple[Any, ...] = ()


class Call(Occurrence):
    """A call to come (see :meth:`Environment.call_at`), at an instant (s).

    ``what`` says what it is, as (owner, kind, ...), so that whoever planned it can copy what is to come.
    """

    __slots__ = ("at", "call", "number", "priority", "what")

    def __init__(
        self, call: Callable[[], object], at: float, priority: float, number: int, what: tuple[Any, ...] | None
    ) -> None:
        self.call = call
        self.at = at
        self.priority = priority
        self.number = number
        self.what = what
        self.callbacks = _FIRE

    @property
    def pending(self) -> bool:
        """Whether it is still to come."""
        return self.callbacks is not None

    def to_come(self, what: str, *about: Any) -> ToCome:
        """Return what its owner says of it in a list of what is to come."""
        return ToCome(float(self.at), float(self.priority), self.number, what, about)


def _fire(call: Call) -> None:
    call.call()


_FIRE = (_fire,)


F = TypeVar("F", bound=Callable[..., object])


def hook(method: F) -> F:
    """Mark an empty method of a base class as a hook that :meth:`Environment.hooks` skips until it is overridden."""
    method.is_hook = True  # type: ignore[attr-defined]
    return method


def is_hook(method: object) -> bool:
    """Whether a method is an empty one that :func:`hook` marked."""
    return getattr(method, "is_hook", False)


def heard(observer: object, name: str) -> Callable[..., object] | None:
    """Return what an observer does at a hook, ``None`` where it does nothing.

    >>> class Base:
    ...     @hook
    ...     def light_on(self, room): "A light was switched on."
    >>> heard(Base(), "light_on") is heard(Base(), "light_off") is None
    True
    """
    found = getattr(observer, name, None)
    return None if is_hook(found) else found


class Waits(Protocol):
    """Anything that can say who waits for it: one sentence for each waiter."""

    def waiting_report(self) -> Iterable[str]:
        """Yield one sentence for each waiter: who, for what, since when, and who holds it."""
        ...


class _WakeUp:
    """A callback at the end of an instant. It stands beside the event queue, which it would cost twice as much."""

    __slots__ = ("_call", "_env", "_rank", "armed")

    def __init__(self, env: Environment, call: Callable[[], object], rank: int) -> None:
        self._env = env
        self._call = call
        self._rank = rank
        self.armed = False

    def __call__(self) -> None:
        """Ask for the callback at the end of this instant; asking again before it comes changes nothing."""
        if not self.armed:
            self.armed = True
            env = self._env
            heappush(env._at_end, (self._rank, next(env._eid), self))

    def fire(self) -> None:
        """Call back."""
        self.armed = False
        self._call()


class Environment(simpy.Environment):
    """A ``simpy.Environment`` for models of computing systems.

    Parameters
    ----------
    initial_time
        the time at which the simulation starts, in seconds
    seed
        the seed of all random streams; ``None`` draws one from the operating system (kept in ``env.seed``)

    >>> env = Environment(seed=0)
    >>> def clock(env):
    ...     yield env.timeout(3)
    ...     return env.now
    >>> env.run(env.process(clock(env)))
    3
    """

    def __init__(self, initial_time: float = 0, seed: int | None = 0) -> None:
        given: Any = seed
        if given is not None and (not isinstance(given, Integral) or given < 0):
            raise InputError(f"seed: a whole number from 0 on, or None, expected, found {seed!r}")
        self.seed: int = (
            int(seed) if seed is not None else int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        )
        self._streams: dict[str, np.random.Generator] = {}
        self._observers: list[object] = []
        self._hooks: dict[str, tuple[Callable[..., object], ...]] = {}
        self._hook_listeners: list[Callable[[], object]] = []
        self._waits: list[Waits] = []
        self._withdrawn = 0
        self._at_end: list[tuple[int, int, _WakeUp]] = []  # asked for at the end of this instant, a heap
        self._leaving = False
        super().__init__(initial_time)
        # SimPy binds early what stands in type(self) alone; a subclass would pay for each look-up (15 %).
        for name in _BOUND:
            setattr(self, name, getattr(self, name))

    # ------------------------------------------------------------------ the end of an instant

    def at_instant_end(self, call: Callable[[], object], rank: int = 0) -> _WakeUp:
        """Return a function that asks for ``call()`` after every other event of the instant at which it is called.

        Asking twice in one instant gives one call; when the call itself brings events of the same instant, asking
        again gives another. Callers that share an instant are called by ``rank``, then in the order they asked.

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
        """Have :meth:`run` return ``None`` after this callback of :meth:`at_instant_end`; the next ``run`` goes on.

        The clock stays, and what else was asked for at the end of this instant is still to come.

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
        """Return an event that happens at an instant (s) that is not past, to the last digit of it.

        >>> env = Environment(initial_time=0.1)
        >>> env.run(env.event_at(0.3)); env.now
        0.3
        """
        event = Event(self)
        event._ok = True
        event._value = None
        heappush(self._queue, (at, NORMAL, next(self._eid), event))
        return event

    def call_at(
        self, at: float, call: Callable[[], object], priority: float = END, what: tuple[Any, ...] | None = None
    ) -> Call:
        """Call at an instant (s), or now where that is past; what is returned can be withdrawn.

        ``what`` is kept with it: (owner, kind, ...), for snapshots.

        >>> env = Environment()
        >>> _ = env.call_at(5, lambda: print("called at", env.now)); env.run()
        called at 5
        """
        if at < self._now:
            at = self._now
        number = next(self._eid)
        planned = Call(call, at, priority, number, what)
        heappush(self._queue, (at, priority, number, planned))  # type: ignore[misc]
        return planned

    def plan(self, occurrence: Occurrence, at: float, priority: float) -> int:
        """Have an occurrence happen at an instant (s) that is not past; return its number in the order of planning.

        >>> class Alarm(Occurrence):
        ...     callbacks = (lambda alarm: print("alarm"),)
        >>> env = Environment(); _ = env.plan(Alarm(), 5, END); env.run()
        alarm
        """
        number = next(self._eid)
        heappush(self._queue, (at, priority, number, occurrence))  # type: ignore[misc]
        return number

    def withdraw(self, occurrence: Occurrence | Event) -> None:
        """Take a scheduled occurrence back: it will not fire, and the clock will not stop at its time.

        It costs O(1) on average: what was withdrawn is swept out of the queue before it is half of it.

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
        """Return the time of the next event, infinity where there is none."""
        self._skip_withdrawn()
        return self._now if self._at_end else super().peek()

    def step(self) -> None:
        """Process the next event; raises ``simpy.core.EmptySchedule`` where there is none."""
        self._skip_withdrawn()
        if self._at_end and super().peek() > self._now:
            heappop(self._at_end)[2].fire()
        else:
            super().step()

    # ------------------------------------------------------------------ random streams

    def rng(self, name: str) -> np.random.Generator:
        """Return the random stream of this name; the same one at each call.

        Streams are spawned from the seed by name, so that one more stream changes no other.

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
        """Add an observer: an object of which each method named like a hook is called when that happens.

        Hooks exist for what systems announce: see :class:`~simmodel.scheduling.observer.Observer`, the base class that
        lists them. Any object with methods of these names will do.

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
        """Remove an observer; raises ``ValueError`` where it is not one."""
        self._observers.remove(observer)
        self._hooks.clear()
        for listener in self._hook_listeners:
            listener()

    def hooks(self, name: str) -> tuple[Callable[..., object], ...]:
        """Return what observers have for a hook: a tuple that is empty, and false, where nobody listens."""
        found = self._hooks.get(name)
        if found is None:
            calls = (heard(observer, name) for observer in self._observers)
            found = tuple(call for call in calls if call is not None)
            self._hooks[name] = found
        return found

    def on_hooks_changed(self, listener: Callable[[], object]) -> None:
        """Call ``listener()`` now and whenever observers change, so that a system can keep its hooks at hand."""
        self._hook_listeners.append(listener)
        listener()

    # ------------------------------------------------------------------ who is stuck

    def register_waits(self, resource: Waits) -> None:
        """Have a resource asked who waits for it, when events run out."""
        self._waits.append(resource)

    def waiting_report(self) -> list[str]:
        """List one sentence for each waiter that the registered resources know."""
        return [line for resource in self._waits for line in resource.waiting_report()]

    def _stuck_processes(self) -> list[str]:
        """List the processes of this environment that are alive; found only when asked, so that it costs nothing."""
        gc.unfreeze()
        alive = [
            thing
            for thing in gc.get_objects()
            if isinstance(thing, Process) and thing.env is self and thing._value is PENDING
        ]
        return sorted(f"process {process.name} waits for {_describe(process.target)}" for process in alive)

    # ------------------------------------------------------------------ the run loop

    def run(self, until: float | Event | None = None) -> Any:
        """Run until an event or a time, or until no events are left; as ``simpy.Environment.run``.

        Raises
        ------
        Stalled
            events ran out while work waits that a resource of simmodel knows of, or before ``until`` happened (then
            with the processes that are alive); a ``RuntimeError``, as SimPy raises there
        """
        own = until is not None and not hasattr(until, "callbacks")  # live work is an event to type checkers alone
        event = cast("Event | None", self._until(cast("float", until)) if own else until)
        if event is not None:
            if event.processed:
                return event.value
            event.callbacks.append(StopSimulation.callback)
        self._leaving = False
        try:
            if getattr(self.step, "__func__", None) is Environment.step:  # no subclass and nobody's tracing replaced it
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
                raise Stalled(f"no events are left at {self._now}, and {len(waiters)} wait:", tuple(waiters)) from None
        return None

    def _forget_stop(self, until: Event, own: bool) -> None:
        """Take back what would end a run that has been left before its end."""
        if own:
            self.withdraw(until)
        elif until.callbacks is not None:
            until.callbacks.remove(StopSimulation.callback)

    def _until(self, instant: float) -> Event:
        """Return an event that comes before all others of an instant."""
        at = instant if isinstance(instant, int) else float(instant)
        if not at > self._now:  # nor nan
            raise ValueError(f"until ({at}) must be greater than the current simulation time")
        event = Event(self)
        event._ok = True
        event._value = None
        self.schedule(event, URGENT, at - self._now)
        return event

    def _loop(self) -> None:
        # SimPy's step() inlined: the call costs as much as the rest of it.
        queue = self._queue
        at_end = self._at_end
        pop = heappop
        while queue or at_end:
            if at_end and not (queue and queue[0][0] <= self._now):
                pop(at_end)[2].fire()
                if self._leaving:
                    return
                continue
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
            if not event._ok and not hasattr(event, "_defused"):
                exc = type(event._value)(*event._value.args)
                exc.__cause__ = event._value
                raise exc
        raise EmptySchedule


def _describe(event: Event | None) -> str:
    """Name the event that a process waits for; an event with a ``describe()`` of its own says more."""
    if event is None:
        return "nothing"
    described = getattr(event, "describe", event._desc)
    return str(described())


class RealtimeEnvironment(Environment):
    """An environment that keeps pace with the wall clock, as ``simpy.rt.RealtimeEnvironment``.

    Parameters
    ----------
    initial_time, seed
        as for :class:`Environment`
    factor
        wall-clock seconds for each simulated second
    strict
        raise a ``RuntimeError`` where an event comes more than ``factor`` seconds late

    >>> env = RealtimeEnvironment(factor=0.001)
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
        """Wall-clock seconds for each simulated second."""
        return self._factor

    @property
    def strict(self) -> bool:
        """Whether an event that comes too late is an error."""
        return self._strict

    def sync(self) -> None:
        """Take the present wall-clock time as the time at which the simulation started."""
        self.real_start = monotonic()

    def step(self) -> None:
        """Process the next event once its wall-clock time has come.

        Raises ``RuntimeError`` in strict mode where that time passed more than ``factor`` seconds ago.
        """
        self._skip_withdrawn()
        if self.peek() == float("inf"):
            raise EmptySchedule
        due = self.real_start + (self.peek() - self.env_start) * self._factor
        late = monotonic() - due
        if self._strict and late > self._factor:
            raise RuntimeError(f"Simulation too slow for real time ({late:.3f}s).")
        while (left := due - monotonic()) > 0:
            sleep(left)
        super().step()


class _Quiet:
    """How many blocks want the collector quiet, and what it was set to before the first."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.blocks = 0
        self.thresholds = gc.get_threshold()


_quiet = _Quiet()


@contextmanager
def quiet_garbage_collector() -> Iterator[None]:
    """Freeze what exists and collect rarely inside the block; a fifth of a large run goes to the collector otherwise.

    Both the thresholds and the freeze are undone at the end: of the last, where blocks lie in one another or run in
    several threads. ``simulate`` uses it; a library user's own loop does not unless asked.

    >>> with quiet_garbage_collector():
    ...     gc.get_threshold()[0]
    200000
    """
    with _quiet.lock:
        _quiet.blocks += 1
        if _quiet.blocks == 1:
            _quiet.thresholds = gc.get_threshold()
            gc.freeze()
            gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        with _quiet.lock:
            _quiet.blocks -= 1
            if _quiet.blocks == 0:
                gc.set_threshold(*_quiet.thresholds)
                gc.unfreeze()
