"""The history of one job: its state follows from the set of its events, not from their order."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Literal, TypeAlias

import attrs

from simmodel.extending import Plain
from simmodel_site.twin.events import (
    Changed,
    Demand,
    Ended,
    JobEvent,
    JobKey,
    OnHold,
    Released,
    Requeued,
    Started,
    Submitted,
    event_of,
)

__all__ = ["Entry", "Order", "natural_order"]

Phase: TypeAlias = Literal["unknown", "waiting", "running", "over"]
Order: TypeAlias = tuple[Any, ...]
"""The place of a job in the order of submission: the instant, then the id."""

_RANK = {Submitted: 0, OnHold: 1, Released: 2, Changed: 3, Started: 4, Ended: 5, Requeued: 6}
"""The order of events at one instant, as far as they are possible then."""
_MANY = 40  # events of one job, beyond which the older half is settled
_NUMBERS = re.compile(r"([0-9]{1,18})")


def natural_order(id: int | str) -> Order:
    """Return the key by which ids are sorted: numbers in them count as numbers.

    >>> sorted(["7_10", 8, "7_9", "b", 10], key=natural_order)
    ['7_9', '7_10', 8, 10, 'b']
    """
    if not isinstance(id, str):
        return ((0, id, ""),)
    parts = _NUMBERS.split(id)
    return tuple((0, int(part), "") if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part)


@attrs.define(slots=True, eq=True, repr=False)
class _State:
    """The state of a job, step by step."""

    request: Demand | None = None
    held: bool = False
    phase: Phase = "unknown"
    started: float | None = None
    partition: str | None = None
    nodes: tuple[tuple[str, int], ...] = ()
    attempts: int = 0
    first_start: float | None = None
    last_start: float | None = None
    ended: float | None = None
    status: str | None = None
    since: float = float("-inf")
    held_from: float | None = None
    released: float | None = None

    def ask(self, request: Demand, at: float) -> None:
        """Take a request of an instant (s); one that is on hold no longer is released."""
        before = self.request is not None and self.request.on_hold
        if request.on_hold and not before:
            self.held_from, self.released = at, None
        elif before and not request.on_hold and self.released is None:
            self.released = at
        self.request = request

    def possible(self, event: JobEvent) -> bool:
        """Whether an event changes the phase from here."""
        if isinstance(event, Started):
            return self.phase == "waiting"
        if isinstance(event, Ended):
            return self.phase in ("waiting", "running")
        return self.phase in ("running", "over")

    def start(self, event: Started) -> None:
        """Begin an attempt."""
        self.phase, self.started, self.since = "running", event.time, event.time
        self.partition, self.nodes = event.partition, event.nodes
        self.attempts += 1
        if self.first_start is None:
            self.first_start = event.time

    def learn(self, event: Started) -> None:
        """Take over the partition and the nodes from another event of the same start."""
        if self.phase == "running" and (event.nodes or event.partition is not None):
            self.partition = self.partition if event.partition is None else event.partition
            self.nodes = event.nodes or self.nodes

    def end(self, event: Ended) -> None:
        """Be over; a job that has not started leaves the queue."""
        self.phase, self.ended, self.status, self.since = "over", event.time, event.status, event.time

    def requeue(self, event: Requeued) -> None:
        self.last_start, self.started = self.started, None
        self.phase, self.ended, self.status, self.since = "waiting", None, None, event.time
        self.partition, self.nodes = None, ()


_NOTHING = _State()


class Entry:
    """The events and the state of one job.

    Attributes
    ----------
    key, id, submit, order
        cluster, id and submission (s), and the last two; its place in the order of submission
    number
        its number in that order, among all jobs submitted so far; -1: its submission is not known
    state
        its request and state: see the properties
    superseded
        whether a later job has its id: it is over
    facts
        its events that are not settled yet, sorted by (time, rank)
    """

    __slots__ = (
        *("_base", "_document", "_settled", "facts", "id", "key"),
        *("number", "order", "state", "submit", "superseded"),
    )

    def __init__(self, key: JobKey) -> None:
        self.key = key
        _, self.id, self.submit = key
        self.order: Order = (self.submit, natural_order(self.id), isinstance(self.id, str))
        self.number = -1
        self.superseded = False
        self.facts: list[tuple[float, int, JobEvent]] = []
        self.state = _State()
        self._base = _NOTHING  # before the facts; never changed, only replaced
        self._document: dict[str, Plain] | None = None  # until something is told
        self._settled = float("-inf")  # the instant up to which facts are in the base

    def __repr__(self) -> str:
        return f"<job {self.id} of {self.submit:g} s: {self.state.phase}>"

    @property
    def alive(self) -> bool:
        """Whether it waits or runs, as far as is known."""
        return self.state.phase in ("waiting", "running") and not self.superseded

    @property
    def request(self) -> Demand:
        assert self.state.request is not None
        return self.state.request

    @property
    def last_told(self) -> float:
        """The instant (s) of its last event."""
        return self.facts[-1][0] if self.facts else self._settled

    def tell(self, event: JobEvent) -> bool:
        """Add an event; return whether it was new."""
        fact = _fact(event)
        facts = self.facts
        if fact[0] < self._settled:
            return False
        if not facts or fact[0] > facts[-1][0]:
            facts.append(fact)
            _step(self.state, [event])
        else:
            place = bisect_left(facts, fact[:2], key=_when)
            while place < len(facts) and facts[place][:2] == fact[:2]:
                if _same(facts[place][2], event):
                    return False
                if _text(facts[place][2]) > _text(event):
                    break
                place += 1
            facts.insert(place, fact)
            self.state = self.at(float("inf"))
        self._document = None
        if len(facts) > _MANY:
            self._settle()
        return True

    def at(self, time: float) -> _State:
        """Return the state by the events up to an instant (s)."""
        state = attrs.evolve(self._base)
        for _, group in groupby((fact for fact in self.facts if fact[0] <= time), key=_time):
            _step(state, [event for _, _, event in group])
        return state

    def _settle(self) -> None:
        """Move the older half of the facts into the base: events of their instants are ignored from now on."""
        until = self.facts[_MANY // 2][0]
        if until > self.facts[0][0]:
            self._base = self.at(_before(self.facts, until))
            self.facts = [fact for fact in self.facts if fact[0] >= until]
            self._settled = until

    # ------------------------------------------------------------------ documents

    def document(self) -> dict[str, Plain]:
        """Return the entry as plain values."""
        if self._document is None:
            facts: list[Plain] = [event.document() for _, _, event in self.facts]
            self._document = {"job": self.id, "submit": self.submit, "facts": facts}
            if self._base != _NOTHING:
                self._document |= {"base": _document_of(self._base, self.key), "settled": self._settled}
        return self._document | {"number": self.number}

    def brief(self) -> list[Plain]:
        """Return the brief record of a job that is over: its final state, without its request and its events."""
        state = self.state
        return [self.id, self.submit, self.number, self.last_told, *(getattr(state, name) for name in _BRIEF)]

    @classmethod
    def from_brief(cls, values: Iterable[Any], cluster: str) -> Entry:
        """Return the entry of a job that is over."""
        id, submit, number, settled, *rest = values
        entry = cls((cluster, id, submit))
        entry.number, entry._settled = number, settled
        entry.state = _State(request=Demand(), **dict(zip(_BRIEF, rest, strict=True)))
        entry._base = attrs.evolve(entry.state)
        return entry

    @classmethod
    def from_document(cls, document: Mapping[str, Any], cluster: str) -> Entry:
        """Return the entry of a document."""
        entry = cls((cluster, document["job"], document["submit"]))
        entry.number = document["number"]
        values = dict(document.get("base", {}))
        if values:
            told = None if values["request"] is None else event_of(values["request"])
            values["request"] = told.request if isinstance(told, Submitted) else None
            values["nodes"] = tuple((name, cores) for name, cores in values["nodes"])
            values["since"] = float("-inf") if values["since"] is None else values["since"]
            entry._base = _State(**values)
            entry._settled = document["settled"]
        for each in document["facts"]:
            event = event_of(each)
            assert isinstance(event, JobEvent)
            entry.facts.append(_fact(event))
        entry.state = entry.at(float("inf"))
        return entry


_BRIEF = ("phase", "started", "attempts", "first_start", "last_start", "ended", "status")


def _document_of(state: _State, key: JobKey) -> dict[str, Plain]:
    values: dict[str, Any] = attrs.asdict(state, recurse=False)
    if state.request is not None:
        cluster, job, submit = key
        told = Submitted(cluster=cluster, job=job, submit=submit, time=submit, request=state.request)
        values["request"] = told.document()
    values["since"] = None if state.since == float("-inf") else state.since
    values["nodes"] = [list(each) for each in state.nodes]
    return values


def _fact(event: JobEvent) -> tuple[float, int, JobEvent]:
    return event.submit if isinstance(event, Submitted) else event.time, _RANK[type(event)], event


def _when(fact: tuple[float, int, JobEvent]) -> tuple[float, int]:
    return fact[:2]


def _time(fact: tuple[float, int, JobEvent]) -> float:
    return fact[0]


def _before(facts: Iterable[tuple[float, int, JobEvent]], until: float) -> float:
    return max(time for time, _, _ in facts if time < until)


def _same(one: JobEvent, other: JobEvent) -> bool:
    """Whether two events of one instant, kind and job are equal, apart from their numbers."""
    return one == other or attrs.evolve(one, sequence=None) == attrs.evolve(other, sequence=None)


def _text(event: JobEvent) -> str:
    return attrs.evolve(event, sequence=None).line()


def _step(state: _State, events: list[JobEvent]) -> None:
    """Change a state by the events of one instant, sorted by rank: each as soon as it is possible."""
    moves = []
    for event in events:
        if isinstance(event, (Started, Ended, Requeued)):
            moves.append(event)
        elif isinstance(event, Submitted):
            state.ask(event.request, event.submit)
            state.held, state.phase = event.held, "waiting"
            state.since = event.submit
        elif isinstance(event, Changed):
            if state.request is not None:
                state.ask(event.request, event.time)
        else:
            state.held = isinstance(event, OnHold)
            if not state.held and state.request is not None and state.request.on_hold:
                state.released = event.time
    while moves:
        for event in moves:
            if state.possible(event):
                break
        else:
            break
        moves.remove(event)
        if isinstance(event, Started):
            state.start(event)
        elif isinstance(event, Ended):
            state.end(event)
        else:
            state.requeue(event)
    for event in moves:
        if isinstance(event, Started):
            state.learn(event)
