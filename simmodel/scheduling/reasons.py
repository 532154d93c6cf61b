"""The reasons that policies give with their decisions."""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

__all__ = ["GivenReason", "given_reason"]


class GivenReason(NamedTuple):
    """A decision and the reason that a policy gave with it.

    ``time``: of the decision (s); ``decision``: its type, such as ``"Start"``; ``work``: the id of the job or task;
    ``place``: by name; ``at``: the instant (s) that is promised or planned; ``home``: that of a job of a broker;
    ``None``, empty or nan: it has none.
    """

    time: float
    decision: str
    work: int | str | None
    place: str
    at: float
    reason: str
    home: str = ""


def given_reason(now: float, decision: Any) -> GivenReason:
    """Return the reason of a decision that was carried out at an instant (s).

    >>> from simmodel import WakeAt
    >>> given_reason(5.0, WakeAt(60.0, "the window opens"))
    GivenReason(time=5.0, decision='WakeAt', work=None, place='', at=60.0, reason='the window opens', home='')
    """
    work, place = getattr(decision, "work", None), getattr(decision, "place", None)
    home = getattr(work, "home", None)
    return GivenReason(
        float(now),
        type(decision).__name__,
        None if work is None else work.id,
        "" if place is None else str(place.name),
        float(getattr(decision, "at", nan)),
        str(decision.reason),
        "" if home is None else str(home.name),
    )
