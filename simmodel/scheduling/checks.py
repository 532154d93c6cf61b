"""The checks of decisions: each returns why a decision cannot be applied, or ``None``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from simmodel.work.job import LiveJob
from simmodel.work.taskset import LiveTask

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place, Preempt, Reserve, Start

__all__ = [
    "NOT_STARTED",
    "label_of",
    "misreturned",
    "not_here",
    "place_of",
    "why_not_at",
    "why_not_known",
    "why_not_preempt",
    "why_not_reserve",
    "why_not_start",
]

_WORK = LiveJob, LiveTask
NOT_STARTED = ("waiting", "blocked")  # a place with a queue also takes blocked work
_SHOWN = 5


def label_of(value: object) -> str:
    """Return the name of a value in errors that a policy gave as work.

    >>> label_of("job 7")
    "'job 7'"
    """
    if isinstance(value, LiveJob):
        return f"job {value.id}"
    return f"task {value.id}" if isinstance(value, LiveTask) else repr(value)


def _names(places: Sequence[Place]) -> str:
    names = ", ".join(place.name for place in places[:_SHOWN])
    return names if len(places) <= _SHOWN else f"{names} and {len(places) - _SHOWN} more"


def misreturned(decisions: object, types: Iterable[type]) -> str | None:
    """Return why a policy's answer is not a collection of decisions, or ``None``."""
    known = tuple(types)
    if isinstance(decisions, known):
        return f"must return or yield decisions, got one alone: return [{type(decisions).__name__}(...)]"
    if isinstance(decisions, Iterable) and not isinstance(decisions, (str, bytes)):
        return None
    names = ", ".join(each.__name__ for each in known)
    return f"must return or yield decisions ({names}), got {decisions!r}"


def why_not_known(value: object, place: Place | None, places: Sequence[Place]) -> str | None:
    """Return why a value is not work of a scheduler with these places, or a place not one of these, else ``None``."""
    if not isinstance(value, _WORK):
        return f"must name a job or task of the view, got {value!r}"
    if place is places[0]:
        return None
    if place is None:
        return f"must name a place of this scheduler ({_names(places)}), as in Start(job, view.places[0])"
    if not any(place is each for each in places):
        return f"must name a place of this scheduler ({_names(places)}), got {place!r}"
    return None


def not_here(work: LiveJob | LiveTask) -> str:
    """Return why work that waits for another system is refused."""
    return f"must name work that waits for this scheduler, got {work!r} of another system"


def why_not_start(
    decision: Start, waiting: Iterable[object], places: Sequence[Place], entries: Sequence[LiveJob] | None = None
) -> str:
    """Return why work cannot start at a place now; ``entries``: those of a job that waits for several places."""
    job, place, _, allocation, *_ = decision
    reason = why_not_known(job, place, places)
    if reason is not None:
        return reason
    expected = NOT_STARTED if place.queues else NOT_STARTED[:1]
    if job.state not in expected:
        return f"cannot start {job!r}: it is not {' or '.join(expected)}"
    if job.state == "waiting" and all(job is not each for each in waiting):
        return not_here(job)
    here = {each.place.name: each for each in entries or (job,) if each.place is not None}
    reason = place.why_not(here.get(place.name, job))
    if reason is not None:
        return f"the place can never run it: {reason}"
    if not here:
        return "the place takes no work now: it is full, closed or down"
    if place.name not in here:
        return f"the job waits for {' and '.join(here)}"
    if allocation is not None and place.fits(job):
        return f"allocation: must be a free allocation of the place for this job, got {allocation!r}"
    return (
        f"does not fit: {job.processors} processors and {job.planned:g} s requested, "
        f"{place.free} of {place.capacity} are free"
    )


def why_not_at(at: object, now: float) -> str | None:
    """Return why a value is not an instant from now on, or ``None``."""
    if type(at) is not bool and isinstance(at, (float, Real)) and float(at) >= now:
        return None
    return f"must name an instant >= {now:g} s, got {at!r}"


def why_not_reserve(decision: Reserve, now: float, places: Sequence[Place]) -> str | None:
    """Return why a start cannot be promised, or ``None``."""
    job, place, at, _ = decision
    reason = why_not_known(job, place, places) or why_not_at(at, now)
    if reason is None and job.state not in NOT_STARTED:
        return f"cannot promise a start to {job!r}: it is not waiting"
    return reason


def why_not_preempt(decision: Preempt, places: Sequence[Place]) -> str | None:
    """Return why the work of a decision is not running on one of these places, or ``None``; what waits is cancelled."""
    work = decision.work
    withdrawn = decision.mode == "cancel" and isinstance(work, LiveJob) and work.state in NOT_STARTED
    if not withdrawn and (not isinstance(work, LiveJob | LiveTask) or work.state != "running"):
        return f"cannot preempt {work!r}: it is not running"
    if all(work.place is not each for each in places):
        return f"cannot preempt {work!r}: it is running on another system"
    return None


def place_of(decision: object) -> Any:
    """Return the place that a decision concerns, or ``None``."""
    named = getattr(decision, "place", None)
    return named if named is not None else getattr(getattr(decision, "work", None), "place", None)
