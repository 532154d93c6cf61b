"""Scenarios: platform, workload, policies, options and seed of a run as one value that can be changed and rerun."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeGuard, overload

import attrs
import numpy as np
from simpy.events import Event

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.foundation.display import Cells, Fields, Shown, short
from simmodel.foundation.errors import InputError, UnknownOption, clipped, shown, unknown
from simmodel.foundation.tracebacks import shortened
from simmodel.foundation.units import in_seconds
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import NoOptions, Options
from simmodel.platform.signals import NO_SIGNALS
from simmodel.records.tables import versions
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.registry import PolicyLike, unused
from simmodel.snapshots.snapshot import Snapshot, check_policy_name, is_snapshot, snapshot_of_document
from simmodel.systems.kinds import Kind, kind_named, kind_of, kind_of_platform, kind_of_snapshot, snapshot_in
from simmodel.systems.machine.recorded import recorded_machine, recorded_workflow
from simmodel.systems.submissions import (
    INLINE,
    GivenWork,
    Submissions,
    in_chunks as chunked,
    read_submissions,
    submissions_of_document,
)
from simmodel.systems.system import Live, System
from simmodel.work.prepare import repeatable

if TYPE_CHECKING:
    from simmodel.formats.documents import Value
    from simmodel.formats.hetsim_config import HetSimConfig
    from simmodel.platform.broker import BrokerSpec, Slowdowns, SystemSpec
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.platform.machine import MachineSpec
    from simmodel.platform.signals import GivenSignals
    from simmodel.results.broker import BrokerResult
    from simmodel.results.machine import MachineResult
    from simmodel.results.result import Result
    from simmodel.results.streamed import StreamedResult
    from simmodel.results.streams import RecordStream
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.prediction import PredictorLike
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.submissions import GivenTasks, GivenWork
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.job import Job
    from simmodel.work.prepare import Estimates, Overrun, Sharing
    from simmodel.work.time_limits import TooLong
    from simmodel.work.workload import Workload

__all__ = [
    "GivenPlatform",
    "Missing",
    "Scenario",
    "check_option_names",
    "load_scenario",
    "platform_of",
    "simulate",
    "start",
]

GivenPlatform: TypeAlias = (
    "SystemSpec | Snapshot | int | np.integer | str | Path"
    " | Mapping[str, GivenPlatform] | Iterable[GivenPlatform] | None"
)
"""Accepted platforms: a spec of any kind of system, a number of processors, the name of a bundled platform or a file;
several of these, by name or as a list (a broker); a snapshot; ``None`` (the cluster that the log was recorded on)."""


def platform_of(given: GivenPlatform) -> SystemSpec | Snapshot | None:
    """Return the spec or the snapshot of a given platform; ``None`` stays ``None``.

    Raises
    ------
    InputError
        if it is anything else

    >>> platform_of(16).processors
    16
    >>> list(platform_of({"a": 4, "b": 8}).places)
    ['a', 'b']
    """
    if given is None or _described(given):
        return given
    if (snapshot := snapshot_in(given)) is not None:
        return snapshot
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given <= 0:
            raise InputError(f"must be a number of processors > 0, got {given}", place="platform")
        return ClusterSpec.simple(int(given))
    if isinstance(given, (str, Path)):
        if is_snapshot(Path(given)):
            return Snapshot.from_json(Path(given))
        from simmodel.catalogue import load_platform  # imports all file readers, so only when needed

        read: SystemSpec = load_platform(given)
        return read
    if isinstance(given, Mapping):
        from simmodel.platform.broker import BrokerSpec

        return BrokerSpec(places={str(name): _place(each) for name, each in given.items()})
    if isinstance(given, Iterable):
        specs = [_place(each) for each in given]
        own = [str(spec.name) for spec in specs]
        names = own if len(set(own)) == len(own) > 1 else [f"c{i}" for i in range(1, len(own) + 1)]
        from simmodel.platform.broker import BrokerSpec

        return BrokerSpec(places=dict(zip(names, specs, strict=True)))
    raise InputError(f"must be a spec, a number of processors, a name or a path, got {given!r}", place="platform")


def _described(given: object) -> TypeGuard[SystemSpec]:
    return kind_of(given) is not None


def _place(given: GivenPlatform) -> SystemSpec:
    found = platform_of(given)
    if not _described(found):
        raise InputError(f"must be a spec, a number of processors, a name or a path, got {given!r}", place="platform")
    return found


@attrs.frozen(repr=False)
class Missing(Fields):
    """Placeholder for a part that a scenario's document does not store; ``message`` explains how to supply it."""

    message: str


