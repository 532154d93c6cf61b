"""``explain()``: why work waits, on systems of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from simmodel.foundation.errors import InputError
from simmodel.referee.choice_explanation import explain_choice
from simmodel.referee.job_life import explain_job
from simmodel.referee.task_explanation import explain_task
from simmodel.runs.scenario import Missing, Scenario

if TYPE_CHECKING:
    from simmodel.referee.choice_explanation import ChoiceExplanation
    from simmodel.referee.explanation import Explanation
    from simmodel.referee.task_explanation import TaskExplanation
    from simmodel.results.stored import Stored
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.runs.simulation import Simulation
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.submissions import GivenWork

__all__ = ["Explained", "explain", "explain_in", "explain_result"]


def explain(
    platform: GivenPlatform,
    workload: GivenWork,
    policy: PolicyLike | None,
    job: int | str,
    at: float | None = None,
    *,
    progress: bool = False,
    **options: Any,
) -> Explained:
    """Simulate a workload and explain why a job waits at an instant, with the reasons of its wait until it started.

    On a machine: the waits of a task, and the holders. At a broker or on a grid: why the job was sent to its place, and
    why it waited there.

    Parameters
    ----------
    platform, workload, policy, options
        as of :func:`~simmodel.runs.scenario.simulate`
    job
        the id of the job or task
    at
        on a cluster, the instant (s); default: that of its submission
    progress
        whether to show a progress bar

    Raises
    ------
    InputError
        there is no such job, or it does not wait at the instant

    >>> found = explain(12, "probe-4", "easy", 3)
    >>> found.reason, found.expected, [change.text for change in found.changes]
    ('processors', 1000.0, ['with 2 processors instead of 7'])
    >>> list(found.spans.rows())
    [{'since': 950.0, 'until': 1000.0, 'reason': 'processors'}]

    >>> found = explain({"a": 7, "b": 7}, "probe-4", "sgs-t", 3)
    >>> found.chosen, found.places["start"].tolist()
    ('a', [1000.0, 1400.0])
    """
    return explain_in(Scenario.of(platform, workload, policy, **options), job, at, progress=progress)


def explain_result(
    result: Stored, work: int | str, at: float | None = None, *, trust: bool = False, **given: Any
) -> Explained:
    """Repeat the run of a result, and explain why a job or a task waited.

    Parameters
    ----------
    result
        its scenario is run again
    work, at
        as of :func:`explain`
    trust
        whether the policies of a stored scenario may be ``module:name``, which imports code
    given
        parts that the scenario does not store, such as ``policy`` and ``workload`` that were passed as objects

    >>> from simmodel import simulate
    >>> explain_result(simulate(12, "probe-4", "easy"), 3).expected
    1000.0
    """
    if not result.scenario:
        raise InputError(
            f"{result.name}: cannot be explained: it has no scenario; use explain(platform, workload, ...)"
        )
    scenario = attrs.evolve(Scenario.from_document(result.scenario, trust=trust), **given)
    for missing in (scenario.platform, scenario.workload, scenario.policy, scenario.policies):
        if isinstance(missing, Missing):
            raise InputError(missing.message.replace("as run(", "as explain("))
    return explain_in(scenario, work, at)


def explain_in(scenario: Scenario, work: int | str, at: float | None = None, *, progress: bool = False) -> Explained:
    """Explain why a job or a task of a scenario waits; parameters and errors as of :func:`explain`."""
    kind = scenario.kind.name
    if kind not in _KINDS:
        raise InputError(f"must be one of {', '.join(_KINDS)}, got a {kind}", place="platform")
    return _KINDS[kind](scenario, work, at, progress)


def _on_a_cluster(scenario: Scenario, work: int | str, at: float | None, progress: bool) -> Explanation:
    policy = scenario.policy

    def make() -> Simulation:
        return scenario.start(progress=progress)

    return explain_job(make, work, at, None if policy is None or isinstance(policy, str) else policy)


def _on_a_machine(scenario: Scenario, work: int | str, at: float | None, progress: bool) -> TaskExplanation:
    if at is not None:
        raise InputError(f"must be None for a task, whose whole wait is explained, got {at!r}", place="at")
    return explain_task(scenario, work)


def _at_a_broker(scenario: Scenario, work: int | str, at: float | None, progress: bool) -> ChoiceExplanation:
    if at is not None:
        raise InputError(f"must be None for a job of a broker, whose choice is explained, got {at!r}", place="at")
    return explain_choice(scenario, work)


Explained: TypeAlias = "Explanation | TaskExplanation | ChoiceExplanation"
_KINDS: dict[str, Callable[[Scenario, int | str, float | None, bool], Explained]] = {
    "cluster": _on_a_cluster,
    "machine": _on_a_machine,
    "broker": _at_a_broker,
    "grid": _at_a_broker,
}
