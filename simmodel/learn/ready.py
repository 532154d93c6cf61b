"""The ready environments, registered as ``simmodel/Batch-v0``, ``simmodel/Backfill-v0`` and ``simmodel/Route-v0``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from simmodel.learn.environment import SchedulingEnv
from simmodel.learn.episodes import Episodes
from simmodel.learn.games import ChooseNext, ReserveAndFill
from simmodel.learn.rewards import Reward, When
from simmodel.learn.routes import ChoosePlace, Sites
from simmodel.learn.window import JobWindow

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.runs.scenario import GivenPlatform
    from simmodel.scheduling.objectives import ObjectiveLike
    from simmodel.systems.submissions import GivenWork

__all__ = ["backfill_env", "batch_env", "register_environments", "route_env"]

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
    reward: ObjectiveLike = "bounded_slowdown_mean",
    when: When = "end",
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Batch-v0``: which of the first waiting jobs is next.

    Parameters
    ----------
    platform, workload, episodes
        as for :class:`~simmodel.learn.episodes.Episodes`, or these
    window
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
    shown = JobWindow(window)
    act = ChooseNext(shown, backfill, candidates=candidates, hold=hold, wait=wait)
    return SchedulingEnv(Episodes.of(platform, workload, episodes), shown, act, Reward(reward, when))


def backfill_env(
    platform: GivenPlatform | Episodes = _PLATFORM,
    workload: GivenWork | None = _WORK,
    *,
    window: int = 128,
    reward: ObjectiveLike = "bounded_slowdown_mean",
    when: When = "end",
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Backfill-v0``: which job gets a reservation, then which ones fill the gaps.

    Parameters are those of :func:`batch_env`; see :class:`~simmodel.learn.games.ReserveAndFill`.
    """
    shown = JobWindow(window, reserves=True)
    return SchedulingEnv(Episodes.of(platform, workload, episodes), shown, ReserveAndFill(shown), Reward(reward, when))


def route_env(
    platform: GivenPlatform | Episodes = (16, 32, 64),
    workload: GivenWork | None = "lublin:jobs=256,processors=16",
    *,
    reward: ObjectiveLike = "bounded_slowdown_mean",
    when: When = "end",
    **episodes: Any,
) -> SchedulingEnv:
    """Return the environment ``simmodel/Route-v0``: which place of a broker, or site of a grid, takes each job.

    Parameters are those of :func:`batch_env`; see :class:`~simmodel.learn.routes.Sites`.
    """
    drawn = Episodes.of(platform, workload, episodes)
    shown = Sites(len(drawn(np.random.default_rng(0)).system.places))
    return SchedulingEnv(drawn, shown, ChoosePlace(shown), Reward(reward, when))


def register_environments() -> None:
    """Register the ready environments with gymnasium, as importing :mod:`simmodel.learn` does."""
    from gymnasium import register, registry

    for name, make in (("Batch", batch_env), ("Backfill", backfill_env), ("Route", route_env)):
        if f"simmodel/{name}-v0" not in registry:
            register(f"simmodel/{name}-v0", f"{__name__}:{make.__name__}")