@attrs.frozen(kw_only=True, repr=False)
class Scenario(Shown):
    """The complete definition of a run.

    Parameters
    ----------
    platform
        the spec of any kind of system, or a snapshot to continue from; ``None``: the cluster that the log was recorded
        on. All other forms that :func:`~simmodel.runs.scenario.simulate` accepts are converted
    workload
        the work to submit; with a snapshot, in addition to its own arrivals
    policy
        of the system itself; default: that of its kind, or of the snapshot
    policies
        of the places, if these are systems: one for all, or by path (``"a"``, ``"inner.a"``)
    options
        options of the kind of system
    seed
        of all random streams; ``None``: a new one for each run; default: 0, or the streams of the snapshot
    until
        instant (s, or a text such as ``"2d"``) at which to stop; default: when all work has ended
    inputs
        arguments that complete the platform or the workload when the run starts: ``processors``, ``too_long``,
        ``config``

    Raises
    ------
    InputError
        if a value is invalid

    >>> from simmodel import Job
    >>> small = Scenario(platform=2, workload=[Job(processors=2, run=5), Job(processors=2, run=5)])
    >>> small.run().jobs["end"]
    array([ 5., 10.])
    >>> small.evolve({"partitions[0].processors": 4, "policy": "easy"}).run().jobs["end"]
    array([5., 5.])
    """

    platform: Any = attrs.field(converter=platform_of)
    workload: Any = attrs.field(default=None, converter=repeatable)
    policy: Any = None
    policies: GivenPolicies = None
    options: Options = attrs.field()
    seed: int | EllipsisType | None = ...
    until: float | None = attrs.field(default=None, converter=in_seconds)
    inputs: Mapping[str, Any] = attrs.field(factory=dict)

    @options.default
    def _options_default(self) -> Options:
        given = snapshot_in(self.platform) is None and not isinstance(self.platform, Missing)
        return self.kind.options() if given else NoOptions()

    @classmethod
    def of(
        cls,
        platform: GivenPlatform,
        workload: GivenWork | None = None,
        policy: PolicyLike | None = None,
        **options: Any,
    ) -> Scenario:
        """Return the scenario for the arguments of :func:`~simmodel.runs.scenario.simulate`.

        >>> Scenario.of(4, "probe-4", "easy", overrun="continue").options.overrun
        'continue'
        """
        spec = platform_of(platform)
        if spec is None and "processors" not in options and (flow := recorded_workflow(workload)) is not None:
            spec = recorded_machine(flow)
        own = {name: options.pop(name) for name in _PLAIN if name in options}
        if snapshot_in(spec) is not None:
            for name in options:
                raise InputError("must not be passed with a snapshot, which has its own options", place=name)
            return cls(platform=spec, workload=workload, policy=policy, **own)
        kind = kind_of_platform(spec)
        inputs = {name: options.pop(name) for name in kind.inputs if name in options}
        known = kind.option_names(spec) if options else []
        for name in options:
            if name not in known:
                raise UnknownOption(unknown("option", name, [*known, *kind.inputs, *_PLAIN, *_WATCHING]).message)
        given = kind.read_options(options)
        return cls(platform=spec, workload=workload, policy=policy, options=given, inputs=inputs, **own)

    @property
    def kind(self) -> Kind:
        """The kind of system that runs."""
        return kind_of_platform(self.platform)

    def _cells(self) -> Cells:
        rows = [["platform", repr(self.platform)], ["workload", short(self.workload)]]
        rows.append(["policy", str(self.policy or self.kind.policy)])
        for name in ("policies", "options", "seed", "until", "inputs"):
            value = getattr(self, name)
            if value is not None and value is not ... and value != {}:
                rows.append([name, short(value)])
        return [["part", "value"], *rows]

    def __repr__(self) -> str:
        return f"<Scenario of a {self.kind.name} under {self.policy or self.kind.policy}>"

    # ------------------------------------------------------------------ parts by path

    def _path(self, path: str) -> str:
        from simmodel.runs.paths import parsed

        if parsed(path)[0] in _FIELDS:
            return path
        return f"platform{path}" if path.startswith("[") else f"platform.{path}"

    def get(self, path: str) -> Any:
        """Return the part at a path: ``"seed"``, ``"partitions[0].nodes[0].cores"``, ``"places.fast.name"``.

        Write attributes with a dot, items as ``[0]``, ``['any name']`` or, if names are unique, ``.name``. A first
        part that is not a field of the scenario is looked up in its platform.

        Raises
        ------
        InputError
            if the path does not exist
        """
        from simmodel.runs.paths import look_up

        return look_up(self, self._path(path))

    def evolve(self, changes: Mapping[str, Any] | None = None, /, **fields: Any) -> Scenario:
        """Return the scenario with the parts at several paths replaced; it is checked once, after all changes.

        Raises
        ------
        InputError
            if a path does not exist, or the new scenario is invalid

        >>> Scenario(platform=4, workload="probe-4").evolve({"seed": 3, "options.overrun": "continue"}).seed
        3
        """
        from simmodel.runs.paths import changed

        new: Scenario = changed(self, {self._path(path): each for path, each in {**(changes or {}), **fields}.items()})
        return new

    # ------------------------------------------------------------------ running

    @quiet_garbage_collector()
    def start(self, *, stream: str | Path | RecordStream | None = None, **options: Any) -> Simulation:
        """Return the simulation, ready to run.

        Parameters
        ----------
        stream
            the file that takes the record of jobs as the run goes on: see :func:`~simmodel.runs.scenario.simulate`
        options
            those of :class:`~simmodel.runs.simulation.Simulation`
        """
        for given in (self.platform, self.workload, self.policy, self.policies):
            for each in given.values() if isinstance(given, Mapping) else (given,):
                if isinstance(each, Missing):
                    raise InputError(each.message)
        snapshot = snapshot_in(self.platform)
        if snapshot is not None and stream is not None:
            raise InputError("must be None with a snapshot", place="stream")
        if snapshot is not None:
            system, work = self._restored(snapshot)
            described: dict[str, Any] = _snapshot_document(snapshot)
        else:
            system, work, spec = self._built(in_chunks=stream is not None)
            from simmodel.platform.kinds import to_dict

            described = {"platform": to_dict(spec)}
        simulation = Simulation(system, until=self.until, **options)
        if any(isinstance(event, Event) for *_, event in system.env._queue):
            simulation.keep_built()
        simulation.scenario = {
            "kind": self.kind.name,
            "work": system.work,
            **described,
            "workload": None if work is None else work.document(),
            **self._chosen(system),
            "options": self.options.described(),
            "seed": system.env.seed if snapshot is None else None if self.seed is ... else self.seed,
            "until": self.until,
            "versions": versions(),
            **self._kept_inputs(),
        }
        if stream is not None:
            from simmodel.results.streams import RecordStream

            simulation.stream_to(stream if isinstance(stream, RecordStream) else RecordStream(stream))
        if work is not None:
            simulation.submit(work)
        return simulation

    def _built(self, *, in_chunks: bool = False) -> tuple[System[Any], Submissions, Any]:
        if self.workload is None:
            raise InputError("missing workload")
        kind = self.kind
        env = Environment(seed=0 if self.seed is ... else self.seed)
        given = chunked(self.workload, env.seed) if in_chunks and kind.system.reads_in_chunks else self.workload
        work, spec = kind.read_work(given, self.platform, env.seed, self.inputs)
        policy = kind.policy if self.policy is None else self.policy
        return kind.build(env, spec, unused(policy), self.options, policies=self.policies), work, spec

    def _restored(self, snapshot: Snapshot) -> tuple[System[Any], Submissions | None]:
        kind = kind_of_snapshot(snapshot)
        if isinstance(self.seed, int):
            env, snapshot = Environment(snapshot.now, self.seed), snapshot.reseeded()
        else:
            env = Environment(snapshot.now, snapshot.seed)
        policy = None if self.policy is None else unused(self.policy)
        system = kind.restore(env, snapshot, policy, policies=self.policies)
        if self.workload is None:
            return system, None
        names = [str(place.name) for place in system.places] if kind.homes else []
        about: Any = {"homes": names, "of_nodes": system.of_nodes, "seed": env.seed}
        return system, read_submissions(system.work, self.workload, **about)

    def _kept_inputs(self) -> dict[str, Any]:
        kept = {name: self.inputs[name] for name in self.kind.kept_inputs if name in self.inputs}
        return {"inputs": kept} if kept else {}

    def _chosen(self, system: System[Live]) -> dict[str, Any]:
        """Return the policies as stored in a document: names, ``None`` for objects."""
        chosen = {"policy": system.known_as, "policy_called": system.scheduler.policy_name}
        below = system.policies_below()
        return {**chosen, "policies": below} if below else chosen

    def run(self, **changes: Any) -> Any:
        """Run the scenario and return the result.

        Changes are fields of the scenario, options of its kind, or options of :meth:`start`.
        """
        scenario, options = self._with(changes)
        return scenario.start(**options).run().result()

    def _with(self, changes: dict[str, Any]) -> tuple[Scenario, dict[str, Any]]:
        fields: dict[str, Any] = {name: changes.pop(name) for name in _FIELDS if name in changes}
        watching: dict[str, Any] = {name: changes.pop(name) for name in _WATCHING if name in changes}
        if changes:
            options = {**self.options.values(), **changes}
            fields["options"] = self.kind.read_options(options)
        return attrs.evolve(self, **fields), watching

    # ------------------------------------------------------------------ documents

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, source: str | None = None, trust: bool = False) -> Self:
        """Return the scenario of a document, which a result stores as ``scenario``.

        With ``trust``, its policies and custom processors may be ``module:name``, which imports code. ``source`` names
        the file in errors.

        Parts that are not stored (objects, large workloads) become :class:`Missing` and must be passed to :meth:`run`.

        >>> from simmodel import Workload
        >>> log = Workload({"submit": [0, 0], "run": [5, 5], "processors": [2, 2]})
        >>> Scenario.from_document(Scenario(platform=2, workload=log).run().scenario).run().jobs["end"]
        array([ 5., 10.])
        """
        from simmodel.formats.documents import Value

        found = Value(dict(document), source or "scenario")
        for key in ("kind", "workload", "policy", "options", "seed", "until"):
            _ = found[key]
        try:
            kind = kind_named(found["kind"].text())
            _check_policies(document, trust=trust)
            platform, options = _platform_of_document(found, kind, trust=trust)
            seed = document["seed"]
            return cls(
                platform=platform,
                workload=_workload_of_document(found),
                policy=_policy_of_document(document),
                policies=_policies_of_document(document),
                options=options,
                seed=... if seed is None else seed,
                until=None if document["until"] is None else found["until"].number(least=None),
                inputs=found["inputs"].table() if "inputs" in found else {},
            )
        except InputError as error:
            raise InputError(error.message, error.source or source, error.place) from None
        except KeyError as error:
            raise InputError(f"missing key {error}", source, "scenario") from None
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"must be a stored scenario: {clipped(error, 200)}", source, "scenario") from None


