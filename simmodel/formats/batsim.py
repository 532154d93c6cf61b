"""Batsim: its workloads as JSON and the platforms that they run on are read, its ``jobs.csv`` of any run is written.

Types of profiles are read under the names of all its versions: ``delay``, ``parallel`` (``msg_par``, ``ptask``),
``parallel_homogeneous`` (``msg_par_hg``), ``parallel_homogeneous_total`` (``msg_par_hg_tot``) and ``composed``, or
``DelayProfile``, ``ParallelTaskProfile``, ``ParallelTaskHomogeneousProfile`` and ``SequentialCompositionProfile``.
Replays of traces, transfers from and to storages, and messages to schedulers are refused by name.

Source: https://batsim.readthedocs.io, "Workload" and "Jobs", and the releases 1.0 to 5.0 of Batsim.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from math import inf, isfinite, isnan
from pathlib import Path
from typing import NamedTuple

import attrs
import numpy as np

from simmodel.formats.documents import Value, read_json
from simmodel.formats.simgrid import node_kinds, read_simgrid
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import Source, check_count, reader, title_of
from simmodel.foundation.writing import write_text
from simmodel.platform.cluster import ClusterSpec, PartitionSpec
from simmodel.records.job_record import JobRecord
from simmodel.work.job import Job
from simmodel.work.traffic import Phase, Phases, Traffic
from simmodel.work.workload import Report, Workload

__all__ = ["JOBS_CSV", "BatsimRun", "read_batsim", "read_batsim_run", "write_batsim_jobs"]


_KINDS: Mapping[str, str] = {
    "delay": "delay DelayProfile",
    "parallel": "parallel msg_par ptask ParallelTaskProfile",
    "homogeneous": "parallel_homogeneous msg_par_hg ptask_homogeneous ParallelTaskHomogeneousProfile",
    "total": "parallel_homogeneous_total msg_par_hg_tot",
    "sequence": "composed sequence sequential_composition SequentialCompositionProfile",
}
_TYPES = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_REFUSED: Mapping[str, str] = {
    "the replay of an SMPI trace": "smpi",
    "the replay of a trace": "trace_replay TraceReplayProfile usage_trace",
    "a transfer between storages": (
        "data_staging msg_par_staging ptask_data_staging_between_storages ParallelTaskDataStagingBetweenStoragesProfile"
    ),
    "a transfer between the nodes of a job and a storage": (
        "parallel_homogeneous_pfs msg_par_hg_pfs msg_par_hg_pfs0 msg_par_hg_pfs_tiers ptask_on_storage_homogeneous "
        "ParallelTaskOnStorageHomogeneousProfile"
    ),
    "a message to or from the scheduler": "send recv SCHEDULER_SEND SCHEDULER_RECV",
    "profiles that go on side by side": "ForkJoinCompositionProfile ParallelTaskMergeCompositionProfile",
}
_WHY = {name: why for why, names in _REFUSED.items() for name in names.split()}
_STRATEGIES = {
    "DefinedAmountsUsedForEachValue": "homogeneous",
    "defined_amount_used_for_each_value": "homogeneous",
    "DefinedAmountsSpreadUniformly": "spread",
    "defined_amount_spread_uniformly": "spread",
}
_KEYS: Mapping[str, tuple[str, ...]] = {
    "delay": ("delay",),
    "parallel": ("cpu", "com"),
    "homogeneous": ("cpu", "com", "generation_strategy"),
    "total": ("cpu", "com"),
    "sequence": ("seq", "repeat", "nb"),
}
_SAID = ("command", "np", "runtime", "extra_data", "description", "comment")
"""Keys of profiles that say where they are from."""
_ABOUT = ("command", "date", "description", "comment", "comments", "version", "extra_data", "metadata", "title", "seed")
"""Keys of workloads and jobs that say the same of them."""
_CONSTRAINTS = frozenset(
    {
        *("after", "afterok", "dependencies", "dependency", "preceding"),
        *("alloc", "allocation", "constraints", "partition", "required_nodes", "resources_list"),
        *("deadline", "priority", "queue", "reservation"),
        *("gpus", "memory"),
    }
)
"""Keys with which variants of Batsim constrain where or when a job runs."""


class BatsimRun(NamedTuple):
    """A workload of Batsim, and the hosts of its platform as the nodes of a cluster."""

    workload: Workload
    cluster: ClusterSpec


@reader
def read_batsim(source: Source, *, flops: float | None = None) -> Workload:
    """Read a workload of Batsim.

    A resource is a node with one processor. The wall time is the requested time; without one nobody knows when the job
    ends: the requested time is infinite. A job whose profile has messages
    gets :class:`~simmodel.work.traffic.Traffic`, one whose profile is a sequence with messages
    :class:`~simmodel.work.traffic.Phases`; the name of a job is that of its profile. A job whose profile has a ``ret``
    other than 0 fails with this exit code, and a sequence ends with the first of its profiles that does. Other keys are
    passed over, and counted in the report.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    flops
        flop/s of a node of speed 1; without it only profiles of time are read

    Raises
    ------
    InputError
        the file cannot be read or is not such JSON, names an unknown profile, has a duplicate id, a type of profile, a
        value, or a key that constrains jobs (such as ``dependencies``) that is not read, or one that needs a platform;
        the message has the path of the value

    >>> import io
    >>> text = '''{"nb_res": 4, "jobs": [{"id": "a", "subtime": 5, "walltime": 60, "res": 2, "profile": "p"}],
    ...     "profiles": {"p": {"type": "composed", "repeat": 3, "seq": ["d"]}, "d": {"type": "delay", "delay": 10}}}'''
    >>> log = read_batsim(io.StringIO(text))
    >>> log["run"], log["requested"], log.processors
    (array([30.]), array([60.]), 4)
    """
    return _Reader(read_json(source), flops).workload()


def read_batsim_run(workload: Source, platform: str | Path) -> BatsimRun:
    """Read a workload of Batsim, and the platform of SimGrid on which it runs.

    Each host that computes is a node with one processor, in the order of the file and at its place in the network.
    Speeds are relative to that of the first one. A delay takes as long on any host: where hosts have different speeds,
    a workload of delays alone has nodes of speed 1.

    Parameters
    ----------
    workload
        a path (also of a gzip file) or an open file
    platform
        the path of the XML

    Raises
    ------
    InputError
        as :func:`read_batsim` and :func:`~simmodel.formats.simgrid.read_simgrid`; or hosts have different speeds, and
        there are delays beside profiles that compute, or a profile that computes more on one node than on another
    """
    given = read_simgrid(platform)
    hosts = [host for host in given.hosts if host.computes]
    if not hosts:
        raise InputError("must have a host that runs jobs", source=str(platform))
    unit = hosts[0].speed
    reading = _Reader(read_json(workload), unit, alike=all(host.speed == unit for host in hosts))
    jobs = reading.workload()
    jobs.report += given.report
    nodes = [
        attrs.evolve(node, cores=1, speed=node.speed if reading.computes else 1.0)
        for node, _ in node_kinds(hosts, unit)
    ]
    name = title_of(str(platform), ".xml")
    return BatsimRun(jobs, ClusterSpec(name=name, partitions=[PartitionSpec(nodes=nodes, network=str(platform))]))


class _Steps(NamedTuple):
    """The phases of a profile, how often they are repeated, and its exit code, ``ret``."""

    phases: tuple[Phase, ...]
    repeats: int
    code: int


class _Reader:
    """Reads the jobs of a document; ``flops``: flop/s of nodes of speed 1, ``alike``: of all nodes."""

    def __init__(self, document: Value, flops: float | None, *, alike: bool = True) -> None:
        self.document = document
        self.flops = flops
        self.alike = alike
        self.computes = self.delays = False
        self.kinds: dict[str, str] = {}
        self.report = Report()

    def workload(self) -> Workload:
        document = self.document
        self.pass_over(document, "of the workload", "nb_res", "jobs", "profiles", *_ABOUT)
        processors = self.whole(document["nb_res"])
        check_count("nb_res", processors)
        profiles = document["profiles"]
        self.kinds = {name: self.kind(profiles[name]) for name in profiles.table()}
        jobs: dict[int | str, Job] = {}
        for value in document["jobs"].list():
            job = self.job(value)
            assert job.id is not None
            if job.id in jobs:
                raise value["id"].wrong(f"duplicate job id {shown(job.id)}")
            jobs[job.id] = job
        if not jobs:
            raise document["jobs"].wrong("must not be empty")
        found = Workload.from_jobs(jobs.values(), name=title_of(document.source, ".json"), processors=processors)
        found.report = found.report + self.report
        return found

    def pass_over(self, value: Value, whose: str, *known: str) -> None:
        """Count the other keys of a table, which tell about it; one that constrains its jobs is refused."""
        for key in value.table():
            if key in known:
                continue
            if key.lower() in _CONSTRAINTS:
                raise value[key].wrong("is not read, and it would change when or where jobs run")
            if any(key in keys for keys in _KEYS.values()):  # of another type of profile
                raise value[key].wrong(unknown("key", key, known).message)
            self.report.skipped[f"key {key} {whose}"] += 1

    def kind(self, profile: Value) -> str:
        """Return the kind of a profile, whose keys are checked."""
        name = profile["type"].text()
        if name in _WHY:
            raise profile["type"].wrong(f"{shown(name)} is not read: {_WHY[name]}")
        if name not in _TYPES:
            raise profile["type"].wrong(unknown("type of profile", name, _TYPES).message)
        kind = _TYPES[name]
        self.pass_over(profile, "of profiles", "type", "ret", *_KEYS[kind], *_SAID)
        if kind == "homogeneous" and "generation_strategy" in profile:
            strategy = profile["generation_strategy"]
            if strategy.text() not in _STRATEGIES:
                raise strategy.wrong(unknown("strategy", strategy.text(), _STRATEGIES).message)
            kind = _STRATEGIES[strategy.text()]
        return kind

    def job(self, value: Value) -> Job:
        self.pass_over(value, "of jobs", "id", "subtime", "walltime", "res", "profile", *_ABOUT)
        count = self.whole(value["res"])
        check_count("res", count)
        name = value["profile"].text()
        phases, repeats, code = self.profile(value["profile"], name, count, ())
        limit = value["walltime"].number(least=None) if "walltime" in value else -1.0
        if limit != -1 and limit <= 0:
            raise value["walltime"].wrong(f"must be a number > 0, or -1 for none, got {limit:g}")
        traffic: Traffic | Phases | None = None
        if any(phase.traffic is not None for phase in phases):
            traffic = phases[0].traffic if len(phases) * repeats == 1 else Phases(phases, repeats)
        return Job(
            id=value["id"].key(),
            name=name,
            submit=value["subtime"].number(),
            requested=inf if limit == -1 else limit,
            processors=count,
            nodes=None if traffic is None else count,
            run=sum(phase.compute for phase in phases) * repeats if traffic is None else None,
            traffic=traffic,
            compute=phases[0].compute if isinstance(traffic, Traffic) else 0.0,
            exit_code=code or None,
            outcome="failed" if code else "completed",
        )

    def profile(self, where: Value, name: str, count: int, above: tuple[str, ...]) -> _Steps:
        """Return the steps of a profile on some nodes, without those that have nothing to do."""
        if name not in self.kinds:
            raise where.wrong(unknown("profile", name, self.kinds).message)
        if name in above:
            raise where.wrong(f"profile {shown(name)} must not contain itself")
        profile = self.document["profiles"][name]
        kind = self.kinds[name]
        code = int(profile["ret"].number(least=None)) if "ret" in profile else 0
        if kind == "sequence":
            return self.sequence(profile, count, (*above, name), code)
        if kind == "delay":
            if not self.alike and self.computes:
                raise self.mixed(profile)
            self.delays = True
            seconds = profile["delay"].number()
            return _Steps((Phase(compute=seconds),) if seconds else (), 1, code)
        if self.flops is None:
            raise where.wrong(f"profile {shown(name)} computes or sends: it needs a platform of SimGrid")
        compute, traffic = (
            self.parallel(profile, where, count) if kind == "parallel" else self.even(profile, kind, count)
        )
        if compute:
            self.computes = True
            if not self.alike and self.delays:
                raise self.mixed(profile)
        return _Steps((Phase(traffic, compute / self.flops),) if compute or traffic else (), 1, code)

    def mixed(self, profile: Value) -> InputError:
        return profile.wrong("hosts have different speeds: delays and computation in one workload are not read")

    def sequence(self, profile: Value, count: int, above: tuple[str, ...], code: int) -> _Steps:
        """Return the steps of a sequence, which ends with the first profile that fails."""
        repeats = [self.whole(profile[key]) for key in ("repeat", "nb") if key in profile]
        if len(repeats) > 1:
            raise profile.wrong("must have one of repeat and nb, got both")
        steps: list[Phase] = []
        for each in profile["seq"].list():
            inner, times, failed = self.profile(each, each.text(), count, above)
            check_count("seq", len(steps) + len(inner) * times)
            steps += inner * times
            if failed:
                return _Steps(tuple(steps), 1, failed)
        return _Steps(tuple(steps), sum(repeats) or 1, code)

    def even(self, profile: Value, kind: str, count: int) -> tuple[float, Traffic | None]:
        """Return the flops of each node and the traffic of a homogeneous profile."""
        compute, sent = (profile[key].number() if key in profile else 0.0 for key in ("cpu", "com"))
        if kind in ("total", "spread"):
            compute /= count
        if count == 1 or not sent:
            return compute, None
        parts = {"homogeneous": 1, "total": count, "spread": count * (count - 1)}[kind]
        return compute, Traffic("all-to-all", bytes=sent / parts)

    def parallel(self, profile: Value, where: Value, count: int) -> tuple[float, Traffic | None]:
        """Return the flops of the node with the most of them, and the traffic of a profile of vectors."""
        vectors: dict[str, list[float]] = {}
        for key, length in (("cpu", count), ("com", count * count)):
            if key in profile:
                vectors[key] = [each.number() for each in profile[key].list()]
                if len(vectors[key]) != length:
                    message = (
                        f"must have {length} values for {count} resources ({where.place}), got {len(vectors[key])}"
                    )
                    raise profile[key].wrong(message)
        flops, sent = vectors.get("cpu", [0.0]), vectors.get("com", [])
        if not self.alike and min(flops) != max(flops):
            raise profile["cpu"].wrong("must be equal on all nodes: hosts have different speeds")
        rows = [sent[row : row + count] for row in range(0, len(sent), count)]
        return max(flops), Traffic(rows) if any(sent) else None

    @staticmethod
    def whole(value: Value) -> int:
        found = value.number(least=1)
        if found != int(found):
            raise value.wrong(f"must be a whole number >= 1, got {found:g}")
        return int(found)


JOBS_CSV = (
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time"),
    *("success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time"),
    *("stretch", "allocated_resources", "consumed_energy", "metadata"),
)
"""The columns of Batsim's ``jobs.csv``."""
_STATES = {
    "completed": "COMPLETED_SUCCESSFULLY",
    "timeout": "COMPLETED_WALLTIME_REACHED",
    "failed": "COMPLETED_FAILED",
    "lost": "COMPLETED_FAILED",
    "node-failure": "COMPLETED_FAILED",
    "out-of-memory": "COMPLETED_FAILED",
    "withdrawn": "COMPLETED_KILLED",
    "cancelled": "COMPLETED_KILLED",
    "rejected": "REJECTED",
    "running": "RUNNING",
    "suspended": "RUNNING",
    "waiting": "SUBMITTED",
    "unsubmitted": "NOT_SUBMITTED",
}


