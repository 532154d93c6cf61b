"""From work as it is given to jobs that can be simulated: its accepted forms, repairs and rejections, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.work.checkpoint import checkpoints_in
from simmodel.work.job import Job
from simmodel.work.outcomes import OUTCOMES, outcomes_in
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report, Workload, cancelled_waiting, distinct_ids, never_run, processors_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from simmodel.work.checkpoint import Checkpoint
    from simmodel.work.table import Words

__all__ = [
    "REPEATED",
    "Estimates",
    "Frame",
    "JobsGiven",
    "Overrun",
    "Prepared",
    "Sharing",
    "TimedWorkflow",
    "are_workflows",
    "as_workload",
    "distinct_jobs",
    "planned_seconds",
    "prepare",
    "repeatable",
    "told_apart",
]


@runtime_checkable
class Frame(Protocol):
    """A table such as a ``pandas.DataFrame``, whose columns are those of a workload."""

    columns: Any

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return the columns with their names."""
        ...


def repeatable(given: Any) -> Any:
    """Return work that can be read again: an iterator, which can be read once, as a list.

    >>> repeatable(iter([1, 2])), repeatable("probe-4")
    ([1, 2], 'probe-4')
    """
    return list(given) if isinstance(given, Iterator) else given


TimedWorkflow: TypeAlias = "Workflow | tuple[float, Workflow]"
"""A workflow, alone or with the instant (s) of its submission."""

JobsGiven: TypeAlias = Workload | Workflow | tuple[float, Workflow] | Frame | Job | Iterable[Job]
"""A workload of jobs, or a value that is converted to one."""


def as_workload(
    given: JobsGiven, *, of_nodes: Collection[str] = (), name: str = "jobs", place: str = "workload", also: str = ""
) -> Workload:
    """Return a workload as it is, or the workload of a data frame, of jobs or of the tasks of a workflow.

    Parameters
    ----------
    given
        a workload, a data frame with its columns, one job or several, or a workflow (alone or with the instant of its
        submission), whose tasks become jobs
    of_nodes
        the requests of a workflow's tasks to nodes, if the platform has any: ``"cores"``, ``"memory"``; ``"files"``:
        they read and write the files of a grid
    name
        of the workload, if it is made of jobs
    place
        the argument that errors name
    also
        the other types that the argument may have, for its errors

    Raises
    ------
    InputError
        if it is anything else, columns are missing, or a task has no run time

    >>> as_workload([Job(run=5), Job(run=10)])
    <Workload jobs: 2 jobs>
    >>> as_workload([1, 2])
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: workload: must be a workload, a data frame, jobs or a workflow, got [1, 2]
    """
    if isinstance(given, Workload):
        return given
    if _is_workflow(given):
        return _of_workflow(given, of_nodes)
    frame: Any = given
    if isinstance(frame, Frame):
        try:
            return Workload(dict(frame.items()), name="data frame")
        except ValueError as error:
            raise InputError(str(error), place=place) from None
    found: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(job, Job) for job in found):
        rows = "; rows are Job(**row)" if all(isinstance(job, Mapping) for job in found) else ""
        message = f"must be a workload, a data frame, jobs or a workflow{also}, got {given!r}{rows}"
        raise InputError(message, place=place)
    return Workload.from_jobs(found, name=name)


def _is_workflow(given: object) -> TypeGuard[TimedWorkflow]:
    return isinstance(given[1] if isinstance(given, tuple) and len(given) == 2 else given, Workflow)


def are_workflows(given: object) -> TypeGuard[Sequence[TimedWorkflow]]:
    """Return whether work is several workflows, each alone or with the instant of its submission.

    >>> are_workflows([(5.0, Workflow([]))]), are_workflows((5.0, Workflow([])))
    (True, False)
    """
    if not isinstance(given, Sequence) or _is_workflow(given):
        return False
    return len(given) > 0 and all(_is_workflow(each) for each in given)


def told_apart(flows: Sequence[TimedWorkflow]) -> list[TimedWorkflow]:
    """Return several workflows whose tasks and files are labelled with the name of their workflow.

    A file that no task of its workflow writes keeps its name, unless another workflow has such a file of another size.

    >>> flow = Workflow([], name="montage")
    >>> [each.name for each in told_apart([flow, flow])]
    ['montage-1', 'montage-2']
    """
    if len(flows) < 2:
        return list(flows)
    alone = [given[1] if isinstance(given, tuple) else given for given in flows]
    inputs = [{file for file in flow.inputs if not flow.writers(file.name)} for flow in alone]
    sizes = Counter(file.name for file in set().union(*inputs))
    often, seen = Counter(flow.name for flow in alone), Counter[str]()
    found: list[TimedWorkflow] = []
    for given, flow, mine in zip(flows, alone, inputs, strict=True):
        seen[flow.name] += 1
        label = flow.name if often[flow.name] == 1 else f"{flow.name}-{seen[flow.name]}"
        labelled = flow.labelled(label, {file.name for file in mine if sizes[file.name] == 1})
        found.append((given[0], labelled) if isinstance(given, tuple) else labelled)
    return found


