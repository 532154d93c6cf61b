"""The two functions of an environment: one codes a view as arrays, one decodes an action into decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
from gymnasium import spaces

from simmodel.foundation.errors import InputError, clipped
from simmodel.scheduling.protocol import parameters_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.foundation.errors import Plain
    from simmodel.scheduling.protocol import Decides, Decision, View

__all__ = ["Act", "Action", "Choice", "Columns", "FunctionAct", "FunctionObserve", "Mask", "Observation", "Observe"]

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


class Choice(spaces.Discrete):
    """The numbers of actions; ``sample()`` draws among those that are ``allowed`` now (``None``: all)."""

    allowed: Mask | None = None

    def contains(self, x: Any) -> bool:
        """Whether it is the number of an action."""
        return 0 <= x < int(self.n) if type(x) is int else super().contains(x)

    def sample(self, mask: NDArray[np.int8] | None = None, probability: NDArray[np.int8] | None = None) -> np.int64:
        """Return the number of an action."""
        if mask is None and probability is None and self.allowed is not None:
            mask = self.allowed.astype(np.int8)
        return super().sample(mask, probability)


class Observe:
    """Codes a view as arrays, which an agent sees; subclasses implement ``space`` and ``__call__``.

    The parameters of ``__init__`` must be kept as attributes of the same names.
    """

    def space(self) -> spaces.Space[Any]:
        """Return the space of the arrays, which depends on the parameters alone."""
        raise NotImplementedError

    def __call__(self, view: View) -> Observation:
        """Return the observation, in arrays of its own."""
        raise NotImplementedError

    def fresh(self) -> Self:
        """Return one with the same parameters, for another system."""
        return type(self)(**parameters_of(self))


class Act(Generic[Shown]):
    """Decodes actions into decisions; subclasses set ``space``, and implement ``__call__`` and ``asks``.

    Parameters
    ----------
    shown
        what the agent sees, to which its actions refer

    Attributes
    ----------
    space
        of the actions
    decides
        its kind of decision: see :class:`~simmodel.scheduling.protocol.Policy`
    """

    space: spaces.Space[Any]
    decides: Decides = "anything"

    def __init__(self, shown: Shown) -> None:
        self.shown = shown

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Return or yield the decisions of an action; each is applied before the next one is taken."""
        raise NotImplementedError

    def resume(self, view: View) -> Iterable[Decision]:
        """Return the decisions that follow from earlier actions, when the scheduler asks again."""
        return ()

    def asks(self, view: View) -> bool:
        """Whether the agent is asked now, also after its earlier actions at the same decision."""
        raise NotImplementedError

    def mask(self, view: View) -> Mask | None:
        """Return which actions are allowed; ``None``: all of the space."""
        return None

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


class FunctionObserve(Observe):
    """Codes a view by a function."""

    def __init__(self, function: Callable[[View], Observation], arrays: spaces.Space[Observation]) -> None:
        self.function, self.arrays = function, arrays

    def space(self) -> spaces.Space[Observation]:
        """Return the space of the function."""
        return self.arrays

    def __call__(self, view: View) -> Observation:
        """Return the function's arrays."""
        return self.function(view)


class FunctionAct(Act[Observe]):
    """Decodes an action by a function, once whenever the scheduler asks."""

    def __init__(
        self,
        shown: Observe,
        function: Callable[[View, Action], Iterable[Decision]],
        space: spaces.Space[Action],
        masked: Callable[[View], Mask] | None = None,
    ) -> None:
        super().__init__(shown)
        self.function, self.space, self.masked = function, space, masked
        self._asked = False

    def resume(self, view: View) -> Iterable[Decision]:
        """Note that the agent has not been asked."""
        self._asked = False
        return ()

    def asks(self, view: View) -> bool:
        """Whether the agent has not been asked."""
        return not self._asked

    def __call__(self, view: View, action: Action) -> Iterable[Decision]:
        """Return the function's decisions."""
        self._asked = True
        return self.function(view, action)

    def mask(self, view: View) -> Mask | None:
        """Return the function's mask; raises ``InputError`` if it is none of the actions, or allows none."""
        if self.masked is None:
            return None
        found = np.asarray(self.masked(view))
        shape = (int(self.space.n),) if isinstance(self.space, spaces.Discrete) else found.shape
        if found.dtype != np.bool_ or found.shape != shape or not found.any():
            wanted = f"booleans of shape {shape}, one of them true"
            raise InputError(f"must return {wanted}, got {clipped(found.tolist(), 80)}", place="mask")
        return found
