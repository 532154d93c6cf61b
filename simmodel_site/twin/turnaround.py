"""The answer of a twin to the question when a job would end if it were submitted now."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any

from simmodel import Environment, InputError, SimmodelError
from simmodel.systems import Cluster
from simmodel_site.twin.events import Demand, read_fields
from simmodel_site.twin.mirror.places import Places

if TYPE_CHECKING:
    from simmodel.extending import Plain, PolicyLike
    from simmodel.snapshots import ClusterSnapshot

__all__ = ["Turnarounds", "turnaround"]

_UNLIMITED = 86400.0  # seconds that a job without a limit is taken to run


def turnaround(
    snapshot: ClusterSnapshot, request: Demand, policy: PolicyLike | None = None, speed: float = 1.0
) -> tuple[float, float]:
    """Return the wait of a job that is submitted now and its time until the end (s), by simulation.

    Parameters
    ----------
    snapshot
        the cluster as it is
    request
        the request of the job
    policy
        default: that of the snapshot
    speed
        how many times faster than its request says a job runs there

    Raises
    ------
    ImpossibleWork
        the cluster can never run it

    >>> from simmodel import Job
    >>> cluster = Cluster(Environment(), 4)
    >>> _ = cluster.submit(Job(processors=4, run=60))
    >>> turnaround(cluster.snapshot(), Demand(processors=2, requested=30.0))
    (60.0, 90.0)
    """
    seen = snapshot.expected()
    system = Cluster.from_snapshot(Environment(seen.now, 0), seen, policy, record=False)
    job = Places(snapshot.platform).request(request).job("routed", seen.now, unlimited=_UNLIMITED)
    start = system.estimate(job).start
    assert job.run is not None
    return start - seen.now, start - seen.now + job.run / speed


class Turnarounds:
    """Answers from the last snapshot that the twin has shown; any thread may ask.

    Parameters
    ----------
    speed
        see :func:`turnaround`
    """

    def __init__(self, speed: float = 1.0) -> None:
        if not (speed > 0 and isfinite(speed)):
            raise InputError(f"must be a finite number > 0, got {speed!r}", place="speed")
        self.speed = speed
        self._shown: tuple[ClusterSnapshot, PolicyLike | None] | None = None
        self._lock = Lock()

    def show(self, snapshot: ClusterSnapshot, policy: PolicyLike | None = None) -> None:
        self._shown = (snapshot, policy)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Plain]:
        """Return ``wait`` and ``turnaround`` (s) of the fields of a request, or ``error``, a sentence.

        With ``unmodelled``: the partitions and consumables of the request that the platform lacks.

        >>> Turnarounds().answer({"processors": 4})
        {'error': 'nothing is known of the cluster yet'}
        """
        shown = self._shown
        if shown is None:
            return {"error": "nothing is known of the cluster yet"}
        try:
            request = read_fields(question, Demand)
            with self._lock:  # one at a time: the twin itself comes first
                wait, whole = turnaround(*shown[:1], request, shown[1], self.speed)
        except (SimmodelError, ValueError) as error:
            return {"error": str(error)}
        if not isfinite(whole):
            return {"error": "the job would never start"}
        marks = list(Places(shown[0].platform).unmodelled(request))
        return {"wait": wait, "turnaround": whole, **({"unmodelled": marks} if marks else {})}
