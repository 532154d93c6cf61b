"""Checkpoints: how a job saves its progress, and the work that is kept of a stopped execution.

The seconds are those of the job's run time: a node of speed 2 passes them, and the cost of a save, twice as fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, inf, isfinite, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import in_bytes, in_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.table import Table

__all__ = [
    "CHECKPOINT_COLUMNS",
    "Checkpoint",
    "Kept",
    "Progress",
    "checkpoint_columns",
    "checkpoint_of",
    "checkpoints_in",
    "daly_interval",
]

CHECKPOINT_COLUMNS = (
    "checkpoint_interval",
    "checkpoint_cost",
    "checkpoint_restart",
    "checkpoint_size",
    "checkpoint_to",
)
"""The columns of a workload that have the fields of the checkpoints of its jobs; interval 0: it writes none.

Seconds, then bytes and the name of a storage or a link; the last two exist only if some jobs write to one.
"""
_NUMBERS = CHECKPOINT_COLUMNS[:4]


def _finite(_instance: Checkpoint, attribute: attrs.Attribute[float], value: float) -> None:
    above = attribute.name == "interval"
    if isinstance(value, (str, bool)) or not (isfinite(value) and (value > 0 if above else value >= 0)):
        raise InputError(f"{attribute.name}: must be a finite number {'>' if above else '>='} 0, got {value!r}")


def _name(_instance: Checkpoint, _attribute: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"to: must be the name of a storage or a link, got {value!r}")


class Kept(NamedTuple):
    """Totals of the checkpoints of a job so far, in seconds of its run time.

    ``saved``: work in its latest checkpoint; ``lost``: work done in vain; ``saving``: time in checkpoints; ``reading``:
    time in restarts; ``checkpoints``: their number; ``ran``: time executed by the present attempt until suspended.
    """

    saved: float = 0.0
    lost: float = 0.0
    saving: float = 0.0
    reading: float = 0.0
    checkpoints: int = 0
    ran: float = 0.0


_NOTHING = Kept()


class Progress(NamedTuple):
    """How far an execution has come whose checkpoints go to a storage or over a link.

    ``phase``: ``"restart"``, ``"read"``, ``"work"``, ``"cost"``, ``"write"`` or, after the last save, ``"rest"``;
    ``left``: the rest of it, in seconds of the run time, or bytes of ``read`` and ``write``; ``done``: work since
    the latest complete checkpoint (s); ``first``: work saved when the attempt began (s); ``saves``: the complete ones
    of the attempt; ``kept``: the totals of all checkpoints by now.
    """

    phase: str
    left: float
    done: float
    first: float
    saves: int
    kept: Kept


@attrs.frozen(repr=False)
class Checkpoint(Fields):
    """The checkpoints of a job: it saves its progress, and continues from there after a failure or a requeue.

    A save begins after each ``interval`` seconds of work since the last one, except at the end of the job, and counts
    once it is complete. A job without a complete one starts from the beginning. The time of saves and restarts counts
    against the requested time, which each execution has anew; a job that requests no time is not stopped.

    With ``size`` and ``to`` a save also writes ``size`` bytes to a storage of its cluster, or sends them over a link,
    after the seconds of its ``cost``; a restart reads them after the seconds of ``restart``. They share the bandwidth
    with all that others write, read and send at the time, and the bandwidth that jobs hold is withheld from them.
    Policies plan with the times that they take alone. They take no room in the storage.

    Parameters
    ----------
    interval
        seconds of work between two saves
    cost
        seconds of a save, in which the job makes no progress
    restart
        seconds of reading a checkpoint before the work continues
    size
        bytes of a checkpoint, or a text such as ``"200GB"``
    to
        the name of the storage or the link of its cluster
    write_time, read_time
        seconds of these bytes alone, which the cluster fills in

    Raises
    ------
    InputError
        a number is negative or not finite, the interval is zero, or only one of ``size`` and ``to`` is given

    >>> from simmodel import Job, simulate
    >>> from simmodel.platform import ClusterSpec, OutageSpec, PartitionSpec
    >>> from simmodel.work import Checkpoint
    >>> outage = OutageSpec(at=50, until=60, processors=4)
    >>> spec = ClusterSpec(partitions=[PartitionSpec(processors=4)], outages=[outage])
    >>> job = Job(processors=4, run=60, checkpoint=Checkpoint(interval=20, cost=2, restart=5))
    >>> result = simulate(spec, [job], "fcfs")  # saves from 20 and from 42 s; then 6 s of work are lost
    >>> result.jobs["end"], result.jobs["saved_work"], result.jobs["lost_work"], result.jobs["checkpoint_time"]
    (array([85.]), array([60.]), array([6.]), array([4.]))
    """

    interval: float = attrs.field(converter=in_seconds, validator=_finite)
    cost: float = attrs.field(default=0.0, converter=in_seconds, validator=_finite)
    restart: float = attrs.field(default=0.0, converter=in_seconds, validator=_finite)
    size: float = attrs.field(default=0.0, converter=in_bytes, validator=_finite)
    to: str = attrs.field(default="", validator=_name)
    write_time: float = attrs.field(default=0.0, repr=False, eq=False, validator=_finite)
    read_time: float = attrs.field(default=0.0, repr=False, eq=False, validator=_finite)

    def __attrs_post_init__(self) -> None:
        if bool(self.size) != bool(self.to):
            raise InputError(f"size, to: must be given together, got {self.size!r} and {self.to!r}")

    @property
    def saving(self) -> float:
        """The seconds of a save, alone."""
        return self.cost + self.write_time

    @property
    def reading(self) -> float:
        """The seconds of a restart, alone."""
        return self.restart + self.read_time

    @property
    def alone(self) -> Checkpoint:
        """The checkpoints whose saves and restarts take as long as these do alone, without a storage or a link.

        >>> Checkpoint(20, cost=2, size=80, to="disk", write_time=8).alone
        Checkpoint(interval=20, cost=10)
        """
        return Checkpoint(self.interval, self.saving, self.reading) if self.to else self

    def saves(self, work: float) -> int:
        """Return the number of saves within ``work`` seconds of work, at whose end there is none.

        >>> [Checkpoint(20).saves(work) for work in (0, 20, 21, 60)]
        [0, 0, 1, 2]
        """
        return max(0, ceil(work / self.interval) - 1)

    def seconds(self, work: float, saved: float = 0.0) -> float:
        """Return the seconds of an execution that does all of the work (s) that is not saved yet.

        >>> Checkpoint(20, cost=2, restart=5).seconds(60), Checkpoint(20, cost=2, restart=5).seconds(60, saved=40)
        (64.0, 25.0)
        """
        if work == inf:
            return inf
        left = max(0.0, work - saved)
        return (self.reading if saved else 0.0) + float(left) + self.saves(left) * self.saving

    def work_in(self, seconds: float, saved: float = 0.0) -> float:
        """Return the work (s) of a job that, with ``saved`` seconds of it saved, ends after ``seconds``.

        >>> save = Checkpoint(20, cost=2, restart=5)
        >>> save.work_in(64), save.work_in(43), save.work_in(25, saved=40)
        (60.0, 40.0, 60.0)
        """
        if seconds == inf:
            return inf
        left = max(0.0, seconds - (self.reading if saved else 0.0))
        whole, rest = divmod(left, self.interval + self.saving)
        return float(saved + whole * self.interval + min(rest, self.interval))

    def stopped(self, seconds: float, kept: Kept = _NOTHING) -> Kept:
        """Return the totals of the checkpoints after an execution that was stopped after ``seconds``.

        >>> Checkpoint(20, cost=2).stopped(50)
        Kept(saved=40.0, lost=6.0, saving=4.0, reading=0.0, checkpoints=2, ran=0.0)
        """
        executed = kept.ran + seconds
        reading = min(executed, self.reading) if kept.saved else 0.0
        cycle = self.interval + self.saving
        saves = floor((executed - reading) / cycle)
        rest = max(0.0, executed - reading - saves * cycle)
        done = min(rest, self.interval)
        return Kept(
            kept.saved + saves * self.interval,
            kept.lost + done,
            kept.saving + saves * self.saving + (rest - done),
            kept.reading + reading,
            kept.checkpoints + saves,
        )

    def completed(self, work: float, kept: Kept = _NOTHING) -> Kept:
        """Return the totals of the checkpoints after an execution that has done all work (s) of the job.

        >>> Checkpoint(20, cost=2).completed(60)
        Kept(saved=60, lost=0.0, saving=4.0, reading=0.0, checkpoints=2, ran=0.0)
        """
        saves = self.saves(work - kept.saved)
        reading = kept.reading + (self.reading if kept.saved else 0.0)
        return Kept(work, kept.lost, kept.saving + saves * self.saving, reading, kept.checkpoints + saves)


def checkpoint_columns(checkpoints: Sequence[Checkpoint | None]) -> dict[str, NDArray[Any]]:
    """Return the columns of these checkpoints, one per job; those of bytes only if some are written somewhere.

    >>> checkpoint_columns([Checkpoint(600, cost=30), None])["checkpoint_interval"]
    array([600.,   0.])
    """
    for each in checkpoints:
        if each is not None and not isinstance(each, Checkpoint):
            raise InputError(f"must be a Checkpoint or None, got {each!r}", place="checkpoint")
    found: dict[str, NDArray[Any]] = {
        column: np.array([0.0 if each is None else getattr(each, field) for each in checkpoints], dtype=np.float64)
        for column, field in zip(_NUMBERS, ("interval", "cost", "restart", "size"), strict=True)
    }
    if found["checkpoint_size"].any():
        return found | {"checkpoint_to": np.array(["" if each is None else each.to for each in checkpoints])}
    return {name: column for name, column in found.items() if name != "checkpoint_size"}


def checkpoint_of(row: Mapping[str, Any]) -> Checkpoint | None:
    """Return the checkpoint in the columns of a job, in which a value may be missing.

    >>> checkpoint_of({"checkpoint_interval": 600.0, "checkpoint_cost": 30.0})
    Checkpoint(interval=600.0, cost=30.0)
    """
    interval, cost, restart, size = (max(0.0, row.get(name, 0.0)) for name in _NUMBERS)
    if not interval > 0:
        return None
    to = row.get("checkpoint_to")
    place = "" if to in (None, -1) else str(to)
    if bool(size) != bool(place):
        message = f"must be given together, got {size:g} and {place!r}"
        raise InputError(message, place="columns checkpoint_size and checkpoint_to")
    return Checkpoint(interval, cost, restart, size, place)


def checkpoints_in(table: Table) -> list[Checkpoint | None]:
    """Return the checkpoints in the columns of a table, one per row."""
    columns = {name: np.nan_to_num(table[name]).tolist() for name in _NUMBERS if name in table}
    if "checkpoint_to" in table:
        columns["checkpoint_to"] = table["checkpoint_to"].tolist()
    return [checkpoint_of(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def daly_interval(cost: float, mean_time_between_failures: float) -> float:
    """Return the seconds of work between checkpoints that minimise the expected run time, to a high order.

    The interval is that of work alone: the time from the end of a save to the beginning of the next.

    Parameters
    ----------
    cost
        seconds of a save
    mean_time_between_failures
        seconds between failures of any node of the job, exponentially distributed

    Source: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
    Generation Computer Systems 22(3), 2006, equation 37.

    >>> round(daly_interval(60, 3600), 1), round(sqrt(2 * 60 * 3600), 1)  # and the interval of Young (1974)
    (617.9, 657.3)
    """
    if not (cost > 0 and mean_time_between_failures > 0):
        raise InputError(
            f"cost, mean_time_between_failures: must be > 0, got {cost!r} and {mean_time_between_failures!r}"
        )
    share = cost / (2 * mean_time_between_failures)
    if share >= 1:
        return mean_time_between_failures
    return sqrt(2 * cost * mean_time_between_failures) * (1 + sqrt(share) / 3 + share / 9) - cost
