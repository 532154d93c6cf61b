"""SST's keys about a run: the order of tasks, preemption, and the machine with many cores."""

import pytest
from hypothesis import given, strategies as st

from simmodel.catalogue import load_platform
from simmodel.formats.sst import _levels, machine_for, read_sst_scenario
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.runs.scenario import simulate
from tests.helpers.workflow_documents import as_file


def document(*tasks, cpu=10, memory=8192, **keys) -> dict:
    """Return a document of tasks given as (seconds, cores) or (seconds, cores, memory, dependencies, priority)."""
    listed = []
    for i, (seconds, cores, *rest) in enumerate(tasks, 1):
        used, waits, priority = [*rest, *(0, [], 0)[len(rest) :]]
        listed.append(
            {
                "id": i,
                "execution_time": seconds,
                "resources": {"cpu": cores, "memory": used},
                "dependencies": waits,
                "priority": priority,
            }
        )
    return {"tasks": listed, "resources_available": {"cpu": cpu, "memory": memory}, **keys}


def ends(documents, at=None, policy="hrr", **options) -> list:
    found = read_sst_scenario([as_file(each) for each in documents], at, **options)
    result = simulate(found.machine, found.work, policy)
    assert (result.tasks["status"] == "done").all()
    by_set = [[] for _ in documents]
    for k, end in zip(result.tasks["set"].tolist(), result.tasks["end"].tolist(), strict=True):
        by_set[k].append(end)
    return by_set


def test_a_file_of_sst_names_cores_memory_and_queue_of_its_machine() -> None:
    spec = machine_for(as_file(document((1, 1), preemption=True)))
    (node,) = spec.processors
    assert (node.cores, node.queue, node.preemption, spec.pools[0].size) == (10, "priority", "suspend", 8192 * 2**20)
    assert machine_for(as_file(document((1, 1), preemption=True)), stop="requeue").processors[0].preemption == "requeue"
    (node,) = machine_for(as_file(document((1, 1), preemption=False))).processors
    assert (node.queue, node.preemption) == ("priority", "no")
    (node,) = machine_for(as_file(document((1, 1), scheduling_policy="FCFS"))).processors
    assert (node.queue, node.preemption) == ("fifo", "no")
    bare = {"tasks": [{"id": 1, "execution_time": 1}]}
    assert machine_for(as_file(bare), cores=4, memory=1e9).pools[0].size == 1e9
    both = machine_for([as_file(bare), as_file(document((1, 1)))])
    assert (both.processors[0].cores, both.pools[0].size) == (10, 8192 * 2**20)


@pytest.mark.parametrize("preemption", [True, False])
def test_a_later_workflow_stops_an_earlier_one_that_allows_it(preemption) -> None:
    first = document((100, 8), preemption=preemption)
    second = document((100, 8), preemption=False)
    assert ends([first, second], [0, 30]) == ([[200], [130]] if preemption else [[100], [200]])
    assert ends([second, first], [30, 0]) == ([[200], [130]] if preemption else [[100], [200]])  # by arrival
    small = document((100, 2), preemption=False)
    assert ends([first, small], [0, 30]) == [[100], [130]]  # there is room for both
    if preemption:
        assert ends([first, second], [0, 30], stop="requeue") == [[230], [130]]


def test_a_workflow_that_is_never_stopped_among_those_that_are() -> None:
    keeps, lets = document((100, 10), preemption=False), document((100, 10), preemption=True)
    assert ends([lets, keeps, lets], [0, 10, 20]) == [[300], [110], [210]]
    assert ends([keeps, lets, lets], [0, 10, 20]) == [[100], [300], [200]]
    assert ends([lets, lets, keeps], [0, 10, 20]) == [[300], [210], [120]]


@given(st.lists(st.booleans(), max_size=6))
def test_later_workflows_rank_above_those_that_may_be_stopped(stoppable) -> None:
    levels = _levels(stoppable)
    for i, may in enumerate(stoppable):
        for later in levels[i + 1 :]:
            assert (levels[i] < later) if may else (levels[i] >= later)


