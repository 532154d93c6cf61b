"""The base class of policies, with defaults for everything except ``decide``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Decision, View

__all__ = ["Decides", "DecidingObject", "FunctionPolicy", "Policy", "parameters_of"]

Decides = Literal["jobs", "tasks", "plans", "places", "systems", "data", "anything"]
At = TypeVar("At")


class Policy:
    """Decides which waiting work starts where; subclasses implement ``decide`` and, to have parameters, ``__init__``.

    A parameter of ``__init__`` must be kept as an attribute of the same name, for :meth:`fresh` and :meth:`attach`; it
    may be a policy. The state of a policy between decisions is in other attributes.

    Attributes
    ----------
    name
        its name in results and errors; default: the name of the class
    decides
        its kind of decision: when ``"jobs"`` start on the nodes of a cluster; which processor of a machine takes each
        of its ``"tasks"``; ``"plans"``: which place takes each task of a workflow, before it is ready; which of several
        ``"places"`` with queues (processors or systems) takes each piece of work; which of several ``"systems"`` takes
        each job; ``"data"``: which files of a grid are moved; ``"anything"``: any of these
    plans
        whether it plans tasks before they are ready: a machine then asks it when they are submitted
    preempts
        whether it may yield a :class:`~simmodel.scheduling.protocol.Preempt`
    reads_options
        whether it reads the ``options`` of jobs, in the words of the scheduler that it models
    tries_every_submission
        whether it is asked about submissions that do not fit now too, under ``decide_on="event"``
    draws
        whether it may draw random numbers, so that runs depend on the seed
    at_home
        whether each job runs at its home, so that it must have one
    blind
        whether its choices depend on the jobs alone and on nothing that happens at the places, so that these may be
        simulated apart; of the class that says so, not of those derived from it

    >>> from simmodel import Start
    >>> class Widest(Policy):
    ...     def __init__(self, most=100):
    ...         self.most = most
    ...     def decide(self, view):
    ...         for job in sorted(view.waiting, key=lambda job: -job.processors)[:self.most]:
    ...             if view.places[0].fits(job):
    ...                 yield Start(job, view.places[0])
    >>> Widest(5).name, Widest(5).fresh().most
    ('Widest', 5)
    """

    __slots__ = ()

    name: str = ""
    decides: Decides = "anything"
    plans: bool = False
    preempts: bool = False
    reads_options: bool = False
    tries_every_submission: bool = False
    draws: bool = True
    at_home: bool = False
    blind: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.blind = vars(cls).get("blind", False)
        given = "name" in vars(cls) or "name" in vars(cls).get("__annotations__", ())
        if not given and cls.name in ("", *(base.__name__ for base in cls.__mro__)):
            cls.name = cls.__name__

    def __repr__(self) -> str:
        return f"<policy {self.name}>"

    @classmethod
    def of(cls, *values: Any, **options: Any) -> Self:
        """Return the policy for a name with parameters, such as ``share(0.6)``; default: call the constructor."""
        return cls(*values, **options)

    def decide(self, view: View, /) -> Iterable[Decision] | None:
        """Return or yield decisions; a yielded decision is applied before the policy continues."""
        raise NotImplementedError

    def destinations(self, home: At | None, places: Sequence[At], /) -> Sequence[At]:
        """Return the places to which work of a home may go; default: all."""
        return places

    def attach(self, system: Any) -> None:
        """Receive the system before the first decision; policies among the parameters are attached too."""
        for part in self.parts():
            part.attach(system)

    def notes(self, system: Any, /) -> tuple[str, ...]:
        """Return sentences about parameters or traits without effect on this system, for the report of the run."""
        return tuple(note for part in self.parts() for note in part.notes(system))

    def forget(self) -> None:
        """Discard values cached at the last decision: another policy has decided since."""

    def promising(self) -> Policy | None:
        """Return the same policy, fresh, with its parameter ``promises`` set; ``None``: it has no such parameter.

        With it, a policy records the starts that it promises (:class:`~simmodel.scheduling.protocol.Reserve`).
        """
        if "promises" not in self.parameters():
            return None
        return type(self)(**{**self.fresh().parameters(), "promises": True})

    def state(self) -> Any:
        """Return the state of which the next decision depends, as JSON values, for a snapshot; ``None``: stateless."""
        return None

    def restore(self, values: Any) -> None:
        """Restore the values of :meth:`state` in an attached policy with the same parameters."""

    def fresh(self) -> Self:
        """Return a policy with the same parameters and no state; policies among the parameters are renewed too.

        Raises
        ------
        TypeError
            a parameter is not kept as an attribute of its name
        """
        seen: dict[int, Policy] = {}
        return type(self)(**{name: _renewed(value, seen) for name, value in self.parameters().items()})

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's parameters and their values.

        Raises
        ------
        TypeError
            a parameter is not kept as an attribute of its name
        """
        return parameters_of(self)

    def parts(self) -> Iterator[Policy]:
        """Yield the policies among the parameters, each once."""
        seen: dict[int, Policy] = {}
        for value in self.parameters().values():
            _collect(value, seen)
        yield from seen.values()


