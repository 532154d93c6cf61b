"""What an agent sees and decides that routes jobs to the places of a broker, or to the sites of a grid with files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, log1p
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.learn.environment import Act, Action, Choice, Columns, Mask, Observe, SchedulingEnv
from simmodel.learn.episodes import Episodes
from simmodel.learn.rewards import Reward, When
from simmodel.policies.load_index import SiteColumns
from simmodel.scheduling.protocol import Decision, Start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.foundation.errors import Plain
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.objectives import ObjectiveLike
    from simmodel.scheduling.protocol import View
    from simmodel.systems.destination import BrokeredJob, Destination
    from simmodel.systems.submissions import GivenWork

__all__ = ["ROUTED_COLUMNS", "SITE_COLUMNS", "ChoosePlace", "Sites", "route_env"]

ROUTED_COLUMNS = ("processors", "requested", "input bytes")
"""Of the job: share of the processors of the largest place; requested time, -1 without one, and bytes of its inputs."""
SITE_COLUMNS = ("takes", "free", "queued", "coming", "running", "load", "speed", "held", "transfer")
"""Of each place: whether it takes the job; free share; jobs that wait, come and run; expected remaining work a
processor (s), -1 once it has work without a request; speed for the job, of the highest; share of the input bytes there;
seconds for the rest on idle links. Counts, seconds and bytes are on logarithmic scales from 0 to 1."""
_SECONDS, _JOBS, _BYTES = (1 / log1p(most) for most in (30 * 86400.0, 1e5, 1e15))


class Sites(Observe):
    """Shows the first job that waits for a broker and the places that it may go to.

    The arrays are ``job``, with :data:`ROUTED_COLUMNS`, and ``places``, of shape (places, 9) with
    :data:`SITE_COLUMNS`: only places that changed are asked again.

    Parameters
    ----------
    places
        their number
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self._view: View | None = None
        self.unrequested: set[Destination] = set()

    def space(self) -> spaces.Dict:
        low = [-float(name == "load") for name in SITE_COLUMNS]
        about = Columns(ROUTED_COLUMNS, None, (0, -1, 0))
        return spaces.Dict({"job": about, "places": Columns(SITE_COLUMNS, self.places, low)})

    def _follow(self, view: View) -> None:
        if len(view.places) != self.places or not all(place.queues for place in view.places):
            raise InputError(
                f"must be a broker or a grid ({counted(self.places, 'place')}), got {view!r}", place="system"
            )
        self._view = view
        self._places: Sequence[Destination] = view.places
        self._index = index = SiteColumns(view.places)
        self._changed = index.follow()
        self._table = np.zeros((self.places, len(SITE_COLUMNS)), dtype=np.float32)
        self._largest = max(1, *(place.capacity for place in view.places))

    def first(self, view: View) -> tuple[BrokeredJob | None, Mask]:
        """Return the first waiting job that some place takes now, if any, and which places do."""
        if view is not self._view:
            self._follow(view)
        for job in view.waiting:
            able = np.array([place.can_run(job) for place in self._places])
            if able.any():
                return job, able
            if not view.takes():
                break
        return None, np.zeros(self.places, dtype=np.bool_)

    def __call__(self, view: View) -> dict[str, NDArray[np.float32]]:
        """Return the arrays."""
        job, able = self.first(view)
        index, table, now = self._index, self._table, view.now
        loads = index.loads(now)
        for i in self._changed:
            free = max(0.0, index.free[i]) / max(1, self._places[i].capacity)
            counts = (index.queued[i], index.assigned[i], index.running[i])
            table[i, 1:5] = min(1.0, free), *(min(1.0, log1p(each) * _JOBS) for each in counts)
        self._changed.clear()
        table[:, 0] = able
        table[:, 5] = np.minimum(np.log1p(np.maximum(loads, 0.0)) * _SECONDS, 1.0)
        for i, place in enumerate(self._places) if self.unrequested else ():
            if place in self.unrequested:
                table[i, 5] = -1.0
        about = np.zeros(3, dtype=np.float32)
        table[:, 7:] = 0.0
        if job is not None:
            known = job.requested < inf
            size = (
                sum([float(view.files.size(name)) for name in job.inputs if name in view.files])
                if job.needs_files
                else 0
            )
            seconds = min(1.0, log1p(job.requested) * _SECONDS) if known else -1.0
            speeds = np.array([place.speed / place.slowdown(job) for place in self._places])
            table[:, 6] = speeds / speeds.max()
            about[:] = min(1.0, job.processors / self._largest), seconds, min(1.0, log1p(size) * _BYTES)
            if size:
                table[:, 7] = [place.held(job) / size for place in self._places]
                table[:, 8] = [min(1.0, log1p(place.transfer(job)) * _SECONDS) for place in self._places]
        return {"job": about, "places": table.copy()}


class ChoosePlace(Act[Sites]):
    """An action is the number of the place that takes the first waiting job.

    Parameters
    ----------
    shown
        the places
    """

    decides = "systems"

    def __init__(self, shown: Sites) -> None:
        self.shown, self.space = shown, Choice(shown.places)

    def asks(self, view: View) -> bool:
        """Whether a job waits that some place takes."""
        return self.shown.first(view)[0] is not None

    def mask(self, view: View) -> Mask:
        return self.shown.first(view)[1]

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Send the job to a place."""
        job, place = self.shown.first(view)[0], view.places[int(action)]
        if job is not None and not job.requested < inf:
            self.shown.unrequested.add(place)
        return (Start(job, place),)

    def state(self) -> list[str]:
        """Return the names of the places with work without a request."""
        return sorted(place.name for place in self.shown.unrequested)

    def restore(self, values: Plain, view: View) -> None:
        """Take over the places with work without a request."""
        self.shown.unrequested = {place for place in view.places if isinstance(values, list) and place.name in values}


def route_env(
    platform: GivenPlatform | Episodes = (16, 32, 64),
    workload: GivenWork | None = "lublin:jobs=256,processors=16",
    *,
    reward: ObjectiveLike = "bounded_slowdown_mean",
    when: When = "end",
    render_mode: None = None,
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Route-v0``: which place of a broker, or site of a grid, takes each job.

    Parameters are those of :func:`~simmodel.learn.clusters.batch_env`; see :class:`Sites`.
    """
    drawn = Episodes.of(platform, workload, episodes, render_mode).blind()
    shown = Sites(len(drawn(np.random.default_rng(0)).system.places))
    return SchedulingEnv(drawn, shown, ChoosePlace(shown), Reward(reward, when))
