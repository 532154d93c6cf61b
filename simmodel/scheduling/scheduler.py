"""The scheduler: it wakes, asks the policy, checks each decision and has the system carry it out.

A scheduler can also be answered from outside (:attr:`Scheduler.external`): by a learning agent, a twin, a debugger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from simmodel.errors import InputError, PolicyError
from simmodel.scheduling.policy_base import Decides, Policy
from simmodel.scheduling.protocol import Decision, Preempt, Reserve, Start, View, WakeAt
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment, ToCome
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob
    from simmodel.work.livetask import LiveTask

__all__ = ["Executive", "Handler", "Preempts", "Scheduler", "handle_preempt"]

_NOT_STARTED = ("waiting", "blocked")  # where a place queues, what is still blocked may be handed to it too

Work = TypeVar("Work", bound="LiveJob | LiveTask", contravariant=True)
At = TypeVar("At", bound="Place", contravariant=True)
"""The work and the places of one who carries decisions out."""

Handler = Callable[[Any], str | None]
"""Carries a decision out, or changes nothing and says why it cannot."""


class Executive(Protocol[Work, At]):
    """What carries decisions out: a cluster, a machine, a broker."""

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """What carries out each type of decision beside ``Start``, ``Reserve`` and ``WakeAt``.

        A function takes the decision, carries it out and returns ``None``; where that cannot be done it changes nothing
        and returns the reason, which becomes a :class:`~simmodel.errors.PolicyError`.
        """
        ...

    def start(self, job: Work, place: At, allocation: Any = None, /) -> None:
        """Start waiting work at a place; the scheduler has checked that it can."""
        ...


class Preempts(Protocol[Work]):
    """A system that can stop running work."""

    def why_not_preempt(self, job: Work, mode: str, /) -> str | None:
        """Say why running work cannot be stopped so, or ``None``."""
        ...

    def preempt(self, job: Work, mode: str, /) -> None:
        """Stop running work."""
        ...


def handle_preempt(system: Preempts[Work], decision: Preempt) -> str | None:
    """Stop running work, or say why it cannot be stopped: an entry of :attr:`Executive.handlers`."""
    job = decision.work
    if getattr(job, "state", None) != "running":
        return f"running work expected, found {job!r}"
    reason = system.why_not_preempt(job, decision.mode)
    if reason is None:
        system.preempt(job, decision.mode)
    return reason


_DECIDES = {
    "jobs": "when jobs start on the nodes of a cluster",
    "tasks": "which processor of a machine takes each task",
    "places": "which processor or system takes each piece of work",
    "systems": "which system takes each job",
}


def asked_by(view: View) -> tuple[Decides, ...]:
    """Return what a policy may decide for a system of this view."""
    if not all(place.queues for place in view.places):
        return ("jobs",)
    return ("places", "systems" if view.problem is None else "tasks")


def check_decides(policy: Policy, asked: tuple[Decides, ...], name: str) -> None:
    """Refuse a policy that decides something else than a system asks.

    Raises
    ------
    InputError
        the policy is for another kind of system
    """
    if policy.decides != "anything" and policy.decides not in asked:
        raise InputError(
            f"policy {policy.name!r} decides {_DECIDES[policy.decides]}; {name} asks {_DECIDES[asked[-1]]}"
        )


class Scheduler:
    """Asks one policy which waiting work starts where, at the end of each instant in which something happened.

    Parameters
    ----------
    env
        the environment
    policy
        what :func:`~simmodel.scheduling.registry.policy` takes: a name, a policy, a function of a view ...
    view
        what the policy sees
    executive
        what carries out what was decided
    name
        what errors and records call it
    rank
        its turn among schedulers that share an instant: broker 0, cluster 1, machine 2
    by_event
        whether it decides inside each submission and each end (``decide_on="event"``)

    Attributes
    ----------
    policy, known_as
        the policy; the name that it was given by, ``None``: it was given as an object
    carries
        what carries out each type of decision; a new type gets its function here, or in the system's ``carries``
    question
        the view while a decision is awaited from outside, else ``None``
    asked_for
        whether the policy is to be asked even if nothing waits
    alarms
        by instant (s): when the scheduler will wake
    seconds, calls, slowest, decisions
        wall-clock time spent inside the policy in all, how often it was asked, the longest (s), what it decided

    Answered from outside, ``fcfs`` as a loop:

    >>> from simmodel import Environment
    >>> from simmodel import Cluster
    >>> from simmodel import Job
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
    ) -> None:
        self.env = env
        self.view = view
        self.name = name
        self.policy = chosen = policy_of(policy)
        self.known_as = policy if isinstance(policy, str) else None
        check_decides(chosen, asked_by(view), name)
        self._ask: Callable[[View], Iterable[Decision] | None] = chosen.decide
        self._executive: Executive[Any, Any] = executive
        self.handlers: dict[type, Handler] = {
            Start: self._carry_start,
            Reserve: self._carry_reserve,
            WakeAt: self._carry_wake,
            **executive.handlers,
        }
        self.wake = env.at_instant_end(self.decide, rank)
        self._queueing = frozenset(place for place in view.places if place.queues)
        self._by_event = by_event
        self._external = False
        self.question: View | None = None
        self._answered = (0.0, 0)  # the open question: seconds and decisions so far
        self._nothing_waited = False  # when it was opened
        self.asked_for = False
        self._deciding = False
        self.alarms: dict[float, Call] = {}
        self.seconds = 0.0
        self.slowest = 0.0
        self.fastest = float("inf")
        self.calls = 0
        self.decisions = 0
        self._decided: tuple[Callable[..., object], ...] = ()
        self._promised: tuple[Callable[..., object], ...] = ()
        env.on_hooks_changed(self._find_hooks)

    @property
    def policy_name(self) -> str:
        """What errors and results call the policy."""
        return self.policy.name

    @property
    def due(self) -> bool:
        """Whether a decision is to be made at this instant, or is being made."""
        return self._deciding or self.wake.armed or self.question is not None

    def timing(self) -> dict[str, float]:
        """Return how often the policy was asked, and the seconds inside it: in all, mean, least and most."""
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
        """Ask the policy now, and apply what it decides; nothing waits and nobody asked: nothing happens."""
        if self._deciding:  # a decision brought the next one about
            self.wake()
            return
        waiting = self.view.waiting
        if not waiting:
            if not self.asked_for:
                waiting.forget_new()
                return
            self.asked_for = self._external  # an open question may still be copied into a snapshot
        if self._external:
            self._open()
            return
        clock = perf_counter
        spent = 0.0
        count = 0
        decisions: Iterable[Decision] | None = None
        start = self._executive.start
        self._deciding = True
        begin = clock()
        try:
            decisions = self._ask(self.view)
            if decisions is not None:
                for decision in decisions:
                    spent += clock() - begin
                    count += 1
                    if type(decision) is Start:
                        # What nearly all decisions are, inlined from _carry_start.
                        job, place, _, allocation = decision
                        if (
                            job.state == "waiting"
                            and job.place is place
                            and (place.fits(job) if allocation is None else place.accepts(job, allocation))
                        ) or (place in self._queueing and job.state in _NOT_STARTED and place.can_run(job)):
                            start(job, place, allocation)
                        else:
                            raise self._error(self._why_not_start(job, place), job, place)
                    else:
                        self._carry(decision)
                    begin = clock()
        except PolicyError:
            close = getattr(decisions, "close", None)
            if close is not None:
                close()
            raise
        finally:
            self._deciding = False
        spent += clock() - begin
        if waiting.new:
            waiting.forget_new()
        self.seconds += spent
        self.calls += 1
        self.decisions += count
        if spent > self.slowest:
            self.slowest = spent
        if spent < self.fastest:
            self.fastest = spent
        for hook in self._decided:
            hook(self, spent, count)

    # ------------------------------------------------------------------ answers from outside

    @property
    def external(self) -> bool:
        """Whether decisions come from outside: instead of asking the policy, the scheduler has ``env.run()`` return.

        The question is then open: ``question`` is the view, and decisions are given to :meth:`apply` or left to
        :meth:`ask`, until :meth:`close`. A question that is still open at the next one is closed by it.

        Raises
        ------
        InputError
            where it is set for a scheduler that decides inside submissions and ends (``decide_on="event"``)
        """
        return self._external

    @external.setter
    def external(self, value: bool) -> None:
        if value and self._by_event:
            raise InputError(
                f"{self.name}: with decide_on='event' decisions fall inside submissions and cannot be made from outside"
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
        """Carry decisions out, each at once and with the scheduler's checks; return their number.

        May be called several times while a question is open.

        Raises
        ------
        InputError
            no question is open
        PolicyError
            a decision cannot be carried out; those before it have been, and the question stays open
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
                self._carry(decision)
                count += 1
                begin = clock()
        except PolicyError:
            close = getattr(decisions, "close", None)
            if close is not None:
                close()
            raise
        finally:
            self._deciding = False
            self._answered = spent, count
        self._answered = spent + clock() - begin, count
        return count - before

    def ask(self) -> int:
        """Have the scheduler's own policy answer the open question; return the number of its decisions.

        Raises as :meth:`apply`.
        """
        if self.question is None:
            raise InputError(f"{self.name}: no decision is awaited")
        begin = perf_counter()
        decisions = self._ask(self.view)
        spent, count = self._answered
        self._answered = spent + perf_counter() - begin, count
        return self.apply(decisions)

    def close(self) -> None:
        """Close the open question, if there is one: what waits still waits, and ``env.run()`` goes on."""
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
        for hook in self._decided:
            hook(self, spent, count)

    # ------------------------------------------------------------------ checks

    def _error(self, message: str, job: LiveJob | LiveTask | None = None, place: Place | None = None) -> PolicyError:
        work = "" if job is None else f"job {getattr(job, 'id', job)}"
        where = "" if place is None else str(getattr(place, "name", place))
        return PolicyError(message, self.policy_name, work, where, float(self.env.now))

    def _carry(self, decision: Any) -> None:
        """Have a decision carried out, or say what is wrong with it."""
        carry = self.handlers.get(type(decision))
        if carry is None:
            names = ", ".join(each.__name__ for each in self.handlers)
            raise self._error(f"a decision ({names}) expected, found {decision!r}")
        reason = carry(decision)
        if reason is not None:
            work = getattr(decision, "work", None)
            raise self._error(reason, work, getattr(decision, "place", None) or getattr(work, "place", None))

    def _carry_start(self, decision: Start) -> str | None:
        job, place, _, allocation = decision
        if (
            getattr(job, "state", None) == "waiting"
            and job.place is place
            and (place.fits(job) if allocation is None else place.accepts(job, allocation))
        ) or (place in self._queueing and job.state in _NOT_STARTED and place.can_run(job)):
            self._executive.start(job, place, allocation)
            return None
        return self._why_not_start(job, place)

    def _why_not_start(self, job: LiveJob, place: Place) -> str:
        if place not in self.view.places:
            return f"a place of this scheduler expected ({', '.join(each.name for each in self.view.places)})"
        expected = _NOT_STARTED if place.queues else _NOT_STARTED[:1]
        if getattr(job, "state", None) not in expected:
            return f"{' or '.join(expected)} work expected, found {job!r}"
        reason = place.why_not(job)
        if reason is not None:
            return f"the place can never run it: {reason}"
        if job.place is not place:
            return f"the job waits for {job.place.name}"
        return (
            f"{job.processors} processors and {job.requested:g} s requested do not fit: "
            f"{place.free} of {place.capacity} are free"
        )

    def _carry_reserve(self, decision: Reserve) -> str | None:
        job, place, at, _ = decision
        if at < self.env.now:
            return f"a promise for a time to come expected, found {at:g}"
        for hook in self._promised:
            hook(job, place, at)
        self.wake_at(at)
        return None

    def _carry_wake(self, decision: WakeAt) -> str | None:
        self.wake_at(decision.at)
        return None

    # ------------------------------------------------------------------ waking

    def wake_anyway(self) -> None:
        """Decide at the end of this instant, even if nothing waits."""
        self.asked_for = True
        self.wake()

    def wake_at(self, at: float) -> None:
        """Decide at an instant (s) even if nothing else happens then; an instant that is past is ignored."""
        now = self.env._now
        if at <= now or at in self.alarms or at == float("inf"):
            return
        self.plan_alarm(at)

    def plan_alarm(self, at: float) -> None:
        """Decide at an instant (s), which may be this one."""
        self.alarms[at] = self.env.call_at(at, lambda: self._alarm(at))

    def to_come(self) -> list[ToCome]:
        """List the alarms."""
        return [call.to_come("alarm") for call in self.alarms.values()]

    def _alarm(self, at: float) -> None:
        self.alarms.pop(at, None)
        self.wake_anyway()
