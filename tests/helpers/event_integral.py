"""An independent account of a cluster: what is held, in service and drawn, event by event, from nothing but hooks.

It imports nothing from the records and the metrics: it is what they are held against.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from simmodel import Observer


class Held(NamedTuple):
    """What one execution or claim holds: the processors that it asked for, and (cores, GPUs, bytes) of its nodes."""

    holder: Any
    since: float
    processors: int
    nodes: dict[int, tuple[int, int, int]] | None

    @property
    def cores(self) -> int:
        """The cores that it has, more than it asked for on whole nodes."""
        return self.processors if self.nodes is None else sum(cores for cores, _, _ in self.nodes.values())


class Figures(NamedTuple):
    """The figures of one place from an instant on."""

    busy: int
    allocated: int
    there: int
    watts: float  # linear in the cores held
    watts_by_node: float  # load power of each node on which anything runs


class Span(NamedTuple):
    """One execution or claim from its begin to its end; ``end`` is ``None`` while it holds."""

    place: str
    holder: Any
    start: float
    end: float | None
    processors: int
    nodes: tuple[int, ...] | None


class EventIntegral(Observer):
    """Keeps what every execution and claim holds, and checks that nothing is ever held twice.

    Attributes
    ----------
    steps
        (instant in s, figures by place) after each event
    spans
        all executions and claims that gave their capacity back
    """

    def __init__(self, cluster: Any) -> None:
        self.env = cluster.env
        self.places = {place.name: place for place in cluster.places}
        self.kinds = {
            name: [kind for kind in place.spec.nodes for _ in range(kind.count)] for name, place in self.places.items()
        }
        self.held: dict[str, dict[Any, Held]] = {name: {} for name in self.places}
        self.size = {name: place.capacity for name, place in self.places.items()}
        self.spans: list[Span] = []
        self.steps: list[tuple[float, dict[str, Figures]]] = []
        self._note()

    # ------------------------------------------------------------------ hooks

    def job_started(self, run: Any) -> None:
        self._take(run.place, run.job, run.job.id, run.job.processors, run.grant)

    job_resumed = job_started

    def job_ended(self, run: Any, status: str) -> None:
        self._free(run.place, run.job)

    def job_suspended(self, run: Any) -> None:
        self._free(run.place, run.job)

    def job_resized(self, run: Any, processors: int, grant: Any) -> None:
        self._resize(run.place, run.job, processors, run.job.processors, run.grant)

    def claim_resized(self, claim: Any, processors: int, grant: Any) -> None:
        self._resize(claim.place, claim, processors, claim.job.processors, claim.grant)

    def claim_granted(self, claim: Any) -> None:
        self._take(claim.place, claim, claim.job.id, claim.job.processors, claim.grant)

    def claim_ended(self, claim: Any, status: str) -> None:
        self._free(claim.place, claim)

    def place_changed(self, place: Any, cause: str) -> None:
        self.size[place.name] = max(place.capacity, self._total(place))  # what runs may stay in a smaller pool
        self._note()

    def _take(
        self, place: Any, who: Any, name: Any, processors: int, grant: Any, before: set[int] | None = None
    ) -> None:
        nodes = None
        if grant.nodes is not None:
            nodes = {node: tuple(amounts) for node, *amounts in grant.allocation.rows}
            new = set(nodes) - (before or set())  # a job keeps nodes that drain
            assert not new & set(place.down_nodes), f"{name} got a node of {place.name} that is down"
        here = self.held[place.name]
        assert who not in here, f"{name} holds its part of {place.name} twice"
        here[who] = Held(name, float(self.env.now), processors, nodes)
        self._note()

    def _resize(self, place: Any, who: Any, before: int, processors: int, grant: Any) -> None:
        held = self.held[place.name].pop(who)
        assert held.processors == before
        self.spans.append(self._span(place.name, held, float(self.env.now)))
        self._take(place, who, held.holder, processors, grant, before=set(held.nodes or ()))

    def _free(self, place: Any, who: Any) -> None:
        held = self.held[place.name].pop(who)
        self.spans.append(self._span(place.name, held, float(self.env.now)))
        whole = place.part_of or place
        self.size[whole.name] = max(whole.capacity, min(self.size[whole.name], self._total(whole)))
        self._note()

    def _span(self, place: str, held: Held, end: float | None) -> Span:
        nodes = None if held.nodes is None else tuple(sorted(held.nodes))
        return Span(place, held.holder, held.since, end, held.processors, nodes)

    def all_spans(self) -> list[Span]:
        """Return every execution and claim, those that still hold last."""
        return self.spans + [self._span(name, each, None) for name, here in self.held.items() for each in here.values()]

    # ------------------------------------------------------------------ figures

    def _note(self) -> None:
        now = float(self.env.now)
        if self.steps and now > self.steps[-1][0]:
            self.check()  # what was held until now
        self.steps.append((now, {name: self._figures(name) for name in self.places}))

    def _figures(self, name: str) -> Figures:
        place, held = self.places[name], self.held[name].values()
        busy, allocated = sum(each.processors for each in held), sum(each.cores for each in held)
        spec = place.spec
        if not self.kinds[name]:
            there = max(place.up, allocated)
            watts = spec.idle_power * there + (spec.load_power - spec.idle_power) * busy
            return Figures(busy, allocated, there, watts, watts)
        used = self._used(name)
        down = set(place.down_nodes)
        there, watts, by_node = 0, 0.0, 0.0
        for node, kind in enumerate(self.kinds[name]):
            cores = used[node][0]
            if node in down and not cores:
                continue
            there += cores if node in down else kind.cores
            watts += kind.idle_power + (kind.load_power - kind.idle_power) * cores / kind.cores
            by_node += kind.load_power if cores else kind.idle_power
        return Figures(busy, allocated, there, watts, by_node)

    def _used(self, name: str) -> dict[int, list[int]]:
        """Return the cores, GPUs and bytes of memory held of each node."""
        used: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        for each in self.held[name].values():
            for node, amounts in (each.nodes or {}).items():
                used[node] = [have + more for have, more in zip(used[node], amounts, strict=True)]
        return used

    def _inside(self, place: Any) -> list[Any]:
        return [other for other in self.places.values() if other.part_of is place]

    def _total(self, place: Any) -> int:
        """Return the processors held of a partition, by itself and by its reservations."""
        return sum(each.cores for some in (place, *self._inside(place)) for each in self.held[some.name].values())

    def check(self) -> None:
        """Check that nothing is held twice: also not by a partition and by its reservations."""
        for name, place in self.places.items():
            if place.part_of is not None:
                continue
            if not self.kinds[name]:
                total = self._total(place)
                assert total <= self.size[name], f"{total} of {self.size[name]} processors of {name} at {self.env.now}"
                continue
            used = self._used(name)
            for other in self._inside(place):
                for own, amounts in self._used(other.name).items():
                    node = other.taken[own]
                    used[node] = [have + more for have, more in zip(used[node], amounts, strict=True)]
            for node, amounts in used.items():
                kind = self.kinds[name][node]
                most = (kind.cores, kind.gpus, kind.memory or float("inf"))
                assert all(have <= limit for have, limit in zip(amounts, most, strict=True)), (self.env.now, node)

    def over_time(self, place: str | None, what: str, start: float, end: float) -> list[tuple[float, float]]:
        """Return (instant, value) of a figure of one place or of all, where it holds for some time."""
        found: list[tuple[float, float]] = []
        until = [at for at, _ in self.steps[1:]] + [end]
        for (since, figures), stop in zip(self.steps, until, strict=True):
            if min(stop, end) > max(since, start):
                names = self.places if place is None else (place,)
                found.append((max(since, start), float(sum(getattr(figures[name], what) for name in names))))
        return found

    def integral(self, place: str | None, what: str, start: float, end: float) -> float:
        """Return the integral of a figure over time."""
        steps = self.over_time(place, what, start, end)
        until = [at for at, _ in steps[1:]] + [end]
        return sum(value * (stop - at) for (at, value), stop in zip(steps, until[: len(steps)], strict=True))
