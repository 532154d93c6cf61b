"""Records of jobs as columns, and the quantities over time derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, counted
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.units import seconds_in
from simmodel.records.steps import Steps, down_spans, held_spans, parts_inside
from simmodel.records.tables import network_columns, sharers
from simmodel.work.job import told_end
from simmodel.work.table import Columns, Table, Words, column_of, rows_of
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.task_record import TaskRecord
    from simmodel.resources.pools.node_network import NodeNetwork
    from simmodel.work.checkpoint import Kept
    from simmodel.work.job import LiveJob

__all__ = [
    "AGAIN",
    "DERIVED",
    "ENDED_WELL",
    "FIRST_COLUMNS",
    "OF_REQUESTS",
    "STOPS",
    "Column",
    "JobRecord",
    "delays",
    "derived",
    "ended_well",
    "has_gpus",
    "interrupted",
    "is_number",
    "job_columns",
    "join",
    "joined",
    "kept_columns",
    "needed",
    "never_started",
    "runs_of",
    "since",
]

ENDED_WELL = ("completed", "timeout")
_LEFT = {"cancelled": "cancelled while waiting", "withdrawn": "would have started"}
_UNMET = "after a job that ended otherwise"
AGAIN = ("preempted", "requeued")  # final states of executions after which the job waits again
FIRST_COLUMNS = ("job", "submit", "start", "end", "processors", "status")
STOPS = ("interruptions", "lost", "suspended", "overhead")
"""The columns of interrupted jobs, 0 for all others; a record without interrupted jobs has none of them."""


def ended_well(jobs: Table) -> NDArray[np.bool_]:
    """Return which jobs ended by themselves, however their column ``outcome`` says so, or at their requested time.

    >>> jobs = {"start": [0, 0, 0], "end": [9, 9, 9], "status": ["completed", "failed", "failed"]}
    >>> ended_well(Table({**jobs, "outcome": ["completed", "completed", "failed"]}))
    array([ True, False,  True])
    """
    status = Words.of(jobs["status"])
    well = status.isin(ENDED_WELL)
    if "outcome" in jobs:
        well |= (np.asarray(status) == np.asarray(jobs["outcome"])) & np.isfinite(jobs["end"] - jobs["start"])
    return well


def never_started(jobs: Table) -> dict[str, int]:
    """Return how many jobs left the queue without a start, by why they did; those that were rejected do not count.

    >>> never_started(Table({"start": [nan, nan, 5], "status": ["cancelled", "withdrawn", "cancelled"]}))
    {'cancelled while waiting': 1, 'would have started': 1}
    """
    status = Words.of(jobs["status"])
    gone = status.isin(_LEFT) & np.isnan(jobs["start"].astype(np.float64))
    if not gone.any():
        return {}
    why = jobs["reason"][gone].tolist() if "reason" in jobs else [""] * int(gone.sum())
    pairs = zip(status[gone].tolist(), why, strict=True)
    return dict(sorted(Counter([_UNMET if reason else _LEFT[word] for word, reason in pairs]).items()))


def _status(jobs: Jobs) -> NDArray[np.str_]:
    ended = np.where(np.isnan(jobs["end"]), "running", "completed")
    return np.where(np.isnan(jobs["start"]), "waiting", ended)


Jobs: TypeAlias = "Mapping[str, NDArray[Any]]"
"""Columns of jobs: ``submit, start, end, processors``, and others."""
DERIVED: dict[str, Callable[[Jobs], NDArray[Any]]] = {
    "job": lambda jobs: np.arange(1, len(jobs["submit"]) + 1),
    "run": lambda jobs: jobs["end"] - jobs["start"],
    "wait": lambda jobs: jobs["start"] - jobs.get("eligible", jobs["submit"]),
    "requested": lambda jobs: np.full(len(jobs["submit"]), np.nan),
    "status": _status,
    "attempts": lambda jobs: np.isfinite(jobs["start"]).astype(np.int32),
}
"""The columns of jobs that follow from others, in order, where nobody gives them: in memory, streamed and stored.

