"""The scheduler: it wakes, asks the policy, checks each decision and has the system apply it.

Decisions can also come from outside (:attr:`Scheduler.external`): from a learning agent, a twin or a debugger.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeVar

from simmodel.environment import WAKE_UP
from simmodel.foundation.errors import InputError, PolicyError, Stalled
from simmodel.foundation.tracebacks import note
from simmodel.scheduling.checks import (
    NOT_STARTED,
    label_of,
    misreturned,
    not_here,
    place_of,
    why_not_at,
    why_not_known,
    why_not_preempt,
    why_not_reserve,
    why_not_start,
)
from simmodel.scheduling.protocol import Decides, Decision, Policy, Preempt, Reserve, Start, View, WakeAt
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment, ToCome
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob
    from simmodel.work.taskset import LiveTask

__all__ = ["Asker", "Executive", "GivenReason", "Handler", "Preempts", "Scheduler", "Withdrawn", "handle_preempt"]

Work = TypeVar("Work", bound="LiveJob | LiveTask", contravariant=True)
At = TypeVar("At", bound="Place", contravariant=True)
"""The work and the places of an executive."""


class Withdrawn(Exception):
    """Raised by a system whose job leaves at its turn instead of starting: the policy is asked again without it."""


IDLE_ALARMS = 100_000  # wake-ups in a row, with nothing else decided or to come, after which a simulation ends

Handler = Callable[[Any], str | None]
"""Applies a decision, or changes nothing and returns why it cannot."""


class GivenReason(NamedTuple):
    """A decision and the reason that a policy gave with it.

    ``time``: of the decision (s); ``decision``: its type, such as ``"Start"``; ``work``: the id of the job or task;
    ``place``: by name; ``at``: the instant (s) that is promised or planned; ``home``: that of a job of a broker;
    ``None``, empty or nan: it has none.
    """

    time: float
    decision: str
    work: int | str | None
    place: str
    at: float
    reason: str
    home: str = ""


class Executive(Protocol[Work, At]):
    """A system that applies decisions: a cluster, a machine, a broker."""

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """The handler of each type of decision except ``Reserve`` and ``WakeAt``.

        That of ``Start``, if any, carries out the starts of elastic jobs at a size that the policy names. A handler
        applies the decision and returns ``None``; if that is impossible, it changes nothing and returns the reason,
        which becomes a :class:`~simmodel.foundation.errors.PolicyError`.
        """
        ...

    def start(self, job: Work, place: At, allocation: Allocation | None = None, /) -> None:
        """Start waiting work on a place; the scheduler has checked that this is possible."""
        ...


class Asker(Protocol):
    """Decides before a question is opened from outside, such as what follows from earlier answers."""

    def resume(self, view: View, /) -> Iterable[Decision]:
        """Return the decisions that need no question."""
        ...

    def asks(self, view: View, /) -> bool:
        """Whether a question is left then."""
        ...


class Preempts(Protocol[Work]):
    """A system that can preempt running work."""

    def why_not_preempt(self, job: Work, mode: str, /) -> str | None:
        """Return why running work cannot be preempted in this mode, or ``None``."""
        ...

    def preempt(self, job: Work, mode: str, /) -> None:
        """Preempt running work."""
        ...

    def cancel(self, work: Work, /) -> None:
        """Withdraw work that waits."""
        ...


def handle_preempt(system: Preempts[Work], decision: Preempt) -> str | None:
    """Preempt running work, or cancel a waiting job, or return why this is impossible: the handler of ``Preempt``."""
    job = decision.work
    if decision.mode == "cancel" and job.state in NOT_STARTED:
        system.cancel(job)
        return None
    reason = system.why_not_preempt(job, decision.mode)
    if reason is None:
        system.preempt(job, decision.mode)
    return reason


_DECIDES = {
    "jobs": "when jobs start on the nodes of a cluster",
    "tasks": "which processor of a machine takes each task",
    "places": "which processor or system takes each piece of work",
    "plans": "which place takes each task of a workflow, before it is ready",
    "systems": "which system takes each job",
    "data": "which files of a grid are moved",
}


def asked_by(view: View) -> tuple[Decides, ...]:
    """Return the kinds of decision that the system of a view asks for."""
    if not all(place.queues for place in view.places):
        return ("jobs",)
    return ("places", "systems") if view.problem is None else ("places", "plans", "tasks")


def check_decides(policy: Policy, asked: tuple[Decides, ...], name: str) -> None:
    """Refuse a policy for another kind of decision than the system asks for.

    Raises
    ------
    InputError
        the policy is for another kind of decision
    """
    if policy.decides != "anything" and policy.decides not in asked:
        raise InputError(
            f"policy {policy.name!r} decides {_DECIDES[policy.decides]}; {name} asks {_DECIDES[asked[-1]]}"
        )


def _close(decisions: object) -> None:
    """Close a generator of decisions, so that its ``finally`` blocks run now."""
    if isinstance(decisions, Generator):
        decisions.close()


class Scheduler:
    """Asks one policy which waiting work starts where, at the end of each instant in which something happened.

    Parameters
    ----------
    env
        the environment
    policy
        any argument of :func:`~simmodel.scheduling.registry.policy`: a name, a policy, a function of a view, ...
    view
        the policy's view
    executive
        the system that applies the decisions
    name
        its name in errors and records
    rank
        its rank among schedulers that decide at the same instant: broker 0, cluster 1, machine 2
    by_event
        whether it decides inside each submission and each end (``decide_on="event"``)
    asks
        the kinds of decision that it asks for; default: by its view

    Attributes
    ----------
    policy, known_as
        the policy; the name by which it was passed, or ``None`` if it was passed as an object
    handlers
        the handler of each type of decision; register the handler of a new type here, or in the system's ``handlers``
    question
        the view while a decision is awaited from outside, else ``None``
    asked_for
        whether to ask the policy even if nothing waits
    over
        set by a simulation that ends with its work: whether nothing waits and only wake-ups are left; then
        ``env.run()`` returns instead of asking the policy
    alarms
        the planned wake-ups, by instant (s)
    pause, rests_until
        a function that returns for how long (s) it decides nothing more after each decision, or ``None``; the instant
        (s) until which it does so now
    reasons
        the reasons that the policy gave with its decisions, in order
    seconds, calls, slowest, decisions
        wall-clock seconds inside the policy in total, number of calls, longest call (s), number of decisions

    ``fcfs`` from outside, as a loop:

    >>> from simmodel import Cluster, Environment, Job
    >>> env = Environment()
    >>> cluster = Cluster(env, 4)
    >>> first, second = cluster.submit(Job(processors=4, run=10)), cluster.submit(Job(processors=2, run=5))
    >>> scheduler = cluster.scheduler
    >>> scheduler.external = True
    >>> env.run()
    >>> while (view := scheduler.question) is not None:
    ...     place = view.places[0]
    ...     scheduler.apply(Start(job, place) for job in view.waiting if place.fits(job))
    ...     scheduler.close()
    ...     env.run()
    1
    1
    >>> first.started, second.started
    (0, 10.0)
    """

    def __init__(
        self,
        env: Environment,
        policy: PolicyLike,
        view: View,
        executive: Executive[Work, At],
        name: str = "scheduler",
        rank: int = 1,
        by_event: bool = False,
        asks: tuple[Decides, ...] | None = None,
    ) -> None:
        self.env = env
        self.view = view
        self.name = name
        self.policy = chosen = policy_of(policy, asks := asks or asked_by(view))
        self.known_as = policy if isinstance(policy, str) else None
        check_decides(chosen, asks, name)
        self._ask: Callable[[View], Iterable[Decision] | None] = chosen.decide
        self._executive: Executive[Any, Any] = executive
        own = dict(executive.handlers)
        self._sized = own.pop(Start, None)
        self.handlers: dict[type, Handler] = {
            Start: self._carry_start,
            Reserve: self._carry_reserve,
            WakeAt: self._carry_wake,
            **own,
        }
        self._runs = False  # whether a decision was asked for because of running work
        self.wake = env.at_instant_end(self.decide, rank)
        self._queueing = frozenset(place for place in view.places if place.queues)
        self._by_event = by_event
        self._external = False
        self.asker: Asker | None = None
        self.question: View | None = None
        self._answered = (0.0, 0)  # of the open question: seconds and decisions so far
        self._nothing_waited = False  # when the question was opened
        self.asked_for = False
        self.over: Callable[[], bool] | None = None
        self._deciding = False
        self._idle_alarms = 0  # wake-ups since something but wake-ups and promises was decided, or checked
        self.reasons: list[GivenReason] = []
        self._plans = 0  # wake-ups and promises among the decisions
        self._decided_before = -1  # other decisions when the last idle wake-ups were counted
        self.alarms: dict[float, Call] = {}
        self.pause: Callable[[], float] | None = None
        self.rests_until = float("-inf")
        self._resting = False  # whether the end of the pause is planned
        self.seconds = 0.0
        self.slowest = 0.0
        self.fastest = float("inf")
        self.calls = 0
        self.decisions = 0
        self._decided: tuple[Callable[..., object], ...] = ()
        self._promised: tuple[Callable[..., object], ...] = ()
        env.on_hooks_changed(self._find_hooks)

    def answer_by(self, decide: Callable[[View], Iterable[Decision] | None]) -> None:
        """Take the decisions from a function from now on, in the name of the policy, which has made them before."""
        self._ask = decide

    def ask_first(self, asker: Asker | None) -> None:
        """Have another part answer before a question is opened from outside; ``None``: each question is opened."""
        if asker is not self.asker:
            self.asker = asker
            self._ask = self.policy.decide if asker is None else asker.resume

    @property
    def policy_name(self) -> str:
        """The name of the policy in errors and results."""
        return self.policy.name

    @property
    def due(self) -> bool:
        """Whether a decision is due at this instant, or in progress."""
        return self._deciding or self.wake.armed or self.question is not None

    def timing(self) -> dict[str, float]:
        """Return the number of calls of the policy, and the wall-clock seconds inside it: total, mean, min and max."""
        return {
            "count": self.calls,
            "seconds": self.seconds,
            "mean": self.seconds / self.calls if self.calls else 0.0,
            "min": self.fastest if self.calls else 0.0,
            "max": self.slowest,
        }

    def _find_hooks(self) -> None:
        self._decided = self.env.hooks("decided")
        self._promised = self.env.hooks("job_promised")

    def decide(self) -> None:
        """Ask the policy now and apply its decisions; no effect if nothing waits, unless a decision was requested."""
        if self._deciding:  # triggered by one of its own decisions
            self.wake()
            return
        waiting = self.view.waiting
        if self.env._now < self.rests_until:
            self._rest()
            return
        if not waiting.count:
            if not self.asked_for:
                waiting.forget_new()
                return
            if self._runs:  # then it is not over, and the question need not look at all events
                self._runs = False
            elif self.over is not None and self.over():
                self.asked_for = False
                self.env.leave()
                return
            self.asked_for = self._external  # an open question may still be copied into a snapshot
        if self._external:
            if self.asker is None:
                self._open()
                return
            self._ask_policy(waiting)
            if self.asker.asks(self.view):
                self._open()
                return
            if not waiting.count:
                self.asked_for = False
        else:
            self._ask_policy(waiting)
        if self.pause is not None:
            self._begin_pause()

    def _begin_pause(self) -> None:
        assert self.pause is not None
        self.rests_until = self.env._now + self.pause()

    def _rest(self) -> None:
        """Decide at the end of the pause."""
        if not self._resting and (self.view.waiting or self.asked_for):
            self._resting = True
            self.env.call_at(self.rests_until, self._go_on, what=WAKE_UP)

    def _go_on(self) -> None:
        self._resting = False
        self.wake()

    def _ask_policy(self, waiting: Any) -> None:
        """Ask the policy and apply its decisions (hot path)."""
        clock = perf_counter
        start = self._executive.start
        again = True  # since a job was withdrawn at its turn
        while again:
            again = False
            spent = 0.0
            count = 0
            decisions: Iterable[Decision] | None = None
            self._deciding = True
            begin = clock()
            try:
                decisions = self._ask(self.view)
                if decisions is not None:
                    for decision in decisions:
                        spent += clock() - begin
                        count += 1
                        if type(decision) is Start:
                            # _carry_start, inlined: nearly all decisions are starts.
                            job, place, reason, allocation, processors, level, _ = decision
                            if processors is not None or level is not None:
                                self._carry(decision, decisions)
                                begin = clock()
                                continue
                            try:
                                startable = (
                                    job.state == "waiting"
                                    and job.place is place
                                    and (place.fits(job) if allocation is None else place.accepts(job, allocation))
                                ) or (place in self._queueing and job.state in NOT_STARTED and place.can_run(job))
                            except (AttributeError, TypeError) as error:
                                self._check_types(decision, error)
                            if not startable:
                                job = self._entry(decision)
                            start(job, place, allocation)
                            if reason is not None:
                                self.reasons.append(_given_reason(self.env._now, decision))
                        else:
                            self._carry(decision, decisions)
                        begin = clock()
            except Withdrawn:
                _close(decisions)
                again = waiting.count > 0
            except PolicyError as error:
                _close(decisions)
                raise self._signed(error) from error.__cause__
            except Exception as error:
                self._say_who(error, decisions)
                raise
            finally:
                self._deciding = False
            spent += clock() - begin
            if waiting.new and not again:
                waiting.forget_new()
            self.seconds += spent
            self.calls += 1
            if count:
                self.decisions += count
            if spent > self.slowest:
                self.slowest = spent
            if spent < self.fastest:
                self.fastest = spent
            if self._decided:
                for hook in self._decided:
                    hook(self, spent, count)

    # ------------------------------------------------------------------ decisions from outside

    @property
    def external(self) -> bool:
        """Whether decisions come from outside: instead of asking the policy, the scheduler makes ``env.run()`` return.

        A question is then open: ``question`` is the view; pass decisions to :meth:`apply`, or have the policy make them
        with :meth:`ask`, until :meth:`close`. The next question closes one that is still open.

        Raises
        ------
        InputError
            set for a scheduler that decides inside submissions and ends (``decide_on="event"``)
        """
        return self._external

    @external.setter
    def external(self, value: bool) -> None:
        if value and self._by_event:
            raise InputError(
                "cannot decide from outside with decide_on='event': decisions are made inside submissions",
                place=self.name,
            )
        if not value and self.question is not None:
            self.close()
        self._external = value

    def _open(self) -> None:
        if self.question is not None:
            self.close()
        self.question = self.view
        self._nothing_waited = not self.view.waiting
        self._answered = 0.0, 0
        self.env.leave()

    def apply(self, decisions: Iterable[Decision] | None) -> int:
        """Check and apply decisions one by one; return their number.

        May be called several times while a question is open.

        Raises
        ------
        InputError
            no question is open
        PolicyError
            a decision cannot be applied; those before it were, and the question remains open
        """
        if self.question is None:
            raise InputError(f"{self.name}: no decision is awaited")
        clock = perf_counter
        spent, before = self._answered
        count = before
        self._deciding = True
        begin = clock()
        try:
            for decision in decisions or ():
                spent += clock() - begin
                with suppress(Withdrawn):
                    self._carry(decision, decisions)
                count += 1
                begin = clock()
        except PolicyError as error:
            _close(decisions)
            raise self._signed(error) from error.__cause__
        except Exception as error:
            self._say_who(error, decisions)
            raise
        finally:
            self._deciding = False
            self._answered = spent, count
        self._answered = spent + clock() - begin, count
        return count - before

    def ask(self) -> int:
        """Have the scheduler's policy answer the open question; return the number of its decisions.

        Raises as :meth:`apply`.
        """
        if self.question is None:
            raise InputError(f"{self.name}: no decision is awaited")
        begin = perf_counter()
        decisions = self.policy.decide(self.view)
        spent, count = self._answered
        self._answered = spent + perf_counter() - begin, count
        return self.apply(decisions)

    def close(self) -> None:
        """Close the open question, if any: waiting work keeps waiting, and ``env.run()`` continues."""
        if self.question is None:
            return
        self.question = None
        spent, count = self._answered
        if self._nothing_waited:
            self.asked_for = False
        self.view.waiting.forget_new()
        self.seconds += spent
        self.calls += 1
        self.decisions += count
        self.slowest = max(spent, self.slowest)
        self.fastest = min(spent, self.fastest)
        if self.pause is not None:
            self._begin_pause()
        for hook in self._decided:
            hook(self, spent, count)

    # ------------------------------------------------------------------ checks

    def _error(self, message: str, value: object = None, place: Place | None = None) -> PolicyError:
        label = "" if value is None else label_of(value)
        where = "" if place is None else str(getattr(place, "name", place))
        return PolicyError(message, self.policy_name, label, where, float(self.env.now))

    def _signed(self, error: PolicyError) -> PolicyError:
        """Return an error with the name of the policy, which a place that raises one does not know."""
        if error.policy:
            return error
        return PolicyError(error.message, self.policy_name, error.work, error.place, float(self.env.now))

    def _check_returned(self, decisions: object) -> None:
        """Raise an error with the reason if the answer of the policy is not a collection of decisions."""
        reason = None if decisions is None else misreturned(decisions, self.handlers)
        if reason is not None:
            raise self._error(reason) from None

    def _say_who(self, error: Exception, decisions: object) -> None:
        """Add a note to an error in users' code: in the policy, or else :meth:`Environment.run` says where.

        Raises
        ------
        PolicyError
            a ``TypeError``, since the answer of the policy is not a collection of decisions
        """
        if isinstance(error, TypeError):
            self._check_returned(decisions)
        if decisions is None or getattr(decisions, "gi_frame", decisions) is None:  # it has answered, or still would
            assert error.__traceback__ is not None
            note(error, error.__traceback__.tb_next, self.env.now, f"policy {self.policy_name}", self.view.waiting)

    def _check_types(self, decision: Start, error: Exception) -> NoReturn:
        """Raise the reason why a start has work or a place of the wrong type, else the error that it led to."""
        job, place = decision.work, decision.place
        reason = why_not_known(job, place, self.view.places)
        if reason is None and all(job is not each for each in self.view.waiting):
            reason = not_here(job)
        if reason is None:
            raise error
        raise self._error(reason, job, place) from None

    def _carry(self, decision: Any, decisions: object) -> None:
        """Apply one of the decisions, or raise the reason why this is impossible."""
        carry = self.handlers.get(type(decision))
        if carry is None:
            self._check_returned(decisions)
            names = ", ".join(each.__name__ for each in self.handlers)
            raise self._error(f"decisions must be {names}, got {decision!r}")
        reason = why_not_preempt(decision, self.view.places) if isinstance(decision, Preempt) else None
        reason = reason or carry(decision)
        if reason is not None:
            raise self._error(reason, getattr(decision, "work", None), place_of(decision))
        if getattr(decision, "reason", None) is not None:  # a user's own type need not have one
            self.reasons.append(_given_reason(self.env._now, decision))

    def _carry_start(self, decision: Start) -> str | None:
        job, place, _, allocation, processors, level, _ = decision
        if processors is not None or level is not None:
            return self._carry_sized(decision)
        try:
            startable = (
                job.state == "waiting"
                and job.place is place
                and (place.fits(job) if allocation is None else place.accepts(job, allocation))
            ) or (place in self._queueing and job.state in NOT_STARTED and place.can_run(job))
        except (AttributeError, TypeError) as error:
            self._check_types(decision, error)
        if not startable:
            job = self._entry(decision)
        self._executive.start(job, place, allocation)
        return None

    def _carry_sized(self, decision: Start) -> str | None:
        """Start a job at a size or a level that the decision names, if the system knows such."""
        if self._sized is None:
            if decision.level is not None:
                return f"level: must be None, since {self.name} runs work at one level, got {decision.level!r}"
            return f"processors: must be None, since {self.name} starts work at one size, got {decision.processors!r}"
        return why_not_known(decision.work, decision.place, self.view.places) or self._sized(decision)

    def _entry(self, decision: Start) -> LiveJob:
        """Return the entry at the place of a start of a job that waits for several places, or raise why there is none.

        The decision may name the job, or any of its entries.
        """
        job, place, _, allocation, *_ = decision
        for entry in self.view.choices.get(job, ()) if self.view.choices else ():
            if entry.place is place and (place.fits(entry) if allocation is None else place.accepts(entry, allocation)):
                return entry
        waiting = (*self.view.waiting, *self.view.choices)
        raise self._error(why_not_start(decision, waiting, self.view.places, self.view.choices.get(job)), job, place)

    def _carry_reserve(self, decision: Reserve) -> str | None:
        reason = why_not_reserve(decision, self.env.now, self.view.places)
        if reason is None:
            job, place, at, _ = decision
            if self.view.choices:
                job = self.view.choices.get(job, (job,))[0]
            for hook in self._promised:
                hook(job, place, at)
            self._plans += 1
            self.wake_at(at)
        return reason

    def _carry_wake(self, decision: WakeAt) -> str | None:
        reason = why_not_at(decision.at, self.env.now)
        if reason is None:
            self._plans += 1
            self.wake_at(decision.at)
        return reason

    # ------------------------------------------------------------------ waking

    def wake_last(self) -> None:
        """Decide as the last act of an event: now if nothing else is left at this instant, else at its end."""
        env = self.env
        events, waiting = env._queue, self.view.waiting
        if env._at_end or (events and events[0][0] <= env._now) or self._external or not waiting.count:
            self.wake()
        else:
            self._ask_policy(waiting)

    def wake_anyway(self) -> None:
        """Decide at the end of this instant, even if nothing waits."""
        self.asked_for = True
        self.wake()

    def wake_for_running(self) -> None:
        """Decide at the end of this instant, even if nothing waits: work runs that could be resized."""
        self._runs = True
        self.wake_anyway()

    def wake_at(self, at: float) -> None:
        """Decide at an instant (s) even if nothing else happens then; a past instant is ignored."""
        now = self.env._now
        if at <= now or at in self.alarms or at == float("inf"):
            return
        self.plan_alarm(at)

    def plan_alarm(self, at: float) -> None:
        """Decide at an instant (s), which may be this one."""
        self.alarms[at] = self.env.call_at(at, lambda: self._alarm(at), what=WAKE_UP)

    def to_come(self) -> list[ToCome]:
        """List the planned wake-ups."""
        return [call.to_come("alarm") for call in self.alarms.values()]

    def stop(self) -> None:
        """Withdraw the planned wake-ups: its system has ended."""
        self.asked_for = False
        for call in self.alarms.values():
            self.env.withdraw(call)
        self.alarms.clear()

    def _alarm(self, at: float) -> None:
        self.alarms.pop(at, None)
        self._idle_alarms += 1
        if self._idle_alarms >= IDLE_ALARMS and self.over is not None:
            self._check_progress()
        self.wake_anyway()

    def _check_progress(self) -> None:
        """Stop a simulation whose policy plans wake-ups for ever while nothing else can happen."""
        decided = self.decisions - self._plans
        if decided == self._decided_before and self.env.only_wake_ups:
            raise Stalled(
                f"policy {self.policy_name} planned {IDLE_ALARMS:,} wake-ups until {self.env.now:g} s and decided "
                "nothing else, while no other event is left:",
                tuple(self.env.waiting_report()),
            )
        self._decided_before, self._idle_alarms = decided, 0

    def __repr__(self) -> str:
        return f"<Scheduler of {self.name} under {self.policy.name}>"


def _given_reason(now: float, decision: Any) -> GivenReason:
    """Return the reason of a decision that was carried out at an instant (s).

    >>> _given_reason(5.0, WakeAt(60.0, "the window opens"))
    GivenReason(time=5.0, decision='WakeAt', work=None, place='', at=60.0, reason='the window opens', home='')
    """
    work, place = getattr(decision, "work", None), getattr(decision, "place", None)
    home = getattr(work, "home", None)
    return GivenReason(
        float(now),
        type(decision).__name__,
        None if work is None else work.id,
        "" if place is None else str(place.name),
        float(getattr(decision, "at", nan)),
        str(decision.reason),
        "" if home is None else str(home.name),
    )
