"""Agents as policies: whatever predicts actions decides in simulations, comparisons, portfolios, what-ifs and twins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from gymnasium import spaces

from simmodel.foundation.errors import InputError, clipped
from simmodel.learn.environment import Act, Action, Choice, Mask, Observation, Observe, SchedulingEnv
from simmodel.scheduling.protocol import Policy

if TYPE_CHECKING:
    import gymnasium

    from simmodel.foundation.errors import Plain
    from simmodel.scheduling.protocol import Decision, View
    from simmodel.systems.system import System
    from simmodel.work.job import LiveJob

__all__ = ["AgentPolicy", "Predict", "agent_policy"]

Predict: TypeAlias = "Callable[[Observation, Mask | None], Action] | Model"
"""An agent: ``predict(observation, mask)`` returns an action; or a model with a method ``predict``."""


@runtime_checkable
class Model(Protocol):
    """A model of Stable-Baselines3 or one like it; with the attributes of spaces, it is refused where these differ.

    It is asked for its best action (``deterministic=True``), and with the mask (``action_masks=``), if its method takes
    these arguments.
    """

    def predict(self, observation: Observation, /) -> Action | tuple[Action, object]:
        """Return the action, alone or as the first of several values."""
        ...


@runtime_checkable
class _SpacedModel(Model, Protocol):
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]


class AgentPolicy(Policy):
    """A policy whose decisions are the actions of an agent; make it with :func:`agent_policy`.

    Parameters
    ----------
    predict
        the agent
    observe, act
        those of its environment
    name
        its name in results
    """

    def __init__(self, predict: Predict, observe: Observe, act: Act[Any], name: str = "agent") -> None:
        self.predict, self.observe, self.act, self.name = predict, observe, act, name
        self.decides = act.decides
        self._takes = () if callable(predict) else _arguments(predict)
        self._masked = 0  # actions that the mask excluded
        self._renew(None)

    def _renew(self, remembered: Plain) -> None:
        self._shown = self.observe.fresh()
        self._act = self.act.fresh(self._shown)
        self._remembered = remembered  # to be taken over at the next decision, which brings the view

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Ask the agent until it has nothing more to decide."""
        act, observe = self._act, self._shown
        if self._remembered is not None:
            act.restore(self._remembered, view)
            self._remembered = None
        yield from act.resume(view)
        while act.asks(view):
            mask = act.mask(view)
            action = self.action(observe(view), None if mask is None else mask.copy())
            act.check(action, mask)
            yield from act(view, action)

    def action(self, observation: Observation, mask: Mask | None) -> Action:
        """Return the action of the agent; of a model that knows no masks, the first allowed one instead of another."""
        if callable(self.predict):
            return self.predict(observation, mask)
        given: dict[str, Any] = {"deterministic": True, "action_masks": mask}
        answer = self.predict.predict(observation, **{name: given[name] for name in self._takes})
        found = answer[0] if isinstance(answer, tuple) else answer
        if mask is None or "action_masks" in self._takes or not self.act.space.contains(found) or mask[found]:
            return found
        self._masked += 1
        return int(mask.argmax())

    def notes(self, system: System[LiveJob], /) -> tuple[str, ...]:
        """Return a sentence if a model without masks chose actions that are not allowed."""
        if not self._masked:
            return ()
        return (f"agent {self.name}, which knows no masks: {self._masked:,} actions replaced by the first allowed one",)

    def forget(self) -> None:
        """Forget which job is next: another policy has decided since."""
        self._renew(None)

    def state(self) -> Plain:
        """Return what the decoding of actions remembers."""
        return self._remembered if self._remembered is not None else self._act.state()

    def restore(self, values: Plain) -> None:
        """Take over what the decoding of actions remembered."""
        self._renew(values)


def _arguments(model: Model) -> tuple[str, ...]:
    """Return which of the optional arguments the method of a model takes."""
    known = signature(model.predict).parameters
    every = any(each.kind is Parameter.VAR_KEYWORD for each in known.values())
    return tuple(name for name in ("deterministic", "action_masks") if every or name in known)


def agent_policy(predict: Predict, env: gymnasium.Env[Observation, Action], name: str = "agent") -> AgentPolicy:
    """Return the policy of an agent, for any function or class that takes a policy.

    Parameters
    ----------
    predict
        a function of an observation and a mask (``None``: none) that returns an action; or a model with a method
        ``predict(observation)``, as those of Stable-Baselines3 and sb3-contrib: it gets ``action_masks=mask`` and
        ``deterministic=True`` if it takes them. A model draws nothing, so that the same seed gives the same run. One
        that takes no masks may choose an action that is not allowed: then the first allowed one is taken, which the
        report of the result counts
    env
        the environment that it has learned in, or one with the same arrays and actions
    name
        of the policy in results

    Raises
    ------
    InputError
        the agent has learned with another window or other features, as its spaces or a first question show

    >>> from simmodel import simulate
    >>> from simmodel.learn import batch_env
    >>> def shortest(observation, mask):
    ...     return int(np.where(mask, observation["jobs"][:, 2], 2.0).argmin())
    >>> simulate(12, "probe-4", agent_policy(shortest, batch_env(window=8), "shortest")).jobs["start"]
    array([   0.,  900., 1000., 1100.])
    """
    inner = getattr(env, "unwrapped", env)
    if not isinstance(inner, SchedulingEnv):
        raise InputError(f"must be a SchedulingEnv, got {inner!r}", place="env")
    if isinstance(predict, _SpacedModel):
        for what, own, other in (
            ("observations", inner.observation_space, predict.observation_space),
            ("actions", inner.act.space, predict.action_space),
        ):
            if own != other:
                raise InputError(f"must be made for {what} in {own}, got one for {other}", place="agent")
    made = AgentPolicy(predict, inner.observe, inner.act, name)
    space, drawn = inner.act.space, inner.observation_space.sample()
    zeros = (
        {key: np.zeros_like(each) for key, each in drawn.items()}
        if isinstance(drawn, Mapping)
        else np.zeros_like(drawn)
    )
    mask = np.ones(int(space.n), dtype=np.bool_) if isinstance(space, Choice) else None
    try:
        action = made.action(zeros, mask)
    except Exception as error:  # whatever the agent raises at arrays of other shapes
        reason = f"{type(error).__name__}: {clipped(error, 200)}"
        raise InputError(f"must take observations in {inner.observation_space}, got {reason}", place="agent") from error
    if not space.contains(action):
        raise InputError(f"must return actions in {space}, got {action!r}", place="agent")
    return made
