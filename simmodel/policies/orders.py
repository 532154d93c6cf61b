"""Orders of the queue by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from simmodel.entries import Entries
from simmodel.errors import unknown
from simmodel.policies.ordering import BUILT_IN, Order

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob

__all__ = ["ORDERS", "GivenOrder", "order"]


def _itself(value: Order) -> Order:
    return value


GivenOrder: TypeAlias = "str | Order | Callable[[LiveJob], Any]"
"""An order, its name, or a key function."""
ORDERS = Entries[Callable[[], Any]](
    {
        **{value.name: partial(_itself, value) for value in BUILT_IN},
        "multifactor": "simmodel.policies.multifactor:Multifactor",
    }
)
"""Functions that return the orders, by name."""


def order(name: GivenOrder) -> Any:
    """Return the order with this name, the order itself if one is given, or an order with this key function.

    Raises
    ------
    InputError
        the name is unknown

    >>> order("sjf").description
    'shortest requested time first'
    """
    if not isinstance(name, str):
        return name if hasattr(name, "changes") else Order(getattr(name, "__name__", "order"), key=name)
    if name not in ORDERS:
        raise unknown("order", name, ORDERS)
    return ORDERS[name]()
