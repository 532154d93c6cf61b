"""Simulations: a system, its environment and its work, to be run, stepped, queried and copied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

from simpy.events import Event

from simmodel.environment import quiet_garbage_collector
from simmodel.foundation.errors import InputError
from simmodel.foundation.tracebacks import shortened
from simmodel.foundation.units import in_seconds
from simmodel.runs.ticking import Patience, processes_of, ticking

if TYPE_CHECKING:
    from simpy.events import Process

    from simmodel.environment import Environment
    from simmodel.records.observers import EventRecorder, Progress
    from simmodel.results.streamed import StreamedResult
    from simmodel.results.streams import RecordStream
    from simmodel.runs.live import LiveView
    from simmodel.scheduling.protocol import Decision, View
    from simmodel.scheduling.scheduler import Asker
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.submissions import Submissions
    from simmodel.systems.system import Live, System

__all__ = ["Simulation"]

_LAST = 1_000_000  # rank at the end of an instant: after all schedulers


def _is_over(system: System[Live]) -> bool:
    """Whether nothing waits and nothing is left but wake-ups, which policies may plan for ever."""
    return system.env.only_wake_ups and not any(each.view.waiting for each in system.all_below())


def _leave_if_over(system: System[Live], built: Collection[Process]) -> None:
    if system.scheduler.over is None:
        return
    if _is_over(system) or (not system.unfinished and ticking(system.env, built)[0]):
        system.env.leave()


class Simulation:
    """A system that can be run, stepped from decision to decision, asked for its result, and copied.

    Create one by :func:`start` from a platform and a workload, or directly from a system built in a script.

    Parameters
    ----------
    system
        the system, with its environment
    until
        instant (s, or a text such as ``"2d"``) at which :meth:`run` stops; default: when all work has ended
    events
        whether to record each state change of jobs
    observers
        objects with hooks; a class is called with the environment
    progress
        whether to show a progress bar
    name
        name of the run in tables and plots; default: the policy

    >>> from simmodel import Cluster, Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> jobs = [cluster.submit(Job(processors=3, run=10)) for _ in range(2)]
    >>> Simulation(cluster).run().result().jobs["start"]
    array([ 0., 10.])
    """

    def __init__(
        self,
        system: System[Live],
        *,
        until: float | str | None = None,
        events: bool = False,
        observers: Sequence[object] = (),
        progress: bool = False,
        name: str | None = None,
    ) -> None:
        env = system.env
        until = in_seconds(until)
        if until is not None and (isinstance(until, str) or not until > env.now):
            raise InputError(f"must be > {env.now:g} s, the current time, got {until!r}", place="until")
        self.system: System[Any] = system
        self.until = until
        self.name = name
        self.scenario: dict[str, Any] = {}
        self._check: Callable[[], None] | None = None  # whether to leave, at the end of the instant
        self._idle: Event | None = None  # which asks for that check
        self._bar: Progress | None = None
        self._wants_bar = progress
        self._stream: RecordStream | None = None
        self._streamed: StreamedResult | None = None
        self._events: EventRecorder | None = None
        self._quiet: finalize[..., Simulation] | None = None  # ends the rest of the collector between questions
        self._built: frozenset[Process] = frozenset()
        if events:
            self._keep_events()
        for observer in observers:
            env.observe(observer(env) if isinstance(observer, type) else observer)

    @property
    def env(self) -> Environment:
        """The environment."""
        return self.system.env

    def __repr__(self) -> str:
        return f"<Simulation of {self.system!r} at {self.env.now:g} s>"

    def keep_built(self) -> None:
        """Take the processes that there are so far for those of models and observers: a run ends without them."""
        self._built = processes_of(self.env)

    def _keep_events(self) -> None:
        if self.system.work != "jobs":
            raise InputError("must be False for tasks, whose instants are in the result", place="events")
        from simmodel.records.observers import EventRecorder

        self._events = EventRecorder(self.env, list(self.system.places))
        self._events.take_over(self.system.present())
        self.env.observe(self._events)

    def serve(self, port: int = 0, *, refresh: float = 1.0) -> LiveView:
        """Serve the page of the run on this machine while it lasts; ``.url`` of the context is its address.

        Parameters
        ----------
        port
            0: any free one
        refresh
            seconds from one message to those who watch to the next

        Raises
        ------
        InputError
            the port is taken, the refresh is not positive, or the record is streamed, which leaves no page

        >>> from simmodel import start
        >>> simulation = start(12, "probe-4", "fcfs")
        >>> with simulation.serve() as live:
        ...     print(live.url.startswith("http://127.0.0.1:")); _ = simulation.run()
        True
        """
        from simmodel.runs.live import LiveView

        if self._stream is not None:
            raise InputError("must have its whole record in memory, which is streamed here", place="serve")
        return LiveView(self, port, refresh)

    def submit(self, work: Submissions) -> None:
        """Plan the submission of work, each part at its instant."""
        if self._wants_bar:
            self.show_progress(work.title, None if work.total is None else self.system.unfinished + work.total)
        with self._streaming():
            work.submit_to(self.system)

    def show_progress(self, title: str, total: int | None) -> None:
        """Show a progress bar while it runs, of a number of jobs or tasks if that is known."""
        from simmodel.records.observers import Progress

        self._bar = Progress(total, title, unit=self.system.work)
        self.env.observe(self._bar)

    # ------------------------------------------------------------------ time

    def run(self, until: float | str | None = None) -> Self:
        """Run until an instant (s, or ``"2d"``); default: that of the simulation, else until all work has ended.

        Wake-ups that policies have planned for later do not prolong it, nor do processes of custom models, such as a
        thermal tick; other processes of the environment do. It ends, too, when all that is left is running work without
        an expected end.

        Raises
        ------
        Stalled
            if work waits that will never start, while nothing goes on but processes of models, or while the policy does
            nothing but plan wake-ups
        """
        if self._streamed is not None:
            raise InputError(f"has ended: its record is in {self._streamed.path}", place="run")
        self._end_quiet()
        scheduler = self.system.scheduler
        if scheduler.external:  # from now on the policy decides, also on the open question
            scheduler.external = False
            scheduler.ask_first(None)
            scheduler.wake()
        try:
            with shortened, quiet_garbage_collector(), self._streaming():
                self._advance(until)
        finally:
            if self._bar is not None:
                self._bar.close()
        return self

    @contextmanager
    def _streaming(self) -> Iterator[None]:
        """Close the file of the record if an error ends the run."""
        try:
            yield
        except BaseException:
            if self._stream is not None:
                self._stream.leave()
            raise

    def _advance(self, until: float | str | None) -> None:
        end = self.until if until is None else in_seconds(until)
        if isinstance(end, str):
            raise InputError(f"must be an instant (s), or a text such as '2d', got {end!r}", place="until")
        if end is not None:
            self.env.run(until=end)
            return
        system, env = self.system, self.env
        codes = (getattr(event, "call", event) for *_, event in env._queue)
        foreign = any(isinstance(each, Event) or not each.__module__.startswith("simmodel.") for each in codes)
        ticks = foreign and ticking(env, self._built)[0]  # a model goes on for ever
        with Patience(system, self._built) if ticks else nullcontext():
            if system.endless:
                env.run(until=system.idle())
                return
            over = partial(_is_over, system)  # nothing in the environment holds the simulation: it ends when dropped
            schedulers = [each.scheduler for each in system.all_below()]
            for scheduler in schedulers:
                scheduler.over = over
            if self._check is None:
                self._check = env.at_instant_end(partial(_leave_if_over, system, self._built), rank=_LAST)
            check, idle = self._check, system.idle()
            if idle is not self._idle and idle.callbacks is not None:
                idle.callbacks.append(lambda _: check())
            self._idle = idle
            if ticks and not system.unfinished:
                check()
            try:
                env.run()
            finally:
                for scheduler in schedulers:
                    scheduler.over = None

    # ------------------------------------------------------------------ decisions from outside

    def next_decision(self, asker: Asker | None = None) -> View | None:
        """Run to the next decision of the system's own scheduler and return its live view; ``None`` at the end.

        Closes the decision that is open. Places that are systems decide by their own policies. A snapshot taken now
        precedes the decision. From the first question to the end, :meth:`run`, an error, or until the simulation is
        dropped, the collector rests (:func:`~simmodel.environment.quiet_garbage_collector`).

        Parameters
        ----------
        asker
            decides first, each time and within the run: the decisions of its ``resume(view)`` are carried out, and the
            view is returned only if ``asks(view)`` is true then

        Raises
        ------
        InputError
            if the system decides within submissions (``decide_on="event"``)
        Stalled
            if work waits that will never start

        >>> from simmodel import Start, start
        >>> sim = start(12, "probe-4", "fcfs")
        >>> while (view := sim.next_decision()) is not None:
        ...     for job in view.waiting:
        ...         if view.places[0].fits(job):
        ...             _ = sim.decide([Start(job, view.places[0])])
        >>> sim.result().jobs["start"]
        array([   0.,  900., 1360.,  960.])
        """
        scheduler = self.system.scheduler
        scheduler.external = True
        scheduler.ask_first(asker)
        scheduler.close()
        if self._quiet is None:  # one rest for all questions: each costs a tenth of it
            guard = quiet_garbage_collector()
            guard.__enter__()
            self._quiet = finalize(self, guard.__exit__, None, None, None)
        try:
            if self.until is None or self.env.now < self.until:
                with shortened:
                    self._advance(None)
        finally:
            if scheduler.question is None:
                self._end_quiet()
        if scheduler.question is None and self._bar is not None:
            self._bar.close()
        return scheduler.question

    def _end_quiet(self) -> None:
        """Let the collector work as usual again, after questions."""
        if self._quiet is not None:
            self._quiet()
            self._quiet = None

    def decide(self, decisions: Iterable[Decision] | None = None) -> int:
        """Apply decisions, each at once and with the scheduler's checks; return their number.

        May be called several times while a decision is open. Without decisions, the system's own policy is asked.

        Raises
        ------
        InputError
            if no decision is open
        PolicyError
            if a decision cannot be applied; those before it have been
        """
        scheduler = self.system.scheduler
        with shortened:
            return scheduler.ask() if decisions is None else scheduler.apply(decisions)

    # ------------------------------------------------------------------ results and snapshots

    def result(self, name: str | None = None) -> Any:
        """Return the result so far; ``name`` is its name in tables and plots.

        The result of a run whose record is streamed ends the run.
        """
        if self._streamed is not None:
            return self._streamed
        result = self.system.result(name or self.name)
        if self._events is not None:
            result.events = self._events.table()
        result.scenario = dict(self.scenario)
        if self._stream is not None:
            from simmodel.results.streamed import open_result

            tables = result.stored_tables()
            jobs = tables.pop("jobs")
            tables.pop("runs")
            self._stream.close(result.meta(), tables, jobs)
            result = self._streamed = open_result(self._stream.path)
        return result

    def stream_to(self, stream: RecordStream) -> None:
        """Write the record of the run to disk as it goes on, before any work is submitted.

        Raises
        ------
        InputError
            if the system keeps its record in memory, or has work
        """
        if self._events is not None:
            stream.leave()
            raise InputError("must be False for a record that is streamed", place="events")
        try:
            self.system.stream_record(stream.write)
        except BaseException:
            stream.leave()
            raise
        self._stream = stream
        begun = self.system.result(self.name)
        begun.scenario = dict(self.scenario)
        tables = {name: table for name, table in begun.stored_tables().items() if name not in ("jobs", "runs")}
        stream.begin(begun.meta(), tables)

    def snapshot(self) -> Snapshot:
        """Return the state of the system as a plain value from which a simulation can continue."""
        return self.system.snapshot()
