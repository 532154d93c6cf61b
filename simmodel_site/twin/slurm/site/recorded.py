"""The jobs of Slurm's accounting as jobs of simmodel, and what they ask for that is not expressed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from math import inf, isfinite, nan
from types import MappingProxyType
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import Fields, node_names
from simmodel.platform import ClusterSpec
from simmodel.work import Dependency, Job, Workload
from simmodel_site.policy.wishes import Wishes
from simmodel_site.twin.described import Notes
from simmodel_site.twin.mirror.job_history import natural_order
from simmodel_site.twin.slurm.jobs import dependencies_of
from simmodel_site.twin.slurm.site.requests import RESOURCES, Asking
from simmodel_site.twin.slurm.site.sbatch import IDLE, READ, SubmitLine, job_list
from simmodel_site.twin.slurm.values import amounts, nodes_of

__all__ = ["RecordedJob", "recorded_jobs"]

_NOT_MODELLED = "not modelled"
_TRES = ("requested", "allocated")
_ENDLESS = 365 * 86400.0
_AT_ONCE = 2.0
"""Seconds within which a job that waits for nothing is eligible."""


@attrs.frozen(kw_only=True, repr=False)
class RecordedJob(Fields):
    """A job of Slurm's accounting.

    Parameters
    ----------
    job
        the job, with the run time that is recorded
    start
        the instant of its first start (s); ``inf``: it has not started
    nodes
        the list of its nodes, as Slurm writes it
    restarts
        how often it was requeued
    got
        the TRES that it got, by name, memory in bytes; none: that is not told
    runs
        its runs one by one, if it is one job though it was requeued
    qos
        the name of its QOS
    gpus, gpu
        the share of a GPU of each node that it has, or 0, and the type of GPUs that it asks for: policy slurm does not
        give shares
    """

    job: Job
    start: float = inf
    nodes: str = ""
    restarts: int = 0
    got: Mapping[str, float] = attrs.field(factory=dict)
    runs: tuple[RecordedJob, ...] = ()
    qos: str = ""
    gpus: float = 0.0
    gpu: str = ""


class _Unread:
    """What jobs ask for and is not expressed, by the words for it and the reason."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], dict[str, list[int | str]]] = {}

    def add(self, job: int | str, what: str, value: str = "", why: str = _NOT_MODELLED) -> None:
        jobs = self._jobs.setdefault((what, why), {}).setdefault(value, [])
        if job not in jobs[-1:]:
            jobs.append(job)

    def note(self, notes: Notes) -> None:
        """Add a note for each option or property: which jobs ask for it."""
        for (what, why), by_value in self._jobs.items():
            jobs = list(dict.fromkeys(job for several in by_value.values() for job in several))
            values = [value for value in by_value if value]
            text = f"{what}={values[0]}" if values else what
            if len(values) > 1:
                text = f"{what} ({len(values)} values, such as {values[0]})"
            notes.add(f"{'job' if len(jobs) == 1 else 'jobs'} {job_list(jobs)}", text, why)


def recorded_jobs(
    log: Workload,
    spec: ClusterSpec,
    notes: Notes,
    *,
    origin: float = 0.0,
    memory: bool = True,
    submitted: Mapping[str, str] | None = None,
    local: tzinfo = UTC,
    kept: Collection[str] = (),
    whole: Collection[str] = (),
    held: Mapping[str, Sequence[tuple[float, float]]] = MappingProxyType({}),
    preempts: bool = False,
) -> list[RecordedJob]:
    """Return the jobs of a log that :func:`~simmodel.formats.sacct.read_sacct` has read, in the order of submission.

    A job that was rejected at its submission is left out. Of a job that was requeued each run is a job, which follows
    the one before; the last one has its id. If the policy preempts jobs, they are one job, submitted and started as at
    first, with its last run time. Options that may change a start and are not expressed are noted with the ids of their
    jobs.

    Parameters
    ----------
    spec, notes
        the platform of the site; what is not expressed is added to the notes
    origin
        the instant, in seconds since 1970, that is 0 in simulations
    memory
        whether this Slurm allocates memory
    submitted
        submit lines by the id of a job or array, if the log has none
    local
        the zone of times in submit lines
    kept
        the names of the reservations that the policy keeps, not the platform
    whole
        the partitions whose jobs get whole nodes
    held
        from when until when (s since 1970) jobs were held, by their ids, as far as a log tells
    preempts
        whether the policy preempts jobs

    >>> log = Workload({"job": [1], "submit": [0.0], "run": [60.0], "processors": [2], "requested": [120.0],
    ...     "submit_line": ["sbatch -N2 --contiguous run.sh"], "partition": ["batch"]})
    >>> notes = Notes()
    >>> recorded_jobs(log, ClusterSpec.simple(4), notes)[0].job.nodes, [str(each) for each in notes][0]
    (2, 'job 1: --contiguous (not modelled)')
    """
    reader = _Reader(log, spec, notes, origin, memory, submitted or {}, local, kept, whole, held, preempts)
    found = list(reader.jobs())
    reader.finish()
    return found


