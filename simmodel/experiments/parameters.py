"""Parameters of a model, with the range of each, and the space that they span: for calibration, sensitivity, search."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, floor, isfinite, log
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Fields, Shown, short
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.runs.paths import look_up
from simmodel.runs.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["SCALES", "GivenSpace", "Model", "Parameter", "Space", "place_of"]

Model: TypeAlias = "Scenario | Callable[..., Any]"
"""A model with parameters: a scenario, by path, or a function, by keyword."""
GivenSpace: TypeAlias = "Space | Mapping[str, Any] | Iterable[Parameter]"

SCALES = ("linear", "log", "integer", "log-integer", "choice")
"""How the values of a parameter are spread over its range."""
_WILD = re.compile(r"\.\*|\[\*\]|\[(?P<field>\w+)=(?P<value>[^\]]*)\]")
_PLAIN = re.compile(r"[^.\[\]'\"*]+")
_KEYS = ("low", "high", "scale", "choices", "paths", "each", "group")


def _tuple(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(values)


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@attrs.frozen(kw_only=True, repr=False)
class Parameter(Fields):
    """A parameter and its range.

    Parameters
    ----------
    name
        its name, in tables; by default also the path that it sets
    low, high
        the range, bounds included
    scale
        how values are spread: ``"linear"``, ``"log"``, ``"integer"``, ``"log-integer"``, or ``"choice"``
    choices
        instead of a range: the values, which have no order
    paths
        its targets: paths of a scenario, or keywords of a function; several are tied: all get the same value. In a
        path, ``*`` stands for all items (``sites.*.speed``), ``[tier=1]`` for those whose ``tier`` is 1
    each
        whether each item that ``*`` or ``[tier=1]`` stands for has a parameter of its own
    group
        its group, such as a site: searches of different groups can share a simulation; default: the item of
        the platform that its path names

    Raises
    ------
    InputError
        a bound is not a number, the bounds are reversed, or the scale does not fit

    >>> speed = Parameter(name="sites.BNL.speed", low=0.5, high=2, scale="log")
    >>> speed.value(0.5), speed.unit(2)
    (1.0, 1.0)
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    scale: str = "linear"
    choices: tuple[Any, ...] = attrs.field(default=(), converter=_tuple)
    paths: tuple[str, ...] = attrs.field(default=(), converter=_names)
    each: bool = False
    group: str | None = None

    def __attrs_post_init__(self) -> None:
        if not self.paths:
            object.__setattr__(self, "paths", (self.name,))
        if self.choices:
            object.__setattr__(self, "scale", "choice")
            if len({repr(value) for value in self.choices}) < len(self.choices):
                raise InputError(f"choices: must be different values, got {shown(list(self.choices))}", place=self.name)
            return
        if self.scale not in SCALES or self.scale == "choice":
            raise InputError(unknown("scale", str(self.scale), SCALES[:-1]).message, place=self.name)
        for word, value in (("low", self.low), ("high", self.high)):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not isfinite(value):
                raise InputError(f"{word}: must be a finite number, got {shown(value)}", place=self.name)
        if not self.low < self.high:
            raise InputError(f"must have low < high, got {self.low!r} and {self.high!r}", place=self.name)
        if self.scale.startswith("log") and self.low <= 0:
            raise InputError(f"low: must be > 0 on a logarithmic scale, got {self.low!r}", place=self.name)
        if self.whole and (self.low != floor(self.low) or self.high != floor(self.high)):
            raise InputError(f"must have whole bounds, got {self.low!r} and {self.high!r}", place=self.name)

    @classmethod
    def of(cls, name: str, given: Any) -> Parameter:
        """Return the parameter of a range ``(low, high)``, ``(low, high, scale)``, choices ``[a, b]``, or a table.

        The word ``"each"`` at the end of a range means ``each=True``.

        Raises
        ------
        InputError
            it is none of them

        >>> Parameter.of("policy", ["fcfs", "easy"]).choices
        ('fcfs', 'easy')
        >>> Parameter.of("sites.*.speed", (4, 0.5))
        Traceback (most recent call last):
        ...
        simmodel.foundation.errors.InputError: sites.*.speed: must have low < high, got 4 and 0.5
        """
        if isinstance(given, Parameter):
            return given
        if isinstance(given, Mapping):
            for key in given:
                if key not in _KEYS:
                    raise InputError(unknown("key", str(key), _KEYS).message, place=name)
            if "choices" not in given and not {"low", "high"} <= given.keys():
                raise InputError(f"must have low and high, or choices, got {shown(dict(given))}", place=name)
            return cls(name=name, **given)
        if isinstance(given, tuple) or (isinstance(given, list) and _is_range(given)):
            *bounds, last = given
            each = isinstance(last, str) and last == "each"
            bounds = bounds if each else [*bounds, last]
            if len(bounds) in (2, 3):
                low, high, *scale = bounds
                return cls(name=name, low=low, high=high, scale=scale[0] if scale else "linear", each=each)
        elif isinstance(given, list) and given:
            return cls(name=name, choices=tuple(given))
        raise InputError(
            f"must be (low, high), (low, high, scale) or a list of choices, got {shown(given)}", place=name
        )

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.scale in ("integer", "log-integer")

    def value(self, unit: float) -> Any:
        """Return the value at a position from 0 to 1 in the range."""
        position = min(max(float(unit), 0.0), 1.0)
        if not self.choices and not self.whole and position in (0, 1):
            return float(self.high if position else self.low)
        if self.choices:
            return self.choices[min(int(position * len(self.choices)), len(self.choices) - 1)]
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        if self.scale.startswith("log"):
            found = exp(log(low) + position * (log(high) - log(low)))
        else:
            found = low + position * (high - low)
        if self.whole:
            return int(min(max(floor(found + 0.5), self.low), self.high))
        return min(max(found, float(self.low)), float(self.high))

    def unit(self, value: Any) -> float:
        """Return the position of a value in the range, from 0 to 1 (of a choice: the middle of its share)."""
        if self.choices:
            return (self.choices.index(value) + 0.5) / len(self.choices)
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        if self.scale.startswith("log"):
            position = (log(value) - log(low)) / (log(high) - log(low)) if value > 0 else 0.0
        else:
            position = (value - low) / (high - low)
        return float(min(max(position, 0.0), 1.0))

    def holds(self, value: Any) -> bool:
        """Whether a value is in the range."""
        if self.choices:
            return value in self.choices
        return isinstance(value, int | float) and self.low <= value <= self.high