def write_batsim_jobs(result: JobRecord, path: str | Path, workload: Workload | None = None) -> None:
    """Write a run as Batsim's ``jobs.csv``: a row for each job; what it has not reached is -1.

    A node is a resource, by its number. Energy is not recorded by job: it is -1, as in Batsim without its plugin.

    Parameters
    ----------
    result
        the run
    path
        the file
    workload
        that of the run, which has the names of the profiles; otherwise they are empty
    """
    specs = {} if workload is None or workload.specs is None else {job.id: job for job in workload.specs}
    title = "w0" if workload is None else workload.name
    nodes: dict[int | str, tuple[int, ...]] = {}
    if result.runs is not None and "nodes" in result.runs:
        nodes = dict(zip(result.runs["job"].tolist(), result.runs["nodes"].tolist(), strict=True))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(JOBS_CSV)
    for row in result.jobs.rows():
        spec = specs.get(row["job"])
        submit, start, end, limit = (float(row[key]) for key in ("submit", "start", "end", "requested"))
        ran = end - start
        times: list[float] = [start, ran, end, start - submit, end - submit, (end - submit) / ran if ran else inf]
        times = [-1.0 if isnan(each) else each for each in times]
        asked = [submit, row["processors"], limit if isfinite(limit) else -1]
        ended = [int(row["status"] == "completed"), _STATES[row["status"]], *times]
        resources = _intervals(nodes.get(row["job"]) or ())
        writer.writerow([row["job"], title, spec.name if spec else "", *asked, *ended, resources, -1, ""])
    write_text(path, out.getvalue(), ".csv")


def _intervals(numbers: Iterable[int]) -> str:
    """Return numbers as Batsim writes a set of them.

    >>> _intervals((0, 1, 2, 5))
    '0-2 5'
    """
    ordered = np.array(sorted(numbers), dtype=np.int64)
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1) if len(ordered) else []
    return " ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)