_FIELDS = tuple(field.name for field in attrs.fields(Scenario))
_PLAIN = ("policies", "seed", "until")
_WATCHING = ("events", "observers", "progress", "name", "stream")


def _snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    return {"snapshot": snapshot.document() if snapshot.unfinished <= INLINE else {"digest": snapshot.digest}}


def _check_policies(document: Mapping[str, Any], *, trust: bool) -> None:
    check_policy_name(document["policy"], "policy", trust=trust)
    below = document.get("policies")
    for name, each in below.items() if isinstance(below, Mapping) else ():
        if not isinstance(each, str | None):
            raise InputError(f"must be a name, got {shown(each)}", place=f"policies.{name}")
        check_policy_name(each, f"policies.{name}", trust=trust)


def _platform_of_document(document: Value, kind: Kind, *, trust: bool) -> tuple[Any, Options]:
    if "snapshot" not in document:
        from simmodel.platform.toml import check_models, from_dict

        spec = from_dict(document["platform"].table())
        if not trust:
            check_models(spec)
        return spec, kind.options.of(document["options"].table())
    if "format" in document["snapshot"]:
        return snapshot_of_document(document["snapshot"].table(), trust=trust), NoOptions()
    message = "the snapshot is too large to be stored in the scenario: repeat the run by simulate(snapshot, ...)"
    return Missing(message), NoOptions()


