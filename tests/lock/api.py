"""All that the lock asks of simmodel: when a name or a signature changes, this is the module to adapt."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simmodel import (
    Broker,
    Cluster,
    Environment,
    Machine,
    Network,
    SimmodelError,
    Workload,
    compare,
    explore,
    load_platform,
    load_result,
    load_workflow,
    load_workload,
    replicate,
    simulate,
    what_if,
)
from simmodel.catalogue import bundled_names, load_tasks
from simmodel.cli import main
from simmodel.experiments import compare_brokers, replicate_portfolio
from simmodel.experiments.portfolio_comparison import compare_portfolio
from simmodel.formats.daggen import write_daggen
from simmodel.formats.hetsim import read_hetsim, write_hetsim
from simmodel.formats.swf import write_swf
from simmodel.formats.wfformat import write_wfformat
from simmodel.generators.settings import generate
from simmodel.platform import ClusterSpec, MachineSpec
from simmodel.records import NetworkRecorder
from simmodel.scheduling import objective
from simmodel.scheduling.registry import policy_names

RENAMED: dict[str, str] = {}
"""Columns and metrics that have another name today than in the recorded figures: ``{recorded: today}``."""


def named(table: Any, name: str) -> Any:
    """Return a column or a metric by the name it was recorded under, ``None`` where it is absent."""
    today = RENAMED.get(name, name)
    return table[today] if today in table else None  # noqa: SIM401 (a table has no get)


# ---------------------------------------------------------------------- ready parts, work


def names_of(kind: str) -> list[str]:
    """Return the names of all ``platforms``, ``workloads``, ``policies`` or ``task policies``."""
    if kind == "policies":
        # held by recorded runs of slurmctld; as easy while it has no quotas
        return [name for name in policy_names("jobs") if name not in ("slurm", "quota")]
    if kind == "task policies":
        return [name for name in policy_names("tasks") if name not in _ALSO_ON_MACHINES]
    return sorted(bundled_names(kind))


def platform(name: str) -> Any:
    return load_platform(name)


def is_cluster(spec: Any) -> bool:
    return isinstance(spec, ClusterSpec)


def is_machine(spec: Any) -> bool:
    return isinstance(spec, MachineSpec)


def workload(name: str, first: int | None = None) -> Workload:
    """Return a ready workload, or the first of its jobs."""
    log = load_workload(name)
    return log if first is None else log.where(slice(0, first))


def log(columns: Mapping[str, Sequence[Any]], name: str = "log", processors: int | None = None) -> Workload:
    return Workload(dict(columns), name=name, processors=processors)


def log_of(jobs: Iterable[Any]) -> Workload:
    return Workload.from_jobs(list(jobs))


def generated(settings: Mapping[str, Any], seed: int = 0) -> Workload:
    return generate(settings, seed=seed)


def tasks(text: str, seed: int = 0) -> Any:
    """Return task sets from the name of a ready workload or a text such as ``layered:n=30``."""
    return load_tasks(text, seed)


# ---------------------------------------------------------------------- runs


def run_batch(platform: Any, work: Any, policy: Any, **options: Any) -> Any:
    return simulate(platform, work, policy, **options)


def run_machine(spec: Any, work: Any, policy: Any, **options: Any) -> Any:
    return simulate(spec, work, policy, **options)


_ALSO_ON_MACHINES = ("round-robin", "random", "share", "sgs-t", "sgs-w")  # names of policies recorded by others


def _broker(name: Any, ties: str | None = None) -> Any:
    """Return the name of a broker; the lock keeps the spelling share:0.6, and the rule for ties beside it."""
    first, colon, rest = name.partition(":") if isinstance(name, str) else (name, "", "")
    name = f"{first}({rest})" if colon else first
    return name if ties is None else f"{name}(ties={ties})"


def run_brokered(clusters: Any, work: Any, broker: Any, **options: Any) -> Any:
    if "policy" in options:
        options["policies"] = options.pop("policy")
    return simulate(clusters, work, _broker(broker, options.pop("ties", None)), **options)


class Promises:
    """Keeps what a cluster promises its jobs."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.rows: list[tuple[Any, ...]] = []

    def job_promised(self, job: Any, place: Any, at: float) -> None:
        self.rows.append((self.env.now, job.id, place.name, at))


