"""Processes and calls of models that go on for ever, whether or not there is work: simulations end without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from simpy.events import Event, Process

from simmodel.environment import NEVER, WAKE_UP, Call
from simmodel.foundation.errors import Stalled
from simmodel.resources.alarm import Alarm
from simmodel.resources.models import Model
from simmodel.resources.pools.pool import Pool
from simmodel.scheduling.observer import Observer
from simmodel.scheduling.protocol import Policy
from simmodel.systems.system import Live, System

if TYPE_CHECKING:
    from simmodel.environment import Environment

__all__ = ["Patience", "processes_of", "ticking"]

_PATIENCE = 100_000
"""Events of models alone after which work that waits is said to wait for ever."""
_OWNERS = (Pool, System, Policy, Observer)
_Resumed: TypeAlias = "Process | Callable[..., object]"


def processes_of(env: Environment) -> frozenset[Process]:
    """Return the processes of code of users that planned events resume."""
    resumed = (each for event in _planned(env) for each in _resumed(event))
    return frozenset(each for each in resumed if isinstance(each, Process) and _by_user(each))


def ticking(env: Environment, built: Collection[Process] = ()) -> tuple[list[str], bool]:
    """Return the processes and calls of models that are planned, by name, and whether anything else is.

    A process is of a model if it is among the ``built``, or if it runs code of a user with a custom model among its
    variables, or a method of a custom pool, system, policy or observer. So is a call.
    """
    names: dict[str, None] = {}
    others = False
    for event in _planned(env):
        resumed = list(_resumed(event))  # of no one: nothing will happen
        if all(each in built or _by_model(each) for each in resumed):
            names |= dict.fromkeys(_name(each) for each in resumed)
        else:
            others = True
    return list(names), others


def _planned(env: Environment) -> Iterator[Event | Call]:
    """Iterate over the events before infinity that are no wake-ups of schedulers, in no particular order."""
    queue: list[Any] = env._queue
    for at, _, _, event in queue:
        if at < NEVER and event.callbacks is not None and (type(event) is not Call or event.what is not WAKE_UP):
            yield event


def _resumed(event: Event | Call) -> Iterator[_Resumed]:
    """Yield the processes that an event resumes, at once or by a condition, and the functions that it calls."""
    if isinstance(event, Call):
        yield event.call
        return
    for callback in event.callbacks:
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, Event) and not isinstance(owner, Process):  # a condition, which also calls itself
            yield from () if owner is event or owner.callbacks is None else _resumed(owner)
        else:
            yield owner.call if isinstance(owner, Alarm) else owner if isinstance(owner, Process) else callback


def _name(thing: _Resumed) -> str:
    code: Any = thing._generator if isinstance(thing, Process) else thing
    return f"{'call' if code is thing else 'process'} {getattr(code, '__qualname__', code)}"


def _by_model(thing: _Resumed) -> bool:
    if not _by_user(thing):
        return False
    if isinstance(thing, Process):
        values = getattr(getattr(thing._generator, "gi_frame", None), "f_locals", {})
    else:
        cells = getattr(thing, "__closure__", None) or ()
        values = {"self": getattr(thing, "__self__", None)} | dict(enumerate(cell.cell_contents for cell in cells))
    models = (each for each in values.values() if isinstance(each, Model) and _users(type(each).__module__))
    return isinstance(values.get("self"), _OWNERS) or next(models, None) is not None


def _by_user(thing: _Resumed) -> bool:
    """Whether a process or a function is of code outside the package; a process without code left is not."""
    if not isinstance(thing, Process):
        return _users(str(getattr(thing, "__module__", None)))
    frame = getattr(thing._generator, "gi_frame", None)
    return frame is not None and _users(str(frame.f_globals.get("__name__")))


def _users(module: str) -> bool:
    return module.partition(".")[0] != "simmodel"


class Patience(Generic[Live]):
    """Looks now and then, ever more rarely, whether work waits for ever while nothing but models goes on.

    Parameters
    ----------
    system
        the system
    built
        processes of models, as for :func:`ticking`
    """

    def __init__(self, system: System[Live], built: Collection[Process]) -> None:
        self._system = system
        self._built = built
        self._found: tuple[int, int] | None = None
        self._since = 0  # the number of an event
        self._step = 1.0
        self.call = self._next()

    def __enter__(self) -> None:
        """Look from now on."""

    def __exit__(self, *_: object) -> None:
        """Look no more."""
        if self.call.pending:
            self._system.env.withdraw(self.call)

    def _next(self) -> Call:
        env = self._system.env
        return env.call_at(env.now + self._step, self._look, what=WAKE_UP)

    def _look(self) -> None:
        system, last = self._system, self.call.number
        names, others = ticking(system.env, self._built)
        found = system.unfinished, sum(1 for each in system.all_below() for _ in each.view.waiting)
        if others or found != self._found:
            self._found, self._since = found, last
        elif last - self._since > _PATIENCE:
            waits = tuple(system.env.waiting_report())
            if waits or found[1]:
                message = f"work still waits at {system.env.now:g} s, and nothing goes on but {', '.join(names)}:"
                raise Stalled(message, waits)
            system.env.leave()  # what runs has no end
        if names or others:  # else the end of events tells who waits
            self._step *= 2
            self.call = self._next()
