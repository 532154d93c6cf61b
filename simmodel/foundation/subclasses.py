"""Checks of subclasses when they are defined."""

from __future__ import annotations

from simmodel.foundation.errors import InputError

__all__ = ["refuse_properties"]


def refuse_properties(each: type, module: str) -> None:
    """Check that a subclass of classes of a module that can be compiled has no property instead of an attribute.

    Compiled code reads attributes where they stand, so that the property would be passed over.

    Raises
    ------
    InputError
        it has one
    """
    own = vars(each)
    for base in each.__mro__[1:]:
        if base.__module__ != module:
            continue
        declared = vars(base).get("__mypyc_attrs__", vars(base).get("__slots__", ()))
        for name in declared:
            if isinstance(own.get(name), property):
                raise InputError(
                    f"{name} is an attribute of {base.__name__}: a subclass cannot override it by a property",
                    place=f"class {each.__name__}",
                )
