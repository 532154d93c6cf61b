"""The classes of custom resources, which the ``model`` of a spec names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from simmodel.entries import load
from simmodel.errors import InputError, unknown

__all__ = ["model_named"]

Model = TypeVar("Model")


def model_named(
    given: str | type[Model], base: type[Model], place: str, built_in: Mapping[str, type[Model]] | None = None
) -> type[Model]:
    """Return the class of a name: a built-in one, an entry point of ``simmodel.resources``, or ``module:Class``.

    Parameters
    ----------
    given
        the name, or the class itself
    base
        the class from which it must derive
    place
        where it is named, for errors
    built_in
        classes with names of their own

    Raises
    ------
    InputError
        an unknown name, or something else than a subclass of ``base``
    """
    found: object
    if not isinstance(given, str):
        found = given
    elif built_in is not None and given in built_in:
        return built_in[given]
    elif given.partition(":")[2]:
        try:
            found = load(given)
        except (ImportError, AttributeError) as error:
            raise InputError(f"must be a class as module:Class, got {given!r}: {error}", place=place) from None
    else:
        from importlib.metadata import entry_points

        there = {point.name: point for point in entry_points(group="simmodel.resources")}
        if given not in there:
            raise InputError(unknown("model", given, [*(built_in or {}), *there]).message, place=place)
        found = there[given].load()
    if not (isinstance(found, type) and issubclass(found, base)):
        raise InputError(f"must be a subclass of {base.__name__}, got {found!r}", place=place)
    return found