def _of_workflow(given: TimedWorkflow, of_nodes: Collection[str]) -> Workload:
    at, workflow = given if isinstance(given, tuple) else (0.0, given)
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < inf:
        raise InputError(f"must be an instant >= 0 s, got {at!r}", place=f"submission of {workflow.name}")
    nodes, memory, files = "cores" in of_nodes, "memory" in of_nodes, "files" in of_nodes
    jobs = workflow.jobs(nodes=nodes, memory=memory, files=files)
    workload = Workload.from_jobs([attrs.evolve(job, submit=at) for job in jobs] if at else jobs, name=workflow.name)
    workload.report = workflow.report + Report()
    workload.files = workflow.inputs if files else None
    left = ["the data objects"] if not files and any(file.size for file in workflow.files.values()) else []
    left += ["the memory of tasks"] if not memory and any(task.memory for task in workflow) else []
    if left:
        workload.report.note(f"{workflow.name} is simulated as batch jobs, without {' and '.join(left)}")
    return workload


Estimates = Literal["requested", "exact", "cqsim"]
Overrun = Literal["stop", "continue"]
Sharing = Literal["fair-bottleneck", "max-min"]
Seconds = TypeVar("Seconds", float, "NDArray[np.float64]")


@attrs.frozen
class Stopped:
    """How many of the jobs are stopped at their requested time, and how much work (processor-s) is never done."""

    jobs: int = 0
    stopped: int = 0
    work: float = 0.0
    lost: float = 0.0

    @classmethod
    def of(cls, run: NDArray[np.float64], duration: NDArray[np.float64], processors: NDArray[np.int64]) -> Stopped:
        """Return the counts of these jobs."""
        finite = np.isfinite(run)
        cut = (duration < run) & finite
        lost = float(((run[cut] - duration[cut]) * processors[cut]).sum())
        work = float((run[finite] * processors[finite]).sum())
        return cls(len(run), int(cut.sum()), work, lost)

    def __add__(self, other: Stopped) -> Stopped:
        return Stopped(
            self.jobs + other.jobs, self.stopped + other.stopped, self.work + other.work, self.lost + other.lost
        )

    def note(self, report: Report) -> None:
        """Add a sentence to a report, if there are any."""
        if self.stopped:
            share = f"{100 * self.lost / self.work:.1f}"
            without = "" if share == "0.0" else f", without {share} % of all work"
            report.note(
                f"{self.stopped:,} of {self.jobs:,} jobs run longer than they request: stopped at their requested "
                f"time{without} (overrun='continue' lets them end)"
            )


@attrs.frozen
class Prepared:
    """Jobs as simulated: arrays with one entry per row of the workload, and the order of submission.

    Attributes
    ----------
    rows
        rows that can run, in order of (submit, row)
    submit, requested, expected, duration
        seconds: instant of submission; planned time while waiting; planned time while running; actual run time
    processors
        processors requested
    cut
        whether the job is stopped at its requested time
    outcomes
        how the runs end that are not; ``None``: all complete
    asked
        requested time in s; nan: none
    unrequested
        whether the job has no requested time, and is planned with its run time although exact ones are not asked for
    rejected
        rows that never run, with the reason
    report
        counts of repairs and rejections
    stopped
        the jobs that are stopped at their requested time, of which the report has a note
    """

    rows: NDArray[np.intp]
    submit: NDArray[np.float64]
    requested: NDArray[np.float64]
    expected: NDArray[np.float64]
    duration: NDArray[np.float64]
    processors: NDArray[np.int64]
    cut: NDArray[np.bool_]
    outcomes: Words | None
    asked: NDArray[np.float64]
    unrequested: NDArray[np.bool_]
    rejected: dict[int, str]
    report: Report
    stopped: Stopped

    def ends(self, rows: NDArray[np.intp]) -> list[str | None]:
        """Return the final state of some jobs unless they are interrupted; ``None``: they complete."""
        found = np.array([None, *OUTCOMES[1:]], dtype=object)
        codes = self.cut[rows].astype(np.uint8)  # "timeout"
        if self.outcomes is not None:
            codes = np.where(codes, codes, self.outcomes.codes[rows])
        ended: list[str | None] = found[codes].tolist()
        return ended


def planned_seconds(
    run: Seconds, requested: Seconds, estimates: Estimates = "requested", overrun: Overrun = "stop"
) -> tuple[Seconds, Seconds, Seconds]:
    """Return the planned seconds of waiting jobs, the planned seconds of running jobs, and the actual run times.

    Parameters
    ----------
    run, requested
        seconds, numbers or arrays of one shape
    estimates
        ``"requested"``: the requested time plans both; ``"exact"``: the actual run time plans both; ``"cqsim"``: the
        actual run time plans waiting jobs, the requested time running ones
    overrun
        ``"stop"``: the actual run time is min(run, requested); ``"continue"``: it is ``run``

    >>> planned_seconds(50.0, 60.0, "cqsim")
    (np.float64(50.0), 60.0, np.float64(50.0))
    """
    duration = np.minimum(run, requested) if overrun == "stop" else run
    return (
        requested if estimates == "requested" else duration,
        duration if estimates == "exact" else requested,
        duration,
    )


