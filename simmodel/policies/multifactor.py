"""The multifactor order: age, size and fair share, as in the priority plug-in of Slurm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from simmodel.policies.ordering import start_in_order
from simmodel.scheduling.protocol import Decision, Policy, View
from simmodel.scheduling.usage import Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.column_index import ColumnIndex
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob

__all__ = ["Multifactor"]


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
        size = job.processors / self.capacity
        return -(
            self.age * min((now - job.submit) / self.max_age, 1.0)
            + self.size * (1.0 - size if self.small_first else size)
            + self.fair_share * self.factors((job.user,), now)[0]
        )

    def scores(self, now: float, columns: ColumnIndex) -> NDArray[np.float64]:
        """Return the keys of all waiting jobs, an array of shape (jobs,)."""
        fair = -self.fair_share * np.array(self.factors(columns.users, now))
        keys, part = columns.scratch
        np.subtract(now, columns.submit, out=keys)
        keys /= self.max_age
        if len(keys) and keys[0] > 1.0:  # of the job that arrived first
            np.minimum(keys, 1.0, out=keys)
        keys *= -self.age
        keys += columns.part
        keys += fair[0] if len(fair) == 1 else np.take(fair, columns.user, out=part, mode="clip")
        scores: NDArray[np.float64] = keys
        return scores

    def part(self, job: LiveJob) -> float:
        """Return the part of the key of a job that stays the same while it waits, that of its size."""
        size = job.processors / self.capacity
        return (1.0 - size if self.small_first else size) * -self.size

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start jobs in order at each place, until the first that does not fit."""
        return start_in_order(self, view)
