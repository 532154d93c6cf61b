"""What a node draws: idle, under load, off, and while it boots and stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.distributions import Distribution, distribution
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.units import in_seconds, in_watts, parse_quantity

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Duration", "NodePower", "Phase"]

Duration: TypeAlias = float | Mapping[str, Any]
"""Seconds, or the mapping of a distribution of them."""
Phase: TypeAlias = tuple[Duration, float]
"""How long a change of state takes, and what a node draws meanwhile (W)."""
Levels: TypeAlias = tuple[tuple[float, float], ...]
"""Relative frequencies, each with the W when all cores are busy."""


def _watts(_instance: NodePower, attribute: attrs.Attribute[float], value: float) -> None:
    if not _is_amount(value):
        raise InputError(f"must be a finite number of watts >= 0, got {shown(value)}", place=attribute.name)


def _is_amount(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) < inf


def _phase(given: Any) -> Any:
    """Return a time and watts as stored, and anything else as given: the validator knows the field's name."""
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        return given
    time, watts = given
    return (time.document if isinstance(time, Distribution) else in_seconds(time), in_watts(watts))


def _is_phase(instance: NodePower, attribute: attrs.Attribute[Phase | None], value: Phase | None) -> None:
    if value is None:
        return
    if not isinstance(value, tuple):
        raise InputError(f"must be a time and watts, such as ('150s', 125), got {shown(value)}", place=attribute.name)
    time, watts = value
    try:
        if isinstance(time, Mapping):
            distribution(time)
        else:
            parse_quantity(time, "s")
    except InputError as error:
        raise InputError(str(error), place=f"{attribute.name}[0]") from None
    if not _is_amount(watts):
        raise InputError(f"must be a finite number of watts >= 0, got {shown(watts)}", place=f"{attribute.name}[1]")


def _levels(given: Any) -> Any:
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if not several or not all(isinstance(each, tuple | list) and len(each) == 2 for each in given):
        text = "must be relative frequencies and watts, such as [(1.0, 190.7), (0.8, 142.9)]"
        raise InputError(f"{text}, got {shown(given)}", place="levels")
    return tuple((frequency, in_watts(watts)) for frequency, watts in given)


def _are_levels(_instance: NodePower, attribute: attrs.Attribute[Levels], value: Levels) -> None:
    for i, (frequency, watts) in enumerate(value):
        if not _is_amount(frequency) or not frequency:
            text = f"must be a finite relative frequency > 0, got {shown(frequency)}"
            raise InputError(text, place=f"{attribute.name}[{i}][0]")
        if not _is_amount(watts):
            text = f"must be a finite number of watts >= 0, got {shown(watts)}"
            raise InputError(text, place=f"{attribute.name}[{i}][1]")
    for i, ((before, _), (after, _)) in enumerate(pairwise(value), start=1):
        if after >= before:
            text = f"must be lower than the frequency before it, {before:g}, got {after:g}"
            raise InputError(text, place=f"{attribute.name}[{i}][0]")


