"""Orders of the queue, and the policies that start jobs in them with no backfilling.

Sources: fcfs, sjf, ljf, smallest, largest: the field's folklore, compared in Mu'alem & Feitelson, "Utilization,
predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6),
2001. wfp and unicef: Tang, Lan, Desai, Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems",
CLUSTER 2009. f1 to f4: Carastan-Santos & de Camargo, "Obtaining dynamic scheduling policies with simulation and machine
learning", SC 2017. multifactor: the priority plug-in of Slurm (age, size, fair share).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import log2, log10, sqrt
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs
import numpy as np

from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.protocol import Decision, Start, View
from simmodel.scheduling.usage import Usage

if TYPE_CHECKING:
    from typing import SupportsIndex

    from numpy.typing import NDArray

    from simmodel.resources.pool import Pool
    from simmodel.scheduling.column_index import ColumnIndex
    from simmodel.scheduling.protocol import OrderLike, Place
    from simmodel.work.job import LiveJob

__all__ = ["FCFS", "LJF", "ORDERS", "SJF", "UNICEF", "WFP", "Multifactor", "Order", "order"]


@attrs.frozen(eq=False)
class Order(Policy):
    """An order of waiting work, and the policy that starts jobs in it until the first that does not fit.

    Parameters
    ----------
    name
        what results call it
    key
        ``key(job)``, or ``key(job, now)`` where it changes: lower goes first, ties by submission; ``None``: the order
        of arrival
    changes
        whether the key changes while a job waits
    scores
        ``scores(now, columns)``: the keys of all waiting jobs at once as an array, for orders that change; must compute
        what ``key`` computes
    description
        one line

    A higher priority of the job, its queue or its partition always comes before the key.

    >>> from simmodel.work import LiveJob
    >>> widest = Order("widest", key=lambda job: -job.processors)
    >>> widest.key(LiveJob(1, 0, 0.0, 8, 60.0, 60.0, 60.0))
    -8
    """

    decides = "jobs"

    name: str
    key: Callable[..., Any] | None = attrs.field(default=None, kw_only=True)
    changes: bool = attrs.field(default=False, kw_only=True)
    scores: Callable[[float, ColumnIndex], NDArray[np.float64]] | None = attrs.field(default=None, kw_only=True)
    description: str = attrs.field(default="", kw_only=True)

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start jobs in order, at each place, until the first that does not fit."""
        return at_each_place(view, partial(start_heads, self))

    def fresh(self) -> Order:
        """Return the order itself: a value remembers nothing."""
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if any(self is known for known in _VALUES):  # the package's own stay themselves in other processes
            return order, (self.name,)
        return object.__reduce_ex__(self, protocol)


def start_heads(order: OrderLike, view: View, place: Pool) -> Iterator[Decision]:
    """Yield starts of the first job in an order, again and again while it fits."""
    waiting = view.waiting.at(place)
    if not waiting.count or place.free <= 0:
        return
    queue = waiting.by(order)
    if order.changes and place.free < queue.narrowest:
        return
    while (head := queue.head()) is not None and place.fits(head):
        yield Start(head, place)


def at_each_place(view: View, decide: Callable[[View, Pool], Iterable[Decision]]) -> Iterable[Decision]:
    """Return the decisions of ``decide(view, place)`` at one place after the other."""
    places = view.places
    if len(places) == 1:
        return decide(view, places[0])
    return chain.from_iterable(decide(view, place) for place in places)


def _at_least_one(seconds: float) -> float:
    """A request of zero counts as one second where it divides."""
    return seconds if seconds > 0 else 1.0


def _wfp(job: LiveJob, now: float) -> float:
    ratio = (now - job.submit) / _at_least_one(job.requested)
    return -(ratio * ratio * ratio * job.processors)


def _wfp_scores(now: float, columns: ColumnIndex) -> NDArray[np.float64]:
    ratio, score = columns.scratch
    np.subtract(now, columns.submit, out=ratio)
    ratio /= columns.divisor
    np.multiply(ratio, ratio, out=score)
    score *= ratio
    score *= columns.processors
    negative: NDArray[np.float64] = np.negative(score, out=score)
    return negative


def _unicef(job: LiveJob, now: float) -> float:
    return -((now - job.submit) / (log2(max(2, job.processors)) * _at_least_one(job.requested)))


def _unicef_scores(now: float, columns: ColumnIndex) -> NDArray[np.float64]:
    divisor: NDArray[np.float64] = columns.scratch[0]
    score: NDArray[np.float64] = columns.scratch[1]
    np.log2(np.maximum(2.0, columns.processors, out=divisor), out=divisor)
    divisor *= columns.divisor
    np.subtract(columns.submit, now, out=score)
    score /= divisor
    return score


def _itself(value: Order) -> Order:
    return value


