"""Labels of policies and whatever else is compared: no two alike."""

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
    """Return what is given by its labels, in order.

    Parameters
    ----------
    given
        labels and what they stand for, or only that: it is called by its name
    kind, several
        what messages call one, and several
    purpose
        what messages say it is for
    check
        called with each; raises where it is wrong
    label
        returns what one without a label is called; default: what tables call a policy

    Raises
    ------
    InputError
        where two have one label, there is none, or a text stands for a list

    >>> labelled(["fcfs", "easy"], "policy", "policies")
    {'fcfs': 'fcfs', 'easy': 'easy'}
    """
    if isinstance(given, str):
        raise InputError(f"a list of {several} expected, found {given!r}")
    pairs = given.items() if isinstance(given, Mapping) else [(label(each), each) for each in given]
    found: dict[str, Any] = {}
    for name, each in pairs:
        if check is not None:
            check(each)
        if name in found:
            raise InputError(f"two {several} are called {name!r}: give labels that differ, as {{label: {kind}}}")
        found[str(name)] = each
    if not found:
        raise InputError(f"at least one {kind}{purpose} expected, found none")
    return found
