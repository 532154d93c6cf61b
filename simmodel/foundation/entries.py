"""Classes by name, each imported when it is first asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.packages import offered

__all__ = [
    "Entries",
    "call_with",
    "load",
    "read_parameters",
    "split_call",
    "split_names",
    "value_of",
]

Loaded = TypeVar("Loaded")


def load(entry: Loaded | str) -> Loaded:
    """Return the object of a ``"module:name"``, or a value that is not text unchanged.

    >>> load("simmodel.work.job:Job").__name__
    'Job'
    """
    if not isinstance(entry, str):
        return entry
    module, _, name = entry.partition(":")
    found: Loaded = getattr(import_module(module), name)
    return found


class Entries(MutableMapping[str, Loaded]):
    """Objects by name; those given as ``"module:name"`` are imported when they are first asked for.

    ``group``: the group of entry points whose names other packages add; looked up once, for the first unknown name.

    >>> specs = Entries[type]({"cluster": "simmodel.platform.cluster:ClusterSpec"})
    >>> specs["number"] = int
    >>> sorted(specs), specs["cluster"].__name__, specs.name_of(int), specs.name_of(str)
    (['cluster', 'number'], 'ClusterSpec', 'number', None)
    """

    def __init__(self, entries: Mapping[str, Loaded | str], group: str | None = None) -> None:
        self._entries = dict(entries)
        self._group = group

    def _look_up(self) -> None:
        """Add the names of entry points, which takes milliseconds."""
        group, self._group = self._group, None
        for name, entry in offered(group).items() if group is not None else ():
            self._entries.setdefault(name, entry)

    def known(self) -> dict[str, Loaded]:
        """Return those that are known so far: names of other packages only once they have been looked up."""
        return {name: self[name] for name in list(self._entries)}

    def __getitem__(self, name: str) -> Loaded:
        if name not in self:
            raise KeyError(name)
        found = self._entries[name] = load(self._entries[name])
        return found

    def __setitem__(self, name: str, entry: Loaded | str) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._look_up()
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            self._look_up()
        return name in self._entries

    def __len__(self) -> int:
        self._look_up()
        return len(self._entries)

    def name_of(self, cls: type[Any]) -> str | None:
        """Return the name of a class, ``None`` if it has none; nothing is imported."""
        path = f"{cls.__module__}:{cls.__qualname__}"
        return next((name for name, entry in self._entries.items() if entry is cls or entry == path), None)


Made = TypeVar("Made")


def split_names(text: str) -> list[str]:
    """Split a text of names at its commas, except those in parentheses.

    >>> split_names("easy, portfolio(sjf+easy, wfp+easy)")
    ['easy', 'portfolio(sjf+easy, wfp+easy)']
    """
    parts, depth = [""], 0
    for each in text:
        depth += (each == "(") - (each == ")")
        if each == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += each
    return [part.strip() for part in parts if part.strip()]


def split_call(text: str, place: str) -> tuple[str, list[str], dict[str, str]]:
    """Return the name, the positional and the named parameters of a text such as ``name(a, key=b)``.

    Raises
    ------
    InputError
        the closing parenthesis is missing; ``place`` is its place

    >>> split_call("share(0.6, ties=home)", "policy")
    ('share', ['0.6'], {'ties': 'home'})
    """
    name, bracket, given = text.strip().partition("(")
    if bracket and not given.endswith(")"):
        raise InputError("missing ')' at the end", place=place)
    values, options = read_parameters(given[:-1]) if bracket else ([], {})
    return name.strip(), values, options


def read_parameters(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the positional and the named values of ``a, b, key=c``."""
    values: list[str] = []
    options: dict[str, str] = {}
    for part in split_names(text):
        key, equals, value = part.partition("=")
        if equals and key.strip().isidentifier():
            options[key.strip()] = value.strip()
        else:
            values.append(part)
    return values, options


def value_of(text: str) -> Any:
    """Return the value of a parameter in a name: a number, a Boolean, or the text.

    >>> value_of("0.6"), value_of("4"), value_of("true"), value_of("home")
    (0.6, 4, True, 'home')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


def call_with(source: Callable[..., Made], values: Sequence[str], options: Mapping[str, str], place: str) -> Made:
    """Call a class or a function with the parameters of a name.

    Raises
    ------
    InputError
        a parameter is unknown, missing or given twice; ``place`` is its place

    >>> call_with(lambda low, high=9: high - low, ["2"], {"high": "5"}, "range")
    3
    """
    given, named = [value_of(each) for each in values], {key: value_of(each) for key, each in options.items()}
    signature = inspect.signature(source)
    known = [key for key, each in signature.parameters.items() if each.kind is not each.VAR_POSITIONAL]
    for key in named:
        if key not in known and not any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
            raise InputError(unknown("parameter", key, known).message, place=place)
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        raise InputError(str(error), place=place) from None
    return source(*given, **named)
