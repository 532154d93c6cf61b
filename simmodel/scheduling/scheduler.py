"""The scheduler process: it wakes, asks the policy, checks what it decided and has it applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.errors import PolicyError
from simmodel.scheduling.protocol import Decision, Preempt, Reserve, Start, View, WakeAt

if TYPE_CHECKING:
    from simmodel.environment import Environment

__all__ = ["Executive", "Scheduler"]

_NOT_STARTED = ("waiting", "blocked")  # where a place queues, what is still blocked may be handed to it too


class Executive(Protocol):
    """What carries decisions out: a cluster, a machine, a broker."""

    def why_not_preempt(self, job: Any, mode: str) -> str | None:
        """Say why running work cannot be stopped so, or ``None``."""
        ...

    def start(self, job: Any, place: Any, allocation: Any = None) -> None:
        """Start waiting work at a place."""
        ...

    def preempt(self, job: Any, mode: str) -> None:
        """Stop running work."""
        ...


class Scheduler:
    """Asks one policy which waiting work starts where, at the end of each instant in which something happened.

    Parameters
    ----------
    env
        the environment
    policy
        an object with ``decide(view)``, or a function of a view
    view
        what the policy sees
    executive
        what carries out what was decided
    name
        what errors and records call it
    rank
        its turn among schedulers that share an instant: broker 0, cluster 1, machine 2

    Attributes
    ----------
    seconds, calls, slowest, decisions
        wall-clock time spent inside the policy in all, how often it was asked, the longest (s), what it decided
    """

    def __init__(
        self, env: Environment, policy: Any, view: View, executive: Executive, name: str = "scheduler", rank: int = 1
    ) -> None:
        self.env = env
        self.view = view
        self.name = name
        self.policy = policy
        decide = getattr(policy, "decide", policy)
        if not callable(decide):
            raise TypeError(f"a policy with decide(view), or a function of a view, expected, found {policy!r}")
        self._ask: Callable[[View], Iterable[Decision] | None] = decide
        self._executive = executive
        self.wake = env.at_instant_end(self.decide, rank)
        self._queueing = frozenset(place for place in view.places if place.queues)
        self._asked_for = False  # by the policy: then it is woken though nothing waits
        self._deciding = False
        self._alarms: set[float] = set()
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
        name = getattr(self.policy, "name", None) or getattr(self.policy, "__name__", None)
        return str(name or type(self.policy).__name__)

    @property
    def due(self) -> bool:
        """Whether a decision is to be made at this instant, or is being made."""
        return self._deciding or self.wake.armed

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
            if not self._asked_for:
                waiting.forget_new()
                return
            self._asked_for = False
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
                        # What nearly all decisions are; _refuse says what is wrong with the others.
                        job, place, _, allocation = decision
                        if (
                            job.state == "waiting"
                            and job.place is place
                            and (place.fits(job) if allocation is None else place.accepts(job, allocation))
                        ) or (place in self._queueing and job.state in _NOT_STARTED and place.can_run(job)):
                            start(job, place, allocation)
                        else:
                            self._refuse(job, place)
                    else:
                        self._apply(decision)
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

    # ------------------------------------------------------------------ checks

    def _error(self, message: str, job: Any = None, place: Any = None) -> PolicyError:
        work = "" if job is None else f"job {getattr(job, 'id', job)}"
        where = "" if place is None else str(getattr(place, "name", place))
        return PolicyError(message, self.policy_name, work, where, float(self.env.now))

    def _refuse(self, job: Any, place: Any) -> None:
        """Say what is wrong with a start."""
        if place not in self.view.places:
            names = ", ".join(each.name for each in self.view.places)
            raise self._error(f"a place of this scheduler expected ({names})", job, place)
        expected = _NOT_STARTED if place.queues else _NOT_STARTED[:1]
        if getattr(job, "state", None) not in expected:
            raise self._error(f"{' or '.join(expected)} work expected, found {job!r}", job, place)
        reason = place.why_not(job)
        if reason is not None:
            raise self._error(f"the place can never run it: {reason}", job, place)
        if job.place is not place:
            raise self._error(f"the job waits for {job.place.name}", job, place)
        raise self._error(
            f"{job.processors} processors and {job.requested:g} s asked for do not fit: "
            f"{place.free} of {place.capacity} are free",
            job,
            place,
        )

    def _apply(self, decision: Any) -> None:
        if isinstance(decision, Reserve):
            job, place, at, _ = decision
            if at < self.env.now:
                raise self._error(f"a promise for a time to come expected, found {at:g}", job, place)
            for hook in self._promised:
                hook(job, place, at)
            self.wake_at(at)
        elif isinstance(decision, WakeAt):
            self.wake_at(decision.at)
        elif isinstance(decision, Preempt):
            job = decision.work
            if getattr(job, "state", None) != "running":
                raise self._error(f"running work expected, found {job!r}", job)
            reason = self._executive.why_not_preempt(job, decision.mode)
            if reason is not None:
                raise self._error(reason, job, job.place)
            self._executive.preempt(job, decision.mode)
        else:
            raise self._error(f"a decision (Start, Preempt, Reserve, WakeAt) expected, found {decision!r}")

    def wake_at(self, at: float) -> None:
        """Decide at an instant (s) even if nothing else happens then; an instant that is past is ignored."""
        now = self.env._now
        if at <= now or at in self._alarms or at == float("inf"):
            return
        self.plan_alarm(at)

    def plan_alarm(self, at: float) -> None:
        """Decide at an instant (s), which may be this one."""
        self._alarms.add(at)
        self.env.call_at(at, lambda: self._alarm(at), what=(self, "alarm"))

    def _alarm(self, at: float) -> None:
        self._alarms.discard(at)
        self._asked_for = True
        self.wake()
