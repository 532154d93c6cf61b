"""The measured power of a job: watts of each of its nodes, or how busy its cores and GPUs are, over its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.units import parse_quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GivenPower", "Measured", "power_cell", "power_column"]

Given: TypeAlias = "float | str | Iterable[tuple[float, float]]"
GivenPower: TypeAlias = "Given | Mapping[str, Given] | None"
"""Watts or steps of them, or by ``cpu`` and ``gpu`` the shares that are busy."""
Steps: TypeAlias = "tuple[tuple[float, float], ...]"


@attrs.frozen(repr=False)
class Measured(Fields):
    """The power of a job as figures read it: ``watts`` of each node, or shares of ``cpu`` and ``gpu`` that are busy.

    Each is a number of steps: the second of its run from which on a value holds, and the value; without steps it is
    not known.

    >>> Measured.of("cpu=0:1;60:0.5 gpu=0").cpu
    ((0.0, 1.0), (60.0, 0.5))
    """

    watts: Steps = ()
    cpu: Steps = ()
    gpu: Steps = ()

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, cell: float | str) -> Measured:
        """Return the measured power that a cell says, as :func:`power_cell` writes it."""
        if isinstance(cell, str) and "=" in cell:
            parts = [part.partition("=") for part in cell.split()]
            return cls(**{name: _steps(text, name) for name, _, text in parts})
        return cls(watts=_steps(cell, "power"))

    @property
    def instants(self) -> tuple[float, ...]:
        """The seconds at which one of them changes, the first of which is 0."""
        return tuple(sorted({at for part in (self.watts, self.cpu, self.gpu) for at, _ in part}))


def _steps(given: Given, name: str) -> Steps:
    """Return a number, pairs or a text ``"0:200;60:350"`` as steps."""
    pairs: Any
    try:
        if isinstance(given, str):
            pairs = (
                [pair.split(":") for pair in given.split(";")] if ":" in given else [(0.0, parse_quantity(given, "W"))]
            )
        else:
            pairs = given if isinstance(given, Iterable) else [(0.0, given)]
        found = tuple((float(at), float(value)) for at, value in pairs)
    except (InputError, TypeError, ValueError):
        found = ()
    most = 1.0 if name in ("cpu", "gpu") else inf
    if not found or found[0][0] != 0 or not all(at < after for (at, _), (after, _) in pairwise(found)):
        text = "must be a number, or pairs of increasing seconds from 0 on and a value, as [(0, 200), (60, 350)]"
        raise InputError(f"{text}, got {shown(given)}", place="power")
    if not all(0 <= value <= most and value < inf for _, value in found):
        accepted = "shares from 0 to 1" if most == 1 else "watts >= 0"
        raise InputError(f"must be {accepted}, got {shown(given)}", place="power" if most == inf else f"power.{name}")
    return found


def _text(steps: Steps) -> str:
    return ";".join(f"{at!r}:{value!r}" for at, value in steps) if len(steps) > 1 else repr(steps[0][1])


def power_cell(given: GivenPower) -> float | str | None:
    """Return a measured power as one cell of a table: watts, a text of steps, or ``None`` where none is known.

    Raises
    ------
    InputError
        watts are negative, a share is not from 0 to 1, the instants do not increase from 0 on, or a part is neither
        ``cpu`` nor ``gpu``

    >>> power_cell("1.2kW"), power_cell([(0, 200), (60, 350)]), power_cell({"cpu": 0.5, "gpu": [(0, 1), (9, 0)]})
    (1200.0, '0.0:200.0;60.0:350.0', 'cpu=0.5 gpu=0.0:1.0;9.0:0.0')
    """
    if given is None or (isinstance(given, float | int | str) and (given in ("", -1) or given != given)):
        return None
    if isinstance(given, str) and "=" in given:
        given = {name: text for name, _, text in (part.partition("=") for part in given.split())}
    if isinstance(given, Mapping):
        if not given or not {*given} <= {"cpu", "gpu"}:
            raise InputError(f"must have parts cpu and gpu, got {shown(given)}", place="power")
        return " ".join(f"{name}={_text(_steps(each, name))}" for name, each in given.items())
    steps = _steps(given, "power")
    return steps[0][1] if len(steps) == 1 else _text(steps)


def power_column(cells: Sequence[float | str | None]) -> NDArray[Any]:
    """Return the measured power of jobs as a column: numbers, nan where none is known, or texts.

    >>> power_column([200.0, None]), power_column(["cpu=0.5", None, 90.0])
    (array([200.,  nan]), array(['cpu=0.5', '', '90.0'], dtype=object))
    """
    import numpy as np  # only where there are columns: the help of commands does without

    if any(isinstance(cell, str) for cell in cells):
        return np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)
    return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