def _workload_of_document(document: Value) -> Any:
    parts = document.get("workload")
    if parts is None:
        return None
    try:
        return submissions_of_document(document["work"].text(), [each.table() for each in parts.list()])
    except InputError as error:
        return Missing(error.message)


def _policy_of_document(document: Mapping[str, Any]) -> Any:
    if document["policy"] is not None:
        return document["policy"]
    called = document["policy_called"]
    return Missing(f"policy {called!r} was passed as an object: pass it as run(policy=...)")


def _policies_of_document(document: Mapping[str, Any]) -> Any:
    if "policies" not in document:
        return None
    objects = [name for name, each in document["policies"].items() if each is None]
    if objects:
        return Missing(f"the policies of {', '.join(objects)} were passed as objects: pass them as run(policies=...)")
    return dict(document["policies"])


def check_option_names(platform: GivenPlatform, names: Iterable[str]) -> None:
    """Check that options are among those of :func:`start` for a platform.

    Raises
    ------
    UnknownOption
        one is not

    >>> check_option_names(4, ["estimates", "until"])
    """
    spec = platform_of(platform)
    kind = kind_of_platform(spec)
    own = [] if snapshot_in(spec) is not None else [*kind.option_names(spec), *kind.inputs]
    known = [*own, *_PLAIN, *_WATCHING]
    for name in names:
        if name not in known:
            raise UnknownOption(unknown("option", name, known).message)