def test_cores_memory_and_dependencies() -> None:
    tasks = [(10, 4), (20, 6), (5, 10, 0, [1]), (7, 1, 0, [3])]
    assert ends([document(*tasks)]) == [[10, 20, 25, 32]]
    assert ends([document((10, 1, 6000), (10, 1, 6000), (3, 1, 2000))]) == [[10, 20, 13]]
    with pytest.raises(ImpossibleWork, match="task 1"):
        ends([document((10, 11))])
    with pytest.raises(ImpossibleWork, match="task 1"):
        ends([document((10, 1, 9000))])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("Static", [40, 80, 10]), ("FCFS", [30, 70, 80]), ("sjf", [40, 80, 10]), ("LJF", [70, 40, 80])],
)
def test_the_order_of_tasks(policy, expected) -> None:
    # One core; three tasks wait for one that takes no time, so that they are ready together.
    tasks = [(0, 1), (30, 1, 0, [1], 2), (40, 1, 0, [1], 1), (10, 1, 0, [1], 3)]
    assert ends([document(*tasks, cpu=1, scheduling_policy=policy)])[0][1:] == expected


def test_what_is_not_used_is_counted() -> None:
    lets = document((5, 1), (6, 1, 0, [], 4), preemption=True)
    keeps = document((5, 1), (6, 1, 0, [], 2), preemption=False)
    found = read_sst_scenario([as_file(lets), as_file(keeps)])
    assert found.report.skipped == {"order among the tasks of a workflow that may not be stopped: others may be": 1}
    assert [[task.priority for task in flow] for _, flow in found.work] == [[-3, -1], [2, 2]]
    short = document((5, 1), (6, 1, 0, [], 4), scheduling_policy="SJF")
    found = read_sst_scenario(as_file(short))
    assert found.report.skipped == {"priority of a task: the scheduling_policy is SJF": 1}
    assert [task.priority for task in found.work[0][1]] == [1, 0]


@pytest.mark.parametrize(
    ("documents", "options", "said"),
    [
        ([], {}, "files: must be at least one file, got none"),
        ([{"tasks": [{"id": 1, "execution_time": 1}]}], {}, "resources_available: missing key 'cpu'"),
        ([document((1, 1), cpu=2.5)], {}, "resources_available.cpu: must be a whole number, got 2.5"),
        ([document((1, 1)), document((1, 1), cpu=4)], {}, "resources_available.cpu: must be the same .* got 10 and 4"),
        (
            [document((1, 1)), document((1, 1), memory=4)],
            {},
            "resources_available.memory: must be the same in all files",
        ),
        (
            [document((1, 1), scheduling_policy="Wild")],
            {},
            "scheduling_policy: must be Static, FCFS, SJF or LJF, got 'W",
        ),
        (
            [document((1, 1), scheduling_policy="SJF"), document((1, 1))],
            {},
            "scheduling_policy: must be the same in all files, got SJF and Static",
        ),
        ([document((1, 1))], {"at": [0, 1]}, r"at: must be one instant per workflow \(1\), got 2"),
    ],
)
def test_wrong_scenarios_get_one_sentence(documents, options, said) -> None:
    with pytest.raises(InputError, match=said):
        read_sst_scenario([as_file(each) for each in documents], **options)


def test_tasks_with_cores_run_on_several_machines_as_well() -> None:
    spec = load_platform("multicore-2x10")
    flow = read_sst_scenario(as_file(document((10, 8), (10, 8), (10, 2), (5, 10, 0, [1, 2, 3])))).work[0][1]
    result = simulate(spec, flow, "earliest-finish")
    assert result.tasks["end"].tolist() == [10, 10, 10, 15]
    assert {*result.tasks["processor"].tolist()} == {"node0", "node1"}
