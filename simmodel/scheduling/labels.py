"""Unique labels for policies and other items of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from simmodel.errors import InputError
from simmodel.scheduling.registry import label as policy_label

__all__ = ["labelled"]


def labelled(
    given: Mapping[str, Any] | Iterable[Any],
    kind: str,
    several: str,
    *,
    purpose: str = "",
    check: Callable[[Any], object] | None = None,
    label: Callable[[Any], str] = policy_label,
) -> dict[str, Any]:
    """Return the items by label, in order.

    Parameters
    ----------
    given
        a mapping of labels to items, or the items alone, labelled by ``label``
    kind, several
        the singular and the plural of an item, for messages
    purpose
        the purpose of the items, for messages
    check
        called with each item; raises if it is invalid
    label
        returns the label of an item; default: the name of a policy

    Raises
    ------
    InputError
        a duplicate label, no items, or a text instead of a list

    >>> labelled(["fcfs", "easy"], "policy", "policies")
    {'fcfs': 'fcfs', 'easy': 'easy'}
    """
    if isinstance(given, str):
        raise InputError(f"must be a list of {several}, got {given!r}", place=several)
    pairs = given.items() if isinstance(given, Mapping) else [(label(each), each) for each in given]
    found: dict[str, Any] = {}
    for name, each in pairs:
        if check is not None:
            check(each)
        if name in found:
            raise InputError(f"duplicate {kind} {name!r}; for different labels pass {{label: {kind}}}")
        found[str(name)] = each
    if not found:
        raise InputError(f"must have at least one {kind}{purpose}", place=several)
    return found
