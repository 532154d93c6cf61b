"""The jobs of Slurm's accounting as jobs of simmodel, and what they ask for that is not expressed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from math import inf, isfinite, nan
from typing import Any

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.node_lists import node_names
from simmodel.policies.slurm.wishes import Wishes
from simmodel.twin.described import Notes
from simmodel.twin.mirror.job_history import natural_order
from simmodel.twin.slurm.jobs import dependencies_of
from simmodel.twin.slurm.site.requests import RESOURCES, Asking
from simmodel.twin.slurm.site.sbatch import IDLE, READ, SubmitLine, job_list
from simmodel.twin.slurm.values import amounts
from simmodel.work.job import Dependency, Job
from simmodel.work.workload import Workload

__all__ = ["RecordedJob", "recorded_jobs"]

_NOT_MODELLED = "not modelled"
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
    """

    job: Job
    start: float = inf
    nodes: str = ""
    restarts: int = 0


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
) -> list[RecordedJob]:
    """Return the jobs of a log that :func:`~simmodel.formats.sacct.read_sacct` has read, in the order of submission.

    Of a job that was requeued, the rows are one job: submitted and started as at first, with its last run time.
    Options that may change a start and are not expressed are noted with the ids of their jobs.

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

    >>> log = Workload({"job": [1], "submit": [0.0], "run": [60.0], "processors": [2], "requested": [120.0],
    ...     "submit_line": ["sbatch -N2 --contiguous run.sh"], "partition": ["batch"]})
    >>> notes = Notes()
    >>> recorded_jobs(log, ClusterSpec.simple(4), notes)[0].job.nodes, [str(each) for each in notes][0]
    (2, 'job 1: --contiguous (not modelled)')
    """
    reader = _Reader(log, spec, notes, origin, memory, submitted or {}, local, kept)
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
    ) -> None:
        self._local = local
        self._kept = kept
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
            found = self._job(several)
            if found is not None:
                yield found

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

    def _job(self, rows: list[dict[str, Any]]) -> RecordedJob | None:
        first, last = rows[0], rows[-1]
        name: int | str = first["job"]
        if len(rows) > 1:
            self._count("requeued", "one job each: as first submitted, with the run time of the last start")
        state = last.get("state", "")
        if state == "PREEMPTED":
            self._count("preempted for good", "they run as long as they did")
        limit = last.get("requested", inf)
        limit = limit if limit > 0 and isfinite(limit) else None
        run = last["run"]
        cancel = first.get("cancel", inf)
        if not run >= 0:
            if not isfinite(cancel) and state == "PENDING":
                self._count("still waiting", "left out: when they run is not known")
                return None
            run = limit or _ENDLESS
            if not isfinite(cancel):
                ended = last.get("status", -1) != -1
                what = "ended, but with a run time that is negative or not told" if ended else "still running"
                self._count(what, "as long as their limit")
        _, plus, component = str(name).rpartition("+")
        line = SubmitLine.of(first.get("submit_line") or self._line_of(name), int(component) if plus else None)
        where = self._where(name, first, line)
        if where is None:
            return None
        start = first["submit"] + first.get("wait", inf) - self._origin
        exclusive = line.values.get("exclusive") == ""
        asking = Asking(first, line.values, self._nodes, memory=self._memory, exclusive=exclusive)
        shape = asking.shape()
        for doubt in asking.doubts:
            self._count(f"that got {doubt}", "as they got")
        options = self._options(name, first, line, asking)
        if state == "DEADLINE" and "--deadline=" in options:  # whether it meets that is for the policy to find
            cancel = inf
        job = Job(
            id=name,
            submit=first["submit"] - self._origin,
            run=run,
            requested=limit,
            user=first.get("user") or None,
            group=first.get("group") or None,
            cancel=cancel - self._origin if isfinite(cancel) else None,
            **where,
            **shape,
            exclusive=exclusive,
            **self._asked(name, line),
            options=options,
        )
        return RecordedJob(
            job=job,
            start=start if isfinite(start) else inf,
            nodes=first.get("node_list", ""),
            restarts=len(rows) - 1,
        )

    def _line_of(self, name: int | str) -> str:
        return self._submitted.get(str(name)) or self._submitted.get(str(name).partition("_")[0], "")

    def _where(self, name: int | str, row: Mapping[str, Any], line: SubmitLine) -> dict[str, Any] | None:
        """Return the partition of a job, and its queue if partitions share nodes; ``None``: there is none."""
        asked = str(row.get("partition", ""))
        names = [each for each in asked.split(",") if each in self._queues or each in self._places]
        if asked and not names and self._queues:
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

    def _options(self, name: int | str, row: Mapping[str, Any], line: SubmitLine, asking: Asking) -> str:
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
        waited = row.get("eligible", nan) - row["submit"]
        if "hold" in values:
            values["hold"] = f"now+{waited:.0f}" if waited >= 0 else ""
        elif "begin" in values and waited >= 0:
            values["begin"] = f"now+{waited:.0f}"
        elif waited >= _AT_ONCE and not ({"begin", "dependency"} & line.values.keys() or "_" in str(name)):
            values["begin"] = f"now+{waited:.0f}"
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
            return f"now+{max(at - submit, 0.0):.0f}"
        return text

    def _asked(self, name: int | str, line: SubmitLine) -> dict[str, Any]:
        """Return licences, dependencies and nice of a job."""
        values = line.values
        licences = {}
        for licence, amount in self._amounts(name, values.get("licenses", "")).items():
            if licence in self._licences:
                licences[licence] = amount
            else:
                self._unread.add(name, "--licenses", values["licenses"], "the site tells of no such licence")
        found: list[Dependency] = []
        waits, told = dependencies_of(values.get("dependency", ""))
        if not told:
            self._unread.add(name, "--dependency", values["dependency"])
        for other, after in waits:
            tasks = self._tasks.get(str(other), [])
            if not tasks:
                self._count("that depend on jobs which the log does not have", "they do not wait for these")
            found += [Dependency(task, after=after) for task in tasks if task != name]  # type: ignore[arg-type]
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
