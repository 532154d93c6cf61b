"""Custom memory pools: the page cache against a plain LRU of pages, pinned data, and what a model may override."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import ceil
from typing import Any

import pytest

from simmodel.environment import Environment
from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.resources import MemoryPool
from simmodel.resources.ready.memories import PageCache, PinnedPool
from simmodel.results.machine import MachineResult
from simmodel.runs import simulate, start
from simmodel.systems.machine.system import Machine
from simmodel.testing import check_resource
from simmodel.work.taskset import TaskSet

SIZE, PAGE = 60.0, 7.0


class OneAtATime(MemoryPool):
    """It serves one task at a time."""

    def admits(self, task: Any) -> bool:
        """Return whether no other task uses it."""
        return not self.takers


class Hoard(MemoryPool):
    """It never drops anything."""

    def may_evict(self, data: Any) -> bool:
        """Return whether data may go."""
        return False


class Forgetful(MemoryPool):
    """It does not count the bytes of data that it drops."""

    def forget(self, data: Any, kept: float = 0.0) -> None:
        """Drop a copy."""
        super().forget(data, kept)
        self.used += data.size


def machine_of(
    model: type | None,
    options: Mapping[str, Any] | None = None,
    *,
    processors: int = 1,
    size: float = SIZE,
    evict: str = "lru",
) -> MachineSpec:
    return MachineSpec(
        pools=[
            MemoryPoolSpec(name="disk"),
            MemoryPoolSpec(name="cache", size=size, evict=evict, model=model, options=options or {}),
        ],
        architectures=[ArchitectureSpec(name="any")],
        processors=[ProcessorSpec(name="core", type="GPU", architecture="any", pool="cache", count=processors)],
        links=[LinkSpec(name="bus", bandwidth=10, between=("disk", "cache"))],
        home="disk",
    )


def moved(result: MachineResult) -> list[tuple[str, float, str]]:
    """Return the data that moved, their bytes, and the cause."""
    table = result.transfers
    if table is None:
        return []
    return list(zip(*(table[name].tolist() for name in ("object", "bytes", "cause")), strict=True))


# ---------------------------------------------------------------------- the page cache


class PlainLRU:
    """Pages in the order of their last use; the last page of an object has only its own bytes."""

    def __init__(self, sizes: list[float], size: float, page: float) -> None:
        self.sizes, self.size, self.page = sizes, size, page
        self.pages: list[tuple[int, int]] = []  # the least recently used first

    def bytes_of(self, page: tuple[int, int]) -> float:
        return min(self.page, self.sizes[page[0]] - page[1] * self.page)

    def read(self, thing: int) -> float:
        """Read an object from its first to its last page; return the bytes of the pages that were not there."""
        wanted = [(thing, k) for k in range(ceil(self.sizes[thing] / self.page))]
        missing = [page for page in wanted if page not in self.pages]
        self.pages = [page for page in self.pages if page not in wanted]
        while sum(map(self.bytes_of, self.pages + wanted)) > self.size:
            self.pages.pop(0)
        self.pages += wanted
        return sum(map(self.bytes_of, missing))


def _agrees(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [float(rng.randint(1, 40)) for _ in range(rng.randint(2, 7))]
    reads = [rng.randrange(len(sizes)) for _ in range(25)]
    plain = PlainLRU(sizes, SIZE, PAGE)
    expected = [bytes_ for bytes_ in map(plain.read, reads) if bytes_]
    simulation = start(
        machine_of(PageCache, {"page": PAGE}), TaskSet([1.0] * 25, inputs=[(d,) for d in reads], sizes=sizes)
    )
    simulation.run()
    result = simulation.result()
    assert isinstance(result, MachineResult)
    assert [bytes_ for _, bytes_, _ in moved(result)] == pytest.approx(expected)
    pool = simulation.system.pools["cache"]  # type: ignore[attr-defined]
    here = {int(data.name[1:]): data.size for data in pool.held} | {int(d.name[1:]): b for d, b in pool.parts.items()}
    assert here == pytest.approx({d: sum(plain.bytes_of(page) for page in plain.pages if page[0] == d) for d in here})
    assert {page[0] for page in plain.pages} == set(here)
    assert pool.used == pytest.approx(sum(here.values()))


@pytest.mark.parametrize("seed", range(60))
def test_a_page_cache_agrees_with_a_plain_lru(seed: int) -> None:
    _agrees(seed)


@pytest.mark.exhaustive
def test_a_page_cache_agrees_with_a_plain_lru_on_1000_traces() -> None:
    for seed in range(1000):
        _agrees(seed)


def test_only_the_pages_that_left_are_read_again() -> None:
    # 60 bytes: a (40) and b (15) fit; c (25) drops 3 pages of a (21 bytes), which b's return does not change.
    tasks = TaskSet([1.0] * 5, inputs=[(0,), (1,), (2,), (1,), (0,)], sizes=[40.0, 15.0, 25.0], names=["a", "b", "c"])
    result = simulate(machine_of(PageCache, {"page": PAGE}), tasks, "hrr")
    assert moved(result) == [
        ("a", 40.0, "input"), ("b", 15.0, "input"), ("c", 25.0, "input"), ("a", 21.0, "input"),
    ]  # fmt: skip
    assert result.tasks["transfer_end"][4] - result.tasks["transfer_start"][4] == pytest.approx(2.1)


def test_what_was_written_is_written_back_whole_before_it_leaves() -> None:
    tasks = TaskSet(
        [1.0, 1.0, 1.0],
        inputs=[(), (1,), (0,)],
        outputs=[(0,), (), ()],
        sizes=[40.0, 50.0],
        names=["new", "old"],
        parents=[(), (0,), (1,)],
    )
    result = simulate(machine_of(PageCache, {"page": PAGE}), tasks, "hrr")
    assert moved(result) == [("new", 40.0, "write-back"), ("old", 50.0, "input"), ("new", 40.0, "input")]


def test_data_that_are_rewritten_elsewhere_come_whole() -> None:
    # a is in part in the cache when a task on the host writes it again.
    spec = MachineSpec(
        pools=[
            MemoryPoolSpec(name="disk"),
            MemoryPoolSpec(name="cache", size=SIZE, model=PageCache, options={"page": PAGE}),
        ],
        architectures=[ArchitectureSpec(name="any")],
        processors=[
            ProcessorSpec(name="host", type="CPU", architecture="any", pool="disk"),
            ProcessorSpec(name="gpu", type="GPU", architecture="any", pool="cache"),
        ],
        links=[LinkSpec(name="bus", bandwidth=10, between=("disk", "cache"))],
    )
    tasks = TaskSet(
        [1.0] * 4,
        inputs=[(0,), (1,), (0,), (0,)],
        outputs=[(), (), (0,), ()],
        sizes=[40.0, 30.0],
        names=["a", "b"],
        parents=[(), (0,), (1,), (2,)],
        implementations=[("GPU",), ("GPU",), ("CPU",), ("GPU",)],
    )
    result = simulate(spec, tasks, "hrr")
    assert moved(result) == [("a", 40.0, "input"), ("b", 30.0, "input"), ("a", 40.0, "input")]


@pytest.mark.parametrize("evict", ["lru", "lfu", "size", "fifo"])
def test_pages_as_large_as_objects_are_a_plain_pool(evict: str) -> None:
    rng = random.Random(evict)
    sizes = [float(rng.randint(1, 25)) for _ in range(8)]
    inputs = [tuple(sorted({rng.randrange(8), rng.randrange(8)})) for _ in range(60)]
    work = TaskSet([1.0] * 60, inputs=inputs, sizes=sizes)
    plain, paged = (
        simulate(machine_of(model, options, processors=2, size=100.0, evict=evict), work, "hrr")
        for model, options in ((None, None), (PageCache, {"page": 1000}))
    )
    assert moved(paged) == moved(plain)
    assert paged.tasks["end"].tolist() == plain.tasks["end"].tolist()


def test_a_cut_run_moves_the_same_bytes() -> None:
    rng = random.Random(5)
    sizes = [float(rng.randint(10, 30)) for _ in range(6)]
    work = TaskSet([1.0] * 40, inputs=[(rng.randrange(6),) for _ in range(40)], sizes=sizes)
    spec = machine_of(PageCache, {"page": PAGE}, processors=2, size=80.0)
    whole = simulate(spec, work, "hrr")
    for cut in (7.3, 20.0, 41.7):
        part = start(spec, work, "hrr")
        part.run(until=cut)
        before = len(moved(part.result()))  # type: ignore[arg-type]
        again = start(part.snapshot())
        again.run()
        assert moved(again.result()) == moved(whole)[before:]  # type: ignore[arg-type]


# ---------------------------------------------------------------------- other models


def test_pinned_data_come_once() -> None:
    tasks = TaskSet(
        [1.0] * 5,
        inputs=[(0,), (1,), (2,), (0,), (1,)],
        sizes=[30.0, 20.0, 25.0],
        names=["weights", "a", "b"],
    )
    pinned = simulate(machine_of(PinnedPool, {"pinned": ["weights"]}), tasks, "hrr")
    plain = simulate(machine_of(None), tasks, "hrr")
    assert [name for name, _, _ in moved(pinned)] == ["weights", "a", "b", "a"]
    assert [name for name, _, _ in moved(plain)] == ["weights", "a", "b", "weights", "a"]


def test_a_model_may_admit_tasks_one_by_one() -> None:
    work = TaskSet([2.0] * 3, memory=[1.0] * 3)
    assert simulate(machine_of(OneAtATime, processors=3), work, "hrr").tasks["end"].tolist() == [2.0, 4.0, 6.0]
    assert simulate(machine_of(None, processors=3), work, "hrr").tasks["end"].tolist() == [2.0, 2.0, 2.0]


def test_a_pool_of_a_class_of_its_own_is_in_the_record() -> None:
    tasks = TaskSet([1.0, 1.0], inputs=[(0,), (0,)], sizes=[40.0])
    result = simulate(machine_of(PageCache, {"page": PAGE}), tasks, "hrr")
    assert result.peaks["cache"] == 40.0
    assert result.memory["cache"].values.tolist() == [40.0]
    machine = Machine(Environment(), machine_of(PageCache, {"page": PAGE}))
    assert repr(machine.pools["cache"]) == "<PageCache cache: 0 of 60 bytes used, 0 data objects>"


@pytest.mark.long  # smaller: the other tests of the file
def test_check_resource_passes_models_of_pools() -> None:
    check_resource("page-cache", page=2)
    check_resource("pinned", pinned=["a-in1"])
    check_resource(OneAtATime)


@pytest.mark.parametrize(
    ("model", "says"),
    [(Hoard, "Hoard: tasks never end"), (Forgetful, "Forgetful: .*own|Forgetful: tasks never end")],
)
def test_wrong_pools_are_told_what_they_do_wrong(model: type, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_resource(model)
