"""A simulation: a system, its environment and its work, ready to be run, stepped, asked and copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from simmodel.environment import quiet_garbage_collector
from simmodel.errors import InputError

if TYPE_CHECKING:
    from simpy.events import Event

    from simmodel.environment import Environment
    from simmodel.records.observers import EventRecorder, Progress
    from simmodel.scheduling.protocol import Decision, View
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.submissions import Submissions
    from simmodel.systems.system import Live, System

__all__ = ["Simulation"]


class Simulation:
    """A system that can be run, stepped from decision to decision, asked for its result, and copied.

    :func:`start` makes one of a platform and a workload; a system that a script has built is taken as it is.

    Parameters
    ----------
    system
        the system; its environment goes with it
    until
        the instant (s) at which :meth:`run` stops; default: when all work is over
    events
        whether to keep a row for each state change of jobs
    observers
        objects with hooks; one that is a class is called with the environment
    progress
        whether to show a progress bar
    name
        what tables and plots call the run; default: the policy

    >>> from simmodel import Environment
    >>> from simmodel import Cluster
    >>> from simmodel import Job
    >>> cluster = Cluster(Environment(), 4)
    >>> jobs = [cluster.submit(Job(processors=3, run=10)) for _ in range(2)]
    >>> Simulation(cluster).run().result().jobs["start"]
    array([ 0., 10.])
    """

    def __init__(
        self,
        system: System[Live],
        *,
        until: float | None = None,
        events: bool = False,
        observers: Sequence[object] = (),
        progress: bool = False,
        name: str | None = None,
    ) -> None:
        env = system.env
        if until is not None and not until > env.now:
            raise InputError(f"until > {env.now:g} s, the present instant, expected, found {until!r}")
        self.system: System[Any] = system
        self.until = until
        self.name = name
        self.scenario: dict[str, Any] = {}
        self._bar: Progress | None = None
        self._wants_bar = progress
        self._events: EventRecorder | None = None
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

    def _keep_events(self) -> None:
        if self.system.work != "jobs":
            raise InputError("events: rows of state changes of jobs, found tasks, whose instants the result has")
        from simmodel.records.observers import EventRecorder

        self._events = EventRecorder(self.env, list(self.system.places))
        self._events.take_over(self.system.present())
        self.env.observe(self._events)

    def submit(self, work: Submissions) -> None:
        """Have work submitted, each part at its instant."""
        if self._wants_bar:
            from simmodel.records.observers import Progress

            self._bar = Progress(self.system.unfinished + len(work), work.title, unit=work.what)
            self.env.observe(self._bar)
        work.submit_to(self.system)

    # ------------------------------------------------------------------ time

    def run(self, until: float | None = None) -> Self:
        """Run until an instant (s); default: that of the simulation, else until all work is over.

        Raises
        ------
        Stalled
            where work waits for what will never happen
        """
        scheduler = self.system.scheduler
        if scheduler.external:  # from now on the simulation's own policy decides, about what is open too
            scheduler.external = False
            scheduler.wake()
        try:
            with quiet_garbage_collector():
                self.env.run(until=self._end(until))
        finally:
            if self._bar is not None:
                self._bar.close()
        return self

    def _end(self, until: float | None) -> float | Event | None:
        end = self.until if until is None else until
        return self.system.idle() if end is None and self.system.endless else end

    # ------------------------------------------------------------------ decisions from outside

    def next_decision(self) -> View | None:
        """Run to the next question of the system's own scheduler, and return its live view; ``None`` at the end.

        The question that is open is closed first; the places below answer theirs themselves. A snapshot taken now is
        one before the decision.

        Raises
        ------
        InputError
            where the system decides in the middle of submissions (``decide_on="event"``)
        Stalled
            where work waits for what will never happen

        >>> from simmodel import Start, start
        >>> sim = start(12, "probe-4")
        >>> while (view := sim.next_decision()) is not None:
        ...     for job in view.waiting:
        ...         if view.places[0].fits(job):
        ...             _ = sim.decide([Start(job, view.places[0])])
        >>> sim.result().jobs["start"]
        array([   0.,  900., 1360.,  960.])
        """
        scheduler = self.system.scheduler
        scheduler.external = True
        scheduler.close()
        if self.until is None or self.env.now < self.until:
            self.env.run(until=self._end(None))
        if scheduler.question is None and self._bar is not None:
            self._bar.close()
        return scheduler.question

    def decide(self, decisions: Iterable[Decision] | None = None) -> int:
        """Have decisions carried out, each at once and with the scheduler's checks; return how many there were.

        May be called several times for one question. Without decisions the simulation's own policy is asked.

        Raises
        ------
        InputError
            where no question is open
        PolicyError
            where a decision cannot be carried out; those before it have been
        """
        scheduler = self.system.scheduler
        return scheduler.ask() if decisions is None else scheduler.apply(decisions)

    # ------------------------------------------------------------------ what there is to see

    def result(self, name: str | None = None) -> Any:
        """Return what has happened so far; ``name`` is what tables and plots call it."""
        result = self.system.result(name or self.name)
        if self._events is not None:
            result.events = self._events.table()
        result.scenario = dict(self.scenario)
        return result

    def snapshot(self) -> Snapshot:
        """Return the state of the system as a plain value, from which a simulation can go on."""
        return self.system.snapshot()