def load_scenario(path: str | Path, *, trust: bool = False) -> Scenario:
    """Return the scenario of a stored result (SQLite, JSON, or a folder of CSV or Parquet files).

    With ``trust``, its policies and custom processors may be ``module:name``, which imports code.

    Raises
    ------
    InputError
        if the file is not a result, or has no scenario
    """
    from simmodel.results.loading import read_scenario

    return Scenario.from_document(read_scenario(path), source=str(path), trust=trust)


def start(
    platform: GivenPlatform,
    workload: GivenWork | None = None,
    policy: PolicyLike | None = None,
    *,
    events: bool = False,
    observers: Sequence[object] = (),
    progress: bool = False,
    name: str | None = None,
    stream: str | Path | RecordStream | None = None,
    **options: Any,
) -> Simulation:
    """Return a simulation of a workload on a platform under a policy, ready to run.

    Accepts the arguments of :func:`simulate`.

    >>> sim = start(12, "probe-4", "easy")
    >>> sim.run(until=955).system
    <Cluster cluster: 1 waiting, 4 unfinished>
    >>> sim.run().result().jobs["start"]
    array([   0.,  900., 1000., 1100.])
    """
    scenario = _scenario(platform, workload, policy, options)
    return scenario.start(events=events, observers=observers, progress=progress, name=name, stream=stream)


def _scenario(
    platform: GivenPlatform, workload: GivenWork | None, policy: PolicyLike | None, options: dict[str, Any]
) -> Scenario:
    """Return the scenario of a call; a cluster without a policy is warned of."""
    scenario = Scenario.of(platform, workload, policy, **options)
    if policy is None and scenario.kind.name == "cluster" and snapshot_in(scenario.platform) is None:
        text = "no policy given: a cluster runs under 'fcfs', in the next version under 'easy', as in 'simmodel batch'"
        warnings.warn(text, FutureWarning, stacklevel=3)
    return scenario