def parameters_of(made: object) -> dict[str, Any]:
    """Return the constructor's parameters of an object and their values, which it keeps as attributes.

    Raises
    ------
    TypeError
        a parameter is not kept as an attribute of its name
    """
    kept = {}
    for name in _parameters(type(made).__init__):
        try:
            kept[name] = getattr(made, name)
        except AttributeError:
            raise TypeError(
                f"{type(made).__name__}: parameter {name!r} must be kept as an attribute of that name"
            ) from None
    return kept


@cache
def _parameters(make: Callable[..., None]) -> tuple[str, ...]:
    """Return the names of the parameters of an ``__init__``."""
    if make is object.__init__:
        return ()
    found = list(inspect.signature(make).parameters.values())[1:]
    for each in found:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
            raise TypeError(f"{make.__qualname__}: parameter {str(each)!r} must be a keyword parameter")
    return tuple(each.name for each in found)


def _renewed(value: Any, seen: dict[int, Policy]) -> Any:
    """Return a parameter with its policies renewed; a policy that occurs twice is renewed once."""
    if isinstance(value, Policy):
        if id(value) not in seen:
            seen[id(value)] = value.fresh()
        return seen[id(value)]
    if isinstance(value, dict):
        return {key: _renewed(each, seen) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_renewed(each, seen) for each in value)
    return value


def _collect(value: Any, seen: dict[int, Policy]) -> None:
    if isinstance(value, Policy):
        seen.setdefault(id(value), value)
    elif isinstance(value, dict):
        for each in value.values():
            _collect(each, seen)
    elif isinstance(value, (list, tuple)):
        for each in value:
            _collect(each, seen)


class FunctionPolicy(Policy):
    """A policy made of a function of a view.

    >>> def nothing(view):
    ...     return ()
    >>> FunctionPolicy(nothing).name
    'nothing'
    """

    def __init__(self, function: Callable[[View], Iterable[Decision] | None]) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))

    def decide(self, view: View, /) -> Iterable[Decision] | None:
        """Return the function's decisions."""
        return self.function(view)


class DecidingObject(Policy):
    """A policy made of an object with ``decide(view)`` that does not derive from :class:`Policy`.

    Other members of a policy that it has (``name``, ``plans``, ``state``, ...) are used; :class:`Policy` has the rest.
    """

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = str(getattr(given, "name", None) or type(given).__name__)
        self.plans = bool(getattr(given, "plans", False))
        self.preempts = bool(getattr(given, "preempts", False))
        self.tries_every_submission = bool(getattr(given, "tries_every_submission", False))
        self.draws = bool(getattr(given, "draws", True))
        for name in ("decide", "destinations", "attach", "forget", "state", "restore"):
            method = getattr(given, name, None)
            if callable(method):
                setattr(self, name, method)

    def fresh(self) -> DecidingObject:
        """Return a policy of the object's ``fresh()``, or this one if the object has no such method."""
        renew = getattr(self.given, "fresh", None)
        return DecidingObject(renew()) if callable(renew) else self
