"""Strict conversion of plain values to typed ones: no rounding, no guessing, one error for the first invalid value.

Every hook raises an ``InputError`` whose place is relative to its own value; the hook above adds its prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin

import attrs
from cattrs import AttributeValidationNote, ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from simmodel.foundation.errors import InputError, Plain, of_class, shown, unknown

__all__ = ["inside", "made_from", "strict_converter"]


Prepare = Callable[[str, Plain], Plain]


def strict_converter(prepare: Prepare | None = None, omit: Sequence[str] = ()) -> Converter:
    """Return a converter for attrs classes of numbers, texts, tuples, mappings and other such classes.

    Parameters
    ----------
    prepare
        ``prepare(key, value)`` returns the value of a key before it is converted; default: unchanged
    omit
        names of fields that plain values never have

    >>> strict_converter().structure(["n1", 4], tuple[str, int])
    ('n1', 4)
    >>> strict_converter().structure("7", int)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: must be a whole number, got '7'
    """
    converter = Converter(detailed_validation=True)
    for kind, check in ((str, _text), (bool, _truth), (int, _whole), (float, _number)):
        converter.register_structure_hook(kind, check)
    converter.register_structure_hook_func(lambda cls: cls == int | str, _label)
    converter.register_structure_hook_func(lambda cls: cls == int | str | None, _label_or_none)
    converter.register_structure_hook_func(made_from(Literal), _text)
    converter.register_structure_hook_func(made_from(Mapping), _keys)
    converter.register_structure_hook_factory(made_from(tuple), lambda cls: _list_of(cls, converter))
    converter.register_structure_hook_factory(attrs.has, lambda cls: _object_of(cls, converter, prepare, omit))
    return converter


def made_from(origin: object) -> Callable[[Any], bool]:
    """Return a test for types with this origin: that of ``tuple[int, ...]`` is ``tuple``."""
    return lambda cls: get_origin(cls) is origin


def inside(outer: str, error: InputError) -> InputError:
    """Return an error whose place is prefixed with the path of the enclosing value."""
    inner = error.place or ""
    return InputError(error.message, place=outer + ("." if inner and not inner.startswith("[") else "") + inner)


def _object_of(
    cls: type[attrs.AttrsInstance], converter: Converter, prepare: Prepare | None, omit: Sequence[str]
) -> Callable[[Plain, type], Any]:
    fields = [field.name for field in attrs.fields(cls)]
    keys = [name for name in fields if name not in omit]
    left_out: Any = {name: override(omit=True) for name in fields if name in omit}
    structure = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, **left_out)

    def read(value: Plain, _type: type) -> Any:
        if not isinstance(value, Mapping):
            raise InputError(f"must be a mapping, got {shown(value)}")
        if prepare is not None:
            value = {key: prepare(key, each) for key, each in value.items()}
        try:
            return structure(value, cls)
        except ClassValidationError as error:
            raise _first_error(error, keys) from None

    return read


def _list_of(cls: type[tuple[object, ...]], converter: Converter) -> Callable[[Plain, type], tuple[Any, ...]]:
    """Return the reader of a tuple: of one type and any length (``tuple[int, ...]``), or of a type for each item."""
    elements = get_args(cls)
    any_length = elements[-1] is Ellipsis

    def read(value: Plain, _type: type) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise InputError(f"must be a list, got {shown(value)}")
        if not any_length and len(value) != len(elements):
            raise InputError(f"must be a list of {len(elements)}, got {shown(value)}")
        found = []
        for position, each in enumerate(value):
            try:
                found.append(converter.structure(each, elements[0] if any_length else elements[position]))
            except InputError as error:
                raise inside(f"[{position}]", error) from None
        return tuple(found)

    return read


def _first_error(error: ClassValidationError, keys: list[str]) -> Exception:
    """Return the error to report for an object; unknown keys come first, as they often explain the others."""
    found = sorted(error.exceptions, key=lambda each: not isinstance(each, ForbiddenExtraKeysError))[0]
    if isinstance(found, ForbiddenExtraKeysError):
        key = min(str(each) for each in found.extra_fields)
        return inside(key, InputError(unknown("key", key, keys).message))
    notes = [note for note in getattr(found, "__notes__", ()) if isinstance(note, AttributeValidationNote)]
    if notes and isinstance(found, KeyError):
        return inside(notes[0].name, InputError("missing key"))
    if notes and isinstance(found, InputError):
        return inside(notes[0].name, found)
    return InputError(str(found)) if isinstance(found, ValueError) and not isinstance(found, InputError) else found


def _keys(value: Plain, _type: type) -> dict[str, Plain]:
    if not isinstance(value, Mapping):
        raise InputError(f"must be a mapping, got {shown(value)}")
    return dict(value)


def _text(value: Plain, _type: type) -> str:
    return of_class(value, str, "a text")


def _truth(value: Plain, _type: type) -> bool:
    return of_class(value, bool, "true or false")


def _whole(value: Plain | Integral, _type: type) -> int:
    if type(value) is int and -(2**63) < value < 2**63:
        return value  # hot path
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"must be a whole number, got {shown(value)}")
    number = int(value)
    if abs(number) >= 2**63:
        raise InputError(f"must be a whole number of 64 bits, got {shown(number)}")
    return number


def _number(value: Plain | Real, _type: type) -> float:
    if type(value) is float and value == value:
        return value  # hot path
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"must be a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise InputError("must be a number that fits in 64 bits, got a larger one") from None
    if isnan(number):
        raise InputError(f"must be a number, got {shown(value)}")
    return number


def _label(value: Plain | Integral, _type: type) -> int | str:
    if type(value) is str:
        return value  # hot path
    if isinstance(value, bool) or not isinstance(value, (str, Integral)):
        raise InputError(f"must be a name or a number, got {shown(value)}")
    return value if isinstance(value, str) else _whole(value, _type)


def _label_or_none(value: Plain | Integral, _type: type) -> int | str | None:
    return None if value is None else _label(value, _type)
