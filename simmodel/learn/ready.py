"""The ready environments, registered as ``simmodel/Batch-v0``, ``simmodel/Backfill-v0`` and ``simmodel/Route-v0``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from simmodel.learn.environment import SchedulingEnv
from simmodel.learn.episodes import Episodes
from simmodel.learn.games import ChooseNext, ReserveAndFill
from simmodel.learn.rewards import Reward, When
from simmodel.learn.window import JobWindow

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.runs.platforms import GivenPlatform
    from simmodel.scheduling.objectives import ObjectiveLike
    from simmodel.systems.submissions import GivenWork

__all__ = ["backfill_env", "batch_env", "register_environments"]

_PLATFORM, _WORK = 128, "lublin:jobs=256,processors=128"


def batch_env(
    platform: GivenPlatform | Episodes = _PLATFORM,
    workload: GivenWork | None = _WORK,
    *,
    window: int = 128,
    backfill: Literal["none", "easy"] = "none",
    candidates: GivenOrder = "fcfs",
    hold: bool = True,
    wait: bool = False,
    ends: int = 16,
    longest: float | str = "30d",
    reward: ObjectiveLike | Reward = "bounded_slowdown_mean",
    when: When = "end",
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Batch-v0``: which of the first waiting jobs is next.

    Parameters
    ----------
    platform, workload, episodes
        as for :class:`~simmodel.learn.episodes.Episodes`, or these
    window, ends, longest
        as for :class:`~simmodel.learn.window.JobWindow`
    backfill, candidates, hold, wait
        as for :class:`~simmodel.learn.games.ChooseNext`
    reward, when
        as for :class:`~simmodel.learn.rewards.Reward`

    >>> env = batch_env(window=8)
    >>> _, info = env.reset(seed=1)
    >>> info["action_mask"].tolist()
    [True, False, False, False, False, False, False, False]
    """
    shown = JobWindow(window, ends=ends, longest=longest)
    act = ChooseNext(shown, backfill, candidates=candidates, hold=hold, wait=wait)
    return SchedulingEnv(_drawn(platform, workload, episodes), shown, act, _rewarded(reward, when))


def backfill_env(
    platform: GivenPlatform | Episodes = _PLATFORM,
    workload: GivenWork | None = _WORK,
    *,
    window: int = 128,
    ends: int = 16,
    longest: float | str = "30d",
    reward: ObjectiveLike | Reward = "bounded_slowdown_mean",
    when: When = "end",
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Backfill-v0``: which job gets a reservation, then which ones fill the gaps.

    Parameters are those of :func:`batch_env`.
    """
    shown = JobWindow(window, ends=ends, longest=longest, reserves=True)
    return SchedulingEnv(_drawn(platform, workload, episodes), shown, ReserveAndFill(shown), _rewarded(reward, when))


def _drawn(platform: GivenPlatform | Episodes, workload: GivenWork | None, options: dict[str, Any]) -> Episodes:
    return platform if isinstance(platform, Episodes) else Episodes(platform, workload, **options)


def _rewarded(reward: ObjectiveLike | Reward, when: When) -> Reward:
    return reward if isinstance(reward, Reward) else Reward(reward, when)


def register_environments() -> None:
    """Register the ready environments with gymnasium, as importing :mod:`simmodel.learn` does."""
    from gymnasium import register, registry

    for name, make in (("Batch", batch_env), ("Backfill", backfill_env)):
        if f"simmodel/{name}-v0" not in registry:
            register(f"simmodel/{name}-v0", f"{__name__}:{make.__name__}")
