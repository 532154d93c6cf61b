"""The ledger: the events of each job, received in any order and any number of times.

The state of a job follows from the set of its events, sorted by their times: it does not matter in which order
they came, nor how often. An event that comes in order costs one step, a late one sorts the few events of its job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from simmodel_site.twin.mirror.job_history import Entry, Order

if TYPE_CHECKING:
    from simmodel.extending import Plain
    from simmodel_site.twin.events import Demand, JobEvent, JobKey

__all__ = ["Ledger"]


class Ledger:
    """The jobs known from events, by (cluster, id, submission).

    Jobs that are over are remembered until as many others have ended after them as ``remembered``, so that repeated
    events of them do nothing; as many events of unknown jobs wait for their submissions.

    Parameters
    ----------
    remembered
        as above

    Attributes
    ----------
    entries
        all that is remembered
    count
        the number of jobs whose submission is known
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
        if request is not None and entry.state.request is not request:
            self._drop_dependencies(entry, request)
        alive = entry.alive
        if alive:
            self._note_dependencies(entry)
        if alive != before or not known:
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

    def _drop_dependencies(self, entry: Entry, request: Demand) -> None:
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
            elif after in ("success", "failure") and (after == "success") != (other.state.status == "completed"):
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
        return {
            "count": self.count,
            "unknown": [self.entries[key].document() for key in self._unknown],
            "over": [self.entries[key].brief() for key in self._over],
            "alive": [entry.document() for entry in self._alive.values()],
        }

    def restore(self, document: Mapping[str, Any], cluster: str) -> None:
        """Restore the jobs of a cluster from a document."""
        self.count = document["count"]
        for each in document["unknown"]:
            entry = Entry.from_document(each, cluster)
            self.entries[entry.key] = entry
            self._unknown[entry.key] = None
        known = [Entry.from_brief(each, cluster) for each in document["over"]]
        known += [Entry.from_document(each, cluster) for each in document["alive"]]
        for entry in known:
            self.entries[entry.key] = entry
            self._greatest = max(self._greatest, entry.order)
            before = self._latest.get(entry.id)
            if before is None or before.submit < entry.submit:
                self._latest[entry.id] = entry
        for entry in known:
            entry.superseded = self._latest[entry.id] is not entry
            if entry.alive:
                self._alive[entry.key] = entry
                self._note_dependencies(entry)
            else:
                self._over[entry.key] = None
