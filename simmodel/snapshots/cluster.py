"""Snapshots: the state of a system at one instant as a plain value, from which a simulation can be started."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib import import_module
from math import inf, nextafter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import attrs
import numpy as np

from simmodel.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.resources.allocation import Allocation
from simmodel.work.job import Job

__all__ = [
    "Options",
    "Past",
    "PlaceState",
    "Planned",
    "PolicyState",
    "RunningWork",
    "Snapshot",
    "SystemSnapshot",
    "Work",
    "register_snapshot",
]

FORMAT = "simmodel snapshot"
SCHEMA = 1


class Past(NamedTuple):
    """What happened to a job before: only of jobs that were blocked, or whose executions were stopped.

    ``attempts`` before the present one; ``eligible``, ``first_start`` (of a job that started again), ``attempt_start``
    (of one that was suspended since) and ``last_start`` in s; ``executed`` seconds whose work was not thrown away;
    ``whole``: (requested, expected, duration) in s before it was suspended; ``resumes``: the parts of nodes that it
    goes on with, ``True`` where only processors count, ``None`` where it starts from the beginning.
    """

    attempts: int = 0
    eligible: float | None = None
    first_start: float | None = None
    attempt_start: float | None = None
    last_start: float | None = None
    executed: float = 0.0
    whole: tuple[float, float, float | None] | None = None
    resumes: Allocation | bool | None = None


class Work(NamedTuple):
    """A job as a snapshot holds it.

    ``requested``: the seconds that it is planned with; ``expected``: those that it is planned with once it runs;
    ``duration``: those that it will run, where that is known; ``number``: its place in the order of submission;
    ``priority`` includes that of its queue and partition; ``spec``: what it was submitted as, where that says more.
    """

    id: int | str
    number: int
    submit: float
    processors: int
    requested: float
    expected: float
    duration: float | None
    user: int | str | None = None
    priority: float = 0.0
    place: str = ""
    outcome: str = "completed"
    spec: Job | None = None
    past: Past | None = None


class RunningWork(NamedTuple):
    """A job that runs: since when, its expected end and, only where it was taken from a simulation, its actual one.

    ``held``: the parts of nodes that it holds, where nodes are identified; ``attempt``: from 1 on; ``released``: what
    it held is given back, though its end is still an event of this instant.
    """

    work: Work
    started: float
    expected_end: float
    end: float | None = None
    held: Allocation | None = None
    attempt: int = 1
    released: bool = False

    @property
    def id(self) -> int | str:
        """The job."""
        return self.work.id

    @property
    def place(self) -> str:
        """Where it runs."""
        return self.work.place

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """The numbers of its nodes, where nodes are identified."""
        return None if self.held is None else tuple(self.held.nodes.tolist())


class PlaceState(NamedTuple):
    """What of a place is away: ``down`` processors, or ((node, for how many reasons), ...); and its windows.

    A window is (start, end, what, begun, what it is for), in s.
    """

    name: str
    down: Any = 0
    windows: tuple[tuple[float, float, Any, bool, str], ...] = ()
    open: bool = False  # of a reservation: whether what fails of its partition fails here too


class Planned(NamedTuple):
    """Something to come at an instant (s); in the order of the snapshot's list where instant and priority are one."""

    at: float
    priority: float
    what: str
    about: tuple[Any, ...] = ()


class Options(NamedTuple):
    """The options of a cluster, as :class:`~simmodel.systems.cluster.system.Cluster` takes them."""

    decide_on: str = "instant"
    event_order: str = "submits-first"
    estimates: str = "requested"
    overrun: str = "stop"


class PolicyState(NamedTuple):
    """The policy of a cluster: what results call it, the name it can be made by, and what it remembers.

    ``due``: a decision is to be made at this instant; ``asked``: the policy asked to be woken, whatever waits.
    """

    name: str = "fcfs"
    known_as: str | None = "fcfs"
    state: Any = None
    due: bool = True
    asked: bool = False


OPTIONS = Options()
POLICY = PolicyState()
_SYSTEMS: dict[str, type[SystemSnapshot]] = {}
_ELSEWHERE = {"broker": "simmodel.snapshots.broker"}  # what is registered when it is first needed


def register_snapshot(cls: type[SystemSnapshot]) -> type[SystemSnapshot]:
    """Make a kind of snapshot known by its ``system``, so that its JSON can be read."""
    _SYSTEMS[cls.system] = cls
    return cls


