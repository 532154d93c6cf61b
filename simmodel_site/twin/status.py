"""The state of a running twin as one value, shown on its status page and in its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Literal, TypeAlias

import attrs

from simmodel.extending import Fields, Plain, clipped

__all__ = ["Health", "LastDecision", "Status"]

Health: TypeAlias = Literal["starting", "ok", "degraded", "stale"]


@attrs.frozen(kw_only=True, repr=False)
class LastDecision(Fields):
    """The last advice in brief.

    Parameters
    ----------
    number
        its number in the audit log
    time
        the instant (s) on the cluster
    policy
        the policy that was chosen
    reason
        why, in one sentence
    starts
        how many jobs it advises to start
    seconds
        how long the decision took
    fallback
        whether the fallback policy made it
    """

    number: int
    time: float
    policy: str
    reason: str = ""
    starts: int = 0
    seconds: float = 0.0
    fallback: bool = False


@attrs.frozen(kw_only=True, repr=False)
class Status(Fields):
    """The state of a twin at one instant.

    Parameters
    ----------
    cluster
        the name of the cluster
    time
        the instant (s) on the cluster up to which the mirror knows; ``None``: nothing is known yet
    lag
        how long (s) after it happened the twin applied the last event
    waiting, running, held, remembered
        the numbers of jobs in the mirror; ``remembered``: ended ones that it still distinguishes from new ones
    unmodelled
        the number of waiting jobs of which the scheduler heeds something that the mirror does not
    nodes
        nodes that are out of service by state: down, draining
    events
        how many events of each kind were applied
    refused
        how many events were refused, by reason
    gaps
        how often events were missing, so that a full report was needed
    position
        the place in the source up to which events were read
    decisions, fallbacks
        how many decisions were made, and by the fallback policy
    decision_seconds
        how long all decisions together took
    last
        the last decision
    mode, paused, actions
        how far the twin goes; why it does not act now, or ``""``; and how many actions came out in each way
    troubles
        the present problems, a sentence each; none: the twin is well

    >>> Status(cluster="alps", troubles=("unix:///run/redis: no answer within 5 s",)).health
    'degraded'
    """

    cluster: str
    time: float | None = None
    lag: float | None = None
    waiting: int = 0
    running: int = 0
    held: int = 0
    remembered: int = 0
    unmodelled: int = 0
    nodes: Mapping[str, int] = attrs.field(factory=dict)
    events: Mapping[str, int] = attrs.field(factory=dict)
    refused: Mapping[str, int] = attrs.field(factory=dict)
    gaps: int = 0
    position: str | None = None
    decisions: int = 0
    fallbacks: int = 0
    decision_seconds: float = 0.0
    last: LastDecision | None = None
    mode: str = "observe"
    paused: str = ""
    actions: Mapping[str, int] = attrs.field(factory=dict)
    troubles: tuple[str, ...] = ()

    @property
    def health(self) -> Health:
        """``starting`` until something is known of the cluster, ``degraded`` if there is trouble, else ``ok``."""
        if self.troubles:
            return "degraded"
        return "starting" if self.time is None else "ok"

    def document(self) -> dict[str, Plain]:
        """Return it as plain values, all of which JSON can hold; long texts are clipped."""
        return {"health": self.health} | {
            name: _plain(value) for name, value in attrs.asdict(self, value_serializer=None).items()
        }


_LONGEST = 1000  # characters of a text


def _plain(value: object) -> Plain:
    if isinstance(value, Mapping):
        return {clipped(key, _LONGEST): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else clipped(value, _LONGEST)