FCFS = Order("fcfs", description="first come, first served")
SJF = Order("sjf", key=lambda job: job.requested, description="shortest requested time first")
LJF = Order("ljf", key=lambda job: -job.requested, description="longest requested time first")
SMALLEST = Order("smallest", key=lambda job: job.processors, description="fewest processors first")
LARGEST = Order("largest", key=lambda job: -job.processors, description="most processors first")
WFP = Order("wfp", key=_wfp, changes=True, scores=_wfp_scores, description="(wait / requested)^3 x processors")
UNICEF = Order(
    "unicef",
    key=_unicef,
    changes=True,
    scores=_unicef_scores,
    description="wait / (log2(processors) x requested): small, short, long waiting first",
)
F1 = Order(
    "f1",
    key=lambda job: log10(max(1, job.requested)) * job.processors + 870 * log10(max(1, job.submit)),
    description="log10(requested) x processors + 870 log10(submit)",
)
F2 = Order(
    "f2",
    key=lambda job: sqrt(job.requested) * job.processors + 25600 * log10(max(1, job.submit)),
    description="sqrt(requested) x processors + 25600 log10(submit)",
)
F3 = Order(
    "f3",
    key=lambda job: job.requested * job.processors + 6860000 * log10(max(1, job.submit)),
    description="requested x processors + 6860000 log10(submit)",
)
F4 = Order(
    "f4",
    key=lambda job: job.requested * sqrt(job.processors) + 530000 * log10(max(1, job.submit)),
    description="requested x sqrt(processors) + 530000 log10(submit)",
)


class KeepsUsage(Protocol):
    """A system that keeps what users consume."""

    @property
    def places(self) -> Sequence[Place]:
        """Where work can start."""
        ...

    def keep_usage(self, usage: Usage) -> None:
        """Keep the consumption of users in this record from now on."""
        ...


@attrs.define(eq=False)
class Multifactor(Policy):
    """The weighted sum of age, size and fair share, each 0 to 1, that Slurm's priority plug-in uses.

    Parameters
    ----------
    age, size, fair_share
        weights
    max_age
        seconds of waiting at which the age factor is 1
    small_first
        whether the size factor favours few processors instead of many
    half_life
        seconds after which half of a user's consumption is forgotten
    shares
        of users, any positive scale; a user not named has 1

    The fair-share factor of a user is 2^(-(the user's part of all usage) / (the user's part of all shares)).

    >>> Multifactor(age=1000, fair_share=10000).changes
    True
    """

    decides = "jobs"

    age: float = 1000.0
    size: float = 1000.0
    fair_share: float = 10000.0
    max_age: float = 7 * 86400.0
    small_first: bool = False
    half_life: float = 7 * 86400.0
    shares: dict[Any, float] = attrs.field(factory=dict)
    name: str = "multifactor"
    description: str = "weighted age, size and fair share by user"
    changes: bool = attrs.field(default=True, init=False)
    capacity: float = attrs.field(default=1.0, init=False)
    usage: Usage = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.usage = Usage(self.half_life)

    def attach(self, system: KeepsUsage) -> None:
        """Have the system keep the usage of users from now on."""
        self.capacity = float(max(place.capacity for place in system.places))
        system.keep_usage(self.usage)

    def factors(self, users: Iterable[int | str | None], now: float) -> list[float]:
        """Return the fair-share factor of each of these users, 0 to 1, at an instant (s)."""
        shares = {**dict.fromkeys(self.usage.users(), 1.0), **self.shares}
        everybody, used = sum(shares.values()), self.usage.total(now)
        found = []
        for user in users:
            mine = shares.get(user)
            part = 1.0 / (everybody + 1.0) if mine is None else mine / everybody
            found.append(float(2.0 ** (-self.usage.of(user, now) / used / part)) if used > 0 else 1.0)
        return found

    def key(self, job: LiveJob, now: float) -> float:
        """Return the negative priority of a job at an instant (s)."""
        size = job.processors / self.capacity
        return -(
            self.age * min((now - job.submit) / self.max_age, 1.0)
            + self.size * (1.0 - size if self.small_first else size)
            + self.fair_share * self.factors((job.user,), now)[0]
        )

    def scores(self, now: float, columns: ColumnIndex) -> NDArray[np.float64]:
        """Return the keys of all waiting jobs, an array of shape (jobs,)."""
        size = columns.processors / self.capacity
        factors = np.array(self.factors(columns.users, now))
        keys: NDArray[np.float64] = -(
            self.age * np.minimum((now - columns.submit) / self.max_age, 1.0)
            + self.size * (1.0 - size if self.small_first else size)
            + self.fair_share * factors[columns.user]
        )
        return keys

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start jobs in order, at each place, until the first that does not fit."""
        return at_each_place(view, partial(start_heads, self))


GivenOrder: TypeAlias = "str | Order | Callable[[LiveJob], Any]"
"""What an order may be given as: a name, itself, or a key function."""
_VALUES = (FCFS, SJF, LJF, SMALLEST, LARGEST, WFP, UNICEF, F1, F2, F3, F4)
ORDERS: dict[str, Callable[[], Any]] = {
    **{value.name: partial(_itself, value) for value in _VALUES},
    "multifactor": Multifactor,
}


def order(name: GivenOrder) -> Any:
    """Return the order of this name; an order given as an object comes back, a function becomes a key.

    Raises
    ------
    InputError
        where the name is none of an order

    >>> order("sjf").description
    'shortest requested time first'
    """
    from simmodel.scheduling.registry import unknown

    if not isinstance(name, str):
        return name if hasattr(name, "changes") else Order(getattr(name, "__name__", "order"), key=name)
    if name not in ORDERS:
        raise unknown("order", name, ORDERS)
    return ORDERS[name]()
