"""The messages of an external scheduler: events of its jobs and nodes, and full reports of its state, in one envelope.

As a document (JSON, or the fields of an entry of a stream) each has the keys ``kind`` and ``cluster``, ``time`` (s) and
optionally ``sequence``, for events of jobs also ``job`` and ``submit``, and then those of its class::

    {"kind": "submitted", "cluster": "alps", "time": 17.0, "sequence": 4, "job": "12", "submit": 17.0,
     "request": {"processors": 4, "requested": 3600.0, "user": "ada"}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import attrs

from simmodel import InputError
from simmodel.extending import Fields, Plain, clipped, made_from, partitions_in, shown, strict_converter, unknown
from simmodel.work import Dependency, Job

__all__ = [
    "KINDS",
    "Changed",
    "Demand",
    "Ended",
    "Event",
    "JobEvent",
    "JobKey",
    "JobReport",
    "NodesChanged",
    "Noticed",
    "OnHold",
    "Passed",
    "Released",
    "Requeued",
    "Started",
    "StateReport",
    "Submitted",
    "event_of",
    "job_id",
]

Value = TypeVar("Value")

JobKey: TypeAlias = "tuple[str, int | str, float]"
"""Cluster, id and submission (s): schedulers use an id again after they have lost one."""

JobState: TypeAlias = Literal["waiting", "held", "running", "completed", "timeout", "failed", "cancelled", "lost"]


def _instant(_instance: Any, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not isfinite(value):
        raise InputError(f"{attribute.name}: must be a finite number (s), got {value!r}")


def _finite(_instance: Any, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not isfinite(value):
        raise InputError(f"{attribute.name}: must be a finite number, got {value!r}")


def _amounts(_instance: Any, _attribute: attrs.Attribute[Any], values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not -inf < value < inf:
            raise InputError(f"must be a finite number, got {shown(value)}", place=f"consumables.{clipped(name)}")


def job_id(text: int | str) -> int | str:
    """Return the id of a job as it is compared: the text of a whole number is that number, as streams hold only texts.

    >>> job_id("12"), job_id(12), job_id("12_1"), job_id("012")
    (12, 12, '12_1', '012')
    """
    if isinstance(text, str) and _WHOLE.fullmatch(text) and abs(number := int(text)) < 2**63:
        return number
    return text


_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


def _job_ids(jobs: tuple[tuple[int | str, str], ...]) -> tuple[tuple[int | str, str], ...]:
    return tuple((job_id(job), after) for job, after in jobs)


def _optional_id(job: int | str | None) -> int | str | None:
    return None if job is None else job_id(job)


ON_HOLD = "--hold"
"""The last of the options of a request: its scheduler has put the job on hold, and releases it behind all others."""


@attrs.frozen(kw_only=True, repr=False)
class Demand(Fields):
    """The request of a job: the fields of :class:`~simmodel.work.job.Job` that a scheduler knows.

    Parameters
    ----------
    processors, nodes, cores_per_node, gpus_per_node, memory_per_node, consumables
        as in a job; memory in bytes
    chunks
        as the text of a job's chunks, beside which the amounts of nodes do not count
    requested
        the limit of its run time (s); ``None``: no limit
    user, group, queue, partition, priority, name
        as in a job; several partitions are ``"a,b"``
    dependencies
        the ids of the jobs that it waits for, as ``(id, "start" | "end" | "success" | "failure")``
    array
        the id of the array that it is a task of, if any
    unmodelled
        properties of the job that the mirror does not model, such as ``"nodes n1 (-w)"``: every statement on its
        start is marked
    options, expressed
        what the job asks of its scheduler in the scheduler's own words, and those of its ``unmodelled`` properties that
        a policy which reads these words models

    >>> Demand(nodes=2, cores_per_node=8, requested=60.0).job(7, 5.0).processors
    16
    """

    processors: int = 1
    nodes: int | None = None
    cores_per_node: int = 1
    gpus_per_node: int = 0
    memory_per_node: float = attrs.field(default=0.0, validator=_finite)
    consumables: Mapping[str, float] = attrs.field(factory=dict, validator=_amounts)
    requested: float | None = attrs.field(default=None, validator=_finite)
    user: int | str | None = None
    group: int | str | None = None
    queue: int | str | None = None
    partition: int | str | None = None
    priority: float = attrs.field(default=0.0, validator=_finite)
    name: str | None = None
    dependencies: tuple[tuple[int | str, str], ...] = attrs.field(default=(), converter=_job_ids)
    array: int | str | None = attrs.field(default=None, converter=_optional_id)
    unmodelled: tuple[str, ...] = ()
    options: str = ""
    expressed: tuple[str, ...] = ()
    chunks: str = ""

    @property
    def on_hold(self) -> bool:
        """Whether its scheduler has put it on hold, and has it go last once it is released.

        >>> Demand(options="-w n1 --hold").on_hold
        True
        """
        return self.options.rpartition(" ")[2] == ON_HOLD

    def job(self, id: int | str, submit: float, *, unlimited: float = 365 * 86400.0) -> Job:
        """Return the job: it runs for its requested time, or for ``unlimited`` seconds if it has no limit."""
        limit = self.requested if self.requested is not None else unlimited
        waits = tuple(Dependency(job, after=after) for job, after in self.dependencies)  # type: ignore[arg-type]
        shape: dict[str, Any] = {
            "nodes": self.nodes,
            "cores_per_node": self.cores_per_node,
            "gpus_per_node": self.gpus_per_node,
            "memory_per_node": self.memory_per_node,
        }
        return Job(
            id=id,
            submit=submit,
            processors=self.processors,
            **({"chunks": self.chunks} if self.chunks else shape),
            consumables=self.consumables,
            run=limit,
            requested=limit or None,  # jobs that end at once have no limit
            user=self.user,
            group=self.group,
            queue=self.queue,
            priority=self.priority,
            dependencies=waits,
            name=self.name,
            options=self.options,
            **partitions_in(self.partition),
        )


@attrs.frozen(kw_only=True, repr=False)
class Event(Fields):
    """A message of an external scheduler.

    Parameters
    ----------
    cluster
        the name of the cluster
    time
        the instant (s) at which it happened there
    sequence
        its number in the source; a repeated event has the same number
    """

    kind: ClassVar[str]

    cluster: str
    time: float = attrs.field(validator=_instant)
    sequence: int | None = None

    def document(self) -> dict[str, Plain]:
        """Return the event as a document of plain values, without the fields that have their defaults.

        >>> Ended(cluster="alps", time=9.0, job=3, submit=2.0, status="failed").document()
        {'kind': 'ended', 'cluster': 'alps', 'time': 9.0, 'job': 3, 'submit': 2.0, 'status': 'failed'}
        """
        return {"kind": self.kind} | plain_fields(self)

    def line(self) -> str:
        """Return the document as one line of JSON."""
        return json.dumps(self.document(), separators=(",", ":"))


@attrs.frozen(kw_only=True, repr=False)
class JobEvent(Event):
    """An event of one job, known by cluster, id and submission.

    Parameters
    ----------
    job, submit
        its id (``"12"`` and 12 are the same), and the instant of its submission (s)
    """

    job: int | str = attrs.field(converter=job_id)
    submit: float = attrs.field(validator=_instant)

    @property
    def key(self) -> JobKey:
        """The identity of the job: cluster, id and submission (s)."""
        return self.cluster, self.job, self.submit


@attrs.frozen(kw_only=True, repr=False)
class Submitted(JobEvent):
    """A job came; ``held``: it must be released before it can start."""

    kind = "submitted"

    request: Demand
    held: bool = False


@attrs.frozen(kw_only=True, repr=False)
class Started(JobEvent):
    """A waiting job started on a partition; ``nodes``: their names and its cores on each, if the source gives them."""

    kind = "started"

    partition: str | None = None
    nodes: tuple[tuple[str, int], ...] = ()


@attrs.frozen(kw_only=True, repr=False)
class Ended(JobEvent):
    """A job ended, or left the queue."""

    kind = "ended"

    status: Literal["completed", "timeout", "failed", "cancelled", "lost"] = "completed"


@attrs.frozen(kw_only=True, repr=False)
class Requeued(JobEvent):
    """A running job went back to the queue."""

    kind = "requeued"


@attrs.frozen(kw_only=True, repr=False)
class OnHold(JobEvent):
    """A waiting job may not start until it is released."""

    kind = "held"


@attrs.frozen(kw_only=True, repr=False)
class Released(JobEvent):
    """A held job may start again."""

    kind = "released"


@attrs.frozen(kw_only=True, repr=False)
class Changed(JobEvent):
    """The request of a job changed, for instance its priority or its limit: the new request, whole."""

    kind = "changed"

    request: Demand


@attrs.frozen(kw_only=True, repr=False)
class NodesChanged(Event):
    """Nodes went down, drain (running jobs go on), or returned; ``processors`` where nodes are only counted."""

    kind = "nodes"

    state: Literal["up", "down", "draining"]
    nodes: tuple[str, ...] = ()
    processors: int = 0
    partition: str | None = None


@attrs.frozen(kw_only=True, repr=False)
class Passed(Event):
    """All events up to this instant have been passed on: a twin that follows a log or a program may decide."""

    kind = "passed"


@attrs.frozen(kw_only=True, repr=False)
class Noticed(Event):
    """A notification without details, which by itself changes nothing; the next full report supplies them.

    Parameters
    ----------
    job
        the id of the job, if it has one yet; schedulers do not give their scripts its submission time
    what
        the kind of change
    """

    kind = "noticed"

    what: Literal["submitted", "started", "ended", "nodes"]
    job: int | str | None = attrs.field(default=None, converter=_optional_id)


@attrs.frozen(kw_only=True, repr=False)
class JobReport(Fields):
    """A job in a full report: its request and state, once it has started where and when, and when it has ended.

    ``foretold``: the instant (s) at which the scheduler expects to start it, if it says so; ``reason``: why it waits,
    in the word of the scheduler; ``optional``: it is held by what its options tell, which a policy that reads them
    models.
    """

    job: int | str = attrs.field(converter=job_id)
    submit: float = attrs.field(validator=_instant)
    state: JobState
    request: Demand
    started: float | None = attrs.field(default=None, validator=_instant)
    ended: float | None = attrs.field(default=None, validator=_instant)
    partition: str | None = None
    nodes: tuple[tuple[str, int], ...] = ()
    foretold: float | None = attrs.field(default=None, validator=_instant)
    reason: str = ""
    optional: bool = False


@attrs.frozen(kw_only=True, repr=False)
class StateReport(Event):
    """The full state of a cluster at an instant: jobs that are not in it are over.

    Parameters
    ----------
    jobs
        all jobs that wait or run, in the order of the queue; some that have ended may be among them
    down, draining
        the names of the nodes out of service; ``None``: not reported
    """

    kind = "state"

    jobs: tuple[JobReport, ...] = ()
    down: tuple[str, ...] | None = None
    draining: tuple[str, ...] | None = None


KINDS: Mapping[str, type[Event]] = {
    each.kind: each
    for each in (
        Submitted,
        Started,
        Ended,
        Requeued,
        OnHold,
        Released,
        Changed,
        NodesChanged,
        Noticed,
        Passed,
        StateReport,
    )
}


def _choice(value: Plain, kind: Any) -> Plain:
    known = get_args(kind)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"must be {', '.join(known[:-1])} or {known[-1]}, got {shown(value)}")
    return value


_converter = strict_converter()
_converter.register_structure_hook_func(made_from(Literal), _choice)


def event_of(document: Mapping[str, Any] | str | bytes, source: str | None = None, place: str | None = None) -> Event:
    """Return the event of a document.

    Parameters
    ----------
    document
        plain values, or their JSON
    source, place
        the names for errors: the file or stream, and the line or entry in it

    Raises
    ------
    InputError
        it is not JSON, its kind or a key is unknown, a key is missing, or a value is of the wrong type

    >>> event_of('{"kind": "passed", "cluster": "alps", "time": 9}')
    Passed(cluster='alps', time=9.0)
    >>> event_of({"kind": "start", "cluster": "alps", "time": 9}, "events.jsonl", "line 3")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: events.jsonl, line 3: unknown event 'start'; did you mean 'started'? ...
    """
    try:
        if not isinstance(document, (dict, Mapping)):  # in this order: an abstract class costs a call
            try:
                document = json.loads(document)
            except (ValueError, RecursionError) as error:
                raise InputError(f"must be one JSON object, got {shown(document)} ({error})") from None
            if not isinstance(document, Mapping):
                raise InputError(f"must be one JSON object, got {shown(document)}")
        values = dict(document)
        kind = values.pop("kind", None)
        made = KINDS.get(kind) if isinstance(kind, str) else None
        if made is None:
            raise unknown("event", kind if isinstance(kind, str) else shown(kind), KINDS)
        return _at_once(made, values) or _converter.structure(values, made)
    except InputError as error:
        where = ", ".join(part for part in (place, error.place) if part)
        raise InputError(error.message, source, where or None) from None


_AS_THEY_ARE: Mapping[Any, tuple[type, ...]] = {
    **{kind: (kind,) for kind in (str, bool, int, float)},
    **{kind | None: (kind, type(None)) for kind in (str, int, float)},
    int | str: (int, str),
    int | str | None: (int, str, type(None)),
    Demand: (dict,),
}
"""The types of which values of a field need no conversion, or that of a whole number, by the type of the field."""
_KINDS: tuple[type, ...] = (Demand, *KINDS.values())
_FIELDS: Mapping[type, Mapping[str, tuple[type, ...]]] = {
    kind: {
        name: (str,) if get_origin(hint) is Literal else _AS_THEY_ARE.get(hint, ())
        for name, hint in get_type_hints(kind).items()
    }
    for kind in _KINDS
}
_WORDS: Mapping[type, Mapping[str, tuple[str, ...]]] = {
    kind: {name: get_args(hint) for name, hint in get_type_hints(kind).items() if get_origin(hint) is Literal}
    for kind in _KINDS
}
_WIDEST = 2**63
_PLAIN = frozenset({str, int, float, bool, type(None)})
_DEFAULTS: dict[type, tuple[tuple[str, Any], ...]] = {}


def _at_once(kind: type[Value], values: dict[str, Any]) -> Value | None:
    """Return the attrs value of a kind if no field needs a conversion, as of nearly all events; else ``None``.

    It is also ``None`` where a field is wrong: the converter says how.
    """
    fields = _FIELDS[kind]
    for name, value in values.items():
        taken = fields.get(name, ())
        if type(value) is not int:
            if type(value) not in taken:
                return None
        elif not -_WIDEST < value < _WIDEST:
            return None
        elif int not in taken:
            if float not in taken:
                return None
            values[name] = float(value)
    for name, words in _WORDS[kind].items():
        if values.get(name, words[0]) not in words:
            return None
    try:
        if "request" in values:
            request = _at_once(Demand, dict(values["request"]))
            return None if request is None else kind(**{**values, "request": request})
        return kind(**values)
    except (TypeError, ValueError):
        return None


def read_fields(values: Mapping[str, Any], kind: type[Value]) -> Value:
    """Return the attrs value of a kind from plain values.

    Raises
    ------
    InputError
        a key is unknown or missing, or a value is of the wrong type
    """
    found: Value = _converter.structure(values, kind)
    return found


def plain_fields(value: Any) -> dict[str, Plain]:
    """Return the fields of a value that differ from their defaults, as plain values."""
    found = {}
    for name, default in _defaults(type(value)):
        given = getattr(value, name)
        if given != default:
            found[name] = given if type(given) in _PLAIN else _plain_value(given)
    return found


def _defaults(kind: type[attrs.AttrsInstance]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a kind with their defaults."""
    found = _DEFAULTS.get(kind)
    if found is None:
        made = [(each.name, each.default) for each in attrs.fields(kind)]
        found = _DEFAULTS[kind] = tuple(
            (name, default.factory() if isinstance(default, attrs.Factory) else default)  # type: ignore[arg-type]
            for name, default in made
        )
    return found


def _plain_value(value: Any) -> Plain:
    if attrs.has(type(value)):
        return plain_fields(value)
    if isinstance(value, tuple):
        return [_plain_value(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value
