"""The cells of logs: numbers, instants, durations, amounts of memory."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from simmodel.errors import InputError, shown

__all__ = ["duration", "instant", "memory", "whole", "zone"]

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPE]?)I?B?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}


def whole(text: str) -> int:
    """Return the whole number in a cell, -1 for an empty cell; raises ``ValueError``.

    >>> whole("12"), whole("12.0"), whole("")
    (12, 12, -1)
    """
    if not text:
        return -1
    number = float(text)
    if not abs(number) < 2**63 or number != int(number):
        raise ValueError(text)
    return int(number)


def zone(name: str | None) -> tzinfo:
    """Return the time zone with this name (``"Europe/Paris"``); ``None`` is UTC.

    Raises
    ------
    InputError
        the zone is unknown
    """
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InputError(f"must be a time zone such as 'Europe/Paris', got {shown(name)}", place="timezone") from None


def instant(text: str, local: tzinfo = UTC) -> float:
    """Return an instant, ISO 8601 text or Unix seconds, as Unix seconds; nan if unknown.

    Parameters
    ----------
    text
        ``2024-05-01T12:00:00``, ``1714564800``, or ``Unknown``, ``None`` and the like
    local
        the zone of times without one

    >>> instant("1970-01-01T01:00:00"), instant("90"), instant("Unknown")
    (3600.0, 90.0, nan)
    """
    if text in ("", "Unknown", "None", "N/A", "NaT", "nan"):
        return float("nan")
    try:
        return float(text)
    except ValueError:
        when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=local)).timestamp()


def duration(text: str) -> float:
    """Return the seconds of ``[days-]hours:minutes:seconds``, ``minutes:seconds`` or a number; nan if unknown.

    >>> duration("1-02:03:04"), duration("05:06.500"), duration("90"), duration("UNLIMITED")
    (93784.0, 306.5, 90.0, nan)
    """
    if text in ("", "UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None", "N/A", "nan"):
        return float("nan")
    days, dash, clock = text.rpartition("-")
    parts = [float(part) for part in clock.split(":")]
    if len(parts) > 3 or (dash and not re.fullmatch(r"\d{1,9}", days)) or any(part < 0 for part in parts):
        raise ValueError(text)
    if dash:  # D-HH, D-HH:MM, D-HH:MM:SS
        parts += [0.0] * (3 - len(parts))
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + part
    return seconds + 86400 * int(days or 0)


def memory(text: str) -> float:
    """Return the bytes of an amount with a binary unit; nan for an empty cell.

    >>> memory("4G"), memory("512kb"), memory("1.5M"), memory("100")
    (4294967296.0, 524288.0, 1572864.0, 100.0)
    """
    if not text:
        return float("nan")
    found = _MEMORY.fullmatch(text)
    if not found:
        raise ValueError(text)
    return float(found[1]) * _UNITS[found[2].upper()]
