"""How power reaches the nodes: conversions with losses, what draws power besides the nodes, and the cooling (PUE)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.units import in_watts
from simmodel.platform.signals import Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Conversion", "PowerSupply"]

Pue: TypeAlias = float | Callable[..., Any]
"""A PUE, or a function that returns it."""
Efficiency: TypeAlias = float | tuple[tuple[float, float], ...]
"""A share, or pairs of watts and the share there."""


def _watts(_instance: Conversion | PowerSupply, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise InputError(f"must be watts >= 0, got {shown(value)}", place=attribute.name)


@attrs.frozen(kw_only=True, repr=False)
class Conversion(Fields):
    """A stage between the mains and the nodes, such as a rectifier: it takes more power than it gives.

    It takes ``(watts + loss) / efficiency`` to give so many watts, and nothing to give none.

    Parameters
    ----------
    efficiency
        a share from above 0 to 1, or pairs of watts given and the efficiency there, between which it is linear
    loss
        the watts that it takes for itself
    nodes
        how many nodes of adjacent numbers share one

    Raises
    ------
    InputError
        an efficiency is no such share, or the watts of the pairs do not increase

    >>> sivoc = Conversion(loss=13, efficiency=0.98)
    >>> sivoc.taken([626.26, 2704.26]).round(2)
    array([ 652.31, 2772.71])
    >>> Conversion(efficiency=[(0, 0.5), (100, 1)]).taken([50, 200])
    array([ 66.66666667, 200.        ])
    """

    efficiency: Efficiency = attrs.field(default=1.0)
    loss: float = attrs.field(default=0.0, converter=in_watts, validator=_watts)
    nodes: int = 1

    def __attrs_post_init__(self) -> None:
        given: Any = self.efficiency
        pairs = given if isinstance(given, list | tuple) else [(0.0, given)]
        try:
            found = tuple((float(at), float(share)) for at, share in pairs)
        except (TypeError, ValueError):
            found = ()
        if not found or not all(0 < share <= 1 for _, share in found):
            raise InputError(f"must be above 0 and at most 1, got {shown(given)}", place="efficiency")
        if not all(low < high for (low, _), (high, _) in pairwise(found)):
            raise InputError(f"must have increasing watts, got {shown(given)}", place="efficiency")
        if type(self.nodes) is not int or self.nodes < 1:
            raise InputError(f"must be a whole number >= 1, got {shown(self.nodes)}", place="nodes")
        object.__setattr__(self, "efficiency", found if pairs is given else found[0][1])

    def taken(self, watts: ArrayLike) -> NDArray[np.float64]:
        """Return the watts that it takes to give so many."""
        import numpy as np

        given = np.asarray(watts, dtype=np.float64)
        share: Any = self.efficiency
        if isinstance(share, tuple):
            share = np.interp(given, [at for at, _ in share], [each for _, each in share])
        return np.where(given > 0, (given + self.loss) / share, 0.0)


def _conversions(given: Iterable[Conversion]) -> tuple[Conversion, ...]:
    found = tuple(given) if isinstance(given, list | tuple) else ()
    if (found != given and list(found) != given) or not all(isinstance(each, Conversion) for each in found):
        raise InputError(f"must be a list of Conversion, got {shown(given)}", place="conversions")
    return found


def _pue(_instance: PowerSupply, _attribute: attrs.Attribute[float], value: Pue) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < inf
    if not (number or callable(value)):
        raise InputError(f"must be a number >= 1 or a function, got {shown(value)}", place="pue")


def _signal(_instance: PowerSupply, attribute: attrs.Attribute[Any], value: object) -> None:
    if not (value is None or isinstance(value, Signal)):
        raise InputError(f"must be a signal, got {shown(value)}", place=attribute.name)


@attrs.frozen(kw_only=True, repr=False)
class PowerSupply(Fields):
    """What a machine draws from the mains besides the watts of its nodes.

    Parameters
    ----------
    conversions
        the stages from the nodes to the mains, in this order; only where nodes are identified
    fixed
        W that are always drawn besides, as by switches and pumps
    pue
        power usage effectiveness: what the site draws as a multiple of what nodes, conversions and ``fixed`` draw
        together. A number, or a function of these watts (an array), and with ``temperature`` of that, too
    temperature
        a :class:`~simmodel.platform.signals.Signal` such as the temperature outdoors

    Raises
    ------
    InputError
        a part is no conversion, watts are negative, or a PUE is below 1

    >>> PowerSupply(conversions=[Conversion(loss=17, efficiency=0.96, nodes=4)], fixed="804kW", pue=1.05).fixed
    804000.0
    """

    conversions: tuple[Conversion, ...] = attrs.field(default=(), converter=_conversions)
    fixed: float = attrs.field(default=0.0, converter=in_watts, validator=_watts)
    pue: Pue = attrs.field(default=1.0, validator=_pue)
    temperature: Signal | None = attrs.field(default=None, validator=_signal)
