"""``explain()``: why work waits, on systems of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.errors import InputError
from simmodel.referee.life import explain_job
from simmodel.runs.scenario import Scenario

if TYPE_CHECKING:
    from simmodel.referee.explanation import Explanation
    from simmodel.runs.platforms import GivenPlatform
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork

__all__ = ["explain"]


def explain(
    platform: GivenPlatform,
    workload: GivenWork,
    policy: PolicyLike,
    job: int | str,
    at: float | None = None,
    *,
    progress: bool = False,
    **options: Any,
) -> Explanation:
    """Simulate a workload and explain why a job waits at an instant, and what it waited for until it started.

    Parameters
    ----------
    platform, workload, policy, options
        as of :func:`~simmodel.runs.simulating.simulate`, for a cluster
    job
        its id
    at
        the instant (s); default: that of its submission
    progress
        whether to show a progress bar

    Raises
    ------
    InputError
        there is no such job, it does not wait at the instant, or the platform is no cluster

    >>> found = explain(12, "probe-4", "easy", 3)
    >>> found.reason, found.expected, [change.text for change in found.changes]
    ('processors', 1000.0, ['with 2 processors instead of 7'])
    >>> list(found.spans.rows())
    [{'since': 950.0, 'until': 1000.0, 'reason': 'processors'}]
    """
    scenario = Scenario.of(platform, workload, policy, **options)
    if scenario.kind.name != "cluster":
        raise InputError(f"must be a cluster, got {platform!r}", place="platform")

    def make() -> Simulation:
        return scenario.start(progress=progress)

    return explain_job(make, job, at, None if isinstance(policy, str) else policy)
