"""Observers to add to a run: a table of every event, a meter of what is busy and queued, a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.errors import optional_imports
from simmodel.scheduling.observer import Observer
from simmodel.work.table import Table

if TYPE_CHECKING:
    import simpy

    from simmodel.resources.taskplace import TaskPlace
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob, Run
    from simmodel.work.livetask import LiveTask

__all__ = ["EventRecorder", "Progress", "UsageMeter", "progress_bar"]


class EventRecorder(Observer):
    """Keeps a row for each state change, with the state of its place right after it.

    Parameters
    ----------
    env
        the environment observed
    places
        the places watched; an event without a place shows what is free on all of them

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
        """Keep ``submitted``."""
        self._waiting.add(job.index)
        self._add("submitted", job, None)

    def job_eligible(self, job: LiveJob) -> None:
        """Keep ``eligible``: nothing holds the job back any more."""
        self._add("eligible", job, None)

    def job_rejected(self, job: LiveJob, reason: str) -> None:
        """Keep ``rejected`` with the reason."""
        self._waiting.discard(job.index)
        self._add("rejected", job, None, reason)

    def job_cancelled(self, job: LiveJob) -> None:
        """Keep ``withdrawn``: cancelled while it waited."""
        self._waiting.discard(job.index)
        self._add("withdrawn", job, None)

    def job_promised(self, job: LiveJob, place: Place, at: float) -> None:
        """Keep ``promised`` with the instant promised, in s."""
        self._add("promised", job, place, f"{at:.15g}")

    def job_started(self, run: Run) -> None:
        """Keep ``started``."""
        self._waiting.discard(run.job.index)
        self._running.add(run.job.index)
        self._add("started", run.job, run.place)

    def job_ended(self, run: Run, status: str) -> None:
        """Keep how an execution ended: ``completed``, ``timeout``, ``preempted`` and so on."""
        self._running.discard(run.job.index)
        if status in ("preempted", "requeued"):
            self._waiting.add(run.job.index)
        self._add(status, run.job, run.place)

    def job_suspended(self, run: Run) -> None:
        """Keep ``suspended``."""
        self._running.discard(run.job.index)
        self._add("suspended", run.job, run.place)

    def job_resumed(self, run: Run) -> None:
        """Keep ``resumed``."""
        self._running.add(run.job.index)
        self._add("resumed", run.job, run.place)

    def place_changed(self, place: Place, cause: str) -> None:
        """Keep ``changed`` with the cause."""
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


class UsageMeter(Observer):
    """Integrates busy processors, running jobs and waiting jobs at events, where no table of jobs is wanted.

    Parameters
    ----------
    env
        the environment observed; the meter counts from now on

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
        """Start the averages anew from now: the end of a warm-up."""
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
        """Count a waiting job."""
        self._change(1, 0, 0)

    def job_cancelled(self, _job: LiveJob) -> None:
        """Count a waiting job less."""
        self._change(-1, 0, 0)

    def job_started(self, run: Run) -> None:
        """Count a running job more and a waiting one less."""
        self._change(-1, 1, run.job.processors)

    def job_ended(self, run: Run, status: str) -> None:
        """Count a running job less, and a waiting one more where it goes back to the queue."""
        self._change(int(status in ("preempted", "requeued")), -1, -run.job.processors)

    def job_suspended(self, run: Run) -> None:
        """Count a running job less."""
        self._change(0, -1, -run.job.processors)

    def job_resumed(self, run: Run) -> None:
        """Count a running job more."""
        self._change(0, 1, run.job.processors)

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


class Bar(Protocol):
    """A progress bar, such as tqdm's."""

    def update(self, n: int) -> object:
        """Draw that so many more are done."""
        ...

    def close(self) -> object:
        """Draw the bar for the last time."""
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
def progress_bar(total: int, unit: str, wanted: bool = True) -> Iterator[Bar]:
    """Give a bar of so many steps, drawn for the last time at the end; one that shows nothing where none is wanted.

    Raises
    ------
    MissingExtra
        if tqdm is not installed

    >>> with progress_bar(2, "run", wanted=False) as bar:
    ...     bar.update(2)
    """
    bar = _tqdm(total, unit) if wanted else _NoBar()
    try:
        yield bar
    finally:
        bar.close()


class Progress(Observer):
    """Shows how many jobs or tasks are over, in a tqdm bar that is drawn at most ten times a second.

    Parameters
    ----------
    total
        jobs or tasks expected
    name
        what stands before the bar
    unit
        what they are called
    bar
        a bar of one's own, with tqdm's ``update(n)`` and ``close()``; default: ``tqdm.auto``

    Raises
    ------
    MissingExtra
        where tqdm is not installed and no bar is given

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
        self._new = 0
        self._next = monotonic() + 0.1

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
        """Count a job that is over."""
        if status not in ("preempted", "requeued"):
            self._over()

    def task_ended(self, _task: LiveTask, _place: TaskPlace, _stamps: Sequence[float]) -> None:
        """Count a task that is done."""
        self._over()

    def job_rejected(self, _job: LiveJob, _reason: str) -> None:
        """Count a job that never runs."""
        self._over()

    def job_cancelled(self, _job: LiveJob) -> None:
        """Count a job that never runs."""
        self._over()

    def close(self) -> None:
        """Draw the last state and end the bar."""
        self._draw()
        self._bar.close()
