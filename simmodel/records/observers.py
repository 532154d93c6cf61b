"""Observers for runs: a table of all events, a meter of mean usage and queue length, a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.foundation.display import Cells, Shown, texts
from simmodel.foundation.errors import optional_imports
from simmodel.scheduling.observer import Observer
from simmodel.work.table import Table

if TYPE_CHECKING:
    import simpy

    from simmodel.resources.pools.claims import Claim, Grant
    from simmodel.resources.processors.taskplace import TaskPlace
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob, Run
    from simmodel.work.taskset import LiveTask

__all__ = ["EventRecorder", "Progress", "UsageMeter", "progress_bar"]


class EventRecorder(Observer, Shown):
    """Record one row per state change, with the state of its place right after it.

    Parameters
    ----------
    env
        the observed environment
    places
        the observed places; for an event without a place the free processors of all of them are recorded

    >>> from types import SimpleNamespace as Some
    >>> env, pool, job = Some(now=0.0), Some(name="pool", free=4), Some(id=7, index=0, processors=3)
    >>> events = EventRecorder(env, places=[pool])
    >>> events.job_submitted(job)
    >>> env.now, pool.free = 2.0, 1
    >>> events.job_started(Some(job=job, place=pool))
    >>> for row in events.table().rows(): print(list(row.values()))
    [0.0, 'submitted', 7, '', 4.0, 1, 0, '']
    [2.0, 'started', 7, 'pool', 1.0, 0, 1, '']
    """

    def __init__(self, env: simpy.Environment, places: Sequence[Place] = ()) -> None:
        self._env = env
        self._places = tuple(places)
        self._waiting: set[int] = set()
        self._running: set[int] = set()
        self._rows: list[tuple[float, str, Any, str, float, int, int, str]] = []

    def _add(self, event: str, job: LiveJob | None, place: Place | None, detail: str = "") -> None:
        watched = self._places if place is None else (place,)
        self._rows.append(
            (
                self._env.now,
                event,
                "" if job is None else job.id,
                "" if place is None else place.name,
                float(sum(each.free for each in watched)) if watched else float("nan"),
                len(self._waiting),
                len(self._running),
                detail,
            )
        )

    def take_over(self, jobs: Iterable[LiveJob]) -> None:
        """Count jobs that ran or waited before the first event."""
        for job in jobs:
            (self._waiting if job.run is None else self._running).add(job.index)

    def job_submitted(self, job: LiveJob) -> None:
        """Record ``submitted``."""
        self._waiting.add(job.index)
        self._add("submitted", job, None)

    def job_eligible(self, job: LiveJob) -> None:
        """Record ``eligible``: the job may start from now on."""
        self._add("eligible", job, None)

    def job_rejected(self, job: LiveJob, reason: str) -> None:
        """Record ``rejected`` with the reason."""
        self._waiting.discard(job.index)
        self._add("rejected", job, None, reason)

    def job_cancelled(self, job: LiveJob) -> None:
        """Record ``withdrawn``: the job was cancelled while it waited."""
        self._waiting.discard(job.index)
        self._add("withdrawn", job, None)

    def job_promised(self, job: LiveJob, place: Place, at: float) -> None:
        """Record ``promised`` with the promised instant (s)."""
        self._add("promised", job, place, f"{at:.15g}")

    def job_started(self, run: Run) -> None:
        """Record ``started``."""
        self._waiting.discard(run.job.index)
        self._running.add(run.job.index)
        self._add("started", run.job, run.place)

    def job_ended(self, run: Run, status: str) -> None:
        """Record the final state of an execution: ``completed``, ``timeout``, ``preempted`` and so on."""
        self._running.discard(run.job.index)
        if status in ("preempted", "requeued"):
            self._waiting.add(run.job.index)
        self._add(status, run.job, run.place)

    def job_suspended(self, run: Run) -> None:
        """Record ``suspended``."""
        self._running.discard(run.job.index)
        self._add("suspended", run.job, run.place)

    def job_resumed(self, run: Run) -> None:
        """Record ``resumed``."""
        self._running.add(run.job.index)
        self._add("resumed", run.job, run.place)

    def job_resized(self, run: Run, processors: int, grant: Grant) -> None:
        """Record ``resized`` with the new number of processors."""
        self._add("resized", run.job, run.place, str(run.job.processors))

    def claim_granted(self, claim: Claim) -> None:
        """Record ``claimed`` with the processors."""
        self._add("claimed", claim.job, claim.place, str(claim.job.processors))

    def claim_resized(self, claim: Claim, processors: int, grant: Grant) -> None:
        """Record ``resized`` with the new number of processors."""
        self._add("resized", claim.job, claim.place, str(claim.job.processors))

    def claim_ended(self, claim: Claim, status: str) -> None:
        """Record the end of a claim: ``released``, ``lost`` or ``preempted``."""
        self._add(status, claim.job, claim.place, str(claim.job.processors))

    def place_changed(self, place: Place, cause: str) -> None:
        """Record ``changed`` with the cause."""
        self._add("changed", None, place, cause)

    def table(self) -> Table:
        """Return the events in the order in which they happened."""
        names = ("time", "event", "job", "place", "free", "waiting", "running", "detail")
        columns = list(zip(*self._rows, strict=True)) or [()] * len(names)
        table: dict[str, Any] = dict(zip(names, columns, strict=True))
        jobs = table["job"]
        numbers = all(isinstance(job, (int, np.integer)) or job == "" for job in jobs)
        table["job"] = np.array([-1 if job == "" else job for job in jobs] if numbers else [str(job) for job in jobs])
        table["time"] = np.array(table["time"], dtype=np.float64)
        table["detail"] = np.array(table["detail"], dtype=object)
        return Table(table)

    def _cells(self) -> Cells:
        table = self.table()
        return [list(table.names), *(texts(row.values()) for row in table.rows())]

    def __repr__(self) -> str:
        return f"<EventRecorder: {len(self._rows):,} events>"


class UsageMeter(Observer, Shown):
    """Integrate busy processors, running jobs and waiting jobs at events, without a table of jobs.

    Parameters
    ----------
    env
        the observed environment; the meter counts from now on

    >>> from types import SimpleNamespace as Some
    >>> env, job = Some(now=0.0), Some(processors=3)
    >>> meter = UsageMeter(env)
    >>> meter.job_submitted(job); env.now = 4.0; meter.job_started(Some(job=job)); env.now = 10.0
    >>> meter.mean_waiting(), meter.mean_busy()
    (0.4, 1.8)
    """

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self.busy = 0
        self.running = 0
        self.waiting = 0
        self.reset()

    def reset(self) -> None:
        """Restart the averages now, for example at the end of a warm-up."""
        self._since = self._last = self._env.now
        self._busy_area = self._running_area = self._waiting_area = 0.0

    def _advance(self) -> None:
        passed = self._env.now - self._last
        if passed:
            self._last = self._env.now
            self._busy_area += passed * self.busy
            self._running_area += passed * self.running
            self._waiting_area += passed * self.waiting

    def _change(self, waiting: int, running: int, busy: int) -> None:
        self._advance()
        self.waiting += waiting
        self.running += running
        self.busy += busy

    def job_submitted(self, _job: LiveJob) -> None:
        self._change(1, 0, 0)

    def job_cancelled(self, _job: LiveJob) -> None:
        self._change(-1, 0, 0)

    def job_started(self, run: Run) -> None:
        """Move a job from waiting to running."""
        self._change(-1, 1, run.job.processors)

    def job_ended(self, run: Run, status: str) -> None:
        """Remove a running job, and add a waiting one if it returns to the queue."""
        self._change(int(status in ("preempted", "requeued")), -1, -run.job.processors)

    def job_suspended(self, run: Run) -> None:
        self._change(0, -1, -run.job.processors)

    def job_resumed(self, run: Run) -> None:
        self._change(0, 1, run.job.processors)

    def job_resized(self, run: Run, processors: int, _grant: Grant) -> None:
        self._change(0, 0, run.job.processors - processors)

    def _mean(self, area: str) -> float:
        self._advance()
        passed = self._last - self._since
        return float(getattr(self, area) / passed) if passed else float("nan")

    def mean_busy(self) -> float:
        """Return the time average of busy processors."""
        return self._mean("_busy_area")

    def mean_running(self) -> float:
        """Return the time average of running jobs."""
        return self._mean("_running_area")

    def mean_waiting(self) -> float:
        """Return the time average of waiting jobs."""
        return self._mean("_waiting_area")

    def _cells(self) -> Cells:
        return [["", "now"], *([name, str(getattr(self, name))] for name in ("busy", "running", "waiting"))]

    def __repr__(self) -> str:
        return f"<UsageMeter: {self.busy} busy processors, {self.running} running, {self.waiting} waiting>"


class Bar(Protocol):
    """A progress bar, such as tqdm's."""

    def update(self, n: int) -> object:
        """Advance by ``n`` steps."""
        ...

    def close(self) -> object:
        """Draw the final state."""
        ...