@overload
def simulate(
    platform: ClusterSpec | int | str | None,
    workload: Workload | ChunkedWorkload | Iterable[Job] | str | Path,
    policy: PolicyLike = "fcfs",
    *,
    stream: str | Path,
    processors: int | None = None,
    too_long: TooLong = "reject",
    seed: int | None = 0,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates | PredictorLike = "requested",
    overrun: Overrun = "stop",
    sharing: Sharing = "fair-bottleneck",
    signals: GivenSignals = NO_SIGNALS,
    until: float | str | None = None,
    observers: Sequence[object] = (),
    progress: bool = False,
    name: str | None = None,
) -> StreamedResult: ...


@overload
def simulate(
    platform: ClusterSpec | int | None,
    workload: Workload | Iterable[Job] | str | Path,
    policy: PolicyLike = "fcfs",
    *,
    processors: int | None = None,
    too_long: TooLong = "reject",
    seed: int | None = 0,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates | PredictorLike = "requested",
    overrun: Overrun = "stop",
    sharing: Sharing = "fair-bottleneck",
    signals: GivenSignals = NO_SIGNALS,
    until: float | str | None = None,
    events: bool = False,
    observers: Sequence[object] = (),
    progress: bool = False,
    name: str | None = None,
) -> Result: ...


@overload
def simulate(
    platform: MachineSpec,
    workload: GivenTasks,
    policy: PolicyLike = "hrr",
    *,
    config: HetSimConfig | None = None,
    seed: int | None = 0,
    decide: Literal["ready", "submit"] | None = None,
    overlap: bool = False,
    transfers: Literal["sequential", "parallel"] = "sequential",
    core_held: Literal["run", "transfer"] = "run",
    contention: bool = True,
    until: float | str | None = None,
    observers: Sequence[object] = (),
    progress: bool = False,
    name: str | None = None,
) -> MachineResult: ...


@overload
def simulate(
    platform: BrokerSpec | Mapping[str, GivenPlatform] | Sequence[ClusterSpec | int | str | Path],
    workload: GivenWork,
    policy: PolicyLike = "sgs-t",
    *,
    policies: GivenPolicies = None,
    slowdowns: Slowdowns = None,
    by: Literal["requested", "actual"] = "requested",
    processes: int = 1,
    seed: int | None = 0,
    until: float | str | None = None,
    events: bool = False,
    observers: Sequence[object] = (),
    progress: bool = False,
    name: str | None = None,
    **options: Any,
) -> BrokerResult: ...


@overload
def simulate(
    platform: GivenPlatform,
    workload: GivenWork | None = None,
    policy: PolicyLike | None = None,
    *,
    policies: GivenPolicies = None,
    processes: int = 1,
    seed: int | EllipsisType | None = ...,
    until: float | str | None = None,
    events: bool = False,
    observers: Sequence[object] = (),
    progress: bool = False,
    name: str | None = None,
    **options: Any,
) -> Any: ...