def _is_range(given: Sequence[Any]) -> bool:
    """Whether a list, as TOML has no tuples, is a range: two numbers and a word."""
    numbers = [isinstance(each, int | float) and not isinstance(each, bool) for each in given[:2]]
    return numbers == [True, True] and len(given) > 2 and all(each in (*SCALES, "each") for each in given[2:])


def _parameters(given: Iterable[Parameter]) -> tuple[Parameter, ...]:
    return tuple(given)


@attrs.frozen(repr=False)
class Space(Shown):
    """The parameters of a model: points of the unit cube, values by name, and the model with these values.

    Parameters
    ----------
    parameters
        the parameters, of different names

    >>> space = Space.of({"sites.*.speed": (0.5, 2, "log"), "policy": ["panda", "round-robin"]})
    >>> space.values([0.5, 0.9])
    {'sites.*.speed': 1.0, 'policy': 'round-robin'}
    """

    parameters: tuple[Parameter, ...] = attrs.field(converter=_parameters)

    def __attrs_post_init__(self) -> None:
        if not self.parameters:
            raise InputError("must be at least one, got none", place="parameters")
        for word, names in (
            ("parameter", self.names),
            ("path", [path for each in self.parameters for path in each.paths]),
        ):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InputError(f"duplicate {word} {twice!r}", place="parameters")

    @classmethod
    def of(cls, given: GivenSpace, model: Model | None = None) -> Space:
        """Return the space of parameters, given by name or as a list.

        With a model, ``*`` and ``[tier=1]`` are resolved, and it is checked that the model has the parameters and
        accepts the ends of their ranges.

        Raises
        ------
        InputError
            a parameter is invalid, the model does not have it, or does not accept its bounds

        >>> from simmodel import Scenario
        >>> small = Scenario(platform=8, workload="probe-4")
        >>> Space.of({"partitions[0].processors": (4, 16, "integer")}, small).apply(small, [0.5]).platform.processors
        10
        >>> Space.of({"partitions[0].procesors": (4, 16, "integer")}, small)
        Traceback (most recent call last):
        ...
        simmodel.foundation.errors.InputError: ...unknown field 'procesors'; did you mean 'processors'? Known ...
        """
        if isinstance(given, Space):
            found = list(given.parameters)
        elif isinstance(given, Mapping):
            found = [Parameter.of(str(name), each) for name, each in given.items()]
        else:
            found = list(given)
        if model is None:
            return cls(found)
        if not isinstance(model, Scenario):
            _check_keywords(model, found)
            return cls(found)
        space = cls([resolved for each in found for resolved in _resolved(each, model)])
        for position in (0.0, 1.0):
            space.apply(model, [position] * len(space))
        return space

    def __len__(self) -> int:
        return len(self.parameters)

    def __getitem__(self, name: str) -> Parameter:
        """Return the parameter with this name."""
        for each in self.parameters:
            if each.name == name:
                return each
        raise unknown("parameter", name, self.names)

    @property
    def names(self) -> list[str]:
        """The names of the parameters, in order."""
        return [each.name for each in self.parameters]

    @property
    def groups(self) -> dict[str, list[int]]:
        """The numbers of the parameters of each group; those without a group are in the group ``""``."""
        found: dict[str, list[int]] = {}
        for i, each in enumerate(self.parameters):
            found.setdefault(each.group or "", []).append(i)
        return found

    def values(self, point: ArrayLike) -> dict[str, Any]:
        """Return the values by name at a point of the unit cube."""
        positions = np.asarray(point, dtype=np.float64).tolist()
        return {each.name: each.value(at) for each, at in zip(self.parameters, positions, strict=True)}

    def point(self, values: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the point of the unit cube for values by name; a value outside its range is at the nearer end."""
        return np.array([each.unit(values[each.name]) for each in self.parameters])

    def changes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values by path or keyword, as :meth:`~simmodel.runs.scenario.Scenario.evolve` takes them.

        >>> Space([Parameter(name="speed", paths=("sites[0].speed", "sites[1].speed"))]).changes({"speed": 0.5})
        {'sites[0].speed': 0.5, 'sites[1].speed': 0.5}
        """
        return {path: values[each.name] for each in self.parameters for path in each.paths}

    def apply(self, model: Scenario, point: ArrayLike | Mapping[str, Any]) -> Scenario:
        """Return the scenario with the values at a point of the unit cube, or with values by name."""
        return model.evolve(self.changes(point if isinstance(point, Mapping) else self.values(point)))

    def current(self, model: Model) -> dict[str, Any]:
        """Return the value that each parameter has in a model: ``None`` if tied parts differ or there is none."""
        found: dict[str, Any] = {}
        for each in self.parameters:
            if isinstance(model, Scenario):
                values = [_plain(model.get(path)) for path in each.paths]
            else:
                known = inspect.signature(model).parameters
                values = [known[path].default if path in known else inspect.Parameter.empty for path in each.paths]
                values = [None if value is inspect.Parameter.empty else value for value in values]
            found[each.name] = values[0] if all(value == values[0] for value in values) else None
        return found

    def document(self) -> list[dict[str, Any]]:
        """Return the parameters as plain values, which :meth:`from_document` reads."""
        return [attrs.asdict(each) for each in self.parameters]

    @classmethod
    def from_document(cls, document: Iterable[Mapping[str, Any]]) -> Space:
        return cls(Parameter(**each) for each in document)

    def _cells(self) -> Cells:
        rows = [["parameter", "low", "high", "scale", "sets"]]
        for each in self.parameters:
            low, high = (f"{each.low:g}", f"{each.high:g}") if not each.choices else (short(each.choices), "")
            paths = "" if each.paths == (each.name,) else f"{each.paths[0]}" + (" ..." if len(each.paths) > 1 else "")
            rows.append([each.name, low, high, each.scale, paths])
        return rows

    def __repr__(self) -> str:
        names = ", ".join(self.names[:4]) + (", ..." if len(self) > 4 else "")
        return f"<Space of {len(self)} parameter{'' if len(self) == 1 else 's'}: {names}>"


def _plain(value: Any) -> Any:
    """Return the number of a delay, whose path may leave out ``.mean``; other values as they are."""
    return getattr(value, "mean", value) if attrs.has(type(value)) else value


def _check_keywords(model: Callable[..., Any], parameters: Iterable[Parameter]) -> None:
    signature = inspect.signature(model).parameters
    if any(each.kind is each.VAR_KEYWORD for each in signature.values()):
        return
    names = [name for name, each in signature.items() if each.kind is not each.POSITIONAL_ONLY]
    for parameter in parameters:
        for path in parameter.paths:
            if path not in names:
                raise InputError(unknown("keyword", path, names).message, place="parameters")


def _resolved(parameter: Parameter, model: Scenario) -> list[Parameter]:
    """Return a parameter with ``*`` and ``[tier=1]`` in its paths resolved: several if each item has its own."""
    paths = [found for path in parameter.paths for found in _expanded(path, model)]
    for path in paths:
        model.get(path)
    if not parameter.each:
        groups = {place_of(path, model) for path in paths}
        group = parameter.group or (groups.pop() if len(groups) == 1 else None)
        return [attrs.evolve(parameter, paths=tuple(paths), group=group)]
    return [
        attrs.evolve(parameter, name=path, paths=(path,), each=False, group=parameter.group or place_of(path, model))
        for path in paths
    ]


def _expanded(path: str, model: Scenario) -> list[str]:
    match = _WILD.search(path)
    if match is None:
        return [path]
    before, rest = path[: match.start()], path[match.end() :]
    items = model.get(before)
    if isinstance(items, Mapping):
        named = [(f"{before}{_part(str(key))}", item) for key, item in items.items()]
    elif isinstance(items, Sequence) and not isinstance(items, str):
        labels = [getattr(item, "name", None) for item in items]
        named = [
            (f"{before}{_part(label)}" if label and labels.count(label) == 1 else f"{before}[{i}]", item)
            for i, (label, item) in enumerate(zip(labels, items, strict=True))
        ]
    else:
        raise InputError(f"{path}: {before} must have items for {match[0]!r}, got {shown(items)}", place="parameters")
    if match["field"]:
        named = [(way, item) for way, item in named if str(look_up(item, match["field"])) == match["value"]]
        if not named:
            raise InputError(f"{path}: no item of {before} has {match[0][1:-1]}", place="parameters")
    return [found for way, _ in named for found in _expanded(way + rest, model)]


def _part(name: str) -> str:
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{name!r}]"


def place_of(path: str, model: Scenario) -> str | None:
    """Return the name of the place of the platform that a path leads into: a site, or a place of a broker."""
    from simmodel.runs.paths import parsed

    parts = [part for part in parsed(path) if part != "platform"]
    if len(parts) < 3 or parts[0] not in ("sites", "places"):
        return None
    prefix = f"{parts[0]}[{parts[1]}]" if isinstance(parts[1], int) else f"{parts[0]}{_part(parts[1])}"
    return str(getattr(model.get(prefix), "name", parts[1]))
