"""Processors that serve several tasks at once, against closed forms and loops written here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError, Stalled
from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.referee import explain
from simmodel.resources import BatchedProcessor, ManyCores, Option, SharedProcessor
from simmodel.resources.ready.processors import LLMServer, MultiStreamGPU
from simmodel.results.machine import MachineResult
from simmodel.runs import simulate
from simmodel.systems.machine.system import Machine
from simmodel.testing import check_resource
from simmodel.work.task import Task
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from tests.helpers.examples import up_to


def machine_of(model: type, cores: int = 8, error: float = 0.0, **options: float) -> MachineSpec:
    return MachineSpec(
        pools=[MemoryPoolSpec(name="hbm")],
        architectures=[ArchitectureSpec(name="gpu")],
        processors=[
            ProcessorSpec(
                name="gpu", type="GPU", architecture="gpu", pool="hbm", cores=cores, model_error=error,
                model=model, options=options,
            )
        ],
    )  # fmt: skip


def run(spec: MachineSpec, tasks: TaskSet) -> MachineResult:
    return simulate(spec, tasks, "hrr")


class Weighted(SharedProcessor):
    """Tasks share by their priorities."""

    def rates(self, running: Sequence[Any]) -> Sequence[float]:
        """Return shares in proportion to priorities."""
        whole = sum(task.priority for task in running)
        return [task.priority / whole for task in running]


class Bad(SharedProcessor):
    """One rate too few, or a wrong one."""

    def rates(self, running: Sequence[Any]) -> Sequence[float]:
        """Return wrong rates."""
        return [1.0] * (len(running) - 1) if len(running) > 1 else [-1.0]


class Alone(SharedProcessor):
    """Tasks of a family run together, others alone."""

    def admits(self, task: Any, running: Collection[Any]) -> bool:
        """Return whether all are of one family."""
        return all(each.family == task.family for each in running)


class Unfinished(SharedProcessor):
    """It never admits the second family."""

    def admits(self, task: Any, running: Collection[Any]) -> bool:
        """Refuse a family."""
        return bool(task.family != "f")


class Leaky(SharedProcessor):
    """It remembers how many tasks it has served, which slow it down, but not in snapshots."""

    served = 0

    def rates(self, running: Sequence[Any]) -> Sequence[float]:
        """Return ever lower rates."""
        self.served += 1
        return [1 / (1 + self.served)] * len(running)


class Waves(BatchedProcessor):
    """Steps of one second, one more for each further task."""

    def steps(self, task: Any) -> int:
        """Return the steps of a task."""
        return 3

    def step(self, batch: Sequence[Any]) -> float:
        """Return the seconds of a step."""
        return float(len(batch))


class Clocked(SharedProcessor):
    """A quantum processor that is calibrated at the end of each hour, but does not say when its rates change."""

    takes: ClassVar = {"calibration": Option(unit="s", above=0)}

    def begins(self, now: float) -> float:
        """Return the begin of the calibration of this hour."""
        return float(now // 3600 * 3600 + 3600 - self.options["calibration"])

    def rates(self, running: Sequence[Any]) -> Sequence[float]:
        """Return 0 during calibration, equal shares otherwise."""
        rests = self.env.now >= self.begins(self.env.now)
        return [0.0 if rests else 1 / len(running) for _ in running]


class QPU(Clocked):
    """The same, which says when."""

    def until(self, now: float) -> float:
        """Return the begin or the end of the next calibration."""
        begin = self.begins(now)
        return begin if now < begin else now // 3600 * 3600 + 3600


class Hasty(Clocked):
    """Its rates change at no later instant."""

    def until(self, now: float) -> float:
        """Return the same instant."""
        return now


class Never(ManyCores):
    """It admits no task of three cores."""

    def admits(self, task: Any, running: Collection[Any]) -> bool:
        """Return whether it has another number."""
        return bool(task.cores != 3)

    def why_not_now(self, task: Any, running: Collection[Any]) -> str:
        """Return the reason."""
        return f"no {task.cores} adjacent slices"


class Slices(Never):
    """A GPU in seven slices, of which a task takes adjacent ones at the beginning that its name says."""

    def taken(self, running: Collection[Any]) -> str:
        """Return the slices, x for those that are taken."""
        found = [False] * 7
        for task in running:
            begin = int(str(task.id)[-1])
            found[begin : begin + task.cores] = [True] * task.cores
        return "".join(".x"[each] for each in found)

    def admits(self, task: Any, running: Collection[Any]) -> bool:
        """Return whether adjacent slices are free."""
        return "." * task.cores in self.taken(running)


# ---------------------------------------------------------------------- rates


@pytest.mark.parametrize(
    ("runs", "submit", "ends"),
    [
        ([2000.0, 2000.0], 0.0, [4600.0, 4600.0]),  # 3,000 s of the 4,000 s by 3,000 s, the rest after 3,600 s
        ([100.0], 3100.0, [3700.0]),
        ([50.0, 50.0], 3100.0, [3700.0, 3700.0]),
        (
            [2000.0, 2000.0],
            3100.0,
            [8200.0, 8200.0],
        ),  # two calibrations: 3,000 s from 3,600 s on, the rest after 7,200 s
        ([1500.0, 1500.0], 0.0, [3000.0, 3000.0]),  # they end with the old rates
    ],
)
def test_rates_follow_the_clock(runs: list[float], submit: float, ends: list[float]) -> None:
    tasks = TaskSet(runs, submit=[submit] * len(runs))
    assert run(machine_of(QPU, 7, calibration=600.0), tasks).tasks["end"].tolist() == ends


@settings(max_examples=up_to(25), deadline=None)
@given(st.lists(st.tuples(st.floats(0, 9000), st.floats(1, 3000)), min_size=1, max_size=6), st.floats(10, 3500))
def test_rates_that_follow_the_clock_against_a_loop_of_events(work: list[tuple[float, float]], rest: float) -> None:
    tasks = TaskSet([each for _, each in work], submit=[at for at, _ in work])
    found = run(machine_of(QPU, 7, calibration=rest), tasks).tasks["end"].tolist()
    left = dict(enumerate(each for _, each in work))
    ends, now = [0.0] * len(work), 0.0
    while left:
        here = [i for i in left if work[i][0] <= now]
        hour = now // 3600 * 3600
        rests = now >= hour + 3600 - rest
        then = hour + 3600 if rests else hour + 3600 - rest
        then = min([then, *(work[i][0] for i in left if work[i][0] > now)])
        rate = 0.0 if rests or not here else 1 / len(here)
        first = min((now + left[i] / rate for i in here), default=inf) if rate else inf
        step = min(then, first)
        for i in here:
            left[i] -= rate * (step - now)
            if left[i] <= 1e-6:
                ends[i] = step
                del left[i]
        now = step
    assert found == pytest.approx(ends, abs=1e-4)


@pytest.mark.long  # smaller: the other tests of the file
def test_a_run_over_a_calibration_goes_on_from_a_snapshot() -> None:
    for calibration in ("600s", 3590):
        check_resource(QPU, calibration=calibration)


@pytest.mark.parametrize("cut", [3000.0, 3100.0, 3600.0, 4000.0])
def test_snapshots_at_the_instants_at_which_rates_change(cut: float) -> None:
    machine = Machine(Environment(seed=1), machine_of(QPU, 7, calibration=600.0), "hrr")
    machine.submit(TaskSet([2000.0, 2000.0]))
    machine.env.run(until=cut)
    again = Machine.from_snapshot(Environment(cut, seed=1), machine.snapshot())
    again.env.run()
    assert again.env.now == 4600.0


def test_rates_that_follow_the_clock_without_until_are_found() -> None:
    for calibration in ("600s", 3590):
        with pytest.raises(AssertionError, match=r"Clocked: rates are .* at .* for the same tasks, .* until\(now\)"):
            check_resource(Clocked, calibration=calibration)
    with pytest.raises(InputError, match="own0: Hasty\\.until: must return an instant after"):
        check_resource(Hasty, calibration=600)


# ---------------------------------------------------------------------- reasons


def test_a_task_that_stands_still_is_told_with_its_reason() -> None:
    with pytest.raises(Stalled, match=r"task 0 on gpu: execution since 3100 \(Clocked gives it the rate 0\)"):
        run(machine_of(Clocked, 7, calibration=600.0), TaskSet([2000.0], submit=[3100.0]))


def test_a_task_that_is_never_admitted_is_told_with_the_reason_of_the_model() -> None:
    with pytest.raises(Stalled, match="task 1 waits on gpu since 0: no 3 adjacent slices"):
        run(machine_of(Never, 7), TaskSet([5.0, 5.0], cores=[2, 3]))
    with pytest.raises(Stalled, match="waits on gpu since 0: Unfinished does not admit it now"):
        run(machine_of(Unfinished, 7), Workflow([Task(id="a", run=5, family="f")]))


def test_an_explanation_says_why_the_model_did_not_admit_a_task() -> None:
    # Slices 0-1 and 4-5 are taken until 6 s and 9 s: three are free at once from the start, adjacent ones from 6 s on.
    tasks = [
        Task(id=name, run=length, cores=cores) for name, length, cores in [("a0", 6, 2), ("b4", 9, 2), ("c0", 5, 3)]
    ]
    found = explain(machine_of(Slices, 7), Workflow(tasks), "hrr", "c0")
    assert found.start == 6.0
    assert list(found.spans.rows()) == [
        {"since": 0.0, "until": 6.0, "reason": "processor", "by": "a0, b4 (no 3 adjacent slices)"}
    ]
    assert "no 3 adjacent slices" in str(found)
    plain = explain(machine_of(ManyCores, 2), Workflow(tasks[:2]), "hrr", "b4")
    assert plain.spans["by"].tolist() == ["a0"]


def test_processor_sharing_ends_where_its_closed_form_says() -> None:
    runs = [8.0, 3.0, 5.0, 5.0]
    found = run(machine_of(SharedProcessor), TaskSet(runs)).tasks["end"].tolist()
    assert found == [sum(min(run, each) for each in runs) for run in runs]


def test_weights_and_arrivals_by_hand() -> None:
    # Alone to 3 s; then 1/4 and 3/4 of the processor: the second ends at 7 s, when the first has 10 - 3 - 1 s left.
    tasks = TaskSet([10.0, 3.0], priority=[1.0, 3.0], submit=[0.0, 3.0])
    assert run(machine_of(Weighted), tasks).tasks["end"].tolist() == [13.0, 7.0]


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25, 0.3])
@pytest.mark.parametrize("kernels", [1, 2, 3, 5, 12])
def test_streams_share_a_gpu_as_closed_forms_say(share: float, kernels: int) -> None:
    streams = 4
    found = run(machine_of(MultiStreamGPU, streams, share=share), TaskSet([6.0] * kernels)).tasks["end"].tolist()
    waves = [min(streams, kernels - first) for first in range(0, kernels, streams)]
    ends, now = [], 0.0
    for together in waves:
        now += 6.0 * max(1.0, share * together)
        ends += [now] * together
    assert found == pytest.approx(ends, rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), min_size=1, max_size=8))
def test_streams_agree_with_small_steps(work: list[tuple[int, int]]) -> None:
    """A GPU of 3 streams whose kernels fill half of it, against exact steps from event to event."""
    ends = _shared(work, streams=3, share=0.5)
    tasks = TaskSet([float(run) for _, run in work], submit=[float(at) for at, _ in work])
    found = run(machine_of(MultiStreamGPU, 3, share=0.5), tasks).tasks["end"]
    assert found.tolist() == pytest.approx(ends, rel=1e-9)


def _shared(work: list[tuple[int, int]], streams: int, share: float) -> list[float]:
    order = sorted(range(len(work)), key=lambda i: work[i][0])
    left = {i: float(run) for i, (_, run) in enumerate(work)}
    ends, now, queue, running = [0.0] * len(work), 0.0, list(order), list[int]()
    while left:
        while queue and len(running) < streams and work[queue[0]][0] <= now:
            running.append(queue.pop(0))
        rate = min(1.0, 1 / (share * len(running))) if running else 1.0
        next_end = min((now + left[i] / rate for i in running), default=inf)
        arrivals = [work[i][0] for i in queue if work[i][0] > now]
        then = min(next_end, min(arrivals, default=inf))
        for i in running:
            left[i] -= rate * (then - now)
        now = then
        for i in [i for i in running if left[i] <= 1e-9]:
            running.remove(i)
            del left[i]
            ends[i] = now
    return ends


def test_admission_holds_the_queue_up() -> None:
    tasks = TaskSet([4.0, 4.0, 2.0, 1.0], families=["f", "f", "g", "f"])
    assert run(machine_of(Alone), tasks).tasks["end"].tolist() == [8.0, 8.0, 10.0, 11.0]


def test_model_errors_change_the_ends_but_not_what_is_expected() -> None:
    spec = machine_of(SharedProcessor, error=0.5)
    machine = Machine(Environment(seed=3), spec, "hrr")
    machine.submit(TaskSet([10.0, 10.0]))
    machine.env.run(until=1)
    assert [entry[0] for entry in machine.places[0].entries()] == [20.0, 20.0]
    machine.env.run()
    errors = [task._error for task in machine.tasks]
    runs = [10 * (1 + 0.5 * error) for error in errors]
    assert machine.result().tasks["end"].tolist() == pytest.approx([sum(min(a, b) for b in runs) for a in runs])


def test_wrong_rates_are_said() -> None:
    for runs in ([1.0], [1.0, 2.0]):
        with pytest.raises(InputError, match=r"gpu: Bad.rates: must return \d finite numbers >= 0, one for each task"):
            run(machine_of(Bad), TaskSet(runs))


def test_what_they_do_not_support_is_refused_when_the_machine_is_built() -> None:
    spec = machine_of(SharedProcessor).processors[0]
    for model, changes, says in (
        (SharedProcessor, {"preemption": "requeue"}, "SharedProcessor does not stop tasks: preemption must be 'no'"),
        (Waves, {"model_error": 0.1}, "Waves has no model error: model_error must be 0, got 0.1"),
        (MultiStreamGPU, {"options": {"share": 1.5}}, "share: must be > 0 and <= 1, got 1.5"),
        (LLMServer, {"options": {"kv": 0}}, "kv: must be > 0, got 0"),
    ):
        fields = {"name": spec.name, "type": spec.type, "architecture": "gpu", "pool": "hbm", **changes, "model": model}
        wrong = MachineSpec(
            pools=[MemoryPoolSpec(name="hbm")],
            architectures=[ArchitectureSpec(name="gpu")],
            processors=[ProcessorSpec(**fields)],
        )
        with pytest.raises(InputError, match=says):
            Machine(Environment(), wrong)


# ---------------------------------------------------------------------- steps


def test_a_batch_changes_between_steps_only() -> None:
    # Steps end at 1 and 2; the second joins then: 4, 6 (the first leaves), 7, ... the third joins at 4 and so on.
    tasks = TaskSet([1.0, 1.0], submit=[0.0, 1.5])
    assert run(machine_of(Waves), tasks).tasks["end"].tolist() == [4.0, 6.0]


def requests(rng: np.random.Generator, count: int) -> list[tuple[float, int, int]]:
    """Return arrivals (s), prompts and outputs (tokens)."""
    at = np.round(np.cumsum(rng.exponential(0.5, count)), 2)
    at[rng.random(count) < 0.3] = 2.0  # some at once
    lengths = zip(
        sorted(at.tolist()), rng.integers(1, 60, count).tolist(), rng.integers(1, 30, count).tolist(), strict=True
    )
    return list(lengths)


COSTS = {"iteration": 0.0625, "prefill": 0.00390625, "decode": 0.0078125, "attention": 0.0009765625}
"""Powers of two: sums are exact, so that requests and iterations meet at the same instants."""


def step_by_step(work: list[tuple[float, int, int]], most: int, kv: float) -> tuple[list[float], list[float]]:
    """Serve requests in order of arrival, iteration by iteration; return first tokens and ends."""
    first, ends = [0.0] * len(work), [0.0] * len(work)
    queue, batch, now = list(range(len(work))), dict[int, int](), 0.0
    while queue or batch:
        if not batch:
            now = max(now, work[queue[0]][0])
        used = sum(work[i][1] + work[i][2] for i in batch)
        while queue and work[queue[0]][0] <= now and len(batch) < most and used + sum(work[queue[0]][1:]) <= kv:
            used += sum(work[queue[0]][1:])
            batch[queue.pop(0)] = 0
        seconds = COSTS["iteration"]
        for i, done in batch.items():
            seconds += COSTS["decode"] if done else COSTS["prefill"] * work[i][1]
            seconds += COSTS["attention"] * (work[i][1] + done)
        now += seconds
        for i in list(batch):
            batch[i] += 1
            if batch[i] == 1:
                first[i] = now
            if batch[i] == work[i][2]:
                ends[i] = now
                del batch[i]
    return first, ends


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("most", "kv"), [(64, inf), (4, inf), (64, 120), (3, 200)])
def test_an_llm_server_agrees_with_a_loop(seed: int, most: int, kv: float) -> None:
    work = requests(np.random.default_rng(seed), 40)
    first, ends = step_by_step(work, most, kv)
    options = COSTS if kv == inf else {**COSTS, "kv": kv}
    tasks = TaskSet(
        [float("nan")] * len(work),
        submit=[at for at, _, _ in work],
        amounts=[{"prompt": prompt, "output": output} for _, prompt, output in work],
    )
    found = run(machine_of(LLMServer, most, **options), tasks).tasks
    assert found["first_token"].tolist() == pytest.approx(first, rel=1e-12)
    assert found["end"].tolist() == pytest.approx(ends, rel=1e-12)
    assert found["output"].tolist() == [output for _, _, output in work]


def test_a_request_alone_takes_what_is_expected() -> None:
    spec = machine_of(LLMServer, 4, **COSTS)
    result = run(spec, TaskSet.of(Workflow([Task(id="r", amounts={"prompt": 30, "output": 9})])))
    first, ends = step_by_step([(0.0, 30, 9)], 4, inf)
    assert result.tasks["expected_run"][0] == result.tasks["end"][0] == ends[0]
    assert result.tasks["first_token"][0] == first[0]


def test_requests_that_can_never_run_are_refused() -> None:
    spec = machine_of(LLMServer, 4, kv=100, **COSTS)
    with pytest.raises(ImpossibleWork, match="it has no amount 'prompt', which the model of its processors needs"):
        run(spec, TaskSet([3.0]))
    with pytest.raises(ImpossibleWork, match="no run time is known on any suitable processor"):
        run(spec, TaskSet([1.0], amounts=[{"prompt": 90, "output": 11}]))


# ---------------------------------------------------------------------- the check of models


@pytest.mark.few(1)
@pytest.mark.parametrize("model", [SharedProcessor, Alone, Waves])
def test_right_models_pass(model: type) -> None:
    check_resource(model)


@pytest.mark.long  # own models: the tests beside it
def test_ready_models_pass() -> None:
    check_resource("multi-stream-gpu", share=0.4)
    check_resource("llm-server", kv=60, **COSTS)
    check_resource("pim", scatter="20B/s", start=0.5)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Unfinished, "Unfinished: tasks never end"),
        (Leaky, "Leaky, .*continued from its snapshot at .*own_state"),
        (SharedProcessor.__mro__[-1], "a model must derive from one of Processor, MemoryPool"),
    ],
)
def test_wrong_models_are_told_what_they_do_wrong(model: type, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_resource(model)
