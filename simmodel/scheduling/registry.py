"""Policies and resource models by name: the package's own, and those that other packages offer as entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from simmodel.errors import InputError, unknown

__all__ = ["policies", "policy", "register_policy", "unknown"]

_POLICIES: dict[str, tuple[Callable[[], Any], str]] = {}


def register_policy(name: str, factory: Callable[[], Any], description: str) -> None:
    """Make a policy known by a name; ``factory()`` gives a new one for each run."""
    _POLICIES[name] = (factory, description)


def _known() -> dict[str, tuple[Callable[[], Any], str]]:
    import simmodel.policies  # registers the package's own

    assert simmodel.policies
    known = dict(_POLICIES)
    for entry in entry_points(group="simmodel.policies"):
        known.setdefault(entry.name, (lambda entry=entry: entry.load()(), f"from {entry.value}"))  # type: ignore[misc]
    return known


def policies() -> dict[str, str]:
    """Return the names of all policies with a line about each."""
    return {name: description for name, (_, description) in _known().items()}


def policy(name: Any) -> Any:
    """Return a new policy of this name; one given as an object or a function comes back as it is.

    Besides the names that ``policies()`` lists there is any ``ORDER+BACKFILL``, such as ``sjf+easy``; and
    ``module:name`` of a policy of one's own.

    Raises
    ------
    InputError
        where the name is not known

    >>> policy("sjf+easy").name
    'sjf+easy'
    """
    if not isinstance(name, str):
        return name() if isinstance(name, type) else name
    known = _known()
    if name in known:
        return known[name][0]()
    if ":" in name:
        return _load(name)
    if "+" in name:
        from simmodel.policies.backfilling import combined

        return combined(name)
    raise unknown("policy", name, known)


def _load(name: str) -> Any:
    from importlib import import_module

    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"policy {name!r}: {error}") from None
    return found() if isinstance(found, type) else found
