"""The front door: a platform, a workload and a policy in; a result out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import attrs

from simmodel.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.machine import MachineSpec
from simmodel.records.versions import versions
from simmodel.snapshots.cluster import SystemSnapshot, snapshot_of_document
from simmodel.snapshots.machine import MachineSnapshot
from simmodel.systems.cluster.run import go_on_with_jobs, run_jobs, workload_of
from simmodel.work.job import Job
from simmodel.work.prepare import Estimates, Overrun
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult
    from simmodel.results.result import Result
    from simmodel.systems.machine.run import Works

__all__ = ["Scenario", "load_scenario", "simulate"]


@overload
def simulate(
    platform: ClusterSpec | int | None,
    workload: Workload | Iterable[Job] | str | Path,
    policy: Any = "fcfs",
    *,
    processors: int | None = None,
    seed: int | None = 0,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates = "requested",
    overrun: Overrun = "stop",
    until: float | None = None,
    events: bool = False,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> Result: ...


@overload
def simulate(
    platform: SystemSnapshot,
    workload: Any = None,
    *,
    policy: Any = None,
    arrivals: Workload | Iterable[Job] | str | Path | None = None,
    seed: int | None = None,
    until: float | None = None,
    events: bool = False,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> Result: ...


@overload
def simulate(
    platform: MachineSpec,
    workload: Works,
    policy: Any = "hrr",
    *,
    config: Any = None,
    seed: int | None = 0,
    decide: Literal["ready", "submit"] | None = None,
    overlap: bool = False,
    transfers: Literal["sequential", "parallel"] = "sequential",
    contention: bool = True,
    until: float | None = None,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> MachineResult: ...


@overload
def simulate(platform: str | Path, workload: Any, policy: Any = None, **options: Any) -> Any: ...


def simulate(platform: Any, workload: Any = None, policy: Any = None, **options: Any) -> Any:
    """Run a workload on a cluster, or tasks on a machine, under a policy, and return what happened.

    Parameters
    ----------
    platform
        a number of processors, a :class:`~simmodel.platform.cluster.ClusterSpec`, the name of a ready one or the path
        of a file; ``None``: the machine that the workload says it was recorded on. Or a snapshot, to go on from, or a
        :class:`~simmodel.platform.machine.MachineSpec`: see below
    workload
        a :class:`~simmodel.work.workload.Workload`, jobs, the name of a ready one or the path of a log
    policy
        a name (see ``simmodel list policies``), a policy, or a function of a view
    processors
        replaces the number of processors of the platform
    seed
        of all random streams; ``None``: another one each time, kept in the result's scenario
    decide_on, event_order, estimates, overrun
        see :class:`~simmodel.systems.cluster.system.Cluster`
    until
        the instant at which to stop, in seconds; default: when every job is over
    events
        whether to keep a row for each state change
    observers
        objects with hooks; one that is a class is called with the environment
    progress
        whether to show a progress bar
    name
        what tables and plots call the run; default: the policy

    Raises
    ------
    InputError
        where a name, a file or an option is wrong
    Stalled
        where jobs wait that nothing will ever start

    >>> jobs = [Job(processors=5, run=1000), Job(submit=900, processors=5, run=500),
    ...         Job(submit=950, processors=7, run=100), Job(submit=960, processors=2, run=400)]
    >>> simulate(12, jobs, "easy").jobs["start"]
    array([   0.,  900., 1000., 1100.])

    ``simulate(snapshot, policy, until=..., arrivals=...)`` goes on from a
    :class:`~simmodel.snapshots.cluster.Snapshot`: under its own policy, with what that remembers, unless another is
    given; with its own arrivals, and these jobs besides; with its own random streams, unless there is a seed. The
    result has a row for each job that was not over, with what it did before. The snapshot of a machine goes on
    likewise, with ``arrivals`` as ``(at, work)``.

    >>> from simmodel import Cluster, Environment
    >>> env = Environment()
    >>> cluster = Cluster(env, 12, "easy")
    >>> _ = cluster.replay(Workload.from_jobs(jobs))
    >>> env.run(until=955)
    >>> simulate(cluster.snapshot(), "fcfs", arrivals=[Job(submit=970, processors=5, run=10)]).jobs["start"]
    array([   0.,  900., 1000., 1100., 1100.])

    On a machine, ``simulate(machine, work, policy, overlap=..., transfers=..., contention=..., decide=...)`` runs
    workflows and task sets, and returns a :class:`~simmodel.results.machine.MachineResult`: see
    :func:`simmodel.systems.machine.run.run_tasks`.

    >>> from simmodel.work.workflow import Task, Workflow
    >>> chain = Workflow([Task(id="a", run=100), Task(id="b", run=50)], [("a", "b", 50e6)])
    >>> simulate("hetsim-slow", chain, "heft").metrics()["tasks"]
    2
    """
    if isinstance(platform, MachineSnapshot):
        from simmodel.systems.machine.run import go_on

        return go_on(platform, workload if policy is None else policy, versions=versions(), **options)
    if isinstance(platform, SystemSnapshot) and platform.system == "broker":
        from simmodel.systems.broker.run import simulate_brokered

        snapshot: Any = platform
        return simulate_brokered(snapshot, broker=workload if policy is None else policy, **options)
    if isinstance(platform, SystemSnapshot):
        return go_on_with_jobs(platform, workload, policy, **options)
    if workload is None:
        raise InputError("a workload expected, found none")
    if isinstance(platform, (str, Path)):
        from simmodel.catalogue import load_platform

        platform = load_platform(platform)
    if isinstance(platform, MachineSpec):
        from simmodel.systems.machine.run import run_tasks

        return run_tasks(platform, workload, "hrr" if policy is None else policy, versions=versions(), **options)
    return run_jobs(platform, workload, "fcfs" if policy is None else policy, **options)


@attrs.frozen
class Scenario:
    """A run that can be repeated: platform, workload, policy, options and seed, as a result keeps them.

    >>> from simmodel.work.workload import Workload
    >>> log = Workload({"submit": [0, 0], "run": [5, 5], "processors": [2, 2]})
    >>> again = Scenario(simulate(2, log, "fcfs").scenario).run()
    >>> again.jobs["end"]
    array([ 5., 10.])
    """

    values: Mapping[str, Any]
    """What the result keeps under ``scenario``."""

    @property
    def of_machine(self) -> bool:
        """Whether a machine ran tasks."""
        return bool(self.values.get("platform", {}).get("kind") == "machine")

    def workload(self) -> Any:
        """Return the workload; of a machine, pairs of an instant and a task set, or the text that says where they are.

        Raises ``InputError`` where the scenario does not hold enough of it.
        """
        described = self.values["workload"]
        if self.of_machine:
            from simmodel.systems.machine.run import sets_of_scenario

            return described["source"] if "source" in described else sets_of_scenario(described)
        if "source" in described:
            return workload_of(described["source"])[0]
        if "columns" not in described:
            raise InputError(
                f"the workload {described['name']!r} was made in Python or is large, and is not in the scenario: "
                "give it to run(workload=...)"
            )
        return Workload(described["columns"], name=described["name"], processors=described.get("processors"))

    def platform(self) -> Any:
        """Return the platform: a cluster or a machine."""
        from simmodel.platform.toml import from_dict

        return from_dict(self.values["platform"])

    def run(self, *, workload: Any = None, policy: Any = None, **options: Any) -> Any:
        """Run it again; whatever is given replaces what was saved."""
        if "broker" in self.values:
            from simmodel.systems.broker.run import run_again

            return run_again(self.values, workload=workload, policy=policy, **options)
        if policy is None and not self.values["policy_by_name"]:
            raise InputError(f"the policy {self.values['policy']!r} was given as an object: give it to run(policy=...)")
        if "snapshot" in self.values:
            return self._continue(workload, self.values["policy"] if policy is None else policy, options)
        described = self.values["workload"]
        if workload is None:
            workload = described["source"] if "source" in described else self.workload()
        return simulate(
            self.platform(),
            workload,
            self.values["policy"] if policy is None else policy,
            **{"seed": self.values["seed"], **self.values["options"], **options},
        )

    def _continue(self, arrivals: Any, policy: Any, options: dict[str, Any]) -> Result:
        document = self.values["snapshot"]
        if "format" not in document:
            raise InputError(
                "the snapshot is large, and is not in the scenario: simulate(snapshot, ...) repeats the run"
            )
        if arrivals is None and self.values["workload"] is not None:
            arrivals = self.workload()
        given = {"seed": self.values["seed"], **self.values["options"], **options}
        return simulate(snapshot_of_document(document), policy, arrivals=arrivals, **given)


def load_scenario(path: str | Path) -> Scenario:
    """Return the scenario of a stored result (SQLite, JSON, or a folder of CSV or Parquet files)."""
    from simmodel.results.loading import read_scenario

    return Scenario(read_scenario(path))