class _Reader:
    """The rows of a log as jobs."""

    def __init__(
        self,
        log: Workload,
        spec: ClusterSpec,
        notes: Notes,
        origin: float,
        memory: bool,
        submitted: Mapping[str, str],
        local: tzinfo,
        kept: Collection[str],
        whole: Collection[str],
        held: Mapping[str, Sequence[tuple[float, float]]],
        preempts: bool,
    ) -> None:
        self._local, self._kept, self._whole, self._held, self._preempts = local, kept, whole, held, preempts
        self._spec, self._notes, self._origin, self._memory, self._submitted = spec, notes, origin, memory, submitted
        self._rows = sorted(log, key=lambda row: (row["submit"], natural_order(row["job"])))
        self._unread = _Unread()
        self._counts: dict[tuple[str, str], int] = {}
        self._queues = {queue.name: queue.partition for queue in spec.queues}
        self._places = [each.name for each in spec.partitions]
        self._licences = {each.name for each in spec.consumables}
        self._nodes = {
            name: kind for part in spec.partitions for kind in part.nodes for name in node_names(kind.names or "")
        }
        self._reservations = {each.name for each in spec.reservations}
        self._untracked = not any("gres/gpu" in row.get(f"{kind}_tres", "") for row in self._rows for kind in _TRES)
        self._alike: dict[tuple[Any, str], list[int | str]] = {}
        names = {str(row["job"]) for row in self._rows}
        self._components = Counter([name.partition("+")[0] for name in names if "+" in name])
        self._tasks: dict[str, list[int | str]] = {}
        for row in self._rows:
            name = row["job"]
            self._tasks.setdefault(str(name), []).append(name)
            if "_" in str(name):
                self._tasks.setdefault(str(name).partition("_")[0], []).append(name)
            elif "+" in str(name):
                self._tasks.setdefault(str(name).partition("+")[0], []).append(name)

    def jobs(self) -> Iterator[RecordedJob]:
        """Yield the jobs, one for each id."""
        rows: dict[int | str, list[dict[str, Any]]] = {}
        for row in self._rows:
            rows.setdefault(row["job"], []).append(row)
        for several in rows.values():
            runs = [each for number in range(len(several)) if (each := self._run(several, number)) is not None]
            if len(several) > 1:
                self._count("requeued", "when they were" if not self._preempts else "as the policy preempts")
            if len(runs) > 1 and self._preempts:
                first, last = runs[0], runs[-1].job
                seconds = first.job.run if last.run is None else last.run
                job = attrs.evolve(first.job, id=last.id, run=seconds, requested=last.requested, outcome=last.outcome)
                yield attrs.evolve(first, job=job, restarts=len(runs) - 1, runs=tuple(runs))
            else:
                yield from runs

    def finish(self) -> None:
        """Note what is not expressed."""
        self._unread.note(self._notes)
        for (what, why), count in self._counts.items():
            self._notes.add("jobs", f"{what}: {count:,}", why)
        if not self._submitted and not any(row.get("submit_line") for row in self._rows):
            why = "what jobs ask for beyond nodes, CPUs, memory, GPUs and time is not known: ask sacct for SubmitLine"
            self._notes.add("jobs", "without submit lines", why)

    def _count(self, what: str, why: str) -> None:
        self._counts[what, why] = self._counts.get((what, why), 0) + 1

    def _run(self, rows: list[dict[str, Any]], number: int) -> RecordedJob | None:
        """Return a run of a job, by its row; ``None``: it is left out."""
        row, id = rows[number], rows[0]["job"]
        name: int | str = id if number == len(rows) - 1 else _run_of(id, number)
        state = row.get("state", "")
        if state == "PREEMPTED" and len(rows) == 1:
            self._count("preempted for good", "they run as long as they did")
        if state == "NODE_FAIL" and not self._spec.outages:
            why = "since when and until when is not told: give slurmctld.log, or 'sacctmgr --parsable2 show event'"
            self._count("stopped by the failure of a node, which was away then", why)
        limit = row.get("requested", inf)
        limit = limit if limit > 0 and isfinite(limit) else None
        run, cancel = row["run"], row.get("cancel", inf)
        if state == "FAILED" and cancel <= row["submit"]:
            self._count("rejected at their submission", "left out")
            return None
        if not run >= 0 and not isfinite(cancel):
            if state == "PENDING":
                self._count("still waiting", "left out: when they run is not known")
                return None
            ended = row.get("status", -1) != -1
            what = "ended, but with a run time that is negative or not told" if ended else "still running"
            self._count(what, "as long as their limit")
            run = limit or _ENDLESS
        _, plus, component = str(id).rpartition("+")
        line = SubmitLine.of(row.get("submit_line") or self._line_of(id), int(component) if plus else None)
        where = self._where(id, row, line)
        if where is None:
            return None
        start = row["submit"] + row.get("wait", inf) - self._origin
        exclusive = line.values.get("exclusive") == "" or str(row.get("partition", "")) in self._whole
        asking = Asking(row, line.values, self._nodes, memory=self._memory, exclusive=exclusive)
        shape = asking.shape()
        for doubt in asking.doubts:
            self._count(f"that got {doubt}", "as they got")
        placed = nodes_of(row.get("node_list", ""))
        told = not self._untracked or shape["gpus_per_node"] or exclusive
        if not told and any(self._nodes[each].gpus for each in placed if each in self._nodes):
            why = "AccountingStorageTRES lacks gres/gpu: what a script asks for is not known"
            self._count("on nodes with GPUs, which the accounting does not count", why)
        options = self._options(id, row, line, asking, requeued=number > 0)
        if len(rows) > 1 and "--hold" not in options:
            options = f"{options} --requeued={id}".lstrip()
        if state == "DEADLINE" and "--deadline=" in options:  # whether it meets that is for the policy to find
            cancel, run = inf, limit or _ENDLESS
        asked = self._asked(id, line, row)
        if number:
            asked["dependencies"] = [Dependency(_run_of(id, number - 1))]
        job = Job(
            id=name,
            submit=row["submit"] - self._origin,
            run=run if run >= 0 else None,
            requested=limit,
            user=row.get("user") or None,
            group=row.get("group") or None,
            cancel=cancel - self._origin if isfinite(cancel) else None,
            outcome=row.get("outcome", ""),
            exit_code=code if (code := row.get("exit_code", -1)) >= 0 else None,
            **where,
            **shape,
            exclusive=exclusive,
            **asked,
            options=options,
        )
        got = asking.got or ({"cpu": float(row.get("processors", 0))} if placed else {})
        started = start if isfinite(start) else inf
        nodes, qos = row.get("node_list", ""), str(row.get("queue") or "")
        share = max(row.get("gpus_per_node", 0.0), 0.0) if not shape["gpus_per_node"] else 0.0
        if share:
            self._count("with shares of GPUs", "policy slurm starts them without: --workload has their shares")
        kind = asking.gpu_type or (str(row.get("gpu", "")) if shape["gpus_per_node"] or share else "")
        return RecordedJob(job=job, start=started, nodes=nodes, restarts=number, got=got, qos=qos, gpus=share, gpu=kind)

    def _line_of(self, name: int | str) -> str:
        return self._submitted.get(str(name)) or self._submitted.get(str(name).partition("_")[0], "")

    def _where(self, name: int | str, row: Mapping[str, Any], line: SubmitLine) -> dict[str, Any] | None:
        """Return the partition of a job, and its queue if partitions share nodes; ``None``: there is none."""
        asked = str(row.get("partition", ""))
        names = [each for each in asked.split(",") if each in self._queues or each in self._places]
        if asked and not names:
            self._unread.add(name, "partition", asked, "left out: the site has no such partition")
            return None
        reservation = row.get("reservation", "")
        if reservation and reservation in self._reservations:
            return {"partition": reservation}
        if reservation and reservation not in self._kept:
            self._unread.add(name, "--reservation", reservation, "the site tells of no such reservation")
        if not names:
            return {}
        queue = names[0] if names[0] in self._queues else None
        place = self._queues.get(names[0]) or names[0]
        return {"queue": queue} | ({"partition": place} if len(self._places) > 1 and place in self._places else {})

    def _options(
        self, name: int | str, row: Mapping[str, Any], line: SubmitLine, asking: Asking, *, requeued: bool
    ) -> str:
        """Return the options of a job that policy slurm reads; note all others that may change its start."""
        values = {key: value for key, value in line.values.items() if key not in IDLE | READ | RESOURCES}
        values |= asking.options
        known = asking.known | ({"exclusive"} if values.pop("exclusive", None) == "" else set())
        if "," in line.values.get("partition", ""):
            values["partition"] = line.values["partition"]
        if "_" in str(name):
            values["array"] = line.values.get("array", str(name).rpartition("_")[2])
        if row.get("reservation") in self._kept:
            values["reservation"] = row["reservation"]
        if row.get("constraints"):
            values.setdefault("constraint", row["constraints"])
        submit, reason = row["submit"], row.get("reason", "")
        waited = row.get("eligible", nan) - submit
        wait = row.get("wait", nan)
        last = submit + wait + 1 if wait >= 0 else inf  # a hold is over when the job starts
        array = str(name).partition("_")[0] + "_"  # of JobId=10_*
        holds = [each for each in self._held.get(str(name), self._held.get(array, ())) if submit < each[1] <= last]
        begin, until = holds[-1] if holds else (-inf, submit + waited)
        if holds or "hold" in values or reason.startswith("JobH"):  # JobHeldUser, JobHeldAdmin, JobHoldMaxRequeue
            values["hold"] = ""
            if until > submit:
                first = f"{_plus(begin - submit)}," if begin > submit else ""
                values["hold"] = first + _plus(min(until - submit, _ENDLESS))
            elif isfinite(until):
                del values["hold"]
            if waited > until - submit + 1:  # it began later
                values["begin"] = _plus(waited)
        elif "begin" in values and waited >= 0:
            values["begin"] = _plus(waited)
        elif waited >= _AT_ONCE and (requeued or not ("dependency" in line.values or "_" in str(name))):
            values["begin"] = _plus(waited)
            if reason != "BeginTime" and not requeued:
                why = "a begin, hold or dependency that is not told: as if begun then"
                self._unread.add(name, "eligible after its submission", "", why)
        if "deadline" in values:
            values["deadline"] = self._after(values["deadline"], row["submit"])
        words = []
        for key, value in values.items():
            word = f"--{key}={shlex.quote(value)}" if value else f"--{key}"
            with suppress(InputError):  # a value that is not modelled
                if not Wishes.of(word).unread:
                    words.append(word)
                    known.add(key)
        if "nodes" in line.values.keys() - asking.known:
            self._unread.add(name, "--nodes", line.values["nodes"])
        for option, value in line.unread(known):
            self._unread.add(name, option, value)
        if "+" in str(name):
            words.append(f"--hetjob={self._components[str(name).partition('+')[0]]}")
        return " ".join(words)

    def _after(self, text: str, submit: float) -> str:
        """Return a date and time of a submit line as one after the submission; other texts as they are."""
        with suppress(ValueError):
            at = datetime.fromisoformat(text).replace(tzinfo=self._local).timestamp()
            return _plus(max(at - submit, 0.0))
        return text

    def _asked(self, name: int | str, line: SubmitLine, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return licences, dependencies and nice of a job."""
        values = line.values
        licences = {}
        for licence, amount in self._amounts(name, values.get("licenses", "")).items():
            if licence in self._licences:
                licences[licence] = amount
            else:
                self._unread.add(name, "--licenses", values["licenses"], "the site tells of no such licence")
        same = self._alike.setdefault((row.get("user"), row.get("name") or values.get("job-name", "")), [])
        text = values.get("dependency", "")
        parts = [each for each in text.split(",") if each != "singleton"]
        single = len(parts) <= text.count(",") and "?" not in text and bool(row.get("name") or values.get("job-name"))
        found = [Dependency(other) for other in dict.fromkeys(same) if other != name] if single else []
        if single:
            same.clear()  # those that come after this one wait for it
        same.append(name)
        waits, told = dependencies_of(",".join(parts) if single else text)
        if not told:
            self._unread.add(name, "--dependency", values["dependency"])
        for other, after in waits:
            tasks = self._tasks.get(str(other), [])
            if not tasks:
                self._count("that depend on jobs which the log does not have", "they do not wait for these")
            found += [Dependency(task, after=after) for task in dict.fromkeys(tasks) if task != name]  # type: ignore[arg-type]
        return {"consumables": licences, "dependencies": found, "priority": -self._nice(name, values.get("nice"))}

    def _amounts(self, name: int | str, text: str) -> Mapping[str, float]:
        try:
            if "|" not in text:
                return amounts(text) if text else {}
        except InputError:
            pass
        self._unread.add(name, "--licenses", text)
        return {}

    def _nice(self, name: int | str, text: str | None) -> float:
        """Return what a job takes from its priority: 100 if it does not say how much."""
        if not text:
            return 0.0 if text is None else 100.0
        if text.lstrip("-").isdecimal():
            return float(text)
        self._unread.add(name, "--nice", text)
        return 0.0


def _plus(seconds: float) -> str:
    """Return a time so many seconds after the submission, as options have it.

    >>> _plus(1234567.5)
    'now+1234567.5'
    """
    return f"now+{round(seconds, 3):.12g}"


def _run_of(job: int | str, number: int) -> str:
    """Return the name of a run of a job, but for the last.

    >>> _run_of(17, 0)
    '17 (run 1)'
    """
    return f"{job} (run {number + 1})"
