"""Which jobs are held, and the order of records by which the priorities of priority/basic go down.

Source: ``set_job_prio`` of slurmctld 22.05, by its behaviour: an array has one record, and a job that is released comes
behind all that were submitted until then.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

__all__ = ["Records", "Turn"]


class Turn(NamedTuple):
    """The instant (s) at which a record is held or released."""

    at: float
    record: int
    held: bool


class Records:
    """The records of jobs by the number of their submission, which of them are held, and their order.

    Jobs are given numbers by their places in a log or a list. Once a job of a lower number is submitted later than one
    of a higher number, it gets the next number, and so do all after it.

    Attributes
    ----------
    last
        the number of the last job that was submitted

    >>> records = Records()
    >>> _ = records.submitted(0), records.submitted(1, hold=(5.0, 60.0)), records.submitted(2)
    >>> records.next_turn, records.turns_by(5.0), records.holds(1)
    (5.0, [Turn(at=5.0, record=1, held=True)], True)
    >>> records.turns_by(60.0), records.order(1), records.submitted(3), records.order(3)
    ([Turn(at=60.0, record=1, held=False)], 3, 3, 4)
    >>> records = Records()
    >>> for given in (0, 2, 1, 3):
    ...     records.arrived(given, at=60.0 if given == 1 else given)
    >>> [records.number(given) for given in (0, 1, 2, 3)]
    [0, 3, 2, 4]
    """

    def __init__(self) -> None:
        self.last = -1
        self._latest = -inf  # the last instant of a submission (s)
        self._numbers: dict[int, int] = {}  # by given numbers, once these are not in the order of submissions
        self._first: dict[str, int] = {}  # the number of the first task of each array
        self._others: list[int] = []  # those of all other tasks, ascending: they have no record of their own
        self._coming: dict[int, tuple[float, float]] = {}  # of records that will be held: from when and until when
        self._until: dict[int, float] = {}  # of records that are held
        self._unnumbered: list[int] = []  # those held when they were submitted, ascending
        self._releases: list[int] = []  # behind which numbers jobs were released, ascending
        self._released: dict[int, int] = {}  # the order of records that were released

    def arrived(self, given: int, at: float) -> None:
        """Note that the job of a given number was submitted at an instant (s)."""
        if self._numbers or (given < self.last and at > self._latest):
            if given not in self._numbers:
                self.last += 1
                self._numbers[given] = self.last
        else:
            self.last = max(self.last, given)
        self._latest = max(self._latest, at)

    def number(self, given: int) -> int:
        """Return the number of the submission of a job by its given number."""
        return self._numbers.get(given, given)

    def left(self, given: int) -> None:
        """Forget the number of a job that is over."""
        if len(self._numbers) > 1:  # one is kept: given numbers are not those of submissions
            self._numbers.pop(given, None)

    def submitted(self, number: int, array: str = "", hold: tuple[float, float] | None = None) -> int:
        """Note a job by the number of its submission, once or more often; return its record.

        Parameters
        ----------
        array
            the name of the array of which it is a task
        hold
            the instants (s) from and until which it is held; from ``-inf`` on: since its submission, so that it has no
            place in the order yet
        """
        self.last = max(self.last, number)
        record = self._first.setdefault(array, number) if array else number
        if record != number:
            _insert(self._others, number)
        elif hold is not None and not any(number in each for each in (self._coming, self._until, self._released)):
            begin, until = hold
            if begin == -inf:
                self._until[number] = until
                _insert(self._unnumbered, number)
            else:
                self._coming[number] = hold
        return record

    def order(self, record: int) -> int:
        """Return the place of a record in the order: 0, 1, 2, ..."""
        found = self._released.get(record)
        if found is not None:
            return found
        before = record - bisect_left(self._others, record) - bisect_left(self._unnumbered, record)
        return before + bisect_left(self._releases, record)

    def holds(self, record: int) -> bool:
        return record in self._until

    @property
    def next_turn(self) -> float:
        """The next instant at which a record is held or released (s)."""
        if not self._coming and not self._until:
            return inf
        return min([begin for begin, _ in self._coming.values()] + [*self._until.values()])

    def turns_by(self, now: float, before: int | None = None) -> list[Turn]:
        """Hold and release the records whose time has come; return that in order.

        Parameters
        ----------
        before
            the first number that was submitted later, if any was
        """
        found: list[Turn] = []
        last = self.last if before is None else before - 1
        while (at := self.next_turn) <= now:
            for record, (begin, until) in list(self._coming.items()):
                if begin == at:
                    self._until[record] = until
                    del self._coming[record]
                    found.append(Turn(at, record, held=True))
            for record, until in list(self._until.items()):
                if until == at:
                    self._released[record] = self.order(last + 1)
                    insort(self._releases, last)
                    del self._until[record]
                    found.append(Turn(at, record, held=False))
        return found

    def state(self) -> dict[str, Any]:
        """Return the values that :meth:`restore` takes."""
        found: dict[str, Any] = {"arrays": dict(self._first), "others": list(self._others)}
        if self._latest > -inf:
            numbers = [list(each) for each in self._numbers.items()]
            found["order"] = {"last": self.last, "latest": self._latest, "numbers": numbers}
        if self._coming or self._until or self._releases:
            coming = [[record, begin, _finite(until)] for record, (begin, until) in self._coming.items()]
            found["holds"] = {
                "last": self.last,
                "coming": coming,
                "until": [[record, _finite(until)] for record, until in self._until.items()],
                "unnumbered": list(self._unnumbered),
                "releases": list(self._releases),
                "released": [list(each) for each in self._released.items()],
            }
        return found

    def restore(self, values: Mapping[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        self._first = {str(name): int(number) for name, number in values["arrays"].items()}
        self._others = _numbers(values["others"])
        holds = values.get("holds")
        if holds is not None:
            self.last = int(holds["last"])
            self._coming = {int(each): (at, inf if until is None else until) for each, at, until in holds["coming"]}
            self._until = {int(each): inf if until is None else until for each, until in holds["until"]}
            self._unnumbered, self._releases = _numbers(holds["unnumbered"]), _numbers(holds["releases"])
            self._released = {int(each): int(place) for each, place in holds["released"]}
        order = values.get("order")
        if order is not None:
            self.last, self._latest = int(order["last"]), float(order["latest"])
            self._numbers = {int(given): int(number) for given, number in order["numbers"]}


def _insert(numbers: list[int], number: int) -> None:
    """Insert a number into others that ascend, unless it is there."""
    if numbers[bisect_left(numbers, number) :][:1] != [number]:
        insort(numbers, number)


def _numbers(values: Iterable[int]) -> list[int]:
    return [int(each) for each in values]


def _finite(value: float) -> float | None:
    return None if value == inf else value
