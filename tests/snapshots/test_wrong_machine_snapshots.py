"""Snapshots of machines with any one value missing, of another type or out of range get one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from simmodel import InputError, simulate, start
from simmodel.snapshots.machine import MachineSnapshot
from tests.helpers.small_machines import WIDE_FLOW, two_tasks

MISSING = object()
WRONG = [MISSING, None, "x", -1, 10**6, 2.5, True, [], {}, [None], {"x": 1}, 1e300, 2**70]


def busy() -> dict[str, Any]:
    """Return the document of a machine with queues, random streams, and tasks in several phases."""
    sim = start("hetsim-slow", WIDE_FLOW, "hrr").run(until=12)
    return json.loads(sim.system.snapshot().to_json())


def moving() -> dict[str, Any]:
    """Return the document of a machine during a transfer."""
    machine = two_tasks()
    machine.env.run(until=111)
    return json.loads(machine.snapshot().to_json())


DOCUMENTS = {"busy": busy(), "moving": moving()}


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values, of lists the first two."""
    if here:
        yield here
    keys = list(value) if isinstance(value, dict) else range(min(2, len(value))) if isinstance(value, list) else ()
    for key in keys:
        yield from paths(value[key], (*here, key))


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> str:
    document = json.loads(json.dumps(document))  # a copy
    table = document
    for key in path[:-1]:
        table = table[key]
    if value is MISSING:
        del table[path[-1]]
    else:
        table[path[-1]] = value
    return json.dumps(document)


@pytest.mark.few(8)
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, document in DOCUMENTS.items() for key in document], ids=str
)
def test_each_key_missing_or_of_another_type_or_range(name: str, key: str, every: int) -> None:
    """Each path gets all wrong values; in the short form one of ``every``, others at the next path."""
    document, refused = DOCUMENTS[name], []
    for number, path in enumerate(paths(document[key], (key,))):
        for wrong in WRONG[number % every :: every]:
            try:
                MachineSnapshot.from_json(changed(document, path, wrong))
            except InputError as error:
                refused.append(str(error))
    assert len(refused) >= 6 // every
    assert not [message for message in refused if "\n" in message]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("now",), 1.0, "tasks.stamps[1]: must be 1 to 7 instants <= 1 s, got (10.0,"),
        (("tasks", "stamps", 0), [], "tasks.stamps[0]: must be 1 to 7 instants <= 12 s, got ()"),
        (("tasks", "place", 0), None, "tasks.place[0]: must be a place, as the task is running"),
        (("tasks", "set", 1), 5, "tasks.set[1]: must be the number of a task set, below 1, got 5"),
        (("tasks", "parents", 1), [99], "tasks.parents[1]: must be the number of a task, below 10, got 99"),
        (("tasks", "inputs", 1), [99], "tasks.inputs[1]: must be the number of a data object, below"),
        (("pools", 0, "held"), [99], "pools[0]: must be the number of a data object, below"),
        (("pools",), [], "pools: must be the pools "),
        (("places", 0, "name"), "x", "places[0].name: unknown processor 'x'"),
        (("places", 0, "queue"), [99], "places[0]: must be the number of a task, below"),
        (("order",), [99], "order[0]: must be the number of a task, below"),
    ],
)
def test_contradictions_name_their_place(path: tuple[Any, ...], value: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        MachineSnapshot.from_json(changed(DOCUMENTS["busy"], path, value))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("moving", ("tasks", "inputs"), "flights[0].owner: must be a task that reads data 0, got task 0"),
        (
            "busy",
            ("tasks", "outputs"),
            "tasks.inputs[3]: must be held, in flight or the output of a task, got data 2 of none of them",
        ),
        ("busy", ("pools", 0, "held"), "pools[0].held: must hold data 0 ('0->3'), a copy of it"),
        ("busy", ("data", "copies"), "data.copies[0]: must be the pools that hold it, as 0 (node0), got ()"),
    ],
)
def test_running_tasks_pools_and_data_agree(name: str, path: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError) as caught:
        MachineSnapshot.from_json(changed(DOCUMENTS[name], path, MISSING))
    assert str(caught.value) == said


@pytest.mark.parametrize("key", ["uinteger", "state", "bit_generator"])
@pytest.mark.parametrize("value", [-1, 2**200, None, "x", {"state": -1, "inc": 0}])
def test_wrong_states_of_random_streams(key: str, value: Any) -> None:
    (stream,) = DOCUMENTS["busy"]["streams"]
    snapshot = MachineSnapshot.from_json(changed(DOCUMENTS["busy"], ("streams", stream, key), value))
    with pytest.raises(InputError, match=r"streams\.machine.*: must be the state of a PCG64 generator, got"):
        simulate(snapshot)


def test_places_of_the_platform_that_are_missing() -> None:
    document = changed(DOCUMENTS["busy"], ("places",), DOCUMENTS["busy"]["places"][::-1])
    with pytest.raises(InputError, match="places: must be the places of the platform, in their order"):
        simulate(MachineSnapshot.from_json(document))


def test_a_turn_beyond_the_places_is_the_first() -> None:
    whole = simulate("hetsim-slow", WIDE_FLOW, "hrr")
    document = changed(DOCUMENTS["busy"], ("policy", "state"), 10**6)
    result = simulate(MachineSnapshot.from_json(document))
    assert len(result.tasks) <= len(whole.tasks)
    assert set(result.tasks["status"].tolist()) == {"done"}
