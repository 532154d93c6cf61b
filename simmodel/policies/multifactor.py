"""The multifactor order: age, size and fair share, as in the priority plug-in of Slurm.

Source: Slurm's documentation of its plug-in priority/multifactor: the formula without the fair tree, and with one level
of shares; Yoo, Jette, Grondona, "SLURM: Simple Linux utility for resource management", JSSPP 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from simmodel.policies.fast.multifactor import scores
from simmodel.policies.ordering import start_in_order
from simmodel.scheduling.protocol import Decision, Policy, View
from simmodel.scheduling.usage import Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.column_index import ColumnIndex
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob

__all__ = ["Multifactor", "priority"]


def priority(job: LiveJob, now: float, order: Multifactor) -> float:
    """Return the priority of a job at an instant (s): the weighted sum of its factors, each from 0 to 1."""
    age = min((now - job.submit) / order.max_age, 1.0)
    size = job.processors / order.capacity
    if order.small_first:
        size = 1.0 - size
    return order.age * age + order.size * size + order.fair_share * order.factors((job.user,), now)[0]


class KeepsUsage(Protocol):
    """A system that records the usage of its users."""

    @property
    def places(self) -> Sequence[Place]:
        """The places of the system."""
        ...

    def keep_usage(self, usage: Usage) -> None:
        """Record the usage of users here from now on."""
        ...


@attrs.define(eq=False)
class Multifactor(Policy):
    """The order by the weighted sum of age, size and fair share, each from 0 to 1, as in Slurm's priority plug-in.

    The fair-share factor of a user is 2^(-(the user's part of all usage) / (the user's part of all shares)).

    Parameters
    ----------
    age, size, fair_share
        weights
    max_age
        wait in seconds at which the age factor reaches 1
    small_first
        whether the size factor favours few processors instead of many
    half_life
        half-life of usage in seconds
    shares
        shares of users, on any positive scale; default for each user: 1
    fast
        whether to reckon the priorities of all waiting jobs at once; else :func:`priority` does it job by job

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
    fast: bool = True
    description: str = "weighted age, size and fair share by user"
    changes: bool = attrs.field(default=True, init=False)
    capacity: float = attrs.field(default=1.0, init=False)
    usage: Usage = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.usage = Usage(self.half_life)

    def attach(self, system: KeepsUsage) -> None:
        """Have the system record the usage of users from now on."""
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
        return -priority(job, now, self)

    @property
    def scores(self) -> Callable[[float, ColumnIndex], NDArray[np.float64]] | None:
        """Returns the keys of all waiting jobs, an array of shape (jobs,); ``None``: job by job."""
        return self._scores if self.fast else None

    def _scores(self, now: float, columns: ColumnIndex) -> NDArray[np.float64]:
        fair = -self.fair_share * np.array(self.factors(columns.users, now))
        return scores(now, columns, self.max_age, self.age, fair)

    def part(self, job: LiveJob) -> float:
        """Return the part of the key of a job that stays the same while it waits, that of its size."""
        size = job.processors / self.capacity
        return (1.0 - size if self.small_first else size) * -self.size

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start jobs in order at each place, until the first that does not fit."""
        return start_in_order(self, view)
