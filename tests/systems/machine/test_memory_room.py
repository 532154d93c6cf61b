"""Room in memory pools and other corner cases of machines, each a small case worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError, Stalled
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.scheduling.protocol import Preempt, Start, WakeAt
from simmodel.systems.machine.system import Machine
from simmodel.work.taskset import TaskSet


def machine_of(
    pools: dict[str, Any], processors: dict[str, Any], policy: Any, *, bandwidth: float = 1.0, **options: Any
) -> Machine:
    """Return a machine spec: pools as name -> (size, spill), processors as name -> (pool, options)."""
    names = list(pools)
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name=name, size=size, spill=spill) for name, (size, spill) in pools.items()],
        architectures=[ArchitectureSpec(name="any")],
        processors=[
            ProcessorSpec(**{"name": name, "type": "CPUCore", "architecture": "any", "pool": pool, **rest})
            for name, (pool, rest) in processors.items()
        ],
        links=[
            LinkSpec(name=f"{a}-{b}", bandwidth=bandwidth, between=(a, b))
            for i, a in enumerate(names)
            for b in names[i + 1 :]
        ],
        home=names[0],
    )
    return Machine(Environment(), spec, policy, **options)


def to(*names: str) -> Any:
    """Return a policy that puts tasks, by id, on named processors."""

    def policy(view: Any) -> Any:
        places = {place.name: place for place in view.places}
        for task in view.waiting:
            yield Start(task, places[names[task.row]])

    return policy


def ends(machine: Machine) -> list[float]:
    return machine.result().tasks["end"].tolist()


def run(machine: Machine, tasks: TaskSet) -> list[float]:
    machine.env.run(machine.submit(tasks))
    return ends(machine)


def test_what_is_being_written_is_not_there_yet() -> None:
    # t0 rewrites d on the GPU for 10 s; t1, which has no parents, reads the old d, which must be transferred.
    machine = machine_of(
        {"ram": (100, None), "hbm": (100, None)},
        {"cpu": ("ram", {}), "gpu": ("hbm", {"count": 2, "type": "GPU"})},
        to("gpu0", "gpu1"),
    )
    tasks = TaskSet([10.0, 1.0], inputs=[(), (0,)], outputs=[(0,), ()], sizes=[5.0], parents=[(), ()])
    assert run(machine, tasks) == [10.0, 6.0]
    assert machine.result().peaks["hbm"] == 10.0
    assert machine.pools["hbm"].used == 5.0


def test_a_copy_that_comes_while_others_write_the_same_data() -> None:
    machine = machine_of(
        {"ram": (100, None), "hbm": (100, None)},
        {"cpu": ("ram", {}), "gpu": ("hbm", {"count": 2, "type": "GPU"})},
        to("gpu0", "gpu1"),
    )
    tasks = TaskSet([3.0, 1.0], inputs=[(), (0,)], outputs=[(0,), ()], sizes=[5.0], parents=[(), ()])
    assert run(machine, tasks) == [3.0, 6.0]
    assert machine.result().peaks["hbm"] == 10.0
    assert machine.pools["hbm"].used == 5.0


def test_data_of_no_size_and_links_without_latency() -> None:
    machine = machine_of({"ram": (9, None), "hbm": (9, None)}, {"cpu": ("ram", {}), "gpu": ("hbm", {})}, to("gpu"))
    assert run(machine, TaskSet([1.0], inputs=[(0,)], outputs=[()], sizes=[0.0])) == [1.0]


def test_room_in_the_pool_that_takes_what_must_go_is_noticed() -> None:
    # t1 lacks room in hbm until d0 can move to ram, which is full until t2 ends there at 20.
    machine = machine_of(
        {"ram": (10, None), "hbm": (10, "ram")},
        {"cpu": ("ram", {}), "gpu": ("hbm", {})},
        to("gpu", "gpu", "cpu", "cpu"),
    )
    tasks = TaskSet(
        [1.0, 1.0, 20.0, 1.0],
        inputs=[(), (), (), (0,)],
        outputs=[(0,), (), (), ()],
        sizes=[5.0],
        memory=[0.0, 8.0, 8.0, 0.0],
        parents=[(), (), (), (0, 1)],
    )
    assert run(machine, tasks) == [1.0, 26.0, 20.0, 27.0]


def test_data_move_on_where_the_next_pool_is_full_too() -> None:
    machine = machine_of(
        {"disk": (100, None), "ram": (10, "disk"), "hbm": (10, "ram")},
        {"cpu": ("ram", {}), "gpu": ("hbm", {}), "host": ("disk", {})},
        to("cpu", "gpu", "gpu", "host"),
    )
    tasks = TaskSet(
        [1.0, 2.0, 1.0, 1.0],
        inputs=[(), (), (), (0, 1)],
        outputs=[(0,), (1,), (), ()],
        sizes=[8.0, 8.0],
        memory=[0.0, 0.0, 8.0, 0.0],
        parents=[(), (), (), (0, 1, 2)],
    )
    # d0 moves to the disk (2-10), then d1 to ram (10-18), which makes room for t2; then d1 moves to the disk.
    assert run(machine, tasks)[:3] == [1.0, 2.0, 19.0]


def test_who_can_go_on_goes_before_who_never_could() -> None:
    # t1 needs 8 of 10 bytes and is first in line, but 5 bytes stay until t2, behind it, has read them.
    machine = machine_of({"ram": (10, None)}, {"cpu": ("ram", {"count": 2})}, to("cpu0", "cpu0", "cpu1"))
    tasks = TaskSet(
        [1.0, 1.0, 1.0],
        inputs=[(), (), (0,)],
        outputs=[(0,), (), (1,)],
        sizes=[5.0, 2.0],
        memory=[0.0, 8.0, 2.0],
        parents=[(), (0,), (0,)],
    )
    assert run(machine, tasks) == [1.0, 3.0, 2.0]


def test_a_core_that_is_its_own_moves_data_where_no_other_can() -> None:
    machine = machine_of({"ram": (9, None), "far": (9, None)}, {"cpu": ("far", {"cores": 2, "dma": False})}, to("cpu"))
    assert run(machine, TaskSet([1.0], inputs=[(0,)], outputs=[()], sizes=[3.0])) == [4.0]


def test_a_set_is_expected_to_take_its_cores_in_turn() -> None:
    machine = machine_of({"ram": (9, None)}, {"cpu": ("ram", {"cores": 4})}, to("cpu"))
    assert machine.estimate(TaskSet([10.0] * 3, cores=[2, 2, 2])) == (0.0, 0.0, 0.0, 20.0)


def test_parts_of_cores_add_up_again() -> None:
    machine = machine_of({"ram": (9, None)}, {"cpu": ("ram", {"cores": 2})}, to(*["cpu"] * 4))
    tasks = TaskSet([1.0, 2.0, 3.0, 1.0], cores=[0.1, 0.7, 0.2, 2], submit=[0, 0, 0, 0])
    assert run(machine, tasks) == [1.0, 2.0, 3.0, 4.0]


def test_a_task_that_was_stopped_waits_once() -> None:
    seen = []

    def policy(view: Any) -> Any:
        seen.append([task.id for task in view.waiting])
        if view.now == 0:
            for task in view.waiting:
                yield Start(task, view.places[0])
            yield WakeAt(1)
        elif view.now == 1:
            yield from [Preempt(run.work, "requeue") for run in view.running]
            yield WakeAt(2)
        elif view.now >= 2:
            for task in view.waiting:
                yield Start(task, view.places[0])

    machine = machine_of({"ram": (9, None)}, {"cpu": ("ram", {"preemption": "requeue"})}, policy)
    assert run(machine, TaskSet([3.0])) == [5.0]
    assert [0] in seen
    assert all(found in ([], [0]) for found in seen)


def test_executions_that_were_stopped_are_in_the_result() -> None:
    def policy(view: Any) -> Any:
        if view.now == 1:
            yield from [Preempt(run.work, "requeue") for run in view.running]
        for task in view.waiting:
            yield Start(task, view.places[0])
        if view.now == 0:
            yield WakeAt(1)

    machine = machine_of(
        {"ram": (9, None)}, {"cpu": ("ram", {"preemption": "requeue", "setup": 0.5, "load_power": 10.0})}, policy
    )
    assert run(machine, TaskSet([3.0])) == [4.5]
    result = machine.result()
    (cut,) = result.stopped.rows()
    assert (cut["task"], cut["processor"], cut["setup_end"], cut["start"], cut["end"]) == (0, "cpu", 0.5, 0.5, 1.0)
    assert result.busy("cpu").integral() == 3.5
    load = result.load()
    assert load["execution"].tolist() == [3.5]
    assert load["setup"].tolist() == [1.0]
    assert load["tasks"].tolist() == [1]


def test_data_that_are_written_anew_on_their_way_come_once_more() -> None:
    # t0 writes d (0-1), t1 changes it (1-3), t2 reads it on the GPU: the copy fetched ahead at 1 is stale at 3.
    machine = machine_of(
        {"ram": (9, None), "hbm": (9, None)},
        {"cpu": ("ram", {}), "gpu": ("hbm", {})},
        to("cpu", "cpu", "gpu"),
        decide="submit",
        overlap=True,
    )
    tasks = TaskSet([1.0, 2.0, 1.0], inputs=[(), (0,), (0,)], outputs=[(0,), (0,), ()], sizes=[5.0],
                    parents=[(), (0,), (0, 1)])  # fmt: skip
    assert run(machine, tasks) == [1.0, 3.0, 12.0]
    assert machine.result().transfers["start"].tolist() == [1.0, 6.0]


def test_a_core_that_sets_itself_up_is_busy_once() -> None:
    machine = machine_of({"ram": (9, None)}, {"cpu": ("ram", {"setup": 1.0})}, to("cpu"))
    run(machine, TaskSet([3.0]))
    (row,) = machine.result().load().rows()
    assert (row["busy"], row["utilisation"], row["setup"], row["for others"]) == (4.0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize(("held", "expected"), [("run", [6.0, 3.0]), ("transfer", [6.0, 9.0])])
def test_a_core_serves_others_while_its_own_data_move_or_not(held: str, expected: list[float]) -> None:
    # c, first on the core, brings 5 bytes (0-5) and runs (5-6); g on the GPU needs the core for 2 s, and runs for 1 s.
    # Either the core sets g up meanwhile, from 0 to 2, or after c, from 6 to 8.
    def machine() -> Machine:
        return machine_of(
            {"disk": (9, None), "ram": (9, None)},
            {"cpu": ("ram", {}), "gpu": ("ram", {"type": "GPU", "setup": 2.0})},
            to("cpu", "gpu"),
            core_held=held,
        )

    tasks = TaskSet([1.0, 1.0], inputs=[(0,), ()], outputs=[(), ()], sizes=[5.0])
    made = machine()
    assert run(made, tasks) == expected
    assert made.result().load()["busy"].tolist() == ([6.0, 3.0] if held == "run" else [8.0, 3.0])
    for at in (1.0, 5.5):
        first = machine()
        first.submit(tasks)
        first.env.run(until=at)
        again = Machine.from_snapshot(Environment(at), first.snapshot(), to("cpu", "gpu"))
        again.env.run()
        assert sorted(ends(again)) == sorted(end for end in expected if end > at)


def test_setups_asked_for_at_one_instant_are_served_in_the_order_of_assignment() -> None:
    for order, expected in (((0, 1), [3.0, 5.0]), ((1, 0), [5.0, 3.0])):

        def policy(view: Any, order: tuple[int, ...] = order) -> Any:
            waiting, places = list(view.waiting), {place.name: place for place in view.places}
            for row in order:
                if waiting:
                    yield Start(waiting[row], places[f"gpu{row}"])

        machine = machine_of(
            {"ram": (9, None)}, {"cpu": ("ram", {}), "gpu": ("ram", {"type": "GPU", "count": 2, "setup": 2.0})}, policy
        )
        assert run(machine, TaskSet([1.0, 1.0])) == expected


def test_setups_behind_tasks_that_end_at_one_instant_are_served_in_the_order_in_which_these_began() -> None:
    # On gpu0 a task is set up from 0 to 2 and runs until 5, on gpu1 from 2 to 4 and until 5, too. The next ones are
    # assigned to gpu1 first; gpu0, whose task began first, asks first.
    def policy(view: Any) -> Any:
        waiting, places = list(view.waiting), {place.name: place for place in view.places}
        for row, name in ((0, "gpu0"), (1, "gpu1"), (3, "gpu1"), (2, "gpu0")):
            yield Start(waiting[row], places[name])

    machine = machine_of(
        {"ram": (9, None)}, {"cpu": ("ram", {}), "gpu": ("ram", {"type": "GPU", "count": 2, "setup": 2.0})}, policy
    )
    assert run(machine, TaskSet([3.0, 1.0, 1.0, 1.0])) == [5.0, 5.0, 8.0, 10.0]


def test_a_result_written_in_place_stays() -> None:
    machine = machine_of({"ram": (10, None), "disk": (10, None)}, {"cpu": ("ram", {"count": 1})}, to("cpu", "cpu"))
    tasks = TaskSet([1.0, 1.0], inputs=[(0,), ()], outputs=[(0,), ()], sizes=[5.0], memory=[0, 9.0], parents=[(), (0,)])
    with pytest.raises(Stalled, match="9 more bytes") as stall:  # the result cannot move, and is not dropped
        run(machine, tasks)
    assert "5 of 10 are used, by d0 (5 bytes, a result)" in str(stall.value)


def test_a_stall_says_what_fills_the_memory_and_who_will_read_it() -> None:
    # w writes 8 bytes on the GPU, that r reads there after big, which needs 5 bytes: nothing can move to the full host.
    machine = machine_of(
        {"ram": (3, None), "hbm": (10, None)},
        {"cpu": ("ram", {}), "gpu": ("hbm", {})},
        to("gpu", "gpu", "gpu"),
        decide="submit",
    )
    tasks = TaskSet([1.0, 1.0, 1.0], ids=["w", "big", "r"], inputs=[(), (), (0,)], outputs=[(0,), (), ()], sizes=[8.0],
                    memory=[0.0, 5.0, 0.0], parents=[(), (), (0, 1)])  # fmt: skip
    with pytest.raises(Stalled) as stall:
        run(machine, tasks)
    said = (
        "task big waits for room in pool hbm on gpu: 5 more bytes, 8 of 10 are used, by d0 (8 bytes, read by r on gpu)"
    )
    assert said in str(stall.value)


def test_data_that_find_no_room_wait_and_so_do_their_readers() -> None:
    machine = machine_of({"ram": (10, None)}, {"cpu": ("ram", {"count": 2})}, to("cpu0", "cpu1"))
    machine.submit(TaskSet([5.0], memory=[8.0], name="first"))
    machine.submit(TaskSet([1.0], inputs=[(0,)], outputs=[()], sizes=[6.0], name="second"), at=2)
    machine.env.run()
    assert ends(machine) == [5.0, 6.0]
    assert machine.result().tasks["ready"].tolist() == [0.0, 5.0]


def test_data_that_wait_for_room_find_it_in_the_same_order_after_a_snapshot() -> None:
    def policy(view: Any) -> Any:
        for task in view.waiting:
            yield Start(task, view.places[0])

    machine = machine_of({"ram": (10, None)}, {"cpu": ("ram", {"count": 1})}, policy)
    machine.submit(TaskSet([5.0], memory=[8.0], name="first"))
    data = {"inputs": [(0,), (1,), (2,)], "outputs": [()] * 3, "sizes": [5.0, 2.0, 3.0]}
    machine.submit(TaskSet([1.0, 2.0, 3.0], **data, name="second"), at=2)
    machine.env.run(until=3)
    rest = Machine.from_snapshot(Environment(3), machine.snapshot(), policy)
    for each in (machine, rest):
        each.env.run()
    assert ends(rest) == ends(machine)
    assert ends(machine)[0] == 5.0


def test_more_data_than_all_pools_hold_are_refused() -> None:
    machine = machine_of({"ram": (10, None)}, {"cpu": ("ram", {})}, to("cpu", "cpu"))
    tasks = TaskSet([1.0, 1.0], inputs=[(0,), (1,)], outputs=[(), ()], sizes=[6.0, 6.0])
    with pytest.raises(ImpossibleWork, match="12B in all"):
        machine.submit(tasks)


def test_queues_are_expected_to_bring_data_once() -> None:
    seen = []

    def policy(view: Any) -> Any:
        gpu = view.places[1]
        for task in view.waiting:
            seen.append((gpu.backlog, view.estimate(task, gpu).transfer, gpu.expected_transfer(task)))
            yield Start(task, gpu)

    machine = machine_of({"ram": (9, None), "hbm": (9, None)}, {"cpu": ("ram", {}), "gpu": ("hbm", {})}, policy)
    assert run(machine, TaskSet([2.0] * 3, inputs=[(0,)] * 3, outputs=[()] * 3, sizes=[5.0])) == [7.0, 9.0, 11.0]
    assert seen == [(0.0, 5.0, 5.0), (7.0, 0.0, 5.0), (9.0, 0.0, 5.0)]


def test_no_policy_knows_the_error_before_the_end() -> None:
    seen = []

    def policy(view: Any) -> Any:
        for task in view.waiting:
            seen.append(view.places[0].available)
            yield Start(task, view.places[0])

    machine = machine_of({"ram": (9, None)}, {"cpu": ("ram", {"model_error": 0.5})}, policy)
    (first, _) = run(machine, TaskSet([10.0, 10.0], submit=[0.0, 1.0]))
    assert seen == [0.0, 10.0]
    assert first != 10.0


def test_the_data_used_least_recently_make_room() -> None:
    """Room for two objects of 10 bytes: ``a`` is read again before ``c`` comes, so ``b`` goes and ``a`` stays."""
    machine = machine_of({"ram": (100, None), "hbm": (20, "ram")}, {"gpu": ("hbm", {})}, to(*["gpu"] * 5), bandwidth=10)
    reads = TaskSet([1.0] * 5, inputs=[(0,), (1,), (0,), (2,), (0,)], sizes=[10.0] * 3)
    assert run(machine, reads) == [2, 4, 5, 7, 8]


def test_the_same_data_twice_are_refused() -> None:
    with pytest.raises(InputError, match="reads a data object twice"):
        TaskSet([1.0], inputs=[(0, 0)], outputs=[()], sizes=[1.0])
