"""Conservative backfilling without what can be left out: with a plan that is kept, and as long as a job could start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from simmodel.policies.fast.count_plan import CountPlan
from simmodel.policies.fast.node_plan import NodePlan
from simmodel.policies.ordering import recorded, start_heads
from simmodel.resources.pools.node_profile import NodeTimes
from simmodel.resources.pools.nodes import NodePool
from simmodel.scheduling.protocol import Decision, Reserve, View

if TYPE_CHECKING:
    from simmodel.policies.spare import Spares
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import OrderLike

__all__ = ["FastConservative"]


class FastConservative:
    """Makes the decisions of conservative backfilling with a plan that is kept from decision to decision.

    There are plans of counted processors and of identified nodes. On other places, beside work without a time limit and
    for promises, which are of all jobs, the rule decides; only no job is planned once none could start.

    Parameters
    ----------
    order, promises
        as for conservative backfilling
    spares
        what is kept for jobs that no known end frees: where there is any, the rule decides
    rule
        returns the decisions at a place, by the rule
    """

    def __init__(
        self, order: OrderLike, promises: bool, spares: Spares, rule: Callable[[View, Pool], Iterator[Decision]]
    ) -> None:
        self._order = order
        self._promises = promises
        self._spares = spares
        self._rule = rule
        self._plans: dict[Pool, CountPlan] = {}
        self._node_plans: dict[Pool, NodePlan] = {}
        self._times: dict[Pool, NodeTimes] = {}

    def at(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide with a kept plan if the place allows it, else by the rule: both start the same jobs."""
        if self._promises or place.running.endless or self._spares:
            return recorded(self._rule(view, place), promises=self._promises)
        plan = self._counts(view, place) if place.simple else self._nodes(view, place)
        return self._by_rule(view, place) if plan is None else self._kept(view, place, plan)

    def _by_rule(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide by the rule, as long as a job could start."""
        lanes = view.waiting.at(place).lanes(self._order)
        if place.free < lanes.narrowest:
            return
        for decision in self._rule(view, place):
            if type(decision) is Reserve:
                continue
            yield decision
            if place.free < lanes.narrowest and not place.running.endless:
                return

    def _kept(self, view: View, place: Pool, plan: CountPlan) -> Iterator[Decision]:
        """Decide with a plan, which is kept as long as it holds."""
        waiting = view.waiting.at(place)
        yield from start_heads(self._order, view, place)
        if waiting.count and not place.running.endless and place.free >= waiting.lanes(self._order).narrowest:
            yield from plan.decide()
        if waiting.count and place.running.endless:  # that has started now
            yield from recorded(self._rule(view, place), promises=False)

    def _counts(self, view: View, place: Pool) -> CountPlan:
        """Return the plan of counted processors."""
        plan = self._plans.get(place)
        if plan is None:
            keep = not self._order.changes
            plan = CountPlan(place, view.waiting.at(place), self._order, keep=keep)
            if keep:
                self._plans[place] = plan
        return plan

    def _nodes(self, view: View, place: Pool) -> NodePlan | None:
        """Return the plan of identified nodes, or ``None`` if only the full profile will do."""
        if not isinstance(place, NodePool) or place.spec.placed_by != "first-fit":
            return None
        plan = self._node_plans.get(place)
        if plan is None:
            times = self._times.get(place)
            if times is None:
                times = self._times[place] = NodeTimes(place.table.capacity, place.running)
            keep = not self._order.changes
            plan = NodePlan(place, view.waiting.at(place), self._order, times, keep=keep)
            if keep:
                self._node_plans[place] = plan
        return plan if plan.possible else None
