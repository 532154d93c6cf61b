"""Machines: task phases worked out by hand, memory, preemption, overlap, arrivals and refused work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simmodel import Environment, InputError, PolicyError, Start, Task, Workflow
from simmodel.foundation.errors import ImpossibleWork, Stalled
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.scheduling.protocol import Preempt
from simmodel.systems.machine.system import Machine
from simmodel.work.task import DataObject
from simmodel.work.taskset import TaskSet
from tests.helpers.small_machines import MB, Placed, row, run, small_machine

GPU = {"name": "gpu0", "setup": 100}
FPGA = {"name": "fpga0", "type": "FPGA", "setup": 90, "reconfiguration": (90, 150)}
PAIR = Workflow([Task(id="p", run=10), Task(id="c", run=50)], [("p", "c", 50 * MB)])
CHAIN = ("taken", "setup_start", "setup_end", "reconfiguration_end", "transfer_start", "transfer_end", "start", "end")


# ---------------------------------------------------------------------- the eight cases, phase by phase


def test_case_a_setup_on_a_free_core() -> None:
    result = run(small_machine(GPU), Workflow([Task(id="t", run=50)]), {"t": "gpu0"})
    assert row(result, "t", *CHAIN) == (0, 0, 100, 100, 100, 100, 100, 150)
    assert result.cpu_phases["core"].tolist() == ["cpu0"]
    assert result.tasks["setup_core"].tolist() == ["cpu0"]


def test_case_b_setup_waits_for_the_task_on_the_core() -> None:
    flow = Workflow([Task(id="c", run=80), Task(id="t", run=50)])
    result = run(small_machine(GPU), flow, {"c": "cpu0", "t": "gpu0"})
    assert row(result, "c", "start", "end") == (0, 80)
    assert row(result, "t", *CHAIN) == (0, 80, 180, 180, 180, 180, 180, 230)


def test_case_b_the_other_way_round_a_task_waits_for_the_setup() -> None:
    flow = Workflow([Task(id="t", run=50), Task(id="c", run=80)])
    result = run(small_machine(GPU), flow, {"c": "cpu0", "t": "gpu0"})
    assert row(result, "t", *CHAIN) == (0, 0, 100, 100, 100, 100, 100, 150)
    assert row(result, "c", "taken", "start", "end") == (0, 100, 180)


def test_case_c_setups_take_turns() -> None:
    flow = Workflow([Task(id="a", run=50), Task(id="b", run=50)])
    spec = small_machine(GPU, {"name": "gpu1", "setup": 120})
    result = run(spec, flow, {"a": "gpu0", "b": "gpu1"})
    assert row(result, "a", *CHAIN) == (0, 0, 100, 100, 100, 100, 100, 150)
    assert row(result, "b", *CHAIN) == (0, 100, 220, 220, 220, 220, 220, 270)


@pytest.mark.parametrize("contention", [True, False])
def test_case_d_data_move_after_the_setup(contention: bool) -> None:
    result = run(small_machine(GPU), PAIR, {"p": "cpu0", "c": "gpu0"}, contention=contention)
    assert row(result, "p", "start", "end") == (0, 10)
    assert row(result, "c", "ready", *CHAIN) == (10, 10, 10, 110, 110, 110, 112, 112, 162)
    moved = result.transfers
    assert (moved["object"][0], moved["source"][0], moved["destination"][0]) == ("p->c", "n0", "gpu0")
    assert (moved["start"][0], moved["end"][0], moved["bytes"][0], moved["cause"][0]) == (110, 112, 50 * MB, "input")


def test_case_e_a_second_reader_finds_the_data_there() -> None:
    tasks = [
        Task(id="p", run=10, outputs=["o"]),
        Task(id="c", run=50, inputs=["o"]),
        Task(id="d", run=50, inputs=["o"]),
    ]
    result = run(
        small_machine(GPU), Workflow(tasks, files=[DataObject("o", 50 * MB)]), {"p": "cpu0", "c": "gpu0", "d": "gpu0"}
    )
    assert row(result, "c", *CHAIN) == (10, 10, 110, 110, 110, 112, 112, 162)
    assert row(result, "d", *CHAIN) == (162, 162, 262, 262, 262, 262, 262, 312)
    assert len(result.transfers) == 1


def test_case_f_a_loaded_family_is_not_loaded_again() -> None:
    tasks = TaskSet([20, 20], ids=["f1", "f2"], families=["x", "x"], reconfiguration={"x": 150})
    result = run(small_machine(FPGA), tasks, {"f1": "fpga0", "f2": "fpga0"})
    assert row(result, "f1", *CHAIN) == (0, 0, 90, 240, 240, 240, 240, 260)
    assert row(result, "f2", *CHAIN) == (260, 260, 350, 350, 350, 350, 350, 370)


def test_case_g_another_family_is_loaded() -> None:
    tasks = TaskSet([20, 20], ids=["g1", "g2"], families=["x", "y"], reconfiguration={"x": 150, "y": 90})
    result = run(small_machine(FPGA), tasks, {"g1": "fpga0", "g2": "fpga0"})
    assert row(result, "g1", "end") == (260,)
    assert row(result, "g2", *CHAIN) == (260, 260, 350, 440, 440, 440, 440, 460)


def test_case_h_a_shared_pool_needs_no_transfer() -> None:
    spec = small_machine({"name": "igpu0", "setup": 100, "pool": "n0"})
    result = run(spec, PAIR, {"p": "cpu0", "c": "igpu0"})
    assert row(result, "c", *CHAIN) == (10, 10, 110, 110, 110, 110, 110, 160)
    assert len(result.transfers) == 0


def test_the_cpu_is_free_while_an_fpga_is_reconfigured() -> None:
    tasks = TaskSet([20, 30], ids=["f", "c"], families=["x", None], reconfiguration={"x": 150})
    result = run(small_machine(FPGA), tasks, {"f": "fpga0", "c": "cpu0"})
    assert row(result, "c", "start", "end") == (90, 120)
    assert row(result, "f", "end") == (260,)


# ---------------------------------------------------------------------- cores


def test_named_cores_set_up_the_first_free_one_in_order() -> None:
    accelerators = [{"name": f"g{i}", "setup": 10, "setup_on": ("cpu1", "cpu0")} for i in range(3)]
    flow = Workflow([Task(id=i, run=1) for i in range(3)])
    result = run(small_machine(*accelerators, cores=2), flow, {0: "g0", 1: "g1", 2: "g2"})
    assert result.tasks["setup_core"].tolist() == ["cpu1", "cpu0", "cpu1"]
    assert result.tasks["end"].tolist() == [11, 11, 21]


def test_without_dma_a_transfer_holds_a_core() -> None:
    flow = Workflow(
        [Task(id="p", run=10), Task(id="c", run=50), Task(id="x", run=5), Task(id="y", run=7)],
        [("p", "c", 250 * MB), ("p", "x"), ("p", "y")],
    )
    where = {"p": "cpu0", "c": "gpu0", "x": "cpu0", "y": "cpu0"}
    with_dma = run(small_machine({"name": "gpu0"}), flow, where)
    assert row(with_dma, "x", "start", "end") == (10, 15)
    without = run(small_machine({"name": "gpu0", "dma": False}), flow, where)
    assert row(without, "c", "transfer_start", "transfer_end", "end") == (10, 20, 70)
    assert row(without, "x", "start", "end") == (20, 25)
    assert row(without, "y", "start", "end") == (25, 32)
    assert without.cpu_phases["what"].tolist() == ["transfer"]


def test_setups_of_a_core_itself_use_that_core() -> None:
    result = run(small_machine(setup=3), Workflow([Task(id="t", run=5)]), {"t": "cpu0"})
    assert row(result, "t", "setup_end", "end") == (3, 8)


# ---------------------------------------------------------------------- transfers


def fan_in(sizes: list[float]) -> Workflow:
    parents = [Task(id=f"p{i}", run=10) for i in range(len(sizes))]
    edges = [(f"p{i}", "c", size) for i, size in enumerate(sizes)]
    return Workflow([*parents, Task(id="c", run=5)], edges)


@pytest.mark.parametrize(
    ("transfers", "contention", "end"),
    [
        ("sequential", True, 10 + 2 + 4 + 5),
        ("sequential", False, 10 + 2 + 4 + 5),
        ("parallel", True, 10 + 6 + 5),  # shared link: 4 s until each has moved 50 MB, 2 s for the rest
        ("parallel", False, 10 + 4 + 5),
    ],
)
def test_inputs_move_one_after_another_or_at_once(transfers: str, contention: bool, end: float) -> None:
    spec = small_machine({"name": "gpu0"}, cores=2)
    flow = fan_in([50 * MB, 100 * MB])
    where = {"p0": "cpu0", "p1": "cpu1", "c": "gpu0"}
    result = run(spec, flow, where, transfers=transfers, contention=contention)
    assert row(result, "c", "end") == (end,)


def test_two_processors_share_a_link_fairly() -> None:
    tasks = [Task(id="p", run=1), Task(id="a", run=1), Task(id="b", run=1)]
    flow = Workflow(tasks, [("p", "a", 50 * MB), ("p", "b", 50 * MB)])
    gpus = [{"name": "gpu0", "pool": "g"}, {"name": "gpu1", "pool": "g"}]
    where = {"p": "cpu0", "a": "gpu0", "b": "gpu1"}
    assert run(small_machine(*gpus), flow, where).tasks["end"].tolist() == [1, 6, 6]
    assert run(small_machine(*gpus), flow, where, contention=False).tasks["end"].tolist() == [1, 4, 4]


def test_one_object_for_two_readers_of_a_pool_moves_once() -> None:
    tasks = [Task(id="p", run=1, outputs=["o"]), *(Task(id=i, run=1, inputs=["o"]) for i in "ab")]
    flow = Workflow(tasks, files=[DataObject("o", 50 * MB)])
    gpus = [{"name": "gpu0", "pool": "g"}, {"name": "gpu1", "pool": "g"}]
    result = run(small_machine(*gpus), flow, {"p": "cpu0", "a": "gpu0", "b": "gpu1"})
    assert result.tasks["end"].tolist() == [1, 4, 4]
    assert len(result.transfers) == 1


def test_overlap_fetches_while_the_processor_is_busy() -> None:
    tasks = [Task(id="x", run=30), Task(id="p", run=10), Task(id="c", run=5)]
    flow = Workflow(tasks, [("p", "c", 100 * MB)])
    where = {"x": "gpu0", "p": "cpu0", "c": "gpu0"}
    spec = small_machine({"name": "gpu0"})
    assert row(run(spec, flow, where), "c", "transfer_start", "transfer_end", "end") == (30, 34, 39)
    ahead = run(spec, flow, where, overlap=True)
    assert row(ahead, "c", "start", "end") == (30, 35)
    assert (ahead.transfers["start"][0], ahead.transfers["cause"][0]) == (10, "overlap")


def test_a_processor_of_its_own_mind_about_overlap() -> None:
    tasks = [Task(id="x", run=30), Task(id="p", run=10), Task(id="c", run=5)]
    flow = Workflow(tasks, [("p", "c", 100 * MB)])
    where = {"x": "gpu0", "p": "cpu0", "c": "gpu0"}
    assert row(run(small_machine({"name": "gpu0", "overlap": True}), flow, where), "c", "end") == (35,)
    assert row(run(small_machine({"name": "gpu0", "overlap": False}), flow, where, overlap=True), "c", "end") == (39,)


# ---------------------------------------------------------------------- memory


def test_a_pool_never_holds_more_than_it_can_and_tasks_wait_for_room() -> None:
    gpus = [{"name": "gpu0", "pool": "g"}, {"name": "gpu1", "pool": "g"}]
    spec = small_machine(*gpus, sizes={"g": 100 * MB})
    tasks = TaskSet([10, 10], ids=["a", "b"], memory=[60 * MB, 60 * MB])
    result = run(spec, tasks, {"a": "gpu0", "b": "gpu1"})
    assert result.tasks["end"].tolist() == [10, 20]
    assert row(result, "b", "taken", "transfer_start", "start") == (0, 10, 10)
    assert result.peaks["g"] == 60 * MB


def evicting(sizes: dict[str, float], **options: Any) -> Any:
    """x and y are written on the CPU and read on the GPU in turn: x, y, x."""
    tasks = [
        Task(id="w", run=1, outputs=["x", "y"]),
        Task(id="r1", run=1, inputs=["x"]),
        Task(id="r2", run=1, inputs=["y"]),
        Task(id="r3", run=1, inputs=["x"]),
    ]
    flow = Workflow(tasks, files=[DataObject("x", 50 * MB), DataObject("y", 50 * MB)])
    where = {"w": "cpu0", "r1": "gpu0", "r2": "gpu0", "r3": "gpu0"}
    return run(small_machine({"name": "gpu0"}, sizes=sizes), flow, where, **options)


def test_a_copy_stays_until_its_room_is_needed() -> None:
    roomy = evicting({"gpu0": 100 * MB})
    assert (len(roomy.transfers), row(roomy, "r3", "end")) == (2, (1 + 3 + 3 + 1,))
    tight = evicting({"gpu0": 60 * MB})  # y evicts x, which has another copy and is fetched again
    assert (len(tight.transfers), row(tight, "r3", "end")) == (3, (1 + 3 + 3 + 3,))
    assert set(tight.transfers["cause"]) == {"input"}
    assert tight.peaks["gpu0"] == 50 * MB


def test_the_last_copy_is_written_back_before_it_goes() -> None:
    tasks = [
        Task(id="w", run=1, outputs=["x"]),  # on the GPU, which then has the only copy
        Task(id="v", run=1, outputs=["y"]),
        Task(id="r", run=1, inputs=["x", "y"]),
    ]
    files = [DataObject("x", 50 * MB), DataObject("y", 50 * MB)]
    spec = small_machine({"name": "gpu0"}, sizes={"gpu0": 60 * MB})
    result = run(spec, Workflow(tasks, files=files), {"w": "gpu0", "v": "gpu0", "r": "cpu0"})
    assert row(result, "v", "taken", "transfer_start", "start", "end") == (1, 3, 3, 4)
    assert result.transfers["cause"].tolist() == ["write-back", "input"]
    assert row(result, "r", "transfer_start", "transfer_end", "end") == (4, 6, 7)


def test_results_are_kept_and_what_nobody_reads_any_more_is_not() -> None:
    # Each of three tasks writes a result on the GPU, which holds two: the oldest moves to the home pool.
    tasks = [Task(id=i, run=1, outputs=[f"o{i}"]) for i in range(3)]
    files = [DataObject(f"o{i}", 50 * MB) for i in range(3)]
    spec = small_machine({"name": "gpu0"}, sizes={"gpu0": 100 * MB})
    result = run(spec, Workflow(tasks, files=files), dict.fromkeys(range(3), "gpu0"))
    assert result.transfers["object"].tolist() == ["o0"]
    assert row(result, 2, "end") == (1 + 1 + 2 + 1,)
    # The same, but each is read by the next task: the oldest has no reader left and is dropped without a transfer.
    chain = [Task(id=i, run=1, inputs=[f"o{i - 1}"] if i else [], outputs=[f"o{i}"]) for i in range(3)]
    result = run(spec, Workflow(chain, files=files), dict.fromkeys(range(3), "gpu0"))
    assert (len(result.transfers), row(result, 2, "end")) == (0, (3,))


def test_data_spill_to_the_pool_that_the_platform_names() -> None:
    spec = MachineSpec(
        pools=[
            MemoryPoolSpec(name="hbm", size=60 * MB, spill="ddr"),
            MemoryPoolSpec(name="ddr", size=1e9),
            MemoryPoolSpec(name="n0"),
        ],
        architectures=[ArchitectureSpec(name="x")],
        processors=[
            ProcessorSpec(name="cpu0", type="CPUCore", architecture="x", pool="n0"),
            ProcessorSpec(name="gpu0", type="GPU", architecture="x", pool="hbm"),
        ],
        links=(*small_machine({"name": "hbm"}, {"name": "ddr"}).links, _link("hbm", "ddr")),
    )
    tasks = [Task(id=i, run=1, outputs=[f"o{i}"]) for i in range(2)]
    files = [DataObject(f"o{i}", 50 * MB) for i in range(2)]
    result = run(spec, Workflow(tasks, files=files), {0: "gpu0", 1: "gpu0"})
    assert (result.transfers["destination"][0], result.transfers["cause"][0]) == ("ddr", "spill")
    assert result.transfers["end"][0] == 2  # over the 50 MB/s between them


def _link(a: str, b: str) -> LinkSpec:
    return LinkSpec(name=f"{a}-{b}", bandwidth=50 * MB, between=(a, b))


def test_waiting_for_ever_for_room_is_reported() -> None:
    # Results in the home pool cannot move anywhere.
    spec = small_machine(sizes={"n0": 60 * MB})
    tasks = [Task(id=i, run=1, outputs=[f"o{i}"]) for i in range(2)]
    files = [DataObject(f"o{i}", 50 * MB) for i in range(2)]
    with pytest.raises(Stalled, match="task 1 waits for room in pool n0 on cpu0"):
        run(spec, Workflow(tasks, files=files), {0: "cpu0", 1: "cpu0"})


# ---------------------------------------------------------------------- run times


def test_run_time_is_base_over_a_factor_of_the_interval_one_draw_a_task() -> None:
    def spec(least: float, most: float) -> MachineSpec:
        return MachineSpec(
            pools=[MemoryPoolSpec(name="n0")],
            architectures=[ArchitectureSpec(name="x", performance=(least, most))],
            processors=[ProcessorSpec(name="p", count=2, type="GPU", architecture="x", pool="n0")],
        )

    tasks = TaskSet([100.0] * 200)
    result = run(spec(2, 4), tasks, {i: f"p{i % 2}" for i in range(200)}, seed=3)
    took = result.tasks["end"] - result.tasks["start"]
    assert took.min() >= 25
    assert took.max() <= 50
    assert len(np.unique(took)) == 200
    assert np.mean(100 / took) == pytest.approx(3, abs=0.15)
    # The draw belongs to the task, whatever the processor and the width of the interval.
    other = run(spec(2, 4), tasks, dict.fromkeys(range(200), "p0"), seed=3)
    np.testing.assert_allclose(other.tasks["end"] - other.tasks["start"], took, rtol=1e-9)
    wide = run(spec(2, 8), tasks, dict.fromkeys(range(200), "p0"), seed=3)
    wider = 100 / (wide.tasks["end"] - wide.tasks["start"])
    np.testing.assert_allclose(wider - 2, 3 * (100 / took - 2), rtol=1e-6)


def test_the_model_error_moves_the_run_but_not_the_estimate() -> None:
    spec = small_machine(model_error=0.2)
    result = run(spec, TaskSet([100.0] * 300), dict.fromkeys(range(300), "cpu0"), seed=1)
    took = result.tasks["end"] - result.tasks["start"]
    assert 80 <= took.min() < 85
    assert 115 < took.max() <= 120
    assert set(result.tasks["expected_run"]) == {100.0}


def test_run_times_by_architecture_and_by_operations() -> None:
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name="n0")],
        architectures=[ArchitectureSpec(name="x86", speed=1e9), ArchitectureSpec(name="ampere", performance=4)],
        processors=[
            ProcessorSpec(name="cpu0", type="CPUCore", architecture="x86", pool="n0"),
            ProcessorSpec(name="gpu0", type="GPU", architecture="ampere", pool="n0"),
        ],
    )
    tasks = [Task(id="a", flop=5e9), Task(id="b", run=8, run_on={"ampere": 3}), Task(id="c", run=8)]
    result = run(spec, Workflow(tasks), {"a": "cpu0", "b": "gpu0", "c": "gpu0"})
    assert result.tasks["end"].tolist() == [5, 3, 5]
    with pytest.raises(PolicyError, match="no processor like gpu0"):
        run(spec, Workflow([Task(id="a", flop=5e9)]), {"a": "gpu0"})


# ---------------------------------------------------------------------- queues and preemption


def test_a_blocked_head_holds_up_its_queue() -> None:
    flow = Workflow([Task(id="p", run=10), Task(id="c", run=5), Task(id="x", run=1)], [("p", "c")])
    order = ["c", "x", "p"]

    class Planned(Placed):
        plans = True

        def decide(self, view: Any) -> Any:
            places = {place.name: place for place in view.places}
            for task in sorted(view.waiting, key=lambda task: order.index(task.id)):
                yield Start(task, places[self.where[task.id]])

    env = Environment()
    machine = Machine(env, small_machine({"name": "gpu0"}), Planned({"p": "cpu0", "c": "gpu0", "x": "gpu0"}))
    env.run(machine.submit(flow))
    result = machine.result()
    assert row(result, "c", "start", "end") == (10, 15)
    assert row(result, "x", "start", "end") == (15, 16)


@pytest.mark.parametrize(("mode", "low_end"), [("suspend", 13.0), ("requeue", 17.0)])
def test_a_place_that_allows_it_lets_a_higher_priority_go_first(mode: str, low_end: float) -> None:
    spec = small_machine(queue="priority", preemption=mode)
    env = Environment()
    machine = Machine(env, spec, Placed({"low": "cpu0", "high": "cpu0"}))
    machine.submit(TaskSet([10.0], ids=["low"], priority=[0]))
    machine.submit(TaskSet([3.0], ids=["high"], priority=[5]), at=4)
    env.run()
    result = machine.result()
    assert row(result, "high", "start", "end") == (4, 7)
    assert row(result, "low", "end", "attempts") == (low_end, 2)


def test_without_preemption_priorities_order_the_queue_alone() -> None:
    env = Environment()
    machine = Machine(env, small_machine(queue="priority"), Placed(dict.fromkeys(["a", "b", "c"], "cpu0")))
    env.run(machine.submit(TaskSet([4.0, 4.0, 4.0], ids=["a", "b", "c"], priority=[1, 0, 2])))
    assert machine.result().tasks["start"].tolist() == [4, 8, 0]


def test_a_policy_stops_a_task_where_the_place_allows_it() -> None:
    def policy(view: Any) -> Any:
        for task in view.waiting:
            for run_ in view.running:
                if run_.work.priority < task.priority:
                    yield Preempt(run_.work, "suspend")
            yield Start(task, view.places[0])

    env = Environment()
    machine = Machine(env, small_machine(preemption="suspend"), policy)
    machine.submit(TaskSet([10.0], ids=["low"]))
    machine.submit(TaskSet([3.0], ids=["high"], priority=[1]), at=4)
    env.run()
    assert machine.result().tasks["end"].tolist() == [13, 7]

    env = Environment()
    machine = Machine(env, small_machine(), policy)
    machine.submit(TaskSet([10.0], ids=["low"]))
    machine.submit(TaskSet([3.0], ids=["high"], priority=[1]), at=4)
    with pytest.raises(PolicyError, match="does not allow preemption"):
        env.run()


def many_cores(**options: Any) -> MachineSpec:
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram", size=100.0)],
        architectures=[ArchitectureSpec(name="x")],
        processors=[ProcessorSpec(name="node", type="CPU", architecture="x", pool="ram", cores=4, **options)],
    )


def test_tasks_with_several_cores_share_a_processor() -> None:
    tasks = TaskSet([10.0, 5.0, 4.0, 1.0], ids=list("abcd"), cores=[2, 2, 3, 1])
    result = run(many_cores(), tasks, dict.fromkeys("abcd", "node"))
    # c does not fit beside a and blocks d; both run at 10.
    assert result.tasks["start"].tolist() == [0, 0, 10, 10]
    assert result.tasks["end"].tolist() == [10, 5, 14, 11]


@pytest.mark.parametrize(("cores", "second"), [([3, 1 + 1e-9], 0), ([3, 1 + 1e-8], 10), ([3.9, 0.1], 0)])
def test_a_task_fits_into_free_cores_up_to_the_rounding_of_fractions(cores: list[float], second: float) -> None:
    """4 - 3.9 is 0.10000000000000009 and may as well be a little less than 0.1; 1e-9 more than is free still fits."""

    result = run(many_cores(), TaskSet([10.0, 5.0], ids=list("ab"), cores=cores), dict.fromkeys("ab", "node"))
    assert result.tasks["start"].tolist() == [0, second]
    machine = Machine(Environment(), many_cores(), lambda view: [Start(next(iter(view.waiting)), view.places[0])])
    machine.submit(TaskSet([10.0, 5.0], ids=list("ab"), cores=cores))
    machine.env.run(until=1)
    (task,) = machine.view.waiting
    assert machine.places[0].fits(task) is (second == 0)


def test_a_later_one_of_higher_priority_stops_what_it_must_on_many_cores() -> None:
    env = Environment()
    machine = Machine(env, many_cores(queue="priority", preemption="suspend"), Placed(dict.fromkeys("abcd", "node")))
    machine.submit(TaskSet([10.0, 10.0, 10.0], ids=list("abc"), cores=[2, 1, 1], priority=[1, 0, 0]))
    machine.submit(TaskSet([4.0], ids=["d"], cores=[2], priority=[2]), at=3)
    env.run()
    result = machine.result()
    assert row(result, "d", "start", "end") == (3, 7)
    assert row(result, "a", "end") == (10,)  # its priority is higher than that of b and c, which are preempted
    assert row(result, "b", "end") == (14,)
    assert row(result, "c", "end") == (14,)


# ---------------------------------------------------------------------- custom processors


def test_a_processor_of_ones_own_overrides_a_phase_and_is_named_by_the_platform() -> None:
    spec = small_machine(
        {"name": "pim", "model": "tests.helpers.sliced_processor:Refreshed", "options": {"slice": 4, "pause": 1}}
    )
    result = run(spec, Workflow([Task(id="t", run=10)]), {"t": "pim"})
    assert row(result, "t", "end") == (12,)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("nowhere:Class", "must be a class as module:Class, got 'nowhere:Class'"),
        ("tests.helpers.small_machines:Nothing", "must be a class as module:Class"),
        ("tests.helpers.small_machines:MB", "must be a subclass of Processor, got"),
        ("nothing", "unknown model 'nothing'"),
    ],
)
def test_a_model_that_is_not_there(model: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Machine(Environment(), small_machine({"name": "pim", "model": model}), "fcfs")
    assert caught.value.place == "model of processor pim"


# ---------------------------------------------------------------------- arrivals and several machines


def test_work_arrives_over_time() -> None:
    env = Environment()
    machine = Machine(env, small_machine(), Placed(dict.fromkeys(["a", "b", "c"], "cpu0")))
    first = machine.submit(TaskSet([5.0, 5.0], ids=["a", "b"], submit=[2.0, 20.0]))
    second = machine.submit(TaskSet([1.0], ids=["c"]), at=3.0)
    env.run(first & second)
    result = machine.result()
    assert result.tasks["submit"].tolist() == [2, 20, 3]
    assert result.tasks["start"].tolist() == [2, 20, 7]
    with pytest.raises(InputError, match="at: must be an instant >= 25 s, got 3"):
        machine.submit(TaskSet([1.0]), at=3)


def test_several_machines_in_one_environment() -> None:
    env = Environment()
    machines = [Machine(env, small_machine(), Placed({"t": "cpu0"}), name=name) for name in ("left", "right")]

    def chain(env: Environment) -> Any:
        yield machines[0].submit(TaskSet([5.0], ids=["t"]))
        yield machines[1].submit(TaskSet([2.0], ids=["t"]))

    env.run(env.process(chain(env)))
    assert env.now == 7
    assert [machine.result().ended for machine in machines] == [7, 7]


# ---------------------------------------------------------------------- refused work


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (
            TaskSet([1.0], ids=["t"], implementations=[("TPU",)]),
            "machine: task 't': no processor of type TPU; known types: CPUCore, GPU",
        ),
        (TaskSet([1.0], ids=["t"], cores=[2]), "no suitable processor has 2 cores; the largest has 1"),
        (
            TaskSet([1.0], ids=["t"], inputs=[(0,)], sizes=[2e9], names=["big"]),
            r"its data and memory, 2GB in all \(the largest: big, 2GB\), fit in no pool of a suitable processor"
            ": n0 has 1GB, gpu0 has 500MB",
        ),
        (
            TaskSet([1.0], ids=["t"], memory=[8e8], implementations=[("GPU",)]),
            "its data and memory, 800MB in all, fit in no pool of a suitable processor: gpu0 has 500MB",
        ),
        (TaskSet([float("nan")], ids=["t"], flop=[1e9]), "no run time is known on any suitable processor"),
    ],
)
def test_what_can_never_run_is_refused_when_it_is_submitted(tasks: TaskSet, message: str) -> None:
    machine = Machine(Environment(), small_machine({"name": "gpu0"}, sizes={"n0": 1e9, "gpu0": 5e8}), "hrr")
    with pytest.raises(ImpossibleWork, match=message):
        machine.submit(tasks)
    assert not machine.tasks


def test_a_task_goes_only_where_it_fits() -> None:
    env = Environment()
    machine = Machine(env, small_machine({"name": "gpu0"}, sizes={"n0": 1e9, "gpu0": 5e8}), Placed({"t": "gpu0"}))
    machine.submit(TaskSet([1.0], ids=["t"], memory=[8e8]))
    with pytest.raises(PolicyError, match="the place can never run it"):
        env.run()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decide": "later"}, "decide: must be 'ready' or 'submit'"),
        ({"transfers": "both"}, "transfers: must be 'sequential' or 'parallel'"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Machine(Environment(), small_machine(), "fcfs", **options)


def test_the_backlog_is_never_below_zero_by_rounding() -> None:
    machine = Machine(Environment(), small_machine(), "hrr")
    machine.submit(TaskSet([0.2, 0.3, 0.1, 0.7, 0.7, 0.2, 0.0, 0.0]))
    while machine.env.peek() < float("inf"):
        machine.env.step()
        assert all(place.backlog >= 0 for place in machine.places)