def run_with_promises(platform: Any, work: Any, policy: Any, **options: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    kept: list[Promises] = []

    def observer(env: Environment) -> Promises:
        kept.append(Promises(env))
        return kept[-1]

    env = Environment(seed=0)
    cluster = Cluster(env, platform, policy, **options)
    env.observe(observer(env))
    cluster.replay(work)
    env.run()
    return cluster.result(), kept[0].rows


# ---------------------------------------------------------------------- snapshots


def cut_batch(platform: Any, work: Any, policy: Any, at: float, *, seed: int = 0, **options: Any) -> Any:
    """Return the snapshot of a cluster at an instant."""
    env = Environment(seed=seed)
    cluster = Cluster(env, platform, policy, **options)
    cluster.replay(work)
    env.run(until=at)
    return cluster.snapshot()


def cut_machine(
    spec: Any, work: Iterable[tuple[float, Any]], policy: Any, at: float, *, seed: int = 0, **options: Any
) -> Any:
    """Return the snapshot of a machine at an instant."""
    env = Environment(seed=seed)
    machine = Machine(env, spec, policy, **options)
    for instant, each in work:
        machine.submit(each, at=instant)
    env.run(until=at)
    return machine.snapshot()


def cut_brokered(
    clusters: Mapping[str, Any],
    logs: Mapping[str | None, Any],
    broker: Any,
    at: float,
    *,
    policy: Any = "easy",
    seed: int = 0,
    **options: Any,
) -> Any:
    """Return the snapshot of clusters under a broker at an instant."""
    env = Environment(seed=seed)
    own = {name: options.pop(name) for name in ("slowdowns", "by") if name in options}
    members = [Cluster(env, size, policy, name=name, **options) for name, size in clusters.items()]
    system = Broker(env, members, _broker(broker, options.pop("ties", None)), **own)
    for home, each in logs.items():
        system.replay(each, home)
    env.run(until=at)
    return system.snapshot()


def reread(snapshot: Any) -> Any:
    """Return a snapshot as it comes back from its text."""
    return type(snapshot).from_json(snapshot.to_json())


def go_on(snapshot: Any, policy: Any = None, **options: Any) -> Any:
    """Return the result of a run that goes on from a snapshot."""
    return simulate(snapshot, options.pop("arrivals", None), policy, **options)


def save_snapshot(snapshot: Any, path: str) -> None:
    Path(path).write_text(snapshot.to_json())


# ---------------------------------------------------------------------- experiments


def whatif(snapshot: Any, policies: Any, **options: Any) -> Any:
    return what_if(snapshot, policies, **options)


def compared(platform: Any, work: Any, policies: Any, **options: Any) -> Any:
    return compare(platform, work, policies, **options)


def compared_brokers(clusters: Any, work: Any, brokers: Any, **options: Any) -> Any:
    return compare_brokers(clusters, work, brokers, **options)


def explored(platforms: Any, works: Any, policies: Any, **options: Any) -> Any:
    return explore(platforms, works, policies, **options)


def replicated(platform: Any, make: Any, policies: Any, **options: Any) -> Any:
    return replicate(platform, make, policies, **options)


def portfolio_compared(platform: Any, work: Any, portfolio: Any, **options: Any) -> Any:
    return compare_portfolio(platform, work, portfolio, **options)


def replicated_beside(platform: Any, make: Any, portfolio: Any, **options: Any) -> Any:
    return replicate_portfolio(platform, make, portfolio, **options)


def objective_of(text: Any) -> Any:
    return objective(text)


# ---------------------------------------------------------------------- networks


def run_network(
    links: Sequence[Any], flows: Sequence[Mapping[str, Any]], **options: Any
) -> tuple[dict[str, float], list[tuple[Any, ...]]]:
    """Start each flow (id, start, size, and more of a transfer) at its time: ends by id, and the recorded loads."""
    env = Environment()
    network = Network(env, links, **options)
    recorder = NetworkRecorder(network)
    ends: dict[str, float] = {}

    def go(flow: Mapping[str, Any]) -> Iterator[Any]:
        given = dict(flow)
        name = given.pop("id")
        yield env.timeout(given.pop("start", 0))
        ends[name] = (yield network.transfer(given.pop("size"), **given)).end

    for flow in flows:
        env.process(go(flow))
    env.run()
    loads = recorder.loads()
    return ends, list(zip(*(loads[name].tolist() for name in loads.names), strict=True))


# ---------------------------------------------------------------------- formats

WRITERS = {"swf": write_swf, "daggen": write_daggen, "wfformat": write_wfformat, "hetsim": write_hetsim}


def write(kind: str, value: Any, path: str, **options: Any) -> Any:
    return WRITERS[kind](value, path, **options)


def read(kind: str, path: str, **options: Any) -> Any:
    """Read a log, a workflow or a platform."""
    if kind == "hetsim":
        return read_hetsim(path, **options)
    if kind in ("dax", "daggen", "wfformat", "sst"):
        return load_workflow(path, format=kind, **options)
    return load_workload(path, format=kind, **options)


def store(result: Any, kind: str, path: str) -> Any:
    """Write a result as ``csv``, ``sqlite``, ``parquet``, ``json``, ``perfetto`` or ``schedule_csv``."""
    name = kind if kind == "schedule_csv" else f"to_{kind}"
    options = {"tasks" if hasattr(result, "tasks") else "jobs": True} if kind == "json" else {}
    return getattr(result, name)(path, **options)


def stored(path: str) -> Any:
    return load_result(path)


# ---------------------------------------------------------------------- the command line


def command(*arguments: str) -> str:
    """Return what a command prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    if status != 0:
        raise SimmodelError(f"simmodel {' '.join(arguments)}: status {status}: {err.getvalue()}")
    return out.getvalue() + err.getvalue()


@contextlib.contextmanager
def inside(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Work inside a folder."""
    with contextlib.chdir(folder):
        yield
