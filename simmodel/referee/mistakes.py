"""The classic mistakes of simulators of EASY backfilling, each as a policy or an option, to identify it by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from simmodel.policies.ordering import FCFS, order as order_of
from simmodel.scheduling.protocol import Decision, Policy, Start, View

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.work.job import LiveJob, Run

__all__ = ["Mistake", "MistakenEasy", "mistakes_of"]

Shadow = Literal["ends", "limits", "none"]


class MistakenEasy(Policy):
    """EASY backfilling as some simulators have it, on counted processors, in plain words.

    Parameters
    ----------
    order
        of the queue: a name, an order, or a key function
    shadow
        when the head can start: ``"ends"``, by the ends of the running jobs (as EASY says); ``"limits"``, as if each
        ran for its whole limit from now on; ``"none"``: nothing is reserved for the head

    >>> MistakenEasy("fcfs", shadow="none").name
    'easy without a reservation'
    """

    decides = "jobs"

    def __init__(self, order: GivenOrder = FCFS, *, shadow: Shadow = "ends") -> None:
        self.order = order_of(order)
        self.shadow = shadow
        words = {"ends": "easy", "limits": "easy with limits for ends", "none": "easy without a reservation"}
        self.name = words[shadow]
        self.tries_every_submission = False

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Start heads that fit; then the others that fit and do not delay the head, as far as it is seen."""
        for place in view.places:
            yield from self._at(place, view)

    def _at(self, place: Pool, view: View) -> Iterator[Decision]:
        queue = list(view.waiting.at(place).by(self.order))
        while queue and place.fits(queue[0]):
            yield Start(queue.pop(0), place)
        if not queue:
            return
        head, *others = queue
        shadow, extra = self._reservation(head, place, view.now)
        for job in others:
            if not place.fits(job):
                continue
            if view.now + job.planned > shadow:
                if job.processors > extra:
                    continue
                extra -= job.processors
            yield Start(job, place)

    def _reservation(self, head: LiveJob, place: Pool, now: float) -> tuple[float, float]:
        """Return when the head can start (s), and the processors that are free beside it then."""
        if self.shadow == "none":
            return float("inf"), float("inf")
        free, shadow = float(place.free), float("inf")
        for end, processors in sorted((self._end(run, now), run.job.processors) for run in place.running):
            if end > shadow:
                break
            free += processors
            if free >= head.processors:
                shadow = end  # those that end with it are free then, too
        return shadow, free - head.processors if shadow < float("inf") else free

    def _end(self, run: Run, now: float) -> float:
        end: float = now + run.job.planned if self.shadow == "limits" else max(run.expected_end, now)
        return end


class Mistake(NamedTuple):
    """A way to depart from a policy: its name, and the policy and the options that show it."""

    name: str
    policy: Any
    options: Mapping[str, Any]


def mistakes_of(policy: Policy, options: Mapping[str, Any]) -> list[Mistake]:
    """Return the mistakes to try for a policy: those of EASY if it backfills, and other rules of planning and order.

    >>> from simmodel.scheduling.registry import policy
    >>> [each.name for each in mistakes_of(policy("easy"), {})][:2]
    ['no reservation for the head', 'shadow time from limits instead of ends']
    """
    found = []
    order = getattr(policy, "order", None)
    if order is not None and hasattr(policy, "candidates"):
        shadows: list[tuple[str, Shadow]] = [
            ("no reservation for the head", "none"),
            ("shadow time from limits instead of ends", "limits"),
        ]
        found = [Mistake(name, MistakenEasy(order, shadow=shadow), options) for name, shadow in shadows]
    if options.get("estimates", "requested") != "exact":
        found.append(Mistake("planning with actual run times", policy.fresh(), {**options, "estimates": "exact"}))
    rules = [
        ("a decision for each whole instant", {"decide_on": "instant"}),
        ("a decision for each event, submissions first", {"decide_on": "event", "event_order": "submits-first"}),
        ("a decision for each event, ends first", {"decide_on": "event", "event_order": "ends-first"}),
    ]
    present = {"decide_on": options.get("decide_on", "instant")}
    if present["decide_on"] == "event":
        present["event_order"] = options.get("event_order", "submits-first")
    found += [Mistake(name, policy.fresh(), {**options, **rule}) for name, rule in rules if rule != present]
    return found