def _of_numpy(value: Any) -> Any:
    """Return a number of numpy's as one of Python's: users name jobs by them."""
    if not isinstance(value, np.generic):
        raise TypeError(f"plain values expected, found {value!r}")
    return value.item()


class SystemSnapshot:
    """What the snapshots of all systems share: JSON with a version, equality and a hash by content.

    A subclass says which ``system`` it is of, gives its ``values()`` as JSON can hold them, and is made of them by
    ``of_values(values, source)``.
    """

    system: ClassVar[str]
    now: float
    seed: int

    @property
    def unfinished(self) -> int:
        """How many jobs or tasks it holds."""
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        """Return the contents as JSON can hold them."""
        raise NotImplementedError

    @classmethod
    def of_values(cls, values: Mapping[str, Any], source: str | None = None) -> Self:
        """Return the snapshot of such contents."""
        raise NotImplementedError

    def expected(self, *, actual: bool = False) -> Any:
        """Return what a what-if may see: expected ends, and nothing that nobody knows yet."""
        raise NotImplementedError

    def reseeded(self) -> Self:
        """Return the snapshot without its random streams: those of another seed begin anew."""
        return attrs.evolve(self, streams=())  # type: ignore[misc]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the contents, as hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, SystemSnapshot) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def document(self) -> dict[str, Any]:
        """Return the contents and what stands before them in a file: format, schema and system."""
        return {"format": FORMAT, "schema": SCHEMA, "system": self.system, **self.values()}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the snapshot as JSON; a path: write it there too, compressed where it ends in ``.gz``."""
        text = json.dumps(self.document(), separators=(",", ":"), allow_nan=False, default=_of_numpy)
        if path is not None:
            from simmodel.results.stores import write_text

            write_text(path, text + "\n")
        return text

    @classmethod
    def from_json(cls, given: str | Path) -> Self:
        """Return the snapshot that JSON text, or a file of it, holds.

        Raises
        ------
        InputError
            where it is not a snapshot of this kind and schema, or a value in it is not possible
        """
        from simmodel.snapshots.reading import read_document

        document, source = read_document(given)
        found = snapshot_of_document(document, source)
        if not isinstance(found, cls):
            raise InputError(f"a snapshot of a {cls.system} expected, found one of a {found.system}", source, "system")
        return found


def snapshot_of_document(document: Mapping[str, Any], source: str | None = None) -> SystemSnapshot:
    """Return the snapshot of a document, whatever system it is of."""
    values = dict(document)
    for name, expected in (("format", FORMAT), ("schema", SCHEMA)):
        found = values.pop(name, None)
        if found != expected or type(found) is not type(expected):
            raise InputError(f"{name} {expected!r} expected, found {found!r}", source, name)
    system = values.pop("system", None)
    if system in _ELSEWHERE:
        import_module(_ELSEWHERE[system])
    if system not in _SYSTEMS:
        names = ", ".join(dict.fromkeys([*_SYSTEMS, *_ELSEWHERE]))
        raise InputError(f"a system expected ({names}), found {system!r}", source, "system")
    return _SYSTEMS[system].of_values(values, source)


@register_snapshot
@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class Snapshot(SystemSnapshot):
    """A cluster at one instant.

    Parameters
    ----------
    name, now, seed
        of the cluster; s; of its random streams
    platform, options, policy
        as built; the policy and what it remembers
    running
        what runs, place by place, in the order of the starts there
    waiting, held, blocked
        what waits, in the order of arrival; what a limit holds; what waits for other jobs
    new
        numbers of the waiting jobs that came since the last decision
    arrivals
        what is still to be submitted
    places, consumables
        what of each place is away; what of each consumable is free
    waits
        for whom blocked jobs wait: (the other's id, ``"start"`` or ``"end"``, the job's number, which dependency)
    over
        (id, how it ended) of the jobs that are over and that arrivals name
    usage
        (half-life in s, ((user, processor seconds, processors held, instant), ...)) of each record of consumption
    streams
        random streams by name, with their states
    planned
        what is to come, in order
    submitted
        how many jobs have been or are still to be submitted: the number of the next one
    """

    system: ClassVar[str] = "cluster"

    name: str = "cluster"
    now: float = 0.0
    seed: int = 0
    platform: ClusterSpec
    options: Options = OPTIONS
    policy: PolicyState = POLICY
    running: tuple[RunningWork, ...] = ()
    waiting: tuple[Work, ...] = ()
    held: tuple[Work, ...] = ()
    blocked: tuple[Work, ...] = ()
    new: tuple[int, ...] = ()
    arrivals: tuple[Work, ...] = ()
    places: tuple[PlaceState, ...] = ()
    consumables: tuple[tuple[str, float], ...] = ()
    waits: tuple[tuple[int | str, str, int, int], ...] = ()
    over: tuple[tuple[int | str, str], ...] = ()
    usage: tuple[tuple[float, tuple[tuple[Any, float, float, float], ...]], ...] = ()
    streams: tuple[tuple[str, dict[str, Any]], ...] = ()
    planned: tuple[Planned, ...] = ()
    submitted: int = 0

    def __repr__(self) -> str:
        return (
            f"<Snapshot of {self.name} at {self.now:g} s: {len(self.running)} running, {len(self.waiting)} waiting, "
            f"{len(self.arrivals)} to arrive>"
        )

    @property
    def unfinished(self) -> int:
        """How many jobs it holds."""
        return sum(map(len, (self.running, self.waiting, self.held, self.blocked, self.arrivals)))

    def values(self) -> dict[str, Any]:
        """Return the contents as JSON can hold them."""
        from simmodel.snapshots.codec import values_of

        return values_of(self)

    @classmethod
    def of_values(cls, values: Mapping[str, Any], source: str | None = None) -> Self:
        """Return the snapshot of such contents."""
        from simmodel.snapshots.check import check
        from simmodel.snapshots.codec import fields_of

        snapshot = cls(**fields_of(values, source))
        check(snapshot, source)
        return snapshot

    @classmethod
    def of(
        cls,
        platform: ClusterSpec | int,
        *,
        now: float,
        running: Iterable[Job | Mapping[str, Any]] = (),
        waiting: Iterable[Job | Mapping[str, Any]] = (),
        down: Mapping[str, Any] | None = None,
        usage: Mapping[Any, float] | None = None,
        half_life: float | None = None,
        policy: Any = "fcfs",
        **options: Any,
    ) -> Snapshot:
        """Return the snapshot of what is known of a cluster, such as a real one, whose jobs run nobody knows how long.

        Parameters
        ----------
        platform, now
            a cluster or a number of processors; the instant, in s
        running
            jobs, as keys with values: those of a :class:`~simmodel.work.job.Job` (``run`` may be missing), ``started``
            (s), where nodes are identified ``on`` (nodes, or (node, cores, GPUs, bytes) of each), and ``expected_end``
            (s) where that is not ``started`` + ``requested``
        waiting
            jobs, or keys with values, in the order of arrival where submissions are of one instant; dependencies name
            jobs that run or wait
        down
            what is away, by place: a number of processors, or nodes; what the description of the cluster says is away
            then comes on top
        usage, half_life
            processor seconds by user, for fair share; s, default: the policy's
        policy, options
            as of :class:`~simmodel.systems.cluster.system.Cluster`

        Raises
        ------
        InputError
            where a value is not possible, with its place (``running[2].started``)

        >>> from simmodel.snapshots.cluster import Snapshot
        >>> seen = Snapshot.of(4, now=100, running=[{"id": 1, "processors": 3, "requested": 60, "started": 90}],
        ...                    waiting=[{"id": 2, "processors": 2, "requested": 30, "submit": 95}])
        >>> seen.running[0].expected_end
        150.0
        >>> from simmodel import simulate
        >>> simulate(seen).jobs["start"]
        array([ 90., 150.])
        """
        from simmodel.systems.cluster.from_data import snapshot_of

        return snapshot_of(
            platform,
            now=now,
            running=running,
            waiting=waiting,
            down=down,
            usage=usage,
            half_life=half_life,
            policy=policy,
            **options,
        )

    def expected(self, *, actual: bool = False) -> Any:
        """Return what a what-if may see: no arrivals, failures or cancellations to come, and no actual run times.

        What runs is expected to end when a policy expects it to, and just after now where that is past; what waits is
        expected to run the time that it is planned with. With ``actual`` run times stay what they are.
        """
        from simmodel.snapshots.foreseen import foreseen

        return foreseen(self, actual)


def just_after(instant: float) -> float:
    """Return the first instant (s) after one."""
    return nextafter(instant, inf)
