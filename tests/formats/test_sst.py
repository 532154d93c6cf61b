"""Workflows of SST's job scheduler, and what is said of files that are wrong."""

import pytest

from simmodel.errors import InputError
from simmodel.formats.sst import read_sst
from simmodel.work.workflow import Edge
from tests.helpers.workflow_documents import GOOD, as_file


def test_sst() -> None:
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
        ([], None, r"a table expected, found \[\]"),
        ({"jobs": []}, None, "with 'tasks' expected"),
        ({"tasks": []}, "tasks", "tasks expected, found none"),
        ({"tasks": [GOOD], "colour": 1}, "colour", "unknown key; there are tasks, "),
        ({"tasks": [{**GOOD, "run": 1}]}, "tasks[0].run", "unknown key"),
        ({"tasks": [GOOD, GOOD]}, "tasks[1].id", "task id 1 occurs twice"),
        ({"tasks": [{**GOOD, "id": True}]}, "tasks[0].id", "an id .* expected, found true"),
        ({"tasks": [{"id": 1}]}, "tasks[0]", "key 'execution_time' expected, found 'id'"),
        ({"tasks": [{**GOOD, "execution_time": -1}]}, "tasks[0].execution_time", "a number >= 0 expected, found -1"),
        ({"tasks": [{**GOOD, "resources": {"cpu": 0}}]}, "tasks[0].resources.cpu", "a number > 0 expected, found 0"),
        ({"tasks": [{**GOOD, "resources": {"gpu": 1}}]}, "tasks[0].resources.gpu", "unknown key"),
        ({"tasks": [{**GOOD, "dependencies": [7]}]}, "tasks[0].dependencies[0]", "the id of a task expected, found 7"),
        ({"tasks": [{**GOOD, "dependencies": [1, 1]}]}, "tasks[0].dependencies[1]", "each dependency once"),
        ({"tasks": [{**GOOD, "dependencies": [1]}]}, None, "tasks form a cycle: 1 -> 1"),
        ({"tasks": [GOOD], "preemption": "yes"}, "preemption", "true or false expected, found 'yes'"),
    ],
)
def test_wrong_sst_is_refused(document, place, said) -> None:
    with pytest.raises(InputError, match=said) as found:
        read_sst(as_file(document))
    assert (found.value.source, found.value.place) == ("an open file", place)
