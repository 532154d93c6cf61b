"""The front door for several clusters: clusters, workloads with their homes, and a broker in; a result out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.toml import from_dict
from simmodel.records.observers import Progress
from simmodel.records.versions import versions
from simmodel.scheduling.registry import policy as policy_named
from simmodel.snapshots.broker import BrokerSnapshot
from simmodel.snapshots.cluster import snapshot_of_document
from simmodel.systems.broker.member import Slowdowns
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.forecast import By
from simmodel.systems.cluster.run import described, inlined, observe, platform_of, workload_of
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job
from simmodel.work.prepare import Estimates, Overrun
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from simmodel.results.broker import BrokerResult

__all__ = ["run_again", "simulate_brokered"]

_INLINE = 100_000  # jobs of a snapshot that is kept in the scenario itself

Platform = ClusterSpec | int | str | Path


def simulate_brokered(
    clusters: Sequence[Platform] | Mapping[str, Platform] | BrokerSnapshot,
    workload: Any = None,
    broker: Any = None,
    *,
    policy: Any = None,
    slowdowns: Slowdowns = None,
    by: By = "requested",
    ties: Any = None,
    seed: int | EllipsisType | None = ...,
    decide_on: Literal["instant", "event"] = "instant",
    event_order: Literal["submits-first", "ends-first"] = "submits-first",
    estimates: Estimates = "requested",
    overrun: Overrun = "stop",
    until: float | None = None,
    arrivals: Any = None,
    observers: Sequence[Any] = (),
    progress: bool = False,
    name: str | None = None,
) -> BrokerResult:
    """Run workloads on several clusters under a broker, and return what happened.

    Parameters
    ----------
    clusters
        each a :class:`~simmodel.platform.cluster.ClusterSpec`, a number of processors, the name of a ready one or a
        path; with names of one's own as ``{name: cluster}``, else by their own names where those differ, else c1, c2
    workload
        jobs without a home: a :class:`~simmodel.work.workload.Workload`, jobs, the name of a ready one or the path of a
        log. Or several, each with its home: as ``{cluster: workload}`` (``None``: without one), or as a list in the
        order of the clusters
    broker
        the name of a broker (see :mod:`simmodel.policies.brokers`), a policy, or a function of a view; default: sgs-t
    policy
        of the clusters: a name, a policy or a function of a view for all of them, or ``{cluster: policy}``; default:
        easy
    slowdowns, by, ties
        see :class:`~simmodel.systems.broker.system.Broker`
    seed
        of all random streams (default: 0); ``None``: another one each time, kept in the result's scenario
    decide_on, event_order, estimates, overrun, until, observers, progress
        see :func:`~simmodel.runs.simulate.simulate`
    name
        what tables and plots call the run; default: the broker

    Raises
    ------
    InputError
        where a name, a file or an option is wrong
    Stalled
        where jobs wait that nothing will ever start

    >>> jobs = [Job(processors=4, run=10), Job(processors=4, run=10), Job(processors=2, run=10)]
    >>> result = simulate_brokered({"a": 4, "b": 4}, {"a": jobs}, "sgs-t")
    >>> list(zip(result.jobs["destination"].tolist(), result.jobs["start"].tolist()))
    [('a', 0.0), ('b', 0.0), ('a', 10.0)]
    >>> simulate_brokered({"a": 4, "b": 4}, {"a": jobs}, "siloed").jobs["start"].tolist()
    [0.0, 10.0, 20.0]

    ``simulate_brokered(snapshot)`` goes on from a :class:`~simmodel.snapshots.broker.BrokerSnapshot`, under
    its own broker and policies unless others are given, with its own arrivals, and ``arrivals`` besides (as a workload,
    or several with their homes). Of the options seed, until, observers and name apply.
    """
    if isinstance(clusters, BrokerSnapshot):
        if workload is not None:
            raise InputError("a snapshot, and no workload, expected: its arrivals are its own")
        return _continue(clusters, broker, policy, arrivals, seed, until, observers, name)
    if workload is None:
        raise InputError("a workload expected, found none")
    if arrivals is not None:
        raise InputError("arrivals go with a snapshot; a workload says when its jobs come")
    broker, policy = broker or "sgs-t", policy or "easy"
    platforms = _platforms(clusters)
    names = list(platforms)
    logs = _logs(workload, names)
    policies = _policies(policy, names)
    env = Environment(seed=0 if seed is ... else seed)
    members = [
        Cluster(
            env,
            spec,
            policies[each],
            decide_on=decide_on,
            event_order=event_order,
            estimates=estimates,
            overrun=overrun,
            name=each,
        )
        for each, spec in platforms.items()
    ]
    chosen = broker.fresh() if hasattr(broker, "fresh") and not isinstance(broker, type) else broker
    system = Broker(env, members, chosen, slowdowns=slowdowns, by=by, ties=ties)
    count = sum(len(log) for _, log, _ in logs)
    bar = Progress(count, ", ".join(log.name for _, log, _ in logs)) if progress else None
    observe(env, bar, *observers)
    for home, log, _ in logs:
        system.replay(log, home)
    try:
        _run(system, until)
    finally:
        if bar is not None:
            bar.close()
    result = system.result(name)
    result.scenario = {
        "clusters": {each: described(spec) for each, spec in platforms.items()},
        "workloads": [{"home": home, **(source if source is not None else inlined(log))} for home, log, source in logs],
        **_chosen(broker, policy if isinstance(policy, Mapping) else dict.fromkeys(names, policy), system),
        "slowdowns": [
            [home, member.name, factor] for member in system.members for home, factor in member.slowdowns.items()
        ],
        "options": {
            "by": by,
            "ties": ties if isinstance(ties, str) else None,
            "decide_on": decide_on,
            "event_order": event_order,
            "estimates": estimates,
            "overrun": overrun,
            "until": until,
        },
        "seed": env.seed,
        "versions": versions(),
    }
    return result


def _run(system: Broker, until: float | None) -> None:
    clusters = [member.cluster for member in system.members]
    endless = any(each.calendar.endless or each.spec.outages or each.spec.reservations for each in clusters)
    with quiet_garbage_collector():
        system.env.run(until=until if until is not None else system.idle() if endless else None)


def _continue(
    snapshot: BrokerSnapshot,
    broker: Any,
    policy: Any,
    arrivals: Any,
    seed: int | EllipsisType | None,
    until: float | None,
    observers: Sequence[Any],
    name: str | None,
) -> BrokerResult:
    if until is not None and not until > snapshot.now:
        raise InputError(f"until > {snapshot.now:g} s, the instant of the snapshot, expected, found {until:g}")
    env = Environment(snapshot.now, snapshot.seed if seed is ... else seed)
    if seed is not ...:
        clusters = tuple(attrs.evolve(cluster, streams=()) for cluster in snapshot.clusters)
        snapshot = attrs.evolve(snapshot, streams=(), clusters=clusters)
    names = [cluster.name for cluster in snapshot.clusters]
    system = Broker.from_snapshot(env, snapshot, broker, {} if policy is None else _policies(policy, names))
    observe(env, *observers)
    for home, log, _ in [] if arrivals is None else _logs(arrivals, names):
        early = log["submit"] < snapshot.now
        if early.any():
            row = int(early.argmax())
            raise InputError(
                f"arrivals at or after {snapshot.now:g} s, the instant of the snapshot, expected, found job "
                f"{log['job'][row]} at {log['submit'][row]:g} s"
            )
        system.replay(log, home)
    _run(system, until)
    result = system.result(name)
    own = {cluster.name: cluster.policy.known_as for cluster in snapshot.clusters}
    given = policy if isinstance(policy, Mapping) else dict.fromkeys(names, policy) if policy is not None else own
    result.scenario = {
        "snapshot": snapshot.document() if len(result.jobs) <= _INLINE else {"digest": snapshot.digest},
        "workloads": [],
        **_chosen(snapshot.policy.known_as if broker is None else broker, given, system),
        "arrived": arrivals is not None,
        "options": {"until": until},
        "seed": None if seed is ... else seed,
        "versions": versions(),
    }
    return result


def _chosen(broker: Any, policies: Mapping[str, Any], system: Broker) -> dict[str, Any]:
    """Return the broker and the policies of the clusters as a scenario keeps them: names, ``None`` for objects."""
    return {
        "broker": broker if isinstance(broker, str) else None,
        "broker_called": system.scheduler.policy_name,
        "policies": {name: each if isinstance(each, str) else None for name, each in policies.items()},
    }


def run_again(values: Mapping[str, Any], *, workload: Any = None, policy: Any = None, **options: Any) -> BrokerResult:
    """Run again what the scenario of a result holds; what is given replaces what was saved (see ``load_scenario``).

    Parameters
    ----------
    values
        what a result keeps under ``scenario``
    workload, policy
        as of :func:`simulate_brokered`: its workload and its broker
    options
        as of :func:`simulate_brokered`; ``policies`` are those of the clusters, by name

    Raises
    ------
    InputError
        where something was given as an object, or is too large for the scenario, and is not given again

    >>> log = Workload({"submit": [0, 0, 0, 0], "run": [5, 5, 5, 5], "processors": [3, 3, 3, 3]})
    >>> first = simulate_brokered([4, 4], log, "random", seed=7)
    >>> again = run_again(first.scenario)
    >>> again.jobs["destination"].tolist() == first.jobs["destination"].tolist()
    True
    """
    broker = values["broker"] if policy is None else policy
    if broker is None:
        raise InputError(f"the broker {values['broker_called']!r} was given as an object: give it to run(policy=...)")
    policies = options.pop("policies", values["policies"])
    missing = [name for name, each in policies.items() if each is None]
    if missing:
        raise InputError(f"the policies of {', '.join(missing)} were given as objects: give them to run(policies=...)")
    given = {**values["options"], **options}
    if policy is not None and "ties" not in options:
        given.pop("ties", None)  # it went with the broker that was saved
    if "snapshot" in values:
        if "format" not in values["snapshot"]:
            raise InputError(
                "the snapshot is large, and is not in the scenario: simulate(snapshot, ...) repeats the run"
            )
        if values["arrived"] and workload is None:
            raise InputError("what arrived is not in the scenario: give it to run(workload=...)")
        snapshot: Any = snapshot_of_document(values["snapshot"])
        if values["seed"] is not None:
            given.setdefault("seed", values["seed"])
        return simulate_brokered(snapshot, broker=broker, policy=policies, arrivals=workload, **given)
    given.setdefault("seed", values["seed"])
    given.setdefault(
        "slowdowns", {(home, at) if home is not None else at: factor for home, at, factor in values["slowdowns"]}
    )
    clusters = {name: from_dict(each) for name, each in values["clusters"].items()}
    logs = {each["home"]: _saved(each) for each in values["workloads"]} if workload is None else workload
    return simulate_brokered(clusters, logs, broker, policy=policies, **given)


def _saved(described_log: Mapping[str, Any]) -> Any:
    if "source" in described_log:
        return described_log["source"]
    if "columns" not in described_log:
        raise InputError(
            f"the workload {described_log['name']!r} was made in Python or is large, and is not in the scenario: "
            "give it to run(workload=...)"
        )
    columns, processors = described_log["columns"], described_log.get("processors")
    return Workload(columns, name=described_log["name"], processors=processors)


def _platforms(given: Any) -> dict[str, ClusterSpec]:
    """Return the clusters by name, in order."""
    if isinstance(given, (str, Path, int, ClusterSpec)) or not isinstance(given, (Mapping, Iterable)):
        raise InputError(f"a list of clusters, or clusters by name, expected, found {given!r}")
    empty = Workload({"submit": [], "run": [], "processors": []})
    if isinstance(given, Mapping):
        return {str(name): platform_of(each, None, empty) for name, each in given.items()}
    specs = [platform_of(each, None, empty) for each in given]
    own = [spec.name for spec in specs]
    names = own if len(set(own)) == len(own) and len(own) > 1 else [f"c{i}" for i in range(1, len(own) + 1)]
    return dict(zip(names, specs, strict=True))


def _logs(given: Any, names: list[str]) -> list[tuple[str | None, Workload, dict[str, Any] | None]]:
    """Return (home, workload, where it came from) of each workload."""
    if isinstance(given, Mapping):
        for home in given:
            if home is not None and home not in names:
                raise InputError(
                    f"workloads by the name of their cluster expected ({', '.join(names)}), found {home!r}"
                )
        return [(home, *workload_of(each)) for home, each in given.items()]
    if isinstance(given, (list, tuple)) and given and not any(isinstance(each, Job) for each in given):
        if len(given) > len(names):
            raise InputError(f"at most {len(names)} workloads expected, one a cluster, found {len(given)}")
        return [(home, *workload_of(each)) for home, each in zip(names, given, strict=False)]
    return [(None, *workload_of(given))]


def _policies(given: Any, names: list[str]) -> dict[str, Any]:
    """Return a policy of its own for each cluster."""
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise InputError(f"a policy of each cluster expected ({', '.join(names)}), found {', '.join(given)}")
        by_name = dict(given)
    else:
        by_name = dict.fromkeys(names, given)
    policies = {}
    for name, each in by_name.items():
        policy = policy_named(each)
        policies[name] = policy.fresh() if policy is each and hasattr(policy, "fresh") else each
    return policies
