"""Workflows of SST's job scheduler, and the errors for invalid files."""

import pytest

from simmodel.formats.sst import read_sst
from simmodel.foundation.errors import InputError
from simmodel.work.workflow import Edge
from tests.helpers.workflow_documents import GOOD, as_file


def test_tasks_and_machine_of_sst_are_read() -> None:
    tasks = [
        {"id": 1, "execution_time": 100, "resources": {"cpu": 2, "memory": 1024}, "dependencies": []},
        {"id": "two", "execution_time": 50.5, "resources": {"cpu": 1}, "dependencies": [1], "priority": 3},
    ]
    document = {
        "tasks": tasks,
        "resources_available": {"cpu": 10, "memory": 8192},
        "scheduling_policy": "Static",
        "preemption": True,
    }
    flow = read_sst(as_file(document), memory_unit=1000)
    assert [(task.run, task.cores, task.memory, task.priority) for task in flow] == [
        (100, 2, 1024000, 0),
        (50.5, 1, 0, 3),
    ]
    assert flow.edges == (Edge(1, "two", (), 0),)
    assert flow.header == {
        "resources_available": {"cpu": 10, "memory": 8192000},
        "scheduling_policy": "Static",
        "preemption": True,
    }


@pytest.mark.parametrize(
    ("document", "place", "said"),
    [
        ([], None, r"must be a table, got \[\]"),
        ({"jobs": []}, None, "missing key 'tasks'"),
        ({"tasks": []}, "tasks", "must not be empty"),
        (
            {"tasks": [{**GOOD, "resources": {"memory": 1e308}}]},
            "tasks[0].resources.memory",
            "must be a number that is finite times",
        ),
        ({"tasks": [GOOD], "colour": 1}, "colour", "key 'colour'"),
        ({"tasks": [{**GOOD, "run": 1}]}, "tasks[0].run", "key 'run'"),
        ({"tasks": [GOOD, GOOD]}, "tasks[1].id", "duplicate task id 1"),
        ({"tasks": [{**GOOD, "id": True}]}, "tasks[0].id", "must be an id .*, got true"),
        ({"tasks": [{"id": 1}]}, "tasks[0]", "missing key 'execution_time'"),
        ({"tasks": [{**GOOD, "execution_time": -1}]}, "tasks[0].execution_time", "must be a number >= 0, got -1"),
        ({"tasks": [{**GOOD, "resources": {"cpu": 0}}]}, "tasks[0].resources.cpu", "must be a number > 0, got 0"),
        ({"tasks": [{**GOOD, "resources": {"gpu": 1}}]}, "tasks[0].resources.gpu", "key 'gpu'"),
        ({"tasks": [{**GOOD, "dependencies": [7]}]}, "tasks[0].dependencies[0]", "unknown task 7"),
        ({"tasks": [{**GOOD, "dependencies": [1, 1]}]}, "tasks[0].dependencies[1]", "duplicate dependency 1"),
        ({"tasks": [{**GOOD, "dependencies": [1]}]}, None, "tasks form a cycle: 1 -> 1"),
        ({"tasks": [GOOD], "preemption": "yes"}, "preemption", "must be true or false, got 'yes'"),
    ],
)
def test_wrong_sst_is_refused(document, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_sst(as_file(document))
    assert (found.value.source, found.value.place) == ("an open file", place)