class _NoBar:
    """A bar that shows nothing."""

    def update(self, n: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def _tqdm(total: int | None, unit: str, name: str | None = None) -> Bar:
    with optional_imports():
        from tqdm.auto import tqdm
    bar: Bar = tqdm(total=total, unit=unit, desc=name, mininterval=0.1, delay=_delay.get())
    return bar


_delay: ContextVar[float] = ContextVar("delay of progress bars, s", default=0.0)


@contextmanager
def bars_appear_after(seconds: float) -> Iterator[None]:
    """Let the progress bars made in this context appear after some seconds (wall-clock time), if still in use.

    >>> with bars_appear_after(60), progress_bar(2, "run") as bar:  # prints nothing: it ends earlier
    ...     bar.update(2)
    """
    token = _delay.set(seconds)
    try:
        yield
    finally:
        _delay.reset(token)


@contextmanager
def progress_bar(total: int | None, unit: str, wanted: bool = True) -> Iterator[Bar]:
    """Yield a progress bar of ``total`` steps and close it at the end; with ``wanted=False`` an invisible one.

    ``None``: the number of steps is not known.

    Raises
    ------
    MissingExtra
        tqdm is not installed

    >>> with progress_bar(2, "run", wanted=False) as bar:
    ...     bar.update(2)
    """
    bar = _tqdm(total, unit) if wanted else _NoBar()
    try:
        yield bar
    finally:
        bar.close()


class Progress(Observer):
    """Show the number of ended jobs or tasks in a tqdm bar, drawn at most ten times per second.

    Parameters
    ----------
    total
        expected number of jobs or tasks
    name
        label of the bar
    unit
        name of the items counted
    bar
        a custom bar with ``update(n)`` and ``close()`` as in tqdm; default: ``tqdm.auto``

    Raises
    ------
    MissingExtra
        tqdm is not installed and no bar is given

    >>> class Bar:
    ...     def update(self, n): print("+", n)
    ...     def close(self): print("closed")
    >>> progress = Progress(2, bar=Bar())
    >>> progress.job_ended(None, "completed"); progress.job_ended(None, "preempted"); progress.job_ended(None, "lost")
    >>> progress.close()
    + 2
    closed
    """

    def __init__(
        self, total: int | None = None, name: str = "jobs", *, unit: str = "jobs", bar: Bar | None = None
    ) -> None:
        self._bar = _tqdm(total, f" {unit}", name) if bar is None else bar
        self._name = name
        self._new = 0
        self._next = monotonic() + 0.1

    def __repr__(self) -> str:
        return f"<Progress of {self._name}>"

    def _over(self) -> None:
        self._new += 1
        if monotonic() >= self._next:
            self._draw()

    def _draw(self) -> None:
        if self._new:
            self._bar.update(self._new)
        self._new = 0
        self._next = monotonic() + 0.1

    def job_ended(self, _run: Run | None, status: str) -> None:
        if status not in ("preempted", "requeued"):
            self._over()

    def task_ended(self, _task: LiveTask, _place: TaskPlace, _stamps: Sequence[float]) -> None:
        self._over()

    def job_rejected(self, _job: LiveJob, _reason: str) -> None:
        """Count a job that never runs."""
        self._over()

    def job_cancelled(self, _job: LiveJob) -> None:
        """Count a job that never runs."""
        self._over()

    def close(self) -> None:
        self._draw()
        self._bar.close()
