"""The ledger: what has been told of each job and each node, in any order and any number of times.

The state of a job follows from the set of events told of it, sorted by their times: it does not matter in which order
they came, nor how often. An event that comes in order costs one step, a late one sorts the few events of its job.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Literal, TypeAlias

import attrs

from simmodel.errors import Plain
from simmodel.twin.events import (
    Changed,
    Ended,
    Held,
    JobEvent,
    JobKey,
    Released,
    Request,
    Requeued,
    Started,
    Submitted,
    event_of,
)

__all__ = ["Entry", "Ledger", "Order", "natural_order"]

Phase: TypeAlias = Literal["unknown", "waiting", "running", "over"]
Order: TypeAlias = tuple[Any, ...]
"""The place of a job in the order of submission: the instant, then the id."""

_RANK = {Submitted: 0, Held: 1, Released: 2, Changed: 3, Started: 4, Ended: 5, Requeued: 6}
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

    request: Request | None = None
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
        """Take over where the job runs from another telling of its start."""
        if self.phase == "running" and (event.nodes or event.partition is not None):
            self.partition = self.partition if event.partition is None else event.partition
            self.nodes = event.nodes or self.nodes

    def end(self, event: Ended) -> None:
        """Be over; a job that has not started leaves the queue."""
        self.phase, self.ended, self.status, self.since = "over", event.time, event.status, event.time

    def requeue(self, event: Requeued) -> None:
        """Wait again."""
        self.last_start, self.started = self.started, None
        self.phase, self.ended, self.status, self.since = "waiting", None, None, event.time
        self.partition, self.nodes = None, ()


class Entry:
    """What is known of one job.

    Attributes
    ----------
    key, order
        cluster, id and submission; its place in the order of submission
    number
        its number in that order, among all jobs that were ever told; -1: its submission has not been told
    state
        its request and state: see the properties
    superseded
        whether a later job has its id: it is over
    facts
        the events told of it, sorted by (time, rank)
    """

    __slots__ = ("_base", "_settled", "facts", "key", "number", "order", "state", "superseded")

    def __init__(self, key: JobKey) -> None:
        self.key = key
        _, id, submit = key
        self.order: Order = (submit, natural_order(id), isinstance(id, str))
        self.number = -1
        self.superseded = False
        self.facts: list[tuple[float, int, JobEvent]] = []
        self.state = _State()
        self._base = _State()  # before the facts
        self._settled = float("-inf")  # the instant up to which facts are in the base

    def __repr__(self) -> str:
        return f"<job {self.id} of {self.submit:g} s: {self.state.phase}>"

    @property
    def id(self) -> int | str:
        """The id of the job."""
        return self.key[1]

    @property
    def submit(self) -> float:
        """The instant of its submission (s)."""
        return self.key[2]

    @property
    def alive(self) -> bool:
        """Whether it waits or runs, as far as is known."""
        return self.state.phase in ("waiting", "running") and not self.superseded

    @property
    def request(self) -> Request:
        """What it asks for."""
        assert self.state.request is not None
        return self.state.request

    @property
    def last_told(self) -> float:
        """The instant (s) of the last event told of it."""
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
        """Take the older half of the facts into the base: what is told of these instants from now on comes too late."""
        until = self.facts[_MANY // 2][0]
        if until > self.facts[0][0]:
            self._base = self.at(_before(self.facts, until))
            self.facts = [fact for fact in self.facts if fact[0] >= until]
            self._settled = until

    # ------------------------------------------------------------------ documents

    def document(self, *, brief: bool = False) -> dict[str, Plain]:
        """Return what is known as plain values; ``brief``: the state, without what led to it and the request."""
        base, settled, facts = self._base, self._settled, self.facts
        if brief:
            base, settled, facts = attrs.evolve(self.state, request=Request()), self.last_told, []
        document: dict[str, Plain] = {"number": self.number, "facts": [event.document() for _, _, event in facts]}
        if base != _State():
            values: dict[str, Any] = attrs.asdict(base, recurse=False)
            if base.request is not None:
                cluster, job, submit = self.key
                told = Submitted(cluster=cluster, job=job, submit=submit, time=submit, request=base.request)
                values["request"] = told.document()
            values["since"] = None if base.since == float("-inf") else base.since
            values["nodes"] = [list(each) for each in base.nodes]
            document |= {"base": values, "settled": settled}
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any], key: JobKey) -> Entry:
        """Return the entry of a document."""
        entry = cls(key)
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


def _fact(event: JobEvent) -> tuple[float, int, JobEvent]:
    return event.submit if isinstance(event, Submitted) else event.time, _RANK[type(event)], event


def _when(fact: tuple[float, int, JobEvent]) -> tuple[float, int]:
    return fact[:2]


def _time(fact: tuple[float, int, JobEvent]) -> float:
    return fact[0]


def _before(facts: Iterable[tuple[float, int, JobEvent]], until: float) -> float:
    return max(time for time, _, _ in facts if time < until)


def _same(one: JobEvent, other: JobEvent) -> bool:
    """Whether two events of one instant, kind and job tell the same."""
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
            state.request, state.held, state.phase = event.request, event.held, "waiting"
            state.since = event.submit
        elif isinstance(event, Changed):
            if state.request is not None:
                state.request = event.request
        else:
            state.held = isinstance(event, Held)
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


class Ledger:
    """The jobs that were told, by (cluster, id, submission).

    Jobs that are over are remembered until as many others have ended after them as ``remembered``, so that what is told
    of them again does nothing; as many events of unknown jobs wait for their submissions.

    Parameters
    ----------
    remembered
        as above

    Attributes
    ----------
    entries
        all that is remembered
    count
        the number of jobs whose submission was told
    """

    def __init__(self, remembered: int = 10_000) -> None:
        self.remembered = remembered
        self.entries: dict[JobKey, Entry] = {}
        self.count = 0
        self._greatest: Order = ()
        self._latest: dict[int | str, Entry] = {}
        self._alive: dict[JobKey, Entry] = {}
        self._over: dict[JobKey, None] = {}  # in the order in which they were found to be over
        self._unknown: dict[JobKey, None] = {}
        self._dependents: dict[int | str, dict[JobKey, None]] = {}

    def __len__(self) -> int:
        return len(self._alive)

    def alive(self) -> Iterator[Entry]:
        """Yield the jobs that wait or run, in no particular order."""
        yield from self._alive.values()

    def entry(self, id: int | str) -> Entry | None:
        """Return the last job of an id."""
        return self._latest.get(id)

    def tell(self, event: JobEvent) -> tuple[list[Entry], bool]:
        """Take an event; return the entries that it changed, and whether numbers of other jobs changed."""
        key = event.key
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry(key)
        before, request = entry.alive, entry.state.request
        known = request is not None
        if not entry.tell(event):
            return [], False
        if entry.state.request is None:
            self._keep(self._unknown, key)
            return [], False
        changed, moved = [entry], False
        if not known:
            self._unknown.pop(key, None)
            moved = self._give_number(entry)
            changed = [*self._supersede(entry), entry]  # its id must be free before it comes in
        if entry.request is not request and request is not None:
            self._drop_dependencies(entry, request)
        if entry.alive:
            self._note_dependencies(entry)
        if entry.alive != before or not known:
            self._file(entry)
        return changed, moved

    def _file(self, entry: Entry) -> None:
        """Count an entry as alive or over."""
        if entry.alive:
            self._over.pop(entry.key, None)
            self._alive[entry.key] = entry
        else:
            self._alive.pop(entry.key, None)
            self._drop_dependencies(entry, entry.request)
            self._keep(self._over, entry.key)

    def _keep(self, which: dict[JobKey, None], key: JobKey) -> None:
        """Remember an entry that is not alive, and forget the oldest of its sort if there are too many."""
        which[key] = None
        for _ in range(len(which) - self.remembered):
            oldest = next(iter(which))
            del which[oldest]
            if which is self._over and self._dependents.get(oldest[1]):
                which[oldest] = None  # others wait for it
                continue
            entry = self.entries.pop(oldest)
            if self._latest.get(entry.id) is entry:
                del self._latest[entry.id]

    def _give_number(self, entry: Entry) -> bool:
        """Give a job its number in the order of submission; return whether later jobs have moved."""
        self.count += 1
        if entry.order > self._greatest:
            self._greatest = entry.order
            entry.number = self.count - 1
            return False
        later = [each for each in self.entries.values() if each.number >= 0 and each.order > entry.order]
        entry.number = min((each.number for each in later), default=self.count - 1)
        for each in later:
            each.number += 1
        return bool(later)

    def _supersede(self, entry: Entry) -> list[Entry]:
        """Note that an id is used again; return the entries that are over thereby, other than this one."""
        before = self._latest.get(entry.id)
        if before is None or before.submit < entry.submit:
            self._latest[entry.id] = entry
            if before is None:
                return []
            before.superseded = True
            self._file(before)
            return [before]
        entry.superseded = True
        return []

    # ------------------------------------------------------------------ dependencies

    def _note_dependencies(self, entry: Entry) -> None:
        for id, _ in entry.request.dependencies:
            self._dependents.setdefault(id, {})[entry.key] = None

    def _drop_dependencies(self, entry: Entry, request: Request) -> None:
        for id, _ in request.dependencies:
            there = self._dependents.get(id, {})
            there.pop(entry.key, None)
            if not there:
                self._dependents.pop(id, None)

    @property
    def has_dependencies(self) -> bool:
        """Whether a job that waits or runs names jobs that it has waited for."""
        return bool(self._dependents)

    def dependents(self, entry: Entry) -> list[Entry]:
        """Return the jobs that name a job among their dependencies."""
        there = self._dependents.get(entry.id)
        return [] if there is None else [self.entries[key] for key in there]

    def open_dependencies(self, entry: Entry) -> tuple[tuple[int | str, str], ...] | None:
        """Return the dependencies of a job that are not met; ``None`` if one can no longer be met.

        A job of which nothing is known, or not any more, does not keep others waiting.
        """
        found = []
        for id, after in entry.request.dependencies:
            other = self._latest.get(id)
            if other is None or other is entry:
                continue
            if other.alive:
                if after != "start" or not other.state.attempts:
                    found.append((id, after))
            elif after == "success" and other.state.status != "completed":
                return None
        return tuple(found)

    def eligible(self, entry: Entry) -> float | None:
        """Return the instant (s) at which the dependencies of a job were met, if that is after its submission."""
        met = [entry.submit]
        for id, after in entry.request.dependencies:
            other = self._latest.get(id)
            if other is not None and other is not entry:
                state = other.state
                at = state.first_start if after == "start" and state.first_start is not None else state.ended
                met.append(entry.submit if at is None else at)
        return max(met) if max(met) > entry.submit else None

    def wish(self, entry: Entry) -> Literal["out", "waiting", "running"]:
        """Return how a job stands in a mirrored cluster: outside while it is held, or if it waits in vain."""
        if not entry.alive:
            return "out"
        if entry.state.phase == "running":
            return "running"
        if entry.state.held or (entry.request.dependencies and self.open_dependencies(entry) is None):
            return "out"
        return "waiting"

    # ------------------------------------------------------------------ documents

    def document(self) -> dict[str, Plain]:
        """Return all that is known as plain values; of jobs that are over, only that."""
        order = [*self._unknown, *self._over, *self._alive]
        jobs = [
            {"job": key[1], "submit": key[2], **self.entries[key].document(brief=key in self._over)} for key in order
        ]
        return {"count": self.count, "jobs": jobs}

    def restore(self, document: Mapping[str, Any], cluster: str) -> None:
        """Take over what a document knows of the jobs of a cluster."""
        self.count = document["count"]
        for each in document["jobs"]:
            key = cluster, each["job"], each["submit"]
            entry = self.entries[key] = Entry.from_document(each, key)
            if entry.state.request is None:
                self._unknown[key] = None
                continue
            self._greatest = max(self._greatest, entry.order)
            before = self._latest.get(entry.id)
            if before is None or before.submit < entry.submit:
                self._latest[entry.id] = entry
            entry.superseded = before is not None and before.submit > entry.submit
            if before is not None:
                before.superseded = before.submit < entry.submit
        for entry in self.entries.values():
            if entry.state.request is None:
                continue
            if entry.alive:
                self._alive[entry.key] = entry
                self._note_dependencies(entry)
            else:
                self._over[entry.key] = None
