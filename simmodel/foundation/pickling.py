"""Pickles of classes that may be compiled: attributes by name, which both forms write and read."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Attributes", "attributes", "set_attributes"]

Attributes: TypeAlias = dict[str, Any]
"""What an object holds, by name."""


def attributes(each: object) -> Attributes:
    """Return what an object holds, by name, also where its class or one of its bases is compiled."""
    found: Attributes = dict(getattr(each, "__dict__", {}))
    for base in type(each).__mro__:
        declared = vars(base).get("__mypyc_attrs__", vars(base).get("__slots__", ()))
        found |= {name: getattr(each, name) for name in declared if name[:2] != "__" and hasattr(each, name)}
    return found


def set_attributes(each: object, values: Attributes) -> None:
    """Give an object the attributes that :func:`attributes` returned of another."""
    for name, value in values.items():
        setattr(each, name, value)
