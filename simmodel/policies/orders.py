"""Orders of the queue by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import unknown
from simmodel.foundation.named_calls import call_with, split_call
from simmodel.policies.ordering import BUILT_IN, Order

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob

__all__ = ["ORDERS", "GivenOrder", "order"]


def _itself(value: Order) -> Callable[[], Order]:
    return lambda: value


GivenOrder: TypeAlias = "str | Order | Callable[[LiveJob], Any]"
"""An order, its name, or a key function."""
ORDERS = Entries[Callable[[], Any]](
    {
        **{value.name: _itself(value) for value in BUILT_IN},
        "multifactor": "simmodel.policies.multifactor:Multifactor",
    }
)
"""Functions that return the orders, by name."""


def order(name: GivenOrder) -> Any:
    """Return the order with this name, the order itself if one is given, or an order with this key function.

    Raises
    ------
    InputError
        the name or a parameter of it is unknown

    >>> order("sjf").description, order("multifactor(age=5)").age
    ('shortest requested time first', 5)
    """
    if not isinstance(name, str):
        return name if hasattr(name, "changes") else Order(getattr(name, "__name__", "order"), key=name)
    place = f"order {name!r}"
    kind, values, options = split_call(name, place)
    if kind not in ORDERS:
        raise unknown("order", kind, ORDERS)
    return call_with(ORDERS[kind], values, options, place)