@attrs.frozen(kw_only=True, repr=False)
class NodePower(Fields):
    """What a node draws, and how it sleeps.

    Parameters
    ----------
    idle, load
        W when nothing runs and when all cores are busy; ``load`` is by default that of the first of ``levels``
    off
        W when it sleeps
    boot, stop
        how long it takes to boot and to stop, and the W it draws meanwhile: ``("150s", 125)``. The time is a number, a
        quantity, or a distribution of :mod:`simmodel.generators`, also as its mapping. A node sleeps only if it has a
        ``boot``; one without ``stop`` is off at once
    boot_failures
        the probability that a boot fails: then the node is down
    boot_limit
        how long a boot may take: one that would take longer fails then
    boot_repair
        after how many seconds it is up again; default: as the failure model of its nodes draws it, else an hour
    asleep
        whether it sleeps at the beginning
    model
        how load is shared: ``"linear"``: between idle and load power in proportion to the busy cores; ``"node"``: load
        power while any job runs there
    levels
        the relative frequencies at which it runs, the highest first, each with the W when all cores are busy

    Raises
    ------
    InputError
        a time or watts is negative or no number, levels are not in order, or what sleeps cannot boot

    >>> taurus = NodePower(idle=95, load=190.7, off=9.75, boot=("150s", 125), stop=("6s", 101))
    >>> taurus.boot, taurus.expected_boot, taurus.can_sleep
    ((150.0, 125), 150.0, True)
    >>> NodePower(idle=95, levels=[(1.0, 190.7), (0.8, 142.9)]).load
    190.7
    """

    idle: float = attrs.field(default=0.0, converter=in_watts, validator=_watts)
    levels: Levels = attrs.field(default=(), converter=_levels, validator=_are_levels)
    load: float = attrs.field(converter=in_watts, validator=_watts)
    off: float = attrs.field(default=0.0, converter=in_watts, validator=_watts)
    boot: Phase | None = attrs.field(default=None, converter=_phase, validator=_is_phase, hash=False)
    stop: Phase | None = attrs.field(default=None, converter=_phase, validator=_is_phase, hash=False)
    boot_failures: float = 0.0
    boot_limit: float | None = attrs.field(default=None, converter=in_seconds)
    boot_repair: float | None = attrs.field(default=None, converter=in_seconds)
    asleep: bool = False
    model: Literal["linear", "node"] = "linear"

    @load.default
    def _of_first_level(self) -> float:
        return self.levels[0][1] if self.levels else 0.0

    def __attrs_post_init__(self) -> None:
        if self.levels and self.load != self.levels[0][1]:
            text = f"must be {self.levels[0][1]:g}, that of the first of the levels, got {self.load:g}"
            raise InputError(text, place="load")
        if self.model not in ("linear", "node"):
            raise InputError(f"must be 'linear' or 'node', got {shown(self.model)}", place="model")
        if not _is_amount(self.boot_failures) or self.boot_failures > 1:
            text = f"must be a probability from 0 to 1, got {shown(self.boot_failures)}"
            raise InputError(text, place="boot_failures")
        for name in ("boot_limit", "boot_repair"):
            if (time := getattr(self, name)) is not None and not _is_amount(time):
                raise InputError(f"must be a finite time >= 0, got {shown(time)}", place=name)
        needs = ("off", "stop", "boot_failures", "boot_limit", "boot_repair", "asleep")
        given = next((name for name in needs if getattr(self, name) not in (None, 0)), None)
        if self.boot is None and given is not None:
            raise InputError(f"must be given with {given}: only a node that boots can be off", place="boot")

    # ------------------------------------------------------------------ sleep

    @property
    def can_sleep(self) -> bool:
        """Whether it can be off and boot again."""
        return self.boot is not None

    @property
    def expected_boot(self) -> float:
        """How long a boot takes on average (s): what policies plan with."""
        mean = _mean(self.boot)
        return mean if self.boot_limit is None else min(mean, self.boot_limit)

    @property
    def expected_stop(self) -> float:
        """How long it takes on average until it is off (s)."""
        return _mean(self.stop)

    def draw_boot(self, rng: np.random.Generator) -> float:
        """Draw how long a boot would take without a limit (s)."""
        return _drawn(self.boot, rng, "boot")

    def draw_stop(self, rng: np.random.Generator) -> float:
        """Draw how long it takes until it is off (s)."""
        return _drawn(self.stop, rng, "stop")


def _mean(phase: Phase | None) -> float:
    if phase is None:
        return 0.0
    time = phase[0]
    return float(distribution(time).mean if isinstance(time, Mapping) else time)


def _drawn(phase: Phase | None, rng: np.random.Generator, name: str) -> float:
    if phase is None or not isinstance(phase[0], Mapping):
        return _mean(phase)
    seconds = float(distribution(phase[0]).draw(rng, 1)[0])
    if not _is_amount(seconds):
        raise InputError(f"must be finite and >= 0, got a draw of {seconds:g}", place=f"{name}[0]")
    return seconds
