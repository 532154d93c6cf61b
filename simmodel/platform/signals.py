"""Signals: what a kilowatt-hour costs over time, in money or in carbon, and what a scheduler knows of it beforehand."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import attrs

from simmodel.foundation.display import Fields, counted
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.loading import Source, read_lines
from simmodel.foundation.units import in_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from simmodel.platform.step_lines import StepLine

__all__ = ["NO_SIGNALS", "GivenSignals", "Signal", "signals_of"]


def _numbers(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(map(float, values))


@attrs.frozen(slots=False, repr=False)
class Signal(Fields):
    """A quantity that is known over time, such as grams of CO2 or euros a kWh; each value holds until the next.

    Parameters
    ----------
    times
        instants in s, increasing, shape (n,)
    values
        the values from these instants on, shape (n,)
    end
        the instant in s until which the last value holds; default: as long after it as it comes after the one before
    unit
        of the values, for axes and tables
    predicted
        the values as a scheduler expects them beforehand, shape (n,); default: the values (see :meth:`with_error`)
    source
        the file that it was read from

    Raises
    ------
    InputError
        the times are not increasing, or there are not as many values as times

    >>> carbon = Signal([0, 1800, 3600], [300, 200, 250], unit="gCO2/kWh")
    >>> carbon.at(2000), carbon.mean(900, 3600), carbon.lowest(0, 3000, 900)
    (200.0, 233.33333333333334, 1800.0)
    """

    times: tuple[float, ...] = attrs.field(converter=_numbers)
    values: tuple[float, ...] = attrs.field(converter=_numbers)
    end: float = attrs.field(converter=in_seconds)
    unit: str = attrs.field(default="", kw_only=True)
    predicted: tuple[float, ...] | None = attrs.field(
        default=None, kw_only=True, converter=attrs.converters.optional(_numbers)
    )
    source: str | None = attrs.field(default=None, kw_only=True)

    @end.default
    def _default_end(self) -> float:
        return 2 * self.times[-1] - self.times[-2] if len(self.times) > 1 else inf

    def __attrs_post_init__(self) -> None:
        times = self.times
        if not times or not all(map(isfinite, times)):
            raise InputError(f"must be instants in s, one or more, got {counted(len(times), 'value')}", place="times")
        for row, (before, after) in enumerate(pairwise(times), start=1):
            if after <= before:
                raise InputError(f"must increase, got {after:g} after {before:g}", place=f"times[{row}]")
        if not self.end > times[-1]:
            raise InputError(f"must be after the last of the times, {times[-1]:g} s, got {self.end:g}", place="end")
        for name in ("values", "predicted"):
            given = getattr(self, name)
            if given is not None and not (len(given) == len(times) and all(map(isfinite, given))):
                text = f"must be numbers, one for each of {counted(len(times), 'instant')}"
                raise InputError(f"{text}, got {counted(len(given), 'value')}", place=name)

    def __repr__(self) -> str:
        text = f"<Signal: {counted(len(self.times), 'value')} from {self.times[0]:g} to {self.end:g} s"
        return f"{text}, mean {self.mean(self.times[0], self.end if self.end < inf else self.times[-1] + 1):.4g}>"

    @classmethod
    def from_csv(
        cls,
        source: Source,
        *,
        start: str | None = None,
        time: str | None = None,
        value: str | None = None,
        unit: str | None = None,
    ) -> Signal:
        """Read a signal from a CSV file whose first line names its columns.

        Parameters
        ----------
        source
            the file, also compressed
        start
            the date that is 0 s, such as ``"2020-01-01"``; default: the first date. Seconds are taken as they are
        time, value
            the names of the columns; default: the first and the second. Times are seconds, or dates in ISO 8601, in UTC
            where they have no offset
        unit
            of the values; default: the name of their column

        Raises
        ------
        InputError
            a column is missing, a cell is no time or no number, or the times do not increase

        >>> import io
        >>> file = io.StringIO("time,gCO2/kWh\\n2020-01-01 00:00,300\\n2020-01-01 00:30,200\\n")
        >>> carbon = Signal.from_csv(file)
        >>> carbon.times, carbon.end, carbon.unit
        ((0.0, 1800.0), 3600.0, 'gCO2/kWh')
        """
        lines, name = read_lines(source)
        rows = csv.reader(text for _, text in lines)
        header = next(rows, [])
        asked = [_column(header, given, name) for given in (time, value)]
        at, of = (number if each is None else each for number, each in enumerate(asked))
        if len(header) < 2:
            raise InputError("must have a first line with the names of two columns", source=name)
        times, values, dated = [], [], False
        for row in filter(None, rows):
            try:
                dated = dated or not _is_number(row[at])
                times.append(_instant(row[at]))
                values.append(float(row[of]))
            except (ValueError, IndexError):
                text = f"must have a time (s, or a date in ISO 8601) and a number, got {','.join(row)!r}"
                raise InputError(text, source=name, place=f"line {rows.line_num}") from None
        zero = _instant(start) if start is not None else times[0] if dated else 0.0
        try:
            return cls([each - zero for each in times], values, unit=header[of] if unit is None else unit, source=name)
        except InputError as error:
            raise InputError(str(error), source=name) from None

    # ------------------------------------------------------------------ what is

    @cached_property
    def _known(self) -> StepLine:
        return self._line(self.values)

    @cached_property
    def _expected(self) -> StepLine:
        """The line that a scheduler plans with."""
        return self._known if self.predicted is None else self._line(self.predicted)

    def _line(self, values: Sequence[float]) -> StepLine:
        import numpy as np  # only where a signal is used: the help of commands reads the fields of options

        from simmodel.platform.step_lines import StepLine

        return StepLine(np.asarray(self.times), np.asarray(values), self.end)

    def at(self, instant: float) -> float:
        """Return the value at an instant (s).

        Raises
        ------
        InputError
            the signal has not begun or has ended then
        """
        return self._known.at(instant)

    def mean(self, start: float, end: float) -> float:
        """Return the mean value between two instants (s)."""
        return self.integral(start, end) / (end - start)

    def integral(self, start: float, end: float) -> float:
        """Return the integral of the values between two instants (s), in value seconds.

        Raises
        ------
        InputError
            the signal has not begun or has ended by then
        """
        low, high = self.integrals([start, end]).tolist()
        return float(high - low)

    def integrals(self, instants: ArrayLike) -> NDArray[np.float64]:
        """Return the integrals from the first value to several instants (s), as those of :meth:`integral`."""
        import numpy as np

        return self._known.integrals(np.asarray(instants, dtype=np.float64))

    # ------------------------------------------------------------------ what is expected

    def with_error(self, error: float, seed: int = 0) -> Signal:
        """Return the signal with a forecast that errs: normal, independent for each value.

        Parameters
        ----------
        error
            the standard deviation as a share of the mean value, as in P. Wiesner et al., "Let's Wait Awhile: How
            Temporal Workload Shifting Can Reduce Carbon Emissions in the Cloud", Middleware 2021
        seed
            of the draws

        >>> Signal([0, 10], [100, 200]).with_error(0.0).predicted
        (100.0, 200.0)
        """
        if not 0 <= error < inf:
            raise InputError(f"must be a share >= 0, got {error!r}", place="error")
        import numpy as np

        values = np.asarray(self.values)
        drawn = np.random.default_rng(seed).normal(0.0, error * float(values.mean()), len(values))
        return attrs.evolve(self, predicted=(values + drawn).tolist())

    def lowest(self, earliest: float, latest: float, length: float) -> float:
        """Return the first start from which the expected mean over a length is least.

        Parameters
        ----------
        earliest, latest
            the instants between which it starts (s)
        length
            s

        Raises
        ------
        InputError
            the signal ends before the last of them would

        >>> Signal([0, 10, 20, 30], [3, 1, 2, 1]).lowest(0, 25, 10)
        10.0
        """
        return self._expected.lowest(earliest, latest, length)

    def lowest_spans(self, earliest: float, latest: float, length: float) -> list[tuple[float, float]]:
        """Return the spans (start, end) with the lowest expected values that together last a length or longer.

        They are whole steps: all whose value is at most the least one with which they last long enough.

        Parameters
        ----------
        earliest, latest
            the instants between which they lie (s)
        length
            s

        >>> Signal([0, 10, 20, 30], [3, 1, 2, 1]).lowest_spans(0, 40, 20)
        [(10.0, 20.0), (30.0, 40.0)]
        """
        return self._expected.lowest_spans(earliest, latest, length)


def _column(header: list[str], name: str | None, source: str) -> int | None:
    if name is None:
        return None
    if name not in header:
        raise InputError(unknown("column", name, header).message, source=source)
    return header.index(name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _instant(text: str) -> float:
    """Return seconds, or those of a date since 1970."""
    if _is_number(text):
        return float(text)
    found = datetime.fromisoformat(text.strip())
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


GivenSignals: TypeAlias = "Mapping[str, Signal | str | Path]"
"""Signals by name, or the names of their files."""
NO_SIGNALS: Mapping[str, Signal] = MappingProxyType({})


def signals_of(given: GivenSignals | Iterable[str]) -> dict[str, Signal]:
    """Return signals by name, of which some are read from files; a text ``"carbon=grid.csv"`` names both.

    Raises
    ------
    InputError
        a text has no name, or a file is invalid
    """
    if not isinstance(given, Mapping):
        parts = [text.partition("=") for text in given]
        for name, _, path in parts:
            if not (name and path):
                raise InputError(f"must be NAME=FILE, such as carbon=grid.csv, got {name!r}", place="signal")
        given = {name: path for name, _, path in parts}
    return {str(name): each if isinstance(each, Signal) else Signal.from_csv(each) for name, each in given.items()}
