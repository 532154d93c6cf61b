"""Environments for learning agents: the decisions of a simulation as the steps of an episode.

Two functions make an environment of a system: one codes a view as arrays, one decodes an action into decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, Stalled, clipped
from simmodel.learn.rewards import Reward
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.objectives import ObjectiveLike
from simmodel.scheduling.protocol import parameters_of
from simmodel.systems.kinds import kind_of_snapshot

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from simmodel.foundation.errors import Plain
    from simmodel.scheduling.protocol import Decides, Decision, View

__all__ = ["Act", "Action", "Choice", "Columns", "Mask", "Observation", "Observe", "SchedulingEnv"]

Observation: TypeAlias = "NDArray[np.generic] | Mapping[str, NDArray[np.generic]]"
Action: TypeAlias = "int | np.integer | NDArray[np.generic]"
Mask: TypeAlias = "NDArray[np.bool_]"
Shown = TypeVar("Shown", bound="Observe")


class Columns(spaces.Box):
    """A box of numbers up to 1 whose last axis has names: those of other features are another space.

    >>> Columns(["free", "waiting"], low=[0, -1]) == Columns(["free", "running"], low=[0, -1])
    False
    """

    def __init__(self, names: Sequence[str], rows: int | None = None, low: Sequence[float] | float = 0.0) -> None:
        shape = (len(names),) if rows is None else (rows, len(names))
        super().__init__(
            np.broadcast_to(np.asarray(low, np.float32), shape), np.ones(shape, dtype=np.float32), dtype=np.float32
        )
        self.names = tuple(names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self.names == other.names and super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Columns({' x '.join(map(str, self.shape))}: {clipped(', '.join(self.names), 60)})"


class Choice(spaces.Discrete):
    """The numbers of actions; ``sample()`` draws among those that are ``allowed`` now (``None``: all)."""

    allowed: Mask | None = None

    def contains(self, x: Any) -> bool:
        return 0 <= x < int(self.n) if type(x) is int else not isinstance(x, bool) and super().contains(x)

    def sample(self, mask: NDArray[np.int8] | None = None, probability: NDArray[np.int8] | None = None) -> np.int64:
        if mask is None and probability is None and self.allowed is not None:
            mask = self.allowed.astype(np.int8)
        return super().sample(mask, probability)


class Observe:
    """Codes a view as arrays, which an agent sees.

    Subclasses implement ``space`` and ``__call__``, and keep the parameters of ``__init__`` as attributes of the same
    names.

    Parameters
    ----------
    function
        returns the arrays of a view
    arrays
        their space
    """

    def __init__(self, function: Callable[[View], Observation], arrays: spaces.Space[Observation]) -> None:
        self.function, self.arrays = function, arrays

    def space(self) -> spaces.Space[Any]:
        """Return the space of the arrays, which depends on the parameters alone."""
        return self.arrays

    def __call__(self, view: View) -> Observation:
        return self.function(view)

    def fresh(self) -> Self:
        """Return one with the same parameters, for another system."""
        return type(self)(**parameters_of(self))


class Act(Generic[Shown]):
    """Decodes actions into decisions, by a function that is asked once at each decision of the scheduler.

    Subclasses set ``space``, implement ``__call__`` and ``asks``, and keep the parameters of ``__init__`` as attributes
    of the same names.

    Parameters
    ----------
    shown
        what the agent sees, to which its actions refer
    function
        returns or yields the decisions of a view and an action
    space
        of the actions
    masked
        returns which actions are allowed for a view

    Attributes
    ----------
    decides
        its kind of decision: see :class:`~simmodel.scheduling.protocol.Policy`
    """

    decides: Decides = "anything"
    masked: Callable[[View], Mask] | None = None

    def __init__(
        self,
        shown: Shown,
        function: Callable[[View, Action], Iterable[Decision]],
        space: spaces.Space[Any],
        masked: Callable[[View], Mask] | None = None,
    ) -> None:
        self.shown, self.function, self.space, self.masked = shown, function, space, masked
        self._asked = False

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Return or yield the decisions of an action; each is applied before the next one is taken."""
        self._asked = True
        return self.function(view, action)

    def resume(self, view: View) -> Iterable[Decision]:
        """Return the decisions that follow from earlier actions, when the scheduler asks again."""
        self._asked = False
        return ()

    def asks(self, view: View) -> bool:
        """Whether the agent is asked now, also after its earlier actions at the same decision."""
        return not self._asked

    def mask(self, view: View) -> Mask | None:
        """Return which actions are allowed; ``None``: all of the space.

        Raises
        ------
        InputError
            that of the function is none of the actions, or allows none
        """
        if self.masked is None:
            return None
        found = np.asarray(self.masked(view))
        shape = (int(self.space.n),) if isinstance(self.space, spaces.Discrete) else found.shape
        if found.dtype != np.bool_ or found.shape != shape or not found.any():
            wanted = f"booleans of shape {shape}, one of them true"
            raise InputError(f"must return {wanted}, got {clipped(found.tolist(), 80)}", place="mask")
        return found

    def state(self) -> Plain:
        """Return what it remembers between decisions, as JSON values."""
        return None

    def restore(self, values: Plain, view: View) -> None:
        """Take over what another one remembered, at the same decision of a copy of its system."""

    def fresh(self, shown: Observe) -> Self:
        """Return one with the same parameters, for another system, which refers to ``shown``."""
        return type(self)(**{**parameters_of(self), "shown": shown})

    def check(self, action: Action, mask: Mask | None) -> None:
        """Raise ``InputError`` if an action is not in the space, or masked."""
        if not self.space.contains(action):
            raise InputError(f"must be in {self.space}, got {action!r}", place="action")
        if mask is not None and not mask[action]:
            allowed = np.flatnonzero(mask)
            several = ", ".join(map(str, allowed[:8])) + (" ..." if len(allowed) > 8 else "")
            raise InputError(f"must be one that the mask allows ({several}), got {action}", place="action")


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
        codes a view as arrays: an :class:`Observe`, or a function of a view
    act
        decodes an action into decisions: an :class:`Act`, or a function of a view and an action,
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
    >>> import numpy as np
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
        for place, given in (("system", system), ("observe", observe), ("act", act)):
            if not callable(given):
                raise InputError(f"must be a function, got {given!r}", place=place)
        if not isinstance(observe, Observe):
            if observation_space is None:
                raise InputError("missing for a function that observes", place="observation_space")
            observe = Observe(observe, observation_space)
        if not isinstance(act, Act):
            if action_space is None:
                raise InputError("missing for a function that acts", place="action_space")
            act = Act(observe, act, action_space, mask)
        self.system = system
        self.observe, self.act = observe, act
        self.reward = reward if isinstance(reward, Reward) else Reward(reward)
        self.observation_space, self.action_space = observe.space(), act.space
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
        simulation = self._begin(self.system(self.np_random))
        if not isinstance(simulation, Simulation):
            raise InputError(f"must return a Simulation, got {simulation!r}", place="system")
        self.reward.begin(simulation)
        reason = self._go_on(simulation)
        if reason:
            raise InputError(f"has no decision for the agent: {reason}", place="episode")
        return self._last, self._info(0.0)

    def _begin(self, simulation: Simulation) -> Simulation:
        self.simulation, self.view = simulation, None
        self.observe = self.observe.fresh()
        self.act = self.act.fresh(self.observe)
        return simulation

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
        reason = self._go_on(simulation)
        info = self._info(float(simulation.env.now - before))
        if not reason:
            return self._last, self.reward.step(), False, False, info
        reward, info["objective"] = self.reward.last(simulation, stalled=reason not in ("done", "limit"))
        info["reason"] = reason
        return self._last, reward, reason != "limit", reason == "limit", info

    def _go_on(self, simulation: Simulation) -> str:
        """Run to the next decision for the agent, and observe; return why there is none, else an empty text."""
        view = self.view
        if view is None or not self.act.asks(view):
            try:
                self.view = view = simulation.next_decision(self.act)
            except Stalled as error:
                self.view = None
                return f"stalled: {error}"
            if view is None:
                return "limit" if simulation.system.unfinished else "done"
        self._last = self.observe(view)
        return ""

    def _info(self, seconds: float) -> dict[str, Any]:
        self._mask = mask = None if self.view is None else self.act.mask(self.view)
        if isinstance(self.action_space, Choice):
            self.action_space.allowed = mask
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
        system = kind_of_snapshot(snapshot).restore(Environment(snapshot.now, snapshot.seed), snapshot)
        copy = SchedulingEnv(self.system, self.observe, self.act, self.reward)
        simulation = copy._begin(Simulation(system, until=self.simulation.until))
        copy.np_random = deepcopy(self.np_random)
        copy.view = simulation.next_decision()
        assert copy.view is not None
        copy.act.restore(self.act.state(), copy.view)
        copy.reward = self.reward.fork(self.simulation, simulation)
        copy._last = self._last
        copy._info(0.0)
        return copy
