"""Eviction rules against plain simulations that sort all candidates at each eviction, and against Belady's bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from simmodel.environment import Environment
from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import MemoryPoolSpec
from simmodel.platform.models import EVICTIONS
from simmodel.platform.storage import StorageSpec
from simmodel.resources.data.eviction import Candidate, Eviction, EvictionOrder, eviction_rule, register_eviction
from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.data.storage import Storage
from simmodel.work.taskset import LiveData

RULES = ["lru", "lfu", "size", "fifo"]
CAPACITY = 12


@dataclass
class Past:
    name: str
    size: int
    arrival: int
    last: int
    uses: int = 0
    pins: int = 0


KEYS: dict[str, Callable[[Past], Any]] = {
    "lru": lambda past: past.last,
    "lfu": lambda past: (past.uses, past.last),
    "size": lambda past: (-past.size, past.arrival),
    "fifo": lambda past: past.arrival,
}


@dataclass
class PlainCache:
    """A cache of limited size that sorts what it holds at each eviction."""

    rule: str
    capacity: int = CAPACITY
    held: dict[str, Past] = field(default_factory=dict)
    clock: int = 0
    misses: int = 0

    def use(self, name: str, size: int, pins: int) -> bool:
        """Use a thing, which is brought first if it is not here; return whether there was room for it."""
        if name not in self.held:
            order = sorted((past for past in self.held.values() if not past.pins), key=KEYS[self.rule])
            free = self.capacity - sum(past.size for past in self.held.values())
            gone = []
            while free < size and order:
                gone.append(order.pop(0))
                free += gone[-1].size
            if free < size:
                return False
            for past in gone:
                del self.held[past.name]
            self.misses += 1
            self.clock += 1
            self.held[name] = Past(name, size, self.clock, self.clock)
        past = self.held[name]
        self.clock += 1
        past.last = self.clock
        past.uses += 1
        past.pins += pins
        return True


def optimum(trace: list[str], capacity: int) -> int:
    """Return the misses of Belady's rule on things of size 1: the next use that is farthest away goes first."""
    held: set[str] = set()
    misses = 0
    for i, name in enumerate(trace):
        if name in held:
            continue
        misses += 1
        if len(held) == capacity:
            ahead = trace[i + 1 :]
            held.remove(max(held, key=lambda each: (ahead.index(each) if each in ahead else len(trace), each)))
        held.add(name)
    return misses


SEEDS = pytest.mark.parametrize(
    "seeds",
    [
        range(30),
        pytest.param(range(100), marks=pytest.mark.long),
        pytest.param(range(2000), marks=pytest.mark.exhaustive),
    ],
)


def drawn_trace(rng: Random) -> tuple[list[str], dict[str, int]]:
    """Draw a trace of uses, the popular ones often, and the sizes of all things."""
    names = [f"f{i}" for i in range(rng.randint(3, 25))]
    weights = [1 / (i + 1) ** rng.choice([0, 1, 2]) for i in range(len(names))]
    most = rng.choice([1, 3, 8])
    return rng.choices(names, weights, k=rng.randint(5, 60)), {name: rng.randint(1, most) for name in names}


@pytest.mark.parametrize("rule", RULES)
@SEEDS
def test_storages_evict_as_a_plain_simulation(rule: str, seeds: range) -> None:
    for seed in seeds:
        rng = Random(seed)
        trace, sizes = drawn_trace(rng)
        plain = PlainCache(rule)
        storage = Storage(Environment(), StorageSpec(capacity=CAPACITY, evict=rule))
        for name in trace:
            pins = rng.random() < 0.2
            if name in storage.files:
                storage.pin(name)
            else:
                storage.reserve(name, sizes[name], lambda: None)
                if storage.waiting:  # no room: all that is held is in use
                    storage.release(name)
                    assert not plain.use(name, sizes[name], pins)
                    continue
                storage.add(name, sizes[name])
                storage.pin(name)
            assert plain.use(name, sizes[name], pins)
            if not pins:
                storage.unpin(name)
            if rng.random() < 0.3 and (used := [each for each, past in plain.held.items() if past.pins]):
                freed = rng.choice(used)
                plain.held[freed].pins -= 1
                storage.unpin(freed)
            assert set(storage.files) == set(plain.held), (seed, name)
            assert storage.used == sum(sizes[each] for each in plain.held)


