"""The common protocol of all schedulers: a policy maps a view to decisions.

A policy is a :class:`~simmodel.scheduling.protocol.Policy`, any object with ``decide(view)``, or a function of a
view. It returns or yields decisions. A yielded decision is applied before the policy continues, which then sees its
effect.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from simmodel.foundation.errors import InputError, WrongType, unknown

if TYPE_CHECKING:
    import numpy as np

    from simmodel.environment import Environment
    from simmodel.platform.grid import SiteSpec
    from simmodel.platform.signals import Signal
    from simmodel.resources.data.catalogue import Catalogue
    from simmodel.resources.data.storage import Storage
    from simmodel.work.job import Brokered, LiveJob, Run
    from simmodel.work.taskset import LiveTask

__all__ = [
    "DataView",
    "Decides",
    "DecidingObject",
    "Decision",
    "Estimate",
    "Evict",
    "FunctionPolicy",
    "GridSite",
    "Hold",
    "Load",
    "LoadLine",
    "MovedFile",
    "OrderLike",
    "Place",
    "Policy",
    "Preempt",
    "Release",
    "Reserve",
    "Resize",
    "SeenSignal",
    "SetLevel",
    "Sleep",
    "Start",
    "Transfer",
    "View",
    "Wake",
    "WakeAt",
    "parameters_of",
    "work_units",
]


class Start(NamedTuple):
    """Start waiting work on a place now; a place with a queue queues it.

    ``allocation``: the nodes to use on a place with identified nodes (from ``place.allocate``); ``processors``: the
    size of an elastic job, if it is not to start at its preferred one; ``level``: the relative frequency of its nodes,
    one of ``place.levels``, at which it runs longer; then ``stretch``: its limit is longer by the same factor, too.
    """

    work: Any
    place: Any = None  # has to be named; without a default, a forgotten one were a TypeError of Python's
    reason: str | None = None
    allocation: Any = None
    processors: int | None = None
    level: float | None = None
    stretch: bool = True


class Preempt(NamedTuple):
    """Preempt running work: it returns to the queue, to start again (``requeue``) or to continue (``suspend``).

    On a cluster, ``timeout`` stops it for good, at a limit that the policy enforces, and ``cancel`` for another job;
    ``cancel`` also withdraws a job that waits, for instance because it can no longer meet its deadline.
    """

    work: Any
    mode: Literal["requeue", "suspend", "timeout", "cancel"] = "requeue"
    reason: str | None = None


class Resize(NamedTuple):
    """Give a running elastic job another number of processors, now: its work left is rescaled."""

    work: Any
    processors: int
    reason: str | None = None


class SetLevel(NamedTuple):
    """Let a job go on at another relative frequency of its nodes, now, or start at one: its work left is rescaled.

    ``stretch``: so is the time that is left to its limit. ``level``: ``None`` takes that of a waiting job back.
    """

    work: Any
    level: float | None
    reason: str | None = None
    stretch: bool = True


class Reserve(NamedTuple):
    """Promise work a start on a place at an instant (s): recorded, and the scheduler wakes then."""

    work: Any
    place: Any
    at: float
    reason: str | None = None


class WakeAt(NamedTuple):
    """Request a decision at an instant (s), even if nothing else happens then."""

    at: float
    reason: str | None = None


class Hold(NamedTuple):
    """Take waiting work out of the queue of a cluster until an instant (s); it keeps its place there.

    An infinite instant: until a :class:`Release`; then the policy says in ``why_held`` what the work waits for.
    """

    work: Any
    until: float
    reason: str | None = None


class Release(NamedTuple):
    """Put work that was held without an instant back into the queue of a cluster; all of its wait counts."""

    work: Any
    reason: str | None = None


class Sleep(NamedTuple):
    """Put idle nodes of a place to sleep, given by number or name: they draw less, and are up again after a boot."""

    place: Any
    nodes: Any
    reason: str | None = None


class Wake(NamedTuple):
    """Begin to boot nodes of a place that sleep, given by number or name, for waiting work if it is named."""

    place: Any
    nodes: Any
    work: Any = None
    reason: str | None = None


class Transfer(NamedTuple):
    """Copy or move a file of a grid to a site, from a given source or (``None``) the one that the policy chooses.

    ``mode``: ``"copy"``, or ``"move"``: the replica at the source goes when the file has arrived. A file that is there
    already, or on its way, is not sent again.
    """

    file: str
    source: Any
    destination: Any
    mode: Literal["copy", "move"] = "copy"
    reason: str | None = None


class Evict(NamedTuple):
    """Drop the replica of a file at a site; ``last``: even if it is the last one, which is lost then."""

    file: str
    place: Any
    last: bool = False
    reason: str | None = None


Decision = Start | Preempt | Resize | SetLevel | Reserve | WakeAt | Hold | Release | Sleep | Wake | Transfer | Evict
"""A decision that a policy may yield."""


class Estimate(NamedTuple):
    """The expected course of work on a place: start (an instant), setup, transfer and run (durations), in seconds.

    >>> Estimate(start=100.0, setup=1.0, transfer=2.0, run=10.0).finish
    113.0
    """

    start: float
    setup: float
    transfer: float
    run: float

    @property
    def finish(self) -> float:
        """The expected end, an instant in seconds."""
        return self.start + self.setup + self.transfer + self.run


class Load(NamedTuple):
    """The load of a place: free processors, waiting pieces of work, and expected queued and running work.

    Work is in units of 2^-20 processor seconds, as integers whose sums do not depend on the order. Work past its
    expected end counts zero.
    """

    free: int
    queued: int
    queued_work: int
    running_work: int

    @property
    def backlog(self) -> float:
        """The expected remaining work of running and waiting work, in processor seconds.

        >>> Load(free=2, queued=1, queued_work=3 * 2**20, running_work=2**20).backlog
        4.0
        """
        return (self.queued_work + self.running_work) / 2**20


class LoadLine(NamedTuple):
    """The load of a place as a line over time, and its queue: values that change only at events, until an instant.

    ``backlog``: expected remaining work now (processor seconds), which falls by ``falls`` per second until the instant
    ``until`` (s); ``capacity``, ``free``: processors; ``queued``, ``running``, ``assigned``: jobs that wait, that run,
    and that are on their way to the queue.
    """

    backlog: float
    falls: float
    until: float
    capacity: int
    free: int
    queued: int
    running: int
    assigned: int = 0


def work_units(processors: int, seconds: float) -> int:
    """Return work in units of 2^-20 processor seconds; zero if the seconds are <= 0 or infinite.

    >>> work_units(2, 1.5) == 3 * 2**20
    True
    """
    return int(seconds * 2**20) * processors if 0 < seconds < inf else 0


@runtime_checkable
class Place(Protocol):
    """Anything that takes work: a pool of nodes, a processor, a system under a broker.

    Pools and systems take jobs, processors take tasks. Its methods change nothing.
    """

    @property
    def name(self) -> str:
        """Its name, unique among the places of a scheduler."""
        ...

    @property
    def capacity(self) -> float:
        """Processors in total."""
        ...

    @property
    def free(self) -> float:
        """Processors free now; negative while down processors are still in use."""
        ...

    @property
    def queues(self) -> bool:
        """Whether it has its own queue, for work that does not fit now."""
        ...

    @property
    def version(self) -> int:
        """A number that changes with the free capacity of a pool, or with the free capacity and queue of a system."""
        ...

    @property
    def backlog(self) -> float:
        """The expected remaining work of its running and waiting work, in processor seconds."""
        ...

    def can_run(self, work: Any, /) -> bool:
        """Whether it could ever run the work."""
        ...

    def why_not(self, work: Any, /) -> str | None:
        """Return why it could never run the work, or ``None``."""
        ...

    def fits(self, work: Any, /) -> bool:
        """Whether it could start the work now."""
        ...


class GridSite(Place, Protocol):
    """A site of a grid, as data policies and records see it: a place with a storage."""

    @property
    def spec(self) -> SiteSpec:
        """Its spec."""
        ...

    @property
    def storage(self) -> Storage:
        """Its storage, with the files that it holds."""
        ...

    @property
    def down(self) -> int:
        """For how many reasons it is down."""
        ...

    @property
    def number(self) -> int:
        """Its position among the sites."""
        ...

    @property
    def system(self) -> Any:
        """Its cluster, whose places are its pools of cores."""
        ...


class MovedFile(Protocol):
    """A file on its way to a site of a grid, as records see it."""

    @property
    def file(self) -> str:
        """Its name."""
        ...

    @property
    def size(self) -> float:
        """Its bytes."""
        ...

    @property
    def site(self) -> GridSite:
        """The site that it goes to."""
        ...

    @property
    def source(self) -> GridSite | None:
        """The site that it comes from, once its transfer has started."""
        ...

    @property
    def job(self) -> Brokered | None:
        """The job that its bytes are charged to, if any: the first that asked for it, or that it was sent ahead for."""
        ...

    @property
    def cause(self) -> str:
        """Why it is moved: ``"stage in"``, ``"stage out"`` or the name of a data policy."""
        ...


class OrderLike(Protocol):
    """An order of waiting work by a key, lower first; ties go by submission.

    If the key ``changes`` while work waits, it is called as ``key(job, now)``, and ``scores(now, columns)`` may return
    the keys of all jobs at once (see :class:`simmodel.scheduling.column_index.ColumnIndex`).
    """

    @property
    def key(self) -> Callable[..., Any] | None:
        """The key function; ``None`` for the order of arrival."""
        ...

    @property
    def changes(self) -> bool:
        """Whether the key changes while work waits."""
        ...


class SeenSignal:
    """A signal as it is known at an instant; made by :meth:`View.signal`.

    Parameters
    ----------
    signal
        the signal
    instant
        s

    >>> from simmodel.platform import Signal
    >>> seen = SeenSignal(Signal([0, 10, 20, 30], [3, 1, 2, 1]), 5.0)
    >>> seen.now, seen.lowest(20, 10), seen.lowest_spans(35, 20)
    (3.0, 10.0, [(10.0, 20.0), (30.0, 40.0)])
    """

    __slots__ = ("_instant", "_signal")

    def __init__(self, signal: Signal, instant: float) -> None:
        self._signal = signal
        self._instant = instant

    @property
    def now(self) -> float:
        """The value now."""
        return self._signal.at(self._instant)

    def lowest(self, window: float, length: float) -> float:
        """Return the instant (s), a window (s) from now or earlier, from which the mean over a length is least."""
        return self._signal.lowest(self._instant, self._instant + window, length)

    def lowest_spans(self, window: float, length: float) -> list[tuple[float, float]]:
        """Return the spans of the next ``window`` seconds with the lowest values that last ``length`` s together."""
        return self._signal.lowest_spans(self._instant, self._instant + window, length)


_NO_CHOICES: Mapping[LiveJob, tuple[LiveJob, ...]] = {}


def _yes() -> bool:
    return True


class View:
    """A policy's view of a system: live and read-only, nothing is copied.

    Attributes
    ----------
    now
        the instant, in seconds
    waiting
        the waiting work in order of arrival; see :class:`simmodel.scheduling.waiting.WaitingQueue`
    places
        the places on which work can start
    choices
        the jobs that wait for several places, if any: each has an entry for each of them, which is what
        ``waiting.at(place)`` holds there; the mapping is from every entry to all, in order of preference, the first of
        which is the job itself. To start one entry is to start the job
    rng
        the random stream of the policy
    usage
        the processor seconds consumed by users (see :class:`simmodel.scheduling.usage.Usage`)
    estimator
        the system's ``estimator(view, work, place) -> Estimate``, if any
    takes
        a function that returns whether any place takes work now; default: some place does
    simulated
        an estimator by simulation, if ``estimator`` is a quick one
    files
        the catalogue of the files, if the system has one
    simulate
        the simulation of a future, if the run provides it
    simulate_all
        the simulation of the futures of several policies at once, if the run provides it
    signals
        what is known over time, such as the price of energy, by name: see :meth:`signal`
    problem
        ``problem(tasks) -> Problem``, the input of planners, if the system provides it
    """

    __slots__ = (
        *("_rng", "choices", "env", "estimator", "files", "places", "problem", "simulate", "simulate_all", "simulated"),
        *("signals", "takes", "usage", "waiting"),
    )

    def __init__(self, env: Environment, waiting: Any, places: Sequence[Any], rng_name: str = "policy") -> None:
        self.env = env
        self.waiting = waiting
        self.places = places
        self.choices: Mapping[LiveJob, tuple[LiveJob, ...]] = _NO_CHOICES
        self.estimator: Callable[[View, Any, Any], Estimate] | None = None
        self.simulated: Callable[[View, Any, Any], Estimate] | None = None
        self.files: Any = None
        self.takes: Callable[[], bool] = _yes
        self.simulate: Callable[..., Any] | None = None
        self.simulate_all: Callable[..., Sequence[Any]] | None = None
        self.problem: Callable[..., Any] | None = None
        self.usage: Any = None
        self.signals: Mapping[str, Signal] = {}
        self._rng = rng_name

    @property
    def now(self) -> float:
        """The instant, in seconds."""
        return float(self.env._now)

    @property
    def rng(self) -> np.random.Generator:
        """The random stream of the policy."""
        stream: np.random.Generator = self.env.rng(self._rng)
        return stream

    @property
    def running(self) -> list[Run]:
        """The running work, ordered by expected end: each with work, place, started, expected_end."""
        runs = [entry for place in self.places for entry in place.running.entries()]
        return [entry[3] for entry in (runs if len(self.places) == 1 else sorted(runs, key=lambda e: e[:2]))]

    def signal(self, name: str) -> SeenSignal:
        """Return what is known of a signal now: its value, and what is expected of it.

        Raises
        ------
        InputError
            the system has no signal of this name
        """
        if name not in self.signals:
            raise unknown("signal", name, self.signals)
        return SeenSignal(self.signals[name], self.now)

    def estimate(self, work: LiveJob | LiveTask, place: Place) -> Estimate:
        """Return the expected course of the work on the place, from the information of a scheduler."""
        if self.estimator is None:
            raise InputError(f"cannot estimate {work} on {place}: the system has no estimator")
        return self.estimator(self, work, place)

    def foresee(self, work: LiveJob | LiveTask, place: Place) -> Estimate:
        """Return the expected course of the work on the place by a simulation, if the system has one."""
        return self.estimate(work, place) if self.simulated is None else self.simulated(self, work, place)

    def __repr__(self) -> str:
        return f"<View at {self.env.now:g} s: {len(self.waiting):,} waiting, {len(self.places):,} places>"


class DataView:
    """A data policy's view of a grid: live and read-only.

    Attributes
    ----------
    sites
        the sites, each with its ``storage``
    files
        the catalogue: ``sites_of(file)``, ``size(file)``
    waiting
        the jobs that wait for the broker
    assigned, added
        since the last decision: (job, site) of jobs that got a site; the names of files that came to a site, at the
        first decision all files
    """

    def __init__(
        self, env: Environment, sites: Sequence[GridSite], files: Catalogue, waiting: Any, rng_name: str
    ) -> None:
        self.env = env
        self.sites = sites
        self.files = files
        self.waiting = waiting
        self.assigned: list[tuple[Any, GridSite]] = []
        self.added: list[str] = []
        self._rng = rng_name
        self._keeps = False

    @property
    def now(self) -> float:
        """The instant, in seconds."""
        return float(self.env._now)

    @property
    def rng(self) -> np.random.Generator:
        stream: np.random.Generator = self.env.rng(self._rng)
        return stream

    def site(self, name: str) -> GridSite:
        """Return the site with a name; raises ``InputError`` if there is none."""
        for site in self.sites:
            if site.name == name:
                return site
        raise unknown("site", name, [site.name for site in self.sites])

    def keep(self) -> None:
        """Keep ``assigned`` and ``added`` for the next decision."""
        self._keeps = True

    def forget(self) -> None:
        """Clear the jobs and files that have been decided on, unless they are to be kept."""
        if not self._keeps:
            self.assigned.clear()
            self.added.clear()
        self._keeps = False

    def __repr__(self) -> str:
        return f"<DataView at {self.env.now:g} s: {len(self.sites):,} sites, {len(self.files):,} files>"


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
    plain
        whether the parameters in its name are words of its own, such as a list of nodes: none names a policy or imports
        code
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
    plain: bool = False
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

    def why_held(self, job: LiveJob, /) -> str:
        """Return why the policy holds a job until it releases it; an empty text: it does not."""
        return next((why for part in self.parts() if (why := part.why_held(job))), "")

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
    WrongType
        a parameter is not kept as an attribute of its name
    """
    kept = {}
    for name in _parameters(type(made).__init__):
        try:
            kept[name] = getattr(made, name)
        except AttributeError:
            raise WrongType(
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
            raise WrongType(f"{make.__qualname__}: parameter {str(each)!r} must be a keyword parameter")
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