A new column is an entry here; all but ``job`` and ``status`` are numbers.
"""


_TIMES = ("submit", "start", "end", "run", "wait", "requested", "eligible", "time", "at", *STOPS[1:])


def derived(jobs: Jobs) -> dict[str, NDArray[Any]]:
    """Return the columns that jobs lack and that follow from others.

    >>> jobs = {"submit": [0.0], "start": [2.0], "end": [5.0], "processors": [4]}
    >>> found = derived({name: np.array(column) for name, column in jobs.items()})
    >>> found["run"], found["wait"]
    (array([3.]), array([2.]))
    """
    columns = dict(jobs)
    for name, make in DERIVED.items():
        if name not in columns:
            columns[name] = make(columns)
    return {name: column for name, column in columns.items() if name not in jobs}


def is_number(name: str) -> bool:
    """Whether a column of jobs has numbers, also where none is known.

    >>> is_number("lost"), is_number("status")
    (True, False)
    """
    known = {"submit", "start", "end", "processors", "eligible", *STOPS, *_KEPT, *DERIVED}
    return name in known - {"job", "status"}


def _complete(jobs: Columns) -> Table:
    """Add missing columns that can be derived from others."""
    columns = {name: column_of(column) for name, column in jobs.items()}
    missing = [name for name in ("submit", "start", "end", "processors") if name not in columns]
    if missing:
        raise InputError(f"columns: missing {', '.join(missing)}")
    for name in ("submit", "start", "end"):
        columns[name] = columns[name].astype(np.float64, copy=False)
    columns |= derived(columns)
    columns["status"] = Words.of(columns["status"])
    return Table({**{name: columns[name] for name in FIRST_COLUMNS}, **columns})


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class JobRecord(Shown):
    """The record of the jobs of a run.

    Parameters
    ----------
    jobs
        one row per job: ``job, submit, start, end, processors, status, requested, run, wait, attempts`` and, if the
        workload has them, ``user, group, queue, partition``. Times in s; nan: not reached. ``start`` is the first
        start, ``end`` the last end, ``run`` the seconds of execution whose work was kept, ``wait`` the seconds from the
        submission (from ``eligible`` if dependencies blocked the job) to the first start, and those of each further
        wait after a failure or a preemption. If jobs were interrupted: ``interruptions``, how often; ``lost``, the
        seconds of execution whose work was thrown away; ``suspended``, the seconds of suspensions; if some of them
        write checkpoints, ``overhead``, the seconds of ``run`` in restarts and in saves that were broken off. So
        ``wait + run + lost + suspended`` are the seconds from ``eligible`` to ``end``. ``requested`` is nan for a
        job that has no requested time. The status is completed,
        timeout (stopped at its requested time), failed, cancelled, lost, rejected (with a ``reason``), waiting,
        running, suspended or unsubmitted. If missing, ``job, run, wait, requested, status, attempts`` are derived from
        the other columns
    processors
        processors of the machine; default: the maximum ever busy
    name
        name of the run in tables and plots
    runs
        one row per execution: ``job, attempt, start, end, place, processors, status, nodes``; default: derived from
        ``jobs``. If nodes are identified: also ``cores, gpus, memory`` (bytes) held of each of the ``nodes``, as
        tuples, and ``allocated``, the cores in all (more than ``processors``, the request, on whole nodes). If devices
        are told apart: ``devices``, of each node the (number, thousandths) of each that is held. If jobs ran at levels:
        ``level``, the relative frequency, nan where none was chosen; a new one begins a row, as a new size does
    claims
        one row per size of a claim of a process: ``claim, start, end, place, processors, status, nodes`` and so on, as
        ``runs``; the status is resized, released, lost (in a failure), preempted or held
    workflows
        by job, the record of the tasks of the workflow that ran inside its nodes; of its latest attempt
    events
        each state change with the state of its place: ``time, event, job, place, free, waiting, running, detail``
    places
        ``place, processors, nodes, idle_power, load_power`` (W per node, or per processor if nodes are not identified)
    changes
        capacity of places after each change: ``time, place, cause, processors, down``
    choices
        for a portfolio of policies, one row per choice and policy: ``time, policy, score, chosen``; the column
        ``started_by`` of ``jobs`` names the policy that started each job
    reasons
        the reasons that the policy gave with its decisions: ``time, decision, work, place, at, reason`` (see
        :class:`~simmodel.scheduling.scheduler.GivenReason`); ``None``: it gave none
    nodes
        identified nodes: ``place, node, processors, idle_power, load_power``; default: all nodes of a place are equal
    started, ended
        first and last instant in s; default: derived from the jobs
    report, decisions, scenario
        counts of repairs and rejections; count, seconds, mean and max of the decisions of the policy; the document from
        which the run can be repeated

    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> record = JobRecord(jobs=jobs, processors=4)
    >>> record.jobs["wait"], record.utilisation().mean()
    (array([ 0., 10.]), 0.6666666666666666)
    """

    jobs: Table = attrs.field(converter=_complete)
    name: str = "run"
    _runs: Table | None = None
    events: Table | None = None
    changes: Table | None = None
    choices: Table | None = None
    nodes: Table | None = None
    claims: Table | None = None
    workflows: Mapping[int | str, TaskRecord] = attrs.field(factory=dict)
    reasons: Table | None = None
    report: Report = attrs.field(factory=Report)
    decisions: dict[str, float] = attrs.field(factory=dict)
    scenario: dict[str, Any] = attrs.field(factory=dict)
    networks: Mapping[str, NodeNetwork] = attrs.field(factory=dict, eq=False)
    started: float = attrs.field()
    ended: float = attrs.field()
    processors: int = attrs.field()
    places: Table = attrs.field()

    @started.default
    def _started_default(self) -> float:
        claimed = () if self.claims is None else (self.claims["start"],)
        return _extreme(np.fmin, self.jobs["submit"], self.jobs["start"], *claimed)

    @ended.default
    def _ended_default(self) -> float:
        claimed = () if self.claims is None else (self.claims["end"], self.claims["start"])
        return max(_extreme(np.fmax, self.jobs["end"], self.jobs["start"], *claimed), self.started)

    @processors.default
    def _processors_default(self) -> int:
        return int(self.busy().max())

    @places.default
    def _places_default(self) -> Table:
        return Table(
            {
                "place": ["machine"],
                "processors": [self.processors],
                "nodes": [0],
                "idle_power": [0.0],
                "load_power": [0.0],
            }
        )

    def __attrs_post_init__(self) -> None:
        if self.started > self.ended:  # stopped before the first job
            self.started = self.ended

    @property
    def time_unit(self) -> str:
        """The unit of time: ``"s"``, or that of the environment."""
        return str(self.scenario.get("time_unit", "s"))

    @cached_property
    def in_seconds(self) -> Self:
        """The record with its times in seconds, as plots and pages show it.

        >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
        >>> JobRecord(jobs=jobs, scenario={"time_unit": "min"}).in_seconds.jobs["wait"]
        array([  0., 600.])
        """
        if self.time_unit == "s":
            return self
        scale = seconds_in(self.time_unit)
        parts = {each.alias: getattr(self, each.name) for each in attrs.fields(type(self))}
        tables: dict[str, Any] = {
            name: part.with_columns(**{each: scale * part[each] for each in _TIMES if each in part})
            for name, part in parts.items()
            if isinstance(part, Table)
        }
        scenario = {name: part for name, part in self.scenario.items() if name != "time_unit"}
        return attrs.evolve(self, **tables, scenario=scenario, started=scale * self.started, ended=scale * self.ended)

    @property
    def one_run_each(self) -> bool:
        """Whether each started job ran once, at the only place, so that ``runs`` follows from ``jobs``."""
        return self._runs is None

    @cached_property
    def runs(self) -> Table:
        """One row per execution: ``job, attempt, start, end, place, processors, status, nodes``.

        If its nodes have places in a network, also ``hops``, the mean number of links between two of its nodes, and
        ``shared_links``: how many of the links between its nodes are also between those of another one, while both run.
        """
        if self._runs is not None:
            if not self.networks or "hops" in self._runs:
                return self._runs
            return self._runs.with_columns(**network_columns(self._runs, self.networks))
        place = str(self.places["place"][0]) if len(self.places) else "machine"
        return runs_of(self.jobs, np.full(len(self.jobs), place), np.ones(len(self.jobs), dtype=np.int32))

    def sharers(self, job: int | str) -> Table:
        """Return the executions that share links of the network with a job while both run: ``job, start, end, links``.

        ``start`` and ``end`` (s) are those of the shared time, ``links`` the names of the links that are between two
        nodes of the job, and between two of the other. There are none on nodes without a network.
        """
        return sharers(self._spans, job, self.networks)

    @property
    def _spans(self) -> Table:
        """The executions, with the columns that are known without their network."""
        return self.runs if self._runs is None else self._runs

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Mask of the jobs that metrics count: those that ended by themselves or at their requested time."""
        return ended_well(self.jobs)

    @property
    def status(self) -> Words:
        """The final state of each job, one byte each."""
        return Words.of(self.jobs["status"])

    # ------------------------------------------------------------------ over time

    def _part(self, place: str | None) -> Table:
        if self._runs is None and place is None:
            started = np.isfinite(self.jobs["start"])
            return self.jobs if started.all() else self.jobs.where(started)
        return self._spans if place is None else self._spans.where(self._spans["place"] == place)

    def busy(self, place: str | None = None) -> Steps:
        """Return the number of busy processors over time, at all places or at one; ``InputError`` if it is unknown."""
        if place is not None:
            known = dict.fromkeys([*self.places["place"].tolist(), *self._spans["place"].tolist()])
            if place not in known:
                raise unknown("place", place, known)
        return self._held_over_time(place, "processors")

    def allocated(self, place: str | None = None) -> Steps:
        """Return the number of allocated processors over time: more than busy ones where whole nodes are allocated."""
        return self._held_over_time(place, "allocated")

    def _held_over_time(self, place: str | None, what: str) -> Steps:
        tables = [self._part(place)]
        if self.claims is not None:
            tables.append(self.claims if place is None else self.claims.where(self.claims["place"] == place))
        times: list[NDArray[np.float64]] = []
        changes: list[NDArray[np.float64]] = []
        for held in tables:
            amount = held[what if what in held else "processors"].astype(np.float64)
            times += [held["start"], np.where(np.isnan(held["end"]), self.ended, held["end"])]
            changes += [amount, -amount]
        return Steps.from_changes(np.concatenate(times), np.concatenate(changes), self.started, self.ended)

    def held(self, place: str | None = None) -> Table:
        """Return everything that held capacity, at all places or at one: executions, then claims.

        One row each: ``holder`` (the id of the job or the name of the claim), ``start, end, place, processors, status,
        nodes`` and, if known, ``allocated, cores, gpus, memory, devices`` as in ``runs``.
        """
        tables = [self._spans.renamed(job="holder")]
        if self.claims is not None:
            tables.append(self.claims.renamed(claim="holder"))
        names = [name for name in _HELD if any(name in table for table in tables)]
        held = Table({name: _stacked(tables, name) for name in names})
        return held if place is None else held.where(held["place"] == place)

    def capacity(self, place: str | None = None) -> Steps:
        """Return the number of processors in service over time, at all places or at one.

        A part that is down but still held, as by jobs that may end during a drain, is in service until they have ended.
        """
        if place is not None and place not in (known := self.places["place"].tolist()):
            raise unknown("place", place, known)
        total = Steps([self.started], [0.0], self.ended)
        for name, size in zip(self.places["place"].tolist(), self.places["processors"].tolist(), strict=True):
            if place in (None, name):
                total += self._capacity(name, size)
        return total

    def _capacity(self, place: str, size: float) -> Steps:
        if self.changes is None or not (here := self.changes["place"] == place).any():
            return Steps([self.started], [size], self.ended)
        times, sizes = self.changes["time"][here], self.changes["processors"][here]
        up = Steps.from_changes(
            np.append(self.started, times), np.diff(np.append([0.0, size], sizes)), self.started, self.ended
        )
        return self._with_held(up, place, self.changes.where(here))

    def _with_held(self, up: Steps, place: str, changes: Table) -> Steps:
        """Return the capacity, with the held parts of nodes that are down."""
        if "down" not in changes or not any(changes["down"].tolist()):
            return up.combine(self.allocated(place), np.maximum)
        held = self.held_while_down(place)
        return up + Steps.from_spans(held, held["processors"], self.started, self.ended)

    def held_by_node(self, place: str) -> Table:
        """Return one row per identified node of an execution or a claim: ``node, start, end, processors``."""
        return held_spans(self.held(place), self.started, self.ended)

    def down_by_node(self, place: str) -> Table:
        """Return one row per absence of an identified node of a place, by node and start: ``node, start, end``."""
        if self.changes is None or "down" not in self.changes:
            return down_spans(Table({"time": [], "down": []}), self.started, self.ended)
        return down_spans(self.changes.where(self.changes["place"] == place), self.started, self.ended)

    def held_while_down(self, place: str) -> Table:
        """Return the spans in which nodes were held while down, as in a drain: ``node, start, end, processors``."""
        return parts_inside(self.held_by_node(place), self.down_by_node(place))

    def utilisation(self, place: str | None = None) -> Steps:
        """Return the busy share of the processors in service over time, at all places or at one."""
        return self.busy(place).share_of(self.capacity(place))

    def queue_length(self) -> Steps:
        """Return the number of waiting jobs over time."""
        return self._queued(np.ones(len(self.jobs)))

    def queued_processors(self) -> Steps:
        """Return the number of processors requested by waiting jobs over time."""
        return self._queued(self.jobs["processors"].astype(np.float64))

    def _queued(self, amount: NDArray[np.float64]) -> Steps:
        jobs = self.jobs
        submit, start = since(jobs), jobs["start"]
        again: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        if self._runs is not None and np.isin(self._runs["status"], AGAIN).any():
            start, again = self._queued_again(self._runs, amount)
        leaves = np.where(np.isnan(start), jobs["end"], start)
        entered = ~self.status.isin(("rejected",)) & ~(leaves < submit)
        left = entered & np.isfinite(leaves)
        changes = [(submit[entered], amount[entered]), (leaves[left], -amount[left]), *again]
        times, change = (np.concatenate(each) for each in zip(*changes, strict=True))
        return Steps.from_changes(times, change, self.started, self.ended)

    def _queued_again(
        self, runs: Table, amount: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], list[tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        """Return the first starts of jobs (s), and the instants at which jobs wait again or no longer, with changes."""
        row = rows_of(self.jobs["job"], runs["job"])
        order = np.lexsort((runs["attempt"], runs["start"], row))
        row, begins, ends = row[order], runs["start"][order], runs["end"][order]
        back = np.isin(runs["status"][order], AGAIN)
        same = row[1:] == row[:-1]
        waited = np.append(False, same & back[:-1])  # before this execution
        last = row[back & np.append(~same, True)]
        over = self.jobs["end"][last]  # while it waited
        found = [(ends[back], amount[row[back]]), (begins[waited], -amount[row[waited]]), (over, -amount[last])]
        first = self.jobs["start"].copy()
        np.fmin.at(first, row, begins)
        return first, [(at[np.isfinite(at)], change[np.isfinite(at)]) for at, change in found]

    # ------------------------------------------------------------------ the form common to all kinds of work

    def outcomes(self) -> Table:
        """Return one row per job: ``work, submit, since, start, end, processors, requested, status, wait, delay, run``.

        ``since`` is the instant from which its wait counts (s): when it became eligible; ``run``: the seconds that it
        needed, ``delay``: the other ones until its end, in which it waited, was suspended or executed in vain.
        """
        jobs = self.jobs
        columns = {name: jobs[name] for name in ("submit", "start", "end", "processors", "requested", "status", "wait")}
        return Table({"work": jobs["job"], "since": since(jobs), **columns, "delay": delays(jobs), "run": needed(jobs)})

    def executions(self) -> Table:
        """Return one row per execution: ``work, place, start``."""
        return Table({"work": self._spans["job"], "place": self._spans["place"], "start": self._spans["start"]})

    def used(self, begin: float, end: float) -> float:
        """Return the processor seconds that jobs held between two instants (s)."""
        return self.busy().integral(begin, end)

    def room(self, begin: float, end: float) -> float:
        """Return the processor seconds available between two instants (s)."""
        return self.capacity().integral(begin, end)

    def _cells(self) -> Cells:
        rows = [["jobs", f"{len(self.jobs):,}"], ["processors", f"{self.processors:,}"]]
        rows += [[f"jobs {state}", f"{count:,}"] for state, count in self.status.counts().items()]
        return [["", "value"], *rows, ["started", f"{self.started:g} s"], ["ended", f"{self.ended:g} s"]]

    def __repr__(self) -> str:
        jobs, processors = counted(len(self.jobs), "job"), counted(self.processors, "processor")
        rejected = int((self.jobs["status"] == "rejected").sum())
        lost = f", {rejected} rejected" if rejected else ""
        return f"<{type(self).__name__} {self.name}: {jobs} on {processors}{lost}>"


def since(jobs: Table) -> NDArray[np.float64]:
    """Return the instants (s) from which the waits and turnarounds of jobs count: when they became eligible.

    >>> since(Table({"submit": [0.0, 5.0], "eligible": [np.nan, 8.0]}))
    array([0., 8.])
    """
    submit: NDArray[np.float64] = jobs["submit"]
    return np.where(np.isnan(jobs["eligible"]), submit, jobs["eligible"]) if "eligible" in jobs else submit


def needed(jobs: Table) -> NDArray[np.float64]:
    """Return the seconds that jobs needed: those of their runs without interruptions.

    >>> needed(Table({"run": [60.0, 69.0], "overhead": [np.nan, 5.0]}))
    array([60., 64.])
    """
    run: NDArray[np.float64] = jobs["run"]
    return run - np.nan_to_num(jobs["overhead"]) if "overhead" in jobs else run


def delays(jobs: Table) -> NDArray[np.float64]:
    """Return the seconds from eligibility to the end that jobs did not need: waits, suspensions, work done in vain.

    >>> jobs = {"submit": [0.0, 0.0], "start": [3.0, 3.0], "end": [13.0, 40.0], "run": [10.0, 10.0]}
    >>> delays(Table(jobs))
    array([ 3., 30.])
    """
    start, end = jobs["start"], jobs["end"]
    found: NDArray[np.float64] = (start - since(jobs)) + (end - start - jobs["run"])
    return found + np.nan_to_num(jobs["overhead"]) if "overhead" in jobs else found


def has_gpus(result: JobRecord) -> bool:
    """Whether a result says which GPUs of a cluster were held: some of its nodes have GPUs, and its runs amounts.

    >>> from simmodel import simulate
    >>> has_gpus(simulate(4, [], "fcfs"))
    False
    """
    partitions = result.scenario.get("platform", {}).get("partitions", ())
    return any(kind.get("gpus") for part in partitions for kind in part.get("nodes", ())) and "gpus" in result.runs


def interrupted(jobs: Table) -> NDArray[np.bool_]:
    """Return which jobs were stopped, to run again or to resume; at sites, attempts are counted at the assignment.

    >>> interrupted(Table({"attempts": [1, 1, 2], "interruptions": [0, 1, 1]}))
    array([False,  True,  True])
    """
    if "interruptions" in jobs:
        return np.asarray(jobs["interruptions"] > 0)
    return np.zeros(len(jobs), dtype=bool) if "site" in jobs else np.asarray(jobs["attempts"] > 1)


def runs_of(jobs: Table, place: NDArray[np.generic], attempt: NDArray[np.generic]) -> Table:
    """Return the last execution of each job that has started, by start, given the place and the attempt of each job."""
    rows = np.flatnonzero(np.isfinite(jobs["start"]))
    rows = rows[np.argsort(jobs["start"][rows], kind="stable")]
    return Table(
        {
            "job": jobs["job"][rows],
            "attempt": attempt[rows],
            "start": jobs["start"][rows],
            "end": jobs["end"][rows],
            "place": place[rows],
            "processors": jobs["processors"][rows],
            "status": jobs["status"][rows],
            "nodes": np.full(len(rows), None, dtype=object),
        }
    )


_HELD = (
    *("holder", "start", "end", "place", "processors", "status", "nodes"),
    *("allocated", "cores", "gpus", "memory", "devices", "level"),
)


def _stacked(tables: Sequence[Table], name: str) -> NDArray[Any]:
    """Return one column of several tables; where a table lacks it: its processors if allocated, else ``None``."""
    columns = []
    for table in tables:
        if name in table:
            columns.append(table[name])
        elif name == "allocated":
            columns.append(table["processors"])
        else:
            columns.append(np.full(len(table), None, dtype=object))
    if name == "holder" and len({column.dtype.kind for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.concatenate(columns)


def _extreme(function: np.ufunc, *columns: NDArray[np.float64]) -> float:
    """Return the minimum or maximum of the finite values of columns; 0 if there are none."""
    values = np.concatenate(columns)
    values = values[np.isfinite(values)]
    return float(function.reduce(values)) if len(values) else 0.0


# ---------------------------------------------------------------------- the columns of jobs


Column: TypeAlias = "NDArray[np.generic] | Sequence[object]"

NAMES = ("job", "submit", "processors", "requested")


OF_REQUESTS: dict[str, str] = {
    **{name: name for name in ("user", "group", "queue", "power")},
    "partition": "partition_text",
}
"""The columns of what jobs ask for, and the fields of :class:`~simmodel.work.job.Job`: of all records, where known.

A new column is an entry here; a field that policies see has its name in :class:`~simmodel.work.job.JobRequest`, too.
"""


def job_columns(columns: Mapping[str, Column], expected: int, late: Sequence[LiveJob]) -> dict[str, NDArray[Any]]:
    """Join the columns of the expected jobs with the properties of jobs that came later.

    Parameters
    ----------
    columns
        ``job, submit, processors, requested`` of the first ``expected`` jobs, and any other columns to keep
    expected
        number of these jobs
    late
        the jobs after them

    >>> from types import SimpleNamespace as Some
    >>> job_columns({}, 0, [Some(id="a", submit=0.0, preferred=2, asked=5.0, user="eve", spec=None, _job=None)])["user"]
    array(['eve'], dtype='<U3')
    """
    known = {name: column_of(column) for name, column in columns.items()}
    if not late:
        return known or {name: np.zeros(0) for name in NAMES}
    added: dict[str, list[Any]] = {
        "job": [job.id for job in late],
        "submit": [job.submit for job in late],
        "processors": [job.preferred for job in late],
        "requested": [_asked(job) for job in late],
    }
    for name in OF_REQUESTS:
        values = [_value(job, name) for job in late]
        if name in known or any(value not in (None, -1) for value in values):
            added[name] = values
    ends = [told_end(job) for job in late]
    if "outcome" in known or any(outcome != "completed" for outcome, _ in ends):
        added["outcome"] = [outcome for outcome, _ in ends]
    if "exit_code" in known or any(code is not None for _, code in ends):
        added["exit_code"] = [code for _, code in ends]
    shares = [job.spec.bandwidth if job.spec is not None else {} for job in late]
    for share in dict.fromkeys(share for each in shares for share in each):
        added[f"bandwidth_{share}"] = [each.get(share, np.nan) for each in shares]
    joined = {name: join(known.get(name, _missing(column, expected)), column) for name, column in added.items()}
    for name in known:
        if name not in joined:
            joined[name] = join(known[name], _missing(known[name], len(late)))
    return joined


def _asked(job: LiveJob) -> float:
    """Return the requested time (s), or the run time if exact estimates replace it; nan: it has none."""
    return nan if job.asked == inf else job.asked


def _value(job: LiveJob, name: str) -> Any:
    value = getattr(job, name, None)
    return getattr(job.spec, name, None) if value is None and job.spec is not None else value


def joined(first: Mapping[str, Column], more: Mapping[str, Column]) -> dict[str, NDArray[Any]]:
    """Join the columns of two groups of jobs; columns that a group lacks have unknown values there.

    >>> joined({"job": [1]}, {"job": [2], "user": [7]})
    {'job': array([1, 2]), 'user': array([-1,  7])}
    """
    lengths = [len(next(iter(part.values()), ())) for part in (first, more)]
    names = dict.fromkeys([*first, *more])
    return {
        name: join(
            np.asarray(first[name]) if name in first else _missing(more[name], lengths[0]),
            np.asarray(more[name]) if name in more else _missing(first[name], lengths[1]),
        )
        for name in names
    }


_KEPT = {
    "saved_work": "saved",
    "lost_work": "lost",
    "checkpoint_time": "saving",
    "restart_time": "reading",
    "checkpoints": "checkpoints",
}
"""Columns of jobs with checkpoints, and the fields of :class:`~simmodel.work.checkpoint.Kept` that fill them."""


def kept_columns(kept: Mapping[int, Kept], count: int) -> dict[str, NDArray[Any]]:
    """Return the columns of work kept by the checkpoints of jobs, by row; unknown for jobs without.

    >>> from simmodel.work.checkpoint import Kept
    >>> kept_columns({1: Kept(saved=40.0, lost=6.0)}, 2)["lost_work"]
    array([nan,  6.])
    """
    rows = list(kept)
    found = {}
    for name, field in _KEPT.items():
        column = np.full(count, np.nan)
        column[rows] = [getattr(each, field) for each in kept.values()]
        found[name] = column
    return found


def _missing(like: Column, count: int) -> NDArray[Any]:
    """Return a column of unknown values with the type of another column."""
    kind = np.asarray(like).dtype.kind
    return np.full(count, np.nan if kind == "f" else -1 if kind in "iu" else "")


def join(first: NDArray[np.generic], more: NDArray[np.generic] | Sequence[object]) -> NDArray[Any]:
    """Join two columns: as numbers with -1 for unknown values, or, if there is text, as text with empty ones."""
    if isinstance(more, np.ndarray) and f"{first.dtype.kind}{more.dtype.kind}" in ("ff", "ii", "uu"):
        return np.concatenate([first, more])
    values = first.tolist() + (more.tolist() if isinstance(more, np.ndarray) else list(more))
    texts = any(isinstance(value, str) and value for value in values)
    filled = [("" if texts else -1) if value is None or value == "" else value for value in values]
    return np.array([str(value) for value in filled] if texts else filled)
