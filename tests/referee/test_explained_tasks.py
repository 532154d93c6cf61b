"""Why a task of a machine waited: by hand, and spans that fill the time from its submission to its start."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from simmodel import Start, Task, WakeAt, Workflow, simulate
from simmodel.foundation.errors import InputError
from simmodel.metrics.task_waits import bandwidth_grants, task_waits
from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.referee import explain
from simmodel.results import MachineResult


def machine(size: float = float("inf"), cores: int = 2) -> MachineSpec:
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram", size=size)],
        architectures=[ArchitectureSpec(name="x86")],
        processors=[ProcessorSpec(name="cpu", count=cores, type="CPUCore", architecture="x86", pool="ram")],
    )


def waits(found: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in found.spans.rows()]


FLOW = Workflow([Task(id="a", run=5), Task(id="b", run=3), Task(id="c", run=4), Task(id="d", run=1)], [("a", "d")])


def test_a_busy_processor_and_the_one_that_would_have_been_free_earlier() -> None:
    """Round-robin puts c behind a on the first core until 5 s; the second one is free at 3 s."""
    found = explain(machine(), FLOW, "round-robin", "c")
    assert waits(found) == [(0.0, 5.0, "processor", "a")]
    assert found.report().split("\n")[:2] == [
        "task c on cpu0: starts at 5 s, 5 s after its submission",
        "  on cpu1 it would start at 3 s, 2 s earlier",
    ]
    assert [change[:2] for change in found.changes] == [("processor", "cpu1")]


def test_a_parent_is_waited_for_and_no_processor_helps() -> None:
    found = explain(machine(), FLOW, "round-robin", "d")
    assert (waits(found), found.changes) == ([(0.0, 5.0, "dependencies", "a")], ())


def test_a_decision_and_an_order_are_waited_for() -> None:
    """The policy keeps b back until a is done, and then has c go before it."""

    def slow(view: Any) -> Any:
        yield Start(min(view.waiting, key=lambda task: "acb".index(task.id)), view.places[0], "the only one")
        if view.waiting:
            yield WakeAt(view.now + 3)

    flow = Workflow([Task(id=name, run=3) for name in "abc"])
    found = explain(machine(cores=1), flow, slow, "b")
    assert waits(found) == [(0.0, 6.0, "decision", "")]
    assert list(found.told.rows()) == [{"time": 6.0, "decision": "Start", "reason": "the only one"}]


def test_memory_is_waited_for_and_the_least_size_that_helps_is_found() -> None:
    """Two tasks of 60 MB in 100 MB: the second one starts when the first has ended; with 120 MB at once."""
    flow = Workflow([Task(id=name, run=5, memory=60e6) for name in "ab"])
    found = explain(machine(100e6), flow, "round-robin", "b")
    assert waits(found) == [(0.0, 5.0, "memory", "a")]
    assert [change[:2] for change in found.changes] == [("memory", 120e6)]
    for size, start in ((120e6, 0.0), (119e6, 5.0)):
        assert simulate(machine(size), flow, "round-robin").tasks["start"][1] == start


def test_setup_its_core_and_data_are_waited_for() -> None:
    """The only core is busy with a until 3 s, sets up the GPU until 4 s; then the data move for 1 s."""
    from simmodel.metrics._examples import two_kinds

    assert [tuple(row.values()) for row in task_waits(two_kinds(), "b").rows()] == [
        (0.0, 3.0, "dependencies", "a"),
        (3.0, 4.0, "setup", "cpu"),
        (4.0, 5.0, "data", "d0"),
    ]


def with_links(count: int = 3) -> MachineSpec:
    """Return a machine whose two links of 10 bytes/s can be held."""
    cpu = ProcessorSpec(name="cpu", count=count, type="CPU", architecture="any", pool="a")
    return MachineSpec(
        pools=[MemoryPoolSpec(name="a"), MemoryPoolSpec(name="b")],
        architectures=[ArchitectureSpec(name="any")],
        processors=[cpu],
        links=[LinkSpec(name=name, bandwidth=10.0, between=("a", "b")) for name in ("bus", "ring")],
        home="a",
    )


def test_bandwidth_is_waited_for() -> None:
    """Of 10 bytes/s, a and b hold 4 each until 5 s and 7 s; c needs 7, so both must end; d comes after c."""
    asked = (("a", 5, 4), ("b", 7, 4), ("c", 9, 7), ("d", 1, 1))
    flow = Workflow([Task(id=name, run=run, bandwidth={"bus": rate}) for name, run, rate in asked])
    found = explain(with_links(4), flow, "round-robin", "c")
    assert waits(found) == [(0.0, 7.0, "bandwidth", "b")]
    assert waits(explain(with_links(4), flow, "round-robin", "d")) == [(0.0, 7.0, "bandwidth", "b")]


@pytest.mark.parametrize("seed", range(6))
def test_waits_for_bandwidth_end_as_the_machine_says(seed: int) -> None:
    """Without data every task has its bandwidths when it starts: the grants are the starts."""
    rng = np.random.default_rng(seed)
    rates = [{name: float(rng.integers(1, 9)) for name in ("bus", "ring") if rng.random() < 0.5} for _ in range(30)]
    flow = Workflow([Task(id=i, run=int(rng.integers(1, 9)), bandwidth=rates[i]) for i in range(30)])
    result = simulate(with_links(8), flow, "round-robin")
    grants = {grant.row: grant for grant in bandwidth_grants(result)}
    assert grants.keys() == {row for row, each in enumerate(rates) if each}
    assert all(grant.since == result.tasks["start"][row] for row, grant in grants.items())
    assert all(grant.rates == rates[row] for row, grant in grants.items())
    waited = (result.tasks["start"] - result.tasks["transfer_end"]).sum()
    assert waited > 0
    spans = [span for task in range(30) for span in task_waits(result, task).rows() if span["reason"] == "bandwidth"]
    assert sum(span["until"] - span["since"] for span in spans) == pytest.approx(waited)
    assert all(span["by"] for span in spans)


def check_spans(result: MachineResult) -> int:
    """Check that the spans of each task fill its wait, and that holders ran then; return how many there are."""
    count = 0
    ran = {str(row["task"]): (row["processor"], row["taken"], row["end"]) for row in result.tasks.rows()}
    for row in result.tasks.rows():
        spans = list(task_waits(result, row["task"]).rows())
        if row["start"] > row["submit"]:
            assert (spans[0]["since"], spans[-1]["until"]) == (row["submit"], row["start"])
        assert all(one["until"] == after["since"] for one, after in pairwise(spans))
        for span in spans:
            if span["reason"] == "processor" and span["by"] in ran and row["cores"] == 1:
                where, begin, end = ran[span["by"]]
                assert where != row["processor"] or (begin <= span["since"] and end >= span["until"])
        count += len(spans)
    return count


@pytest.mark.parametrize("policy", ["heft", "hrr", "earliest-finish"])
def test_spans_fill_the_wait(policy: str) -> None:
    assert check_spans(simulate("hetsim-slow-setup", "layered:n=40,fat=0.5", policy, seed=3)) > 60


def test_what_a_change_promises_is_what_a_run_gives() -> None:
    found = explain("hetsim-slow-setup", "layered:n=40,fat=0.5", "heft", 20)
    ((_, name, text),) = found.changes
    own = simulate("hetsim-slow-setup", "layered:n=40,fat=0.5", "heft").tasks
    (row,) = [i for i, each in enumerate(own["task"].tolist()) if each == 20]
    assert (found.start, own["processor"][row]) == (own["start"][row], found.processor)
    assert name != found.processor
    assert text.endswith("earlier")


def test_explanations_of_tasks_are_stored_drawn_and_refused(tmp_path: Path) -> None:
    result = simulate("hetsim-slow", "layered:n=10,fat=0.5", "heft")
    found = result.explain(5)
    assert json.loads(found.to_json(tmp_path / "why.json"))["task"] == 5
    assert found.plot(title="") is not None
    assert "change of processor" in str(found._cells()) or not found.changes
    with pytest.raises(InputError, match="task: must be one of the 10 tasks, got 99"):
        result.explain(99)
    with pytest.raises(InputError, match="at: must be None for a task"):
        result.explain(5, at=3.0)
    with pytest.raises(InputError, match="no scenario"):
        attrs.evolve(result, scenario={}).explain(5)
