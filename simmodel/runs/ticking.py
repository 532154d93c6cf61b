"""Processes and calls of models that go on for ever, whether or not there is work: simulations end without them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from simpy.events import Event, Process

from simmodel.environment import WAKE_UP, Call
from simmodel.foundation.errors import Stalled
from simmodel.resources.alarm import Alarm
from simmodel.resources.models import Model
from simmodel.resources.pools.pool import Pool
from simmodel.scheduling.observer import Observer
from simmodel.scheduling.protocol import Policy
from simmodel.systems.system import System

if TYPE_CHECKING:
    from simmodel.environment import Environment

__all__ = ["Patience", "processes_of", "ticking"]

_PATIENCE = 100_000
"""Events of models alone after which work that waits is said to wait for ever."""
_OWNERS = (Pool, System, Policy, Observer)


def processes_of(env: Environment) -> frozenset[Process]:
    """Return the processes that planned events resume."""
    return frozenset(each for event in env.planned() for each in _resumed(event) if isinstance(each, Process))


def ticking(env: Environment, built: Collection[Process] = ()) -> tuple[list[str], bool]:
    """Return the processes and calls of models that are planned, by name, and whether anything else is.

    A process is of a model if it is among the ``built``, or if it runs code of a user with a custom model among its
    variables, or a method of a custom pool, system, policy or observer. So is a call.
    """
    names: dict[str, None] = {}
    others = False
    for event in env.planned():
        resumed = list(_resumed(event))  # of no one: nothing will happen
        if all(each in built or _by_model(each) for each in resumed):
            names |= dict.fromkeys(_name(each) for each in resumed)
        else:
            others = True
    return list(names), others


def _resumed(event: Any) -> Iterator[Any]:
    """Yield the processes that an event resumes, at once or by a condition, and the functions that it calls."""
    if type(event) is Call:
        yield event.call
        return
    for callback in event.callbacks:
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, Event) and not isinstance(owner, Process):  # a condition, which also calls itself
            yield from () if owner is event or owner.callbacks is None else _resumed(owner)
        else:
            yield owner.call if isinstance(owner, Alarm) else owner if isinstance(owner, Process) else callback


def _name(thing: Any) -> str:
    code: Any = thing._generator if isinstance(thing, Process) else thing
    return f"{'process' if code is not thing else 'call'} {getattr(code, '__qualname__', code)}"


def _by_model(thing: Any) -> bool:
    if isinstance(thing, Process):
        frame = getattr(thing._generator, "gi_frame", None)
        if frame is None:
            return False
        module, values = frame.f_globals.get("__name__"), frame.f_locals
    else:
        module = getattr(thing, "__module__", None)
        cells = getattr(thing, "__closure__", None) or ()
        values = {"self": getattr(thing, "__self__", None)} | dict(enumerate(cell.cell_contents for cell in cells))
    if not _users(module):
        return False
    models = (each for each in values.values() if isinstance(each, Model) and _users(type(each).__module__))
    return isinstance(values.get("self"), _OWNERS) or next(models, None) is not None


def _users(module: Any) -> bool:
    return str(module).partition(".")[0] != "simmodel"


class Patience:
    """Looks now and then, ever more rarely, whether work waits for ever while nothing but models goes on.

    Parameters
    ----------
    system
        the system
    built
        processes of models, as for :func:`ticking`
    """

    def __init__(self, system: System[Any], built: Collection[Process]) -> None:
        self._system = system
        self._built = built
        self._found: tuple[int, int] | None = None
        self._since = 0  # the number of an event
        self._step = 1.0
        self.call = self._next()

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
        self._step *= 2
        self.call = self._next()