@pytest.mark.parametrize("rule", RULES)
@SEEDS
def test_memory_pools_evict_as_a_plain_simulation(rule: str, seeds: range) -> None:
    for seed in seeds:
        rng = Random(seed)
        trace, sizes = drawn_trace(rng)
        plain = PlainCache(rule)
        pool = MemoryPool(Environment(), MemoryPoolSpec(name="hbm", size=CAPACITY, evict=rule))
        data = {name: LiveData(name, float(size)) for name, size in sizes.items()}
        using: dict[str, list[Any]] = {name: [] for name in data}
        for name in trace:
            pins = rng.random() < 0.2
            if data[name] not in pool.held:
                pool.forget_unneeded(data[name].size)
                if not pool.room_for(data[name].size):
                    break  # pools drop what they can, even if it is not enough
                pool.put(data[name])
            task: Any = SimpleNamespace(memory=0.0, inputs=(data[name],), outputs=())
            assert pool.take(task) == ()
            assert plain.use(name, sizes[name], pins)
            if pins:
                using[name].append(task)
            else:
                pool.give_back(task, done=True)
            if rng.random() < 0.3 and (used := [each for each, past in plain.held.items() if past.pins]):
                freed = rng.choice(used)
                plain.held[freed].pins -= 1
                pool.give_back(using[freed].pop(), done=True)
            assert {each.name for each in pool.held} == set(plain.held), (seed, name)
            unused = sorted((past for past in plain.held.values() if not past.pins), key=KEYS[rule])
            assert [each.name for each in pool.unused()] == [past.name for past in unused]


@SEEDS
def test_no_rule_misses_less_than_beladys(seeds: range) -> None:
    for seed in seeds:
        trace, _ = drawn_trace(Random(seed))
        capacity = Random(seed).randint(1, 8)
        least = optimum(trace, capacity)
        for rule in RULES:
            storage = Storage(Environment(), StorageSpec(capacity=capacity, evict=rule))
            misses = 0
            for name in trace:
                if name not in storage.files:
                    misses += 1
                    storage.add(name, 1)
                storage.pin(name)
                storage.unpin(name)
            assert misses >= least, (seed, rule)
            assert storage.used <= capacity


def test_an_order_is_the_same_after_a_snapshot() -> None:
    rng = Random(7)
    order = EvictionOrder(eviction_rule("lfu"))
    for i in range(50):
        order.add(f"f{i}", 1.0, held=rng.random() < 0.2)
        for _ in range(rng.randint(0, 3)):
            order.use(f"f{rng.randint(0, i)}")
    clock, pasts = order.state()
    copy = EvictionOrder(eviction_rule("lfu"))
    for name, past in reversed(pasts.items()):
        copy.add(name, 1.0, held=order[name].entry is None)
        assert past.last <= clock
    copy.restore(clock, pasts)
    assert [each.name for each in copy] == [each.name for each in order]
    assert copy.state()[0] == clock
    for each in (order, copy):
        each.use("f3")
        each.add("new", 1.0)
    assert [(each.name, each.last) for each in copy] == [(each.name, each.last) for each in order]


def test_many_uses_leave_few_entries() -> None:
    order = EvictionOrder(eviction_rule("lru"))
    for name in "abc":
        order.add(name, 1.0)
    for _ in range(1000):
        order.use("a")
        order.use("c")
    assert len(order._heap) <= 80
    assert [each.name for each in order] == ["b", "a", "c"]


class SmallestFirst(Eviction):
    def key(self, candidate: Candidate) -> float:
        return candidate.size


def test_rules_of_ones_own() -> None:
    register_eviction("smallest", SmallestFirst)
    register_eviction("by-name", lambda candidate: candidate.name)
    try:
        for rule, first in (("smallest", "c"), ("by-name", "a"), ("smallest(last=true)", "c")):
            storage = Storage(Environment(), StorageSpec(capacity=10, evict=rule))
            for name, size in (("b", 5), ("a", 3), ("c", 2)):
                storage.add(name, size)
            storage.add("d", 1)
            assert first not in storage.files
            assert len(storage.files) == 3
    finally:
        del EVICTIONS["smallest"], EVICTIONS["by-name"]


def test_packages_offer_rules_as_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {"simmodel.evictions": {"mine": "tests.resources.data.test_eviction:SmallestFirst"}}
    monkeypatch.setattr("simmodel.foundation.entries.offered", offered.get)
    table = Entries[Any]({"own": "simmodel.resources.data.eviction:FirstIn"}, group="simmodel.evictions")
    assert table["own"].__name__ == "FirstIn"
    assert sorted(table) == ["mine", "own"]
    assert table["mine"].__name__ == "SmallestFirst"
    with pytest.raises(KeyError):
        table["other"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("lur", "storage disk, evict: unknown eviction rule 'lur'; did you mean 'lru'?"),
        ("lru(first=true)", "storage disk, evict: unknown parameter 'first'; known parameters: last"),
        ("lru(1", "storage disk, evict: missing ')' at the end"),
        ("none(last=true)", "storage disk, evict: unknown parameter 'last'"),
    ],
)
def test_wrong_rules_are_refused(given: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        Storage(Environment(), StorageSpec(name="disk", capacity=1, evict=given))
    assert str(error.value).startswith(message)


def test_memory_pools_need_a_rule_that_evicts() -> None:
    for rule in ("none", "lfu(last=true)"):
        with pytest.raises(InputError, match="memory pool hbm, evict: must be a rule that evicts all but last copies"):
            MemoryPool(Environment(), MemoryPoolSpec(name="hbm", evict=rule))
    for given in (3, int):
        with pytest.raises(InputError, match="must be a name, a subclass of Eviction or a function of candidates, got"):
            eviction_rule(given)  # type: ignore[arg-type]
