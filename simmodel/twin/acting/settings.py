"""The settings of a twin that acts: its mode, and the limits that no decision exceeds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown
from simmodel.twin.acting.actions import Mode

__all__ = ["ActSettings"]

_NAME = re.compile(r"[\w.+-]{1,200}", re.ASCII)  # names of partitions that need quotes nowhere


def _between(low: float, high: float, unit: str = "") -> Callable[[Any, attrs.Attribute[Any], float], None]:
    def check(_instance: Any, attribute: attrs.Attribute[Any], value: float) -> None:
        if not low <= value <= high:
            raise InputError(f"must be a number from {low:g} to {high:g}{unit}, got {value!r}", place=attribute.name)

    return check


def _mode(_instance: Any, _attribute: attrs.Attribute[Any], value: str) -> None:
    known = get_args(Mode)
    if value not in known:
        names = ", ".join(map(repr, known[:-1]))
        raise InputError(f"must be {names} or {known[-1]!r}, got {shown(value)}", place="mode")


def _names(_instance: Any, attribute: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    for name in value:
        if not _NAME.fullmatch(name):
            raise InputError(f"must be names of letters, digits and ._+-, got {shown(name)}", place=attribute.name)


@attrs.frozen(kw_only=True, repr=False)
class ActSettings(Fields):
    """The mode of an acting twin, and the limits on its actions.

    Parameters
    ----------
    mode
        ``"observe"``: decisions are written down; ``"advise"``: and shown; ``"priority"``: jobs that should start are
        moved forward; ``"hold-and-release"``: jobs start when the twin says so
    maximum_delay
        the longest that a job may wait for the twin's sake (s)
    budget
        the most actions in any hour; giving jobs back is not counted
    rate
        the most actions in a second
    partitions
        the partitions whose jobs it may touch; default: all
    preference
        how far jobs are moved forward in mode ``"priority"`` (Slurm: the negative of their nice value)
    heartbeat, stop_file
        the file that shows that the twin is alive, and the file that stops it while it exists
    stale_after
        seconds without a sign of life after which the twin counts as dead

    Raises
    ------
    InputError
        a value is out of its range

    >>> ActSettings(mode="obey")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: mode: must be 'observe', 'advise', 'priority' or 'hold-and-release', got ...
    """

    mode: Mode = attrs.field(default="observe", validator=_mode)
    maximum_delay: float = attrs.field(default=600.0, validator=_between(1, 7 * 86400, " s"))
    budget: int = attrs.field(default=3600, validator=_between(1, 1_000_000))
    rate: float = attrs.field(default=10.0, validator=_between(0.01, 1000, " a second"))
    partitions: tuple[str, ...] = attrs.field(default=(), validator=_names)
    preference: int = attrs.field(default=1000, validator=_between(1, 100_000))
    heartbeat: str = "heartbeat"
    stop_file: str = "stop"
    stale_after: float = attrs.field(default=30.0, validator=_between(2, 3600, " s"))

    def touches(self, partition: str) -> bool:
        """Whether the twin may change jobs of a partition."""
        return not self.partitions or partition in self.partitions
