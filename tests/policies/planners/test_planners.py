"""Planners on machines: plans that hold, successive plans, and plans with setup, reconfiguration and transfers."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Environment
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.policies.planners.list_scheduling import heft, peft
from simmodel.policies.planners.planner import HEFT, LookaheadHEFT, PhaseTable, Planner, heft_setup, peft_setup
from simmodel.policies.planners.timetable import IdleGaps
from simmodel.scheduling.problem import Problem
from simmodel.scheduling.registry import policy, policy_names
from simmodel.systems.machine.system import Machine
from simmodel.work.task import Task
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from tests.helpers.examples import up_to
from tests.helpers.list_scheduling_cases import apart, problems
from tests.helpers.new_process import printed
from tests.helpers.small_machines import MB, small_machine
from tests.oracles import list_scheduling as oracle

PLANNERS = ["heft", "cpop", "peft", "lookahead", "heft-setup", "peft-setup"]
CLASSIC = PLANNERS[:4]
NOTHING = [[0.0, 0.0], [0.0, 0.0]]


def run(spec, work, planner, **options):
    """Run work; return the machine, and for each task its processor, planned start and end, actual start and end."""
    env = Environment(seed=1)
    machine = Machine(env, spec, policy=planner, contention=False, **options)
    for each in work if isinstance(work, list) else [work]:
        machine.submit(each)
    env.run()
    tasks = machine.result().tasks
    happened = {row[0]: row[1:] for row in zip(*(tasks[c] for c in ("task", "start", "end")), strict=True)}
    planned = machine.scheduler.policy.planned
    return machine, {task.id: (place.name, start, end, *happened[task.id]) for task, place, start, end in planned}


# ---------------------------------------------------------------------- the policy


def test_a_planner_decides_for_all_tasks_before_they_are_ready():
    spec = small_machine(cores=2)
    flow = Workflow([Task(id="a", run=4), Task(id="b", run=3), Task(id="c", run=2)], [("a", "c", 5 * MB)])
    machine, rows = run(spec, flow, "heft")
    assert rows == {"a": ("cpu0", 0, 4, 0, 4), "b": ("cpu1", 0, 3, 0, 3), "c": ("cpu0", 4, 6, 4, 6)}
    assert machine.scheduler.calls == 1
    assert [task.id for task, *_ in machine.scheduler.policy.planned] == ["b", "a", "c"]


def test_later_work_is_planned_behind_what_is_queued():
    env = Environment(seed=1)
    machine = Machine(env, small_machine(cores=2), policy="peft")
    machine.submit(Workflow([Task(id="a", run=4), Task(id="b", run=6)], []))
    machine.submit(Workflow([Task(id="c", run=3), Task(id="d", run=1)], [("c", "d")]), at=2.0)
    env.run()
    planned = [(task.id, place.name, start, end) for task, place, start, end in machine.scheduler.policy.planned]
    assert planned[:2] == [("a", "cpu0", 0, 4), ("b", "cpu1", 0, 6)]
    assert planned[2:] == [("c", "cpu0", 4, 7), ("d", "cpu0", 7, 8)]
    assert machine.scheduler.calls == 2
    assert machine.result().ended == 8


@pytest.mark.few(7)
@pytest.mark.parametrize("name", sorted(policy_names("tasks")))
def test_what_is_queued_before_it_is_ready_never_stands_before_what_it_waits_for(name):
    # The child is named first; it is there first; it is the shorter one.
    for tasks, end in (
        (TaskSet([3.0, 4.0], parents=[(1,), ()]), 7),
        (TaskSet([3.0, 4.0], parents=[(1,), ()], submit=[0.0, 10.0]), 17),
        (TaskSet([4.0, 3.0, 1.0], parents=[(), (0,), (0, 1)]), 8),
    ):
        env = Environment(seed=1)
        machine = Machine(env, small_machine(), policy=name, decide="submit")
        env.run(machine.submit(tasks))
        assert env.now == end


@pytest.mark.parametrize("name", PLANNERS)
def test_a_fresh_planner_has_planned_nothing(name):
    planner = policy(name)
    run(small_machine(), Workflow([Task(id="a", run=4)], []), planner)
    other = planner.fresh()
    assert (len(planner.planned), other.planned, other.name, type(other)) == (1, [], name, type(planner))
    assert "1 tasks planned" in repr(planner)
    run(small_machine(), Workflow([Task(id="a", run=4)], []), other)
    assert len(planner.planned) == len(other.planned) == 1


def test_a_planner_of_ones_own():
    def backwards(problem):
        plan = heft(problem)
        return plan._replace(order=plan.order[::-1])

    _, rows = run(small_machine(), Workflow([Task(id="a", run=4), Task(id="b", run=1)], []), Planner(backwards, "back"))
    assert rows["b"][3:] == (0, 1)
    assert rows["a"][3:] == (1, 5)
    assert HEFT(insertion=False).plan(apart([[2.0]], [])).makespan == 2.0
    assert LookaheadHEFT().plans


def test_no_task_on_several_cores_is_planned_across_one_of_no_length():
    profile = IdleGaps(2, at=0.0)
    profile.take(1.0, 1.0, 1)
    assert profile.earliest(0.0, 2.0, 2) == 1.0
    assert profile.earliest(0.0, 2.0, 1) == 0.0
    profile.take(1.0, 3.0, 2)
    assert profile.earliest(0.0, 1.0, 2) == 0.0
    assert profile.earliest(0.5, 0.0, 2) == 0.5
    assert profile.earliest(1.0, 0.0, 1) == 3.0


@st.composite
def _work(draw):
    """Return a machine with distant pools, and tasks that exchange data."""
    pools = draw(st.integers(1, 3))
    names = [f"m{i}" for i in range(pools)]
    architectures = [ArchitectureSpec(name="x"), ArchitectureSpec(name="y", performance=(0.5, 4))]
    processors = [
        ProcessorSpec(
            name=f"p{i}:",
            type="CPUCore",
            architecture=draw(st.sampled_from(["x", "y"])),
            pool=draw(st.sampled_from(names)),
            cores=draw(st.sampled_from([1, 1, 2, 3])),
        )
        for i in range(draw(st.integers(1, 4)))
    ]
    links = [
        LinkSpec(
            name=f"{a}-{b}", bandwidth=draw(st.sampled_from([1, 4])), latency=draw(st.sampled_from([0, 1])),
            between=(a, b),
        )
        for i, a in enumerate(names) for b in names[i + 1 :]
    ]  # fmt: skip
    spec = MachineSpec(
        pools=[MemoryPoolSpec(name=name) for name in names], architectures=architectures, processors=processors,
        links=links,
    )  # fmt: skip
    n = draw(st.integers(1, 12))
    most = max(processor.cores for processor in processors)
    tasks = [Task(id=i, run=draw(st.integers(0, 20)), cores=draw(st.integers(1, most))) for i in range(n)]
    edges = [
        (a, b, float(draw(st.integers(0, 20))))
        for b in range(1, n)
        for a in draw(st.sets(st.integers(0, b - 1), max_size=3))
    ]
    return spec, Workflow(tasks, edges)


@settings(max_examples=up_to(80), deadline=None)
@given(_work(), st.sampled_from(CLASSIC))
def test_what_happens_is_never_later_than_planned(drawn, name):
    # As these planners assume: data move as soon as they are written, without contention, and there is no setup.
    spec, flow = drawn
    _, rows = run(spec, flow, name, overlap=True)
    assert len(rows) == len(flow)
    for task, (_, start, end, started, ended) in rows.items():
        assert started <= start + 1e-9, task
        assert ended <= end + 1e-9, task


# ---------------------------------------------------------------------- plans with phases


GPU = {"name": "gpu0", "setup": 100.0}
GPU1 = {"name": "gpu1", "setup": 120.0}
FPGA = {"name": "fpga0", "type": "FPGA", "setup": 90.0, "reconfiguration": 150.0}


def on(*kinds):
    return {"implementations": kinds}


def by_hand():
    """Return cases whose plan must hold: machine, work, and the start and end of each task."""
    reads = TaskSet(
        [10, 50, 50], ids="pcd", inputs=[(), (0,), (0,)], outputs=[(0,), (), ()], sizes=[50 * MB],
        implementations=[("CPUCore",), ("GPU",), ("GPU",)],
    )  # fmt: skip
    loads = Workflow([Task(id=f, run=20, family="x", **on("FPGA")) for f in "fg"], [])
    others = Workflow([Task(id=f, run=20, family=f, **on("FPGA")) for f in "fg"], [])
    two = TaskSet([50, 50], ids="ab", implementations=[("GPU",), ("TPU",)])
    tpu = {**GPU1, "type": "TPU"}
    busy = Workflow([Task(id="c", run=80, **on("CPUCore")), Task(id="t", run=50, **on("GPU"))], [])
    return [
        pytest.param(small_machine(GPU), Workflow([Task(id="t", run=50, **on("GPU"))], []), {"t": (100, 150)}, id="A"),
        pytest.param(small_machine(GPU, tpu), two, {"b": (120, 170), "a": (220, 270)}, id="C"),
        pytest.param(small_machine(GPU), reads, {"p": (0, 10), "c": (112, 162), "d": (262, 312)}, id="E"),
        pytest.param(small_machine(FPGA), loads, {"f": (240, 260), "g": (350, 370)}, id="F"),
        pytest.param(small_machine(FPGA), others, {"f": (240, 260), "g": (500, 520)}, id="G"),
        pytest.param(small_machine(GPU), busy, {"t": (100, 150), "c": (100, 180)}, id="core"),
        pytest.param(
            small_machine({**GPU, "pool": "n0"}),
            TaskSet([10, 50], ids="pc", inputs=[(), (0,)], outputs=[(0,), ()], sizes=[50 * MB],
                    implementations=[("CPUCore",), ("GPU",)]),
            {"p": (0, 10), "c": (110, 160)}, id="H",
        ),
        pytest.param(
            small_machine({**GPU, "dma": False}),
            TaskSet([10, 50], ids="pc", inputs=[(), (0,)], outputs=[(0,), ()], sizes=[50 * MB],
                    implementations=[("CPUCore",), ("GPU",)]),
            {"p": (0, 10), "c": (112, 162)}, id="no DMA",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("planner", ["heft-setup", "peft-setup"])
@pytest.mark.parametrize(("spec", "work", "expected"), by_hand())
def test_the_phases_are_planned_as_they_happen(spec, work, expected, planner):
    _, rows = run(spec, work, planner)
    assert all(row[1:3] == row[3:] for row in rows.values()), rows
    if planner == "heft-setup":  # peft-setup takes tasks without children in order of arrival
        assert {task: row[1:3] for task, row in rows.items()} == expected


def test_an_accelerator_is_worth_its_setup_only_for_long_tasks():
    # 100 s of setup; the accelerator is five times faster. The core ends work of up to 120 s sooner.
    spec = small_machine(GPU)
    tasks = [Task(id="short", run=120, run_on={"GPU": 24}), Task(id="long", run=200, run_on={"GPU": 40})]
    _, rows = run(spec, Workflow(tasks, [("short", "long")]), "heft-setup")
    assert rows == {"short": ("cpu0", 0, 120, 0, 120), "long": ("gpu0", 220, 260, 220, 260)}
    _, rows = run(spec, Workflow(tasks, [("short", "long")]), "heft")
    assert rows["short"] == ("gpu0", 0, 24, 100, 124)


def test_setups_on_several_cores_take_the_one_that_is_free_first():
    problem = Problem([[90.0, 90.0, 5.0], [90.0, 90.0, 5.0]], [(), ()], [[0] * 3] * 3, [[0] * 3] * 3,
                      available=[4.0, 2.0, 0.0], setup=[0.0, 0.0, 3.0], setup_core=[None, None, [0, 1]])  # fmt: skip
    plan = heft_setup(problem)
    assert (plan.processor, plan.taken, plan.start) == ([2, 2], [0.0, 10.0], [5.0, 13.0])
    assert plan.held == ((0, 1, 10.0, 13.0), (1, 0, 2.0, 5.0))


def test_what_is_on_its_way_is_waited_for_and_what_moves_at_once_moves_together():
    def course(**given):
        problem = Problem([[1.0, 1.0]], [()], NOTHING, [[0, 1], [1, 0]], sizes=[6.0, 8.0], reads=[[0, 1]],
                          writes=[()], copies=[{0: 0.0, 1: 4.0}, {0: 0.0}], **given)  # fmt: skip
        table = PhaseTable(problem)
        return table.course(0, 1, table.done(0))

    assert course().start == 12.0  # until 4 for the first, and 8 for the second
    assert course(parallel=True).start == 8.0
    assert course(overlap=[False, True]).start == 8.0
    assert course().brought == ((0, 4.0), (1, 12.0))


def test_a_copy_that_one_task_brought_serves_the_next():
    problem = Problem([[inf, 5.0], [inf, 5.0]], [(), ()], NOTHING, [[0, 1], [1, 0]], sizes=[7.0], reads=[[0], [0]],
                      writes=[(), ()], copies=[{0: 0.0}])  # fmt: skip
    assert heft_setup(problem).start == [7.0, 12.0]
    assert peft_setup(problem).taken == [0.0, 12.0]


def test_a_copy_that_a_core_moves_is_there_once_the_core_has_moved_it():
    """The core is busy until 4 and then moves the data for 7 s; the second task finds them in the pool."""
    problem = Problem([[inf, 5.0], [inf, 5.0]], [(), ()], NOTHING, [[0, 1], [1, 0]], sizes=[7.0], reads=[[0], [0]],
                      writes=[(), ()], copies=[{0: 0.0}], available=[4.0, 0.0], setup_core=[None, 0],
                      dma=[True, False])  # fmt: skip
    plan = heft_setup(problem)
    assert (plan.start, plan.held) == ([11.0, 16.0], ((0, 0, 4.0, 11.0),))


# ---------------------------------------------------------------------- invariants of such plans


@st.composite
def _phases(draw):
    """Return a problem with setup, reconfiguration and CPU cores, and the values for its oracle."""
    problem, case = draw(problems())
    p = case.p
    number = st.integers(0, 3).map(lambda k: 40.0 * k)
    given = {
        "pools": problem.pools,
        "available": problem.available,
        "arrival": problem.arrival,
        "now": problem.now,
        "setup": [0.0, *(draw(number) for _ in range(p - 1))],
        "setup_core": [None, *(draw(st.sampled_from([None, 0, [0], [0, 1]])) for _ in range(p - 1))],
        "reconfigures": [False, *(draw(st.booleans()) for _ in range(p - 1))],
        "reconfiguration": [draw(number) for _ in range(case.n)],
        "family": [draw(st.sampled_from("ab")) for _ in range(case.n)],
        "loaded": [draw(st.sampled_from([None, "a"])) for _ in range(p)],
        "dma": [True, *(draw(st.booleans()) for _ in range(p - 1))],
        "overlap": [draw(st.booleans()) for _ in range(p)],
        "parallel": draw(st.booleans()),
    }
    links = [[[link[i] for link in row] for row in problem.links] for i in range(2)]
    return Problem(problem.run, problem.parents, *links, **given), case


@settings(max_examples=up_to(120), deadline=None)
@given(_phases(), st.sampled_from([heft_setup, peft_setup]))
def test_plans_by_phases_keep_precedence_processors_and_cores(drawn, make):
    problem, case = drawn
    plan = make(problem)
    busy = [
        [(plan.taken[task], plan.finish[task]) for task in plan.order if plan.processor[task] == j]
        for j in range(case.p)
    ]
    for core, task, start, end in plan.held:
        assert plan.taken[task] <= start <= end <= plan.start[task]
        busy[core].append((start, end))
    for j, row in enumerate(busy):
        row = sorted(row)
        assert all(start >= problem.available[j] for start, _ in row)
        assert all(before[1] <= after[0] for before, after in pairwise(row))
    loaded = list(problem.loaded)
    place = {task: i for i, task in enumerate(plan.order)}
    for task in plan.order:
        j = plan.processor[task]
        needed = problem.setup[j]
        if problem.reconfigures[j] and problem.family[task] != loaded[j]:
            needed += problem.reconfiguration[task]
            loaded[j] = problem.family[task]
        assert plan.start[task] >= plan.taken[task] + needed
        assert plan.finish[task] == plan.start[task] + case.run[task][j]
        assert plan.start[task] >= case.arrival[task][j]
        for parent in case.parents[task]:
            moved = case.move(plan.processor[parent], j, case.edges[parent, task])
            assert place[parent] < place[task]
            assert plan.taken[task] >= plan.finish[parent]
            assert plan.start[task] >= plan.finish[parent] + moved
            if not problem.overlap[j]:
                assert plan.start[task] >= plan.taken[task] + needed + moved


@settings(max_examples=up_to(60), deadline=None)
@given(problems(extras=False))
def test_without_setup_and_transfers_nothing_is_left_but_the_classic(drawn):
    _, case = drawn
    parents = [[(a, 0.0) for a, b in case.edges if b == task] for task in range(case.n)]
    nothing = [[0.0] * case.p] * case.p
    problem = Problem(case.run, parents, nothing, nothing)
    assert heft_setup(problem)[:4] == heft(problem)[:4]
    assert peft_setup(problem)[:4] == peft(problem)[:4]
    plain = oracle.Case(case.run, dict.fromkeys(case.edges, 0.0), [0] * case.p, [[0.0]], [[0.0]])
    assert list(zip(*heft_setup(problem)[:3], strict=True)) == oracle.heft(plain)


# ---------------------------------------------------------------------- reproducibility


def test_the_same_plans_and_decisions_whatever_the_order_of_hashes():
    program = """
