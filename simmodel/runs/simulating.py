"""The entry points ``simulate()`` and ``start()``: from a platform, a workload and a policy to results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, overload

from simmodel.foundation.errors import InputError
from simmodel.runs.scenario import Scenario

if TYPE_CHECKING:
    from simmodel.formats.hetsim_config import HetSimConfig
    from simmodel.platform.broker import BrokerSpec, Slowdowns
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.platform.machine import MachineSpec
    from simmodel.results.broker import BrokerResult
    from simmodel.results.machine import MachineResult
    from simmodel.results.result import Result
    from simmodel.results.streamed import StreamedResult
    from simmodel.results.streams import RecordStream
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.prediction import PredictorLike
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.kinds import GivenPolicies
    from simmodel.systems.submissions import GivenTasks, GivenWork
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.job import Job
    from simmodel.work.prepare import Estimates, Overrun, Sharing
    from simmodel.work.workload import Workload

__all__ = ["simulate", "start"]


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
    scenario = Scenario.of(platform, workload, policy, **options)
    return scenario.start(events=events, observers=observers, progress=progress, name=name, stream=stream)


@overload
def simulate(
    platform: ClusterSpec | int | str | None,
    workload: Workload | ChunkedWorkload | Iterable[Job] | str | Path,
    policy: PolicyLike = "fcfs",
    *,
    stream: str | Path,
    processors: int | None = None,
    seed: int | None = 0,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates | PredictorLike = "requested",
    overrun: Overrun = "stop",
    sharing: Sharing = "fair-bottleneck",
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
    seed: int | None = 0,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates | PredictorLike = "requested",
    overrun: Overrun = "stop",
    sharing: Sharing = "fair-bottleneck",
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
        that the WfFormat workflow, was recorded on; or a snapshot to continue from
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
        on a cluster, hrr on a machine, sgs-t for a broker, that of the snapshot
    policies
        of the places, if these are systems: one for all, or by path (``"a"``, ``"inner.a"``)
    processors
        of a cluster: replaces its number of processors
    slowdowns
        of a broker: see :class:`~simmodel.platform.broker.BrokerSpec`
    config
        of a machine: HetSim configuration, or its file, from which tasks are generated
    seed
        of all random streams (default: 0); ``None``: a new one for each run, stored in the result's scenario. Default
        with a snapshot: its streams continue
    decide_on, event_order, estimates, overrun, sharing
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
        return start(platform, workload, policy, **options).run().result()
    from simmodel.runs.apart import run_apart

    for given in ("events", "observers", "stream"):
        if options.pop(given, None):
            raise InputError("must not be given with several processes, each with a part of the run", place=given)
    watching = {given: options.pop(given) for given in ("progress", "name") if given in options}
    return run_apart(Scenario.of(platform, workload, policy, **options), processes, **watching)
