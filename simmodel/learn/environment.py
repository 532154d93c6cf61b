"""Environments for learning agents: the decisions of a simulation as the steps of an episode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium
import numpy as np

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, Stalled
from simmodel.learn.coding import Act, Action, Choice, FunctionAct, FunctionObserve, Mask, Observation, Observe
from simmodel.learn.rewards import Reward
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.objectives import ObjectiveLike
from simmodel.systems.kinds import kind_of_snapshot

if TYPE_CHECKING:
    from gymnasium import spaces
    from numpy.random import Generator

    from simmodel.scheduling.protocol import Decision, View

__all__ = ["SchedulingEnv"]

Observes: TypeAlias = Observe | Callable[["View"], Observation]
Acts: TypeAlias = "Act[Any] | Callable[[View, Action], Iterable[Decision]]"
Step: TypeAlias = tuple[Observation, float, bool, bool, dict[str, Any]]


class SchedulingEnv(gymnasium.Env[Observation, Action]):
    """A simulation whose decisions an agent makes: at each step it sees a view as arrays and answers with an action.

    Parameters
    ----------
    system
        returns the simulation of an episode, for the random stream of the environment: see
        :class:`~simmodel.learn.episodes.Episodes`
    observe
        codes a view as arrays: an :class:`~simmodel.learn.coding.Observe`, or a function of a view
    act
        decodes an action into decisions: an :class:`~simmodel.learn.coding.Act`, or a function of a view and an action,
        which is asked once at each decision of the scheduler
    reward
        a :class:`~simmodel.learn.rewards.Reward`, or its objective, which is to be low
    observation_space, action_space
        the spaces of functions
    mask
        for a function that acts: returns which actions are allowed for a view

    Attributes
    ----------
    simulation
        that of the present episode
    view
        the view of the decision that awaits an action; ``None`` after the end

    ``info`` has ``seconds``, how long the step lasted in the simulation, ``action_mask`` if there is one, and after the
    last step ``objective``, its value, and ``reason``: ``"done"``, ``"limit"`` or who is stalled.

    >>> from gymnasium import spaces
    >>> from simmodel import Start
    >>> from simmodel.learn import Episodes
    >>> def observe(view):
    ...     return np.array([view.places[0].free / view.places[0].capacity], dtype=np.float32)
    >>> def act(view, action):
    ...     jobs = sorted(view.waiting, key=lambda job: job.requested if action else job.submit)
    ...     for job in jobs:
    ...         if view.places[0].fits(job):
    ...             yield Start(job, view.places[0])
    >>> env = SchedulingEnv(
    ...     Episodes(12, "probe-4"), observe, act, "wait_mean",
    ...     observation_space=spaces.Box(0, 1, (1,)), action_space=spaces.Discrete(2))
    >>> _, info = env.reset(seed=1)
    >>> ended = False
    >>> while not ended:
    ...     observation, reward, ended, truncated, info = env.step(1)
    >>> reward, info["reason"]
    (-102.5, 'done')
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self,
        system: Callable[[Generator], Simulation],
        observe: Observes,
        act: Acts,
        reward: Reward | ObjectiveLike = "bounded_slowdown_mean",
        *,
        observation_space: spaces.Space[Observation] | None = None,
        action_space: spaces.Space[Action] | None = None,
        mask: Callable[[View], Mask] | None = None,
    ) -> None:
        if not isinstance(observe, Observe):
            if observation_space is None:
                raise InputError("missing for a function that observes", place="observation_space")
            observe = FunctionObserve(observe, observation_space)
        if not isinstance(act, Act):
            if action_space is None:
                raise InputError("missing for a function that acts", place="action_space")
            act = FunctionAct(observe, act, action_space, mask)
        self.system = system
        self.observe, self.act = observe, act
        self.reward = reward if isinstance(reward, Reward) else Reward(reward)
        self.observation_space, self.action_space = observe.space(), act.space
        self._choice = act.space if isinstance(act.space, Choice) else None
        self.simulation: Simulation | None = None
        self.view: View | None = None

    # ------------------------------------------------------------------ episodes

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; return the first observation and the info.

        Raises
        ------
        InputError
            in the episode no decision is to be made, or options are given: there are none
        """
        if options:
            raise InputError(f"must be empty, got {', '.join(map(repr, options))}", place="options")
        super().reset(seed=seed)
        self._begin(self.system(self.np_random))
        assert self.simulation is not None
        self.reward.begin(self.simulation)
        reason = self._go_on()
        if reason:
            raise InputError(f"has no decision for the agent: {reason}", place="episode")
        return self._seen(), self._info(0.0)

    def _begin(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.observe = self.observe.fresh()
        self.act = self.act.fresh(self.observe)
        self.view = None

    def step(self, action: Action) -> Step:
        """Carry out an action and run to the next decision for the agent.

        Raises
        ------
        InputError
            the action is not in the space, or masked, or no decision is open
        PolicyError
            a decision cannot be carried out
        """
        simulation, view, act = self.simulation, self.view, self.act
        if simulation is None or view is None:
            raise InputError("must be reset before the first step and after the end", place="environment")
        act.check(action, self._mask)
        before = simulation.env.now
        simulation.decide(act(view, action))
        reason = self._go_on()
        seconds = float(simulation.env.now - before)
        if not reason:
            return self._seen(), self.reward.step(), False, False, self._info(seconds)
        reward, value = self.reward.last(simulation)
        info = {**self._info(seconds), "objective": value, "reason": reason}
        limit = reason == "limit"
        return self._last, reward, not limit, limit, info

    def _go_on(self) -> str:
        """Run to the next decision for the agent; return why there is none, else an empty text."""
        simulation, act = self.simulation, self.act
        assert simulation is not None
        if self.view is not None and act.asks(self.view):
            return ""
        try:
            self.view = simulation.next_decision(act)
        except Stalled as error:
            self.view = None
            return f"stalled: {error}"
        if self.view is not None:
            return ""
        return "limit" if simulation.system.unfinished else "done"

    def _seen(self) -> Observation:
        assert self.view is not None
        self._last = self.observe(self.view)
        return self._last

    def _info(self, seconds: float) -> dict[str, Any]:
        self._mask = mask = None if self.view is None else self.act.mask(self.view)
        if self._choice is not None:
            self._choice.allowed = mask
        return {"seconds": seconds} if mask is None else {"seconds": seconds, "action_mask": mask.copy()}

    def action_masks(self) -> Mask | None:
        """Return which actions are allowed now; ``None``: all of the space, or the episode has ended."""
        mask = None if self.view is None else self.act.mask(self.view)
        return None if mask is None else mask.copy()

    def fork(self) -> SchedulingEnv:
        """Return a copy at the same decision, for tree search: both go on by themselves.

        Raises
        ------
        InputError
            no decision is open
        SnapshotError
            the state cannot be copied, such as that of a user's generator
        """
        if self.simulation is None or self.view is None:
            raise InputError("must await an action", place="environment")
        snapshot = self.simulation.snapshot()
        kind = kind_of_snapshot(snapshot)
        system = kind.restore(Environment(snapshot.now, snapshot.seed), snapshot)
        copy = SchedulingEnv(self.system, self.observe, self.act, self.reward)
        copy._begin(Simulation(system, until=self.simulation.until))
        copy.np_random = _copied(self.np_random)
        assert copy.simulation is not None
        copy.view = copy.simulation.next_decision()
        assert copy.view is not None
        copy.act.restore(self.act.state(), copy.view)
        copy.reward = self.reward.fork(self.simulation, copy.simulation)
        copy._last = self._last
        copy._info(0.0)
        return copy


def _copied(rng: Generator) -> Generator:
    """Return a random stream that continues as another one does."""
    bits = type(rng.bit_generator)()
    bits.state = rng.bit_generator.state
    return np.random.Generator(bits)
