"""Portfolios as a text describes them, for names of policies and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simmodel.errors import InputError
from simmodel.policies.ordering import ORDERS
from simmodel.policies.portfolio import Portfolio
from simmodel.scheduling.registry import split_names, unknown

__all__ = ["portfolio", "with_backfill"]

_NUMBERS = ("interval", "hysteresis", "horizon")


def portfolio(text: str = "", **options: Any) -> Portfolio:
    """Return the portfolio that a text describes: candidates, then options, with commas between them.

    Parameters
    ----------
    text
        such as ``"wfp, fcfs, sjf, backfill=easy, objective=0.5*wait_max+0.5*wait_mean, interval=60"``: names of
        policies in the order of ties, then any of ``backfill`` (added to each name that has none), ``objective``,
        ``ties`` (with ``>`` between them), ``interval``, ``hysteresis``, ``horizon``, ``estimates``
    options
        of :class:`Portfolio`, where the text does not give them

    Raises
    ------
    InputError
        where an option is not known or not possible

    >>> portfolio("fcfs, sjf, backfill=easy, objective=wait_mean, hysteresis=0.1")
    <Portfolio of fcfs, sjf by 1*wait_mean>
    """
    names: list[str] = []
    given: dict[str, Any] = dict(options)
    backfill = None
    for part in split_names(text):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or "(" in key:
            names.append(part)
        elif key in _NUMBERS:
            try:
                given[key] = float(value)
            except ValueError:
                raise InputError(f"portfolio: {key}: a number expected, found {value!r}") from None
        elif key in ("objective", "estimates"):
            given[key] = value
        elif key == "ties":
            given[key] = tuple(each.strip() for each in value.split(">"))
        elif key == "backfill":
            backfill = value
        else:
            raise unknown("option of the portfolio", key, (*_NUMBERS, "backfill", "objective", "ties", "estimates"))
    if not names:
        return Portfolio(**given)
    return Portfolio({name: with_backfill(name, backfill) for name in _once(names)}, **given)


def _once(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"each policy once expected, found {name} {names.count(name)} times")
    return names


def with_backfill(name: str, backfill: str | None) -> str:
    """Return the name of an order with a backfilling added, where it has none and is no other policy.

    >>> with_backfill("sjf", "easy"), with_backfill("conservative", "easy"), with_backfill("sjf", None)
    ('sjf+easy', 'conservative', 'sjf')
    """
    return f"{name}+{backfill}" if backfill not in (None, "none") and name in ORDERS else name