import numpy as np
from simmodel import Environment
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec
from simmodel.scheduling.registry import policy_names
from simmodel.systems.machine.system import Machine
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
spec = MachineSpec(
    pools=[MemoryPoolSpec(name=name) for name in ("ram", "hbm")],
    architectures=[ArchitectureSpec(name="x"), ArchitectureSpec(name="g", performance=(1, 4))],
    processors=[ProcessorSpec(name="cpu", count=3, type="CPUCore", architecture="x", pool="ram"),
                ProcessorSpec(name="gpu", count=2, type="GPU", architecture="g", pool="hbm", setup=3),
                ProcessorSpec(name="fpga", type="FPGA", architecture="g", pool="hbm", setup=2, reconfiguration=(1, 9))],
    links=[LinkSpec(name="bus", bandwidth=4, between=("ram", "hbm"))])
rng = np.random.default_rng(3)
tasks = [Task(id=f"task {i}", run=int(rng.integers(1, 6)) * 4, family="abc"[i % 3]) for i in range(60)]
edges = [(f"task {a}", f"task {b}", 8.0) for b in range(9, 60) for a in sorted({int(x) for x in rng.integers(0, b, 3)})]
for name in [each for each in policy_names("tasks") if each != "share"]:
    env = Environment(seed=5)
    machine = Machine(env, spec, policy=name)
    machine.submit(Workflow(tasks, edges))
    env.run()
    done = machine.result().tasks
    print(name, [(p, float(t)) for p, t in zip(done["processor"], done["start"])])
"""
    outputs = [printed(program, seed) for seed in ("1", "2")]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 18