def simulate(
    platform: GivenPlatform,
    workload: GivenWork | None = None,
    policy: PolicyLike | None = None,
    *,
    processes: int = 1,
    **options: Any,
) -> Any:
    """Simulate a workload on a platform under a policy, and return the result.

    Parameters
    ----------
    platform
        the spec of a system of any kind, a number of processors, the name of a bundled platform or the path of a file;
        several of these, by name or as a list: a broker over them; ``None``: the cluster that the log, or the machines
        that the WfFormat workflow, was recorded on; or a snapshot, or the path of its file, to continue from
    workload
        jobs: a :class:`~simmodel.work.workload.Workload`, a data frame with its columns,
        :class:`~simmodel.work.job.Job` values, a workflow whose tasks run as batch jobs (see
        :meth:`~simmodel.work.workflow.Workflow.jobs`), the name of a bundled workload, the path of a log, or a text,
        drawn with the seed, such as ``"lublin:jobs=600,processors=128"``; for a broker also several, each with its
        home, as ``{place: workload}`` (``None``: no home) or as a list in the order of the places. Tasks: workflows and
        task sets, each alone or with its submit time as ``(at, work)``, or a text such as ``"layered:n=40"``. With a
        snapshot: work in addition to its own arrivals
    policy
        of the system itself: a name (see ``simmodel list policies``), a policy, or a function of a view; default: fcfs
        on a cluster (easy in the next version: until then a warning), hrr on a machine, sgs-t for a broker, that of the
        snapshot
    policies
        of the places, if these are systems: one for all, or by path (``"a"``, ``"inner.a"``)
    processors
        of a cluster: replaces its number of processors
    too_long
        of a cluster: what becomes of jobs that request more time than the limit of their partition or queue allows:
        ``"reject"``, ``"cut"`` to it, or ``"split"`` into parts that follow each other; the report counts them
    slowdowns
        of a broker: see :class:`~simmodel.platform.broker.BrokerSpec`
    config
        of a machine: HetSim configuration, or its file, from which tasks are generated
    seed
        of all random streams (default: 0); ``None``: a new one for each run, stored in the result's scenario. Default
        with a snapshot: its streams continue
    decide_on, event_order, estimates, overrun, sharing, signals
        see :class:`~simmodel.systems.cluster.system.Cluster`; also for the clusters of a broker
    decide, overlap, transfers, core_held, contention
        see :class:`~simmodel.systems.machine.system.Machine`
    by
        see :class:`~simmodel.systems.broker.system.Broker`
    until
        instant at which to stop, in s or as ``"2d"``; default: when all work has ended
    events
        whether to record each state change of jobs
    observers
        objects with hooks; a class is called with the environment
    progress
        whether to show a progress bar
    name
        name of the run in tables and plots; default: the policy
    processes
        of a broker or a grid whose policy looks at nothing that happens at the places (``round-robin``, ``random``,
        ``share``, ``shares``, ``siloed``, ``recorded``): the places are simulated in so many processes, apart from each
        other, with the same record. In a script, below ``if __name__ == "__main__":``
    stream
        of a system that runs jobs: an SQLite file, or a folder of Parquet files (``NAME.parquet``), that takes the
        record while the run goes on; jobs that have ended leave memory. The log of a cluster is read in chunks, for
        which it must be sorted by submit time. Returns a :class:`~simmodel.results.streamed.StreamedResult`

    Raises
    ------
    InputError
        if a name, a file or an option is invalid
    ImpossibleWork
        if no processor of a machine can run a task
    Stalled
        if work waits that will never start

    >>> from simmodel import Job
    >>> jobs = [Job(processors=5, run=1000), Job(submit=900, processors=5, run=500),
    ...         Job(submit=950, processors=7, run=100), Job(submit=960, processors=2, run=400)]
    >>> simulate(12, jobs, "easy").jobs["start"]
    array([   0.,  900., 1000., 1100.])

    Several platforms by name form a broker, whose policy chooses among them:

    >>> result = simulate({"a": 4, "b": 4}, {"a": [Job(processors=4, run=10) for _ in range(3)]}, "sgs-t")
    >>> list(zip(result.jobs["destination"].tolist(), result.jobs["start"].tolist()))
    [('a', 0.0), ('b', 0.0), ('a', 10.0)]

    A machine runs workflows and task sets:

    >>> from simmodel import Task, Workflow
    >>> chain = Workflow([Task(id="a", run=100), Task(id="b", run=50)], [("a", "b", 50e6)])
    >>> simulate("hetsim-slow", chain, "heft").metrics()["tasks"]
    2

    A snapshot replaces the platform; the result has a row for each job that had not ended, including its past:

    >>> snapshot = start(12, jobs, "easy").run(until=955).snapshot()
    >>> simulate(snapshot, [Job(submit=970, processors=5, run=10)], "fcfs").jobs["start"]
    array([   0.,  900., 1000., 1100., 1100.])
    """
    if processes == 1 and processes is not True:
        watching = {given: options.pop(given) for given in _WATCHING if given in options}
        with shortened:
            return _scenario(platform, workload, policy, options).start(**watching).run().result()
    from simmodel.runs.apart import run_apart

    for given in ("events", "observers", "stream"):
        if options.pop(given, None):
            raise InputError("must not be given with several processes, each with a part of the run", place=given)
    watching = {given: options.pop(given) for given in ("progress", "name") if given in options}
    return run_apart(_scenario(platform, workload, policy, options), processes, **watching)
