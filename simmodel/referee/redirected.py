"""A policy whose decisions are carried out, but for the place of one piece of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.protocol import Decision, Start, View

if TYPE_CHECKING:
    from simmodel.scheduling.policy_base import At
    from simmodel.work.job import LiveJob
    from simmodel.work.livetask import LiveTask

__all__ = ["Redirected", "Seen"]

Seen = Callable[[View, Any, Any], object]
"""Called with the view, the work and the place that the policy chose, before the decision is carried out."""


class Redirected(Policy):
    """Decides as another policy does; one job or task goes to a given place instead, by name.

    Parameters
    ----------
    policy
        decides, whatever it is asked
    work
        the id of the job or task; of a job of a broker also its home and its id, ``"a:7"``
    place
        the name of the place; ``None``: the one that the policy chose
    seen
        is called with the decision on the work

    >>> from simmodel import Job, simulate
    >>> from simmodel.scheduling import policy
    >>> jobs = [Job(id=name, run=10) for name in (1, 2)]
    >>> simulate({"a": 4, "b": 4}, jobs, Redirected(policy("round-robin"), 1, "b")).jobs["destination"].tolist()
    ['b', 'b']
    """

    def __init__(self, policy: Policy, work: int | str, place: str | None = None, seen: Seen | None = None) -> None:
        self.policy = policy
        self.work = work
        self.place = place
        self.seen = seen
        for trait in ("name", "decides", "plans", "preempts", "tries_every_submission", "draws", "at_home"):
            setattr(self, trait, getattr(policy, trait))

    def destinations(self, home: At | None, places: Sequence[At], /) -> Sequence[At]:
        """Return the places that the policy allows for a home."""
        return self.policy.destinations(home, places)

    def forget(self) -> None:
        """Have the policy discard its cached values."""
        self.policy.forget()

    def state(self) -> Any:
        """Return the state of the policy."""
        return self.policy.state()

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the state of the policy."""
        self.policy.restore(values)

    def _meant(self, work: LiveJob | LiveTask) -> bool:
        home = getattr(work, "home", None)
        return str(self.work) in (str(work.id), "" if home is None else f"{home.name}:{work.id}")

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Yield the decisions of the policy."""
        for decision in self.policy.decide(view) or ():
            if type(decision) is Start and self._meant(decision.work):
                if self.seen is not None:
                    self.seen(view, decision.work, decision.place)
                if self.place is not None and decision.place.name != self.place:
                    there = next(place for place in view.places if place.name == self.place)
                    decision = decision._replace(place=there, allocation=None)
            yield decision