def prepare(
    workload: Workload,
    capacity: int | None,
    estimates: Estimates = "requested",
    overrun: Overrun = "stop",
    *,
    too_large: str = "larger than the machine",
    timed: Callable[[Checkpoint], Checkpoint] | None = None,
) -> Prepared:
    """Return the jobs of a workload as simulated.

    Rejected, never run: jobs with a missing run time (nan or negative), a missing instant of submission, no
    processors, or more than ``capacity`` processors (``None``: no limit; ``too_large``: the reason). Repaired: missing
    requested processors (the allocated ones are used), missing requested times (the run time is used), submissions out
    of order. ``timed`` gives checkpoints the times that their bytes take alone.

    >>> log = Workload({"submit": [0, 5, 3], "run": [10, -1, 7], "processors": [1, 1, 1]})
    >>> ready = prepare(log, 4)
    >>> ready.rows, ready.rejected
    (array([0, 2]), {1: 'run time missing'})
    """
    report = Report()
    submit, run = workload["submit"], _executed(workload, timed)
    if "cancel" in workload:
        run = np.where(cancelled_waiting(workload.table), np.inf, run)
    processors, missing = processors_of(workload.table)
    _count(report.repaired, "requested processors missing: allocated ones used", missing)
    reasons = (
        *never_run(workload.table, processors, linked=workload.specs is None),
        (too_large, processors > (2**62 if capacity is None else capacity)),
    )
    rejected: dict[int, str] = {}
    bad = np.zeros(len(workload), dtype=bool)
    for reason, mask in reasons:
        new = mask & ~bad
        if new.any():
            rejected.update(dict.fromkeys(np.flatnonzero(new).tolist(), reason))
            _count(report.rejected, reason, new)
            bad |= mask
    asked = np.full(len(run), np.nan)
    if "requested" in workload:
        asked = np.where(workload["requested"] > 0, workload["requested"], np.nan)
        missing = np.isnan(asked) & ~bad & np.isfinite(run)
        if workload.specs is None or not missing[~bad & np.isfinite(run)].all():
            _count(report.repaired, "requested time missing: run time used", missing)
    unrequested = np.isnan(asked)
    requested = np.where(unrequested, run, asked)
    waiting, expected, duration = planned_seconds(run, requested, estimates, overrun)
    rows = np.flatnonzero(~bad)
    ordered = submit[rows]
    late = ordered[1:] < ordered[:-1]
    if late.any():
        _count(report.repaired, "submissions out of order: sorted", late)
        rows = rows[np.argsort(ordered, kind="stable")]
    cut = run > requested if overrun == "stop" else np.zeros(len(run), bool)
    stopped = Stopped.of(run[rows], duration[rows], processors[rows])
    stopped.note(report)
    return Prepared(
        rows=rows,
        submit=submit,
        requested=waiting,
        expected=expected,
        duration=duration,
        processors=processors,
        cut=cut,
        outcomes=outcomes_in(workload.table) if _TOLD & set(workload.table.names) else None,
        asked=asked,
        unrequested=unrequested & (estimates == "requested"),
        rejected=rejected,
        report=report,
        stopped=stopped,
    )


_TOLD = {"status", "outcome", "exit_code"}


def _executed(workload: Workload, timed: Callable[[Checkpoint], Checkpoint] | None) -> NDArray[np.float64]:
    """Return the seconds that each job executes if nothing interrupts it."""
    run: NDArray[np.float64] = workload["run"]
    if "checkpoint_interval" not in workload:
        return run
    checkpoints = checkpoints_in(workload.table)
    if timed is not None and "checkpoint_to" in workload:
        checkpoints = [each if each is None else timed(each) for each in checkpoints]
    jobs = zip(run.tolist(), checkpoints, strict=True)
    return np.array([work if each is None else each.seconds(work) for work, each in jobs], dtype=np.float64)


def _count(counts: Counter[str], reason: str, mask: NDArray[np.bool_]) -> None:
    number = int(mask.sum())
    if number:
        counts[reason] += number


REPEATED = "duplicate job id: a new one assigned"


def distinct_jobs(workload: Workload) -> tuple[Workload, int]:
    """Return a workload in which no job id occurs twice, and the number of jobs of a log that got a new one.

    >>> log = Workload({"job": [7, 8, 7], "submit": [0, 0, 0], "run": [1, 1, 1], "processors": [1, 1, 1]})
    >>> distinct, repaired = distinct_jobs(log)
    >>> distinct["job"], repaired
    (array([7, 8, 9]), 1)
    """
    if workload.specs is not None:
        return workload, 0
    ids, renamed = distinct_ids(workload["job"])
    return (workload.replace(job=ids) if renamed else workload), renamed
