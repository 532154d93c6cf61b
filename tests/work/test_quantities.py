"""Times, sizes and powers of jobs, tasks and specs may be texts with units."""

import pytest

from simmodel import Job, Task
from simmodel.platform import MemoryPoolSpec, NodeSpec, OutageSpec, QueueSpec, ReservationSpec
from simmodel.work import DataObject, Dependency


def test_fields_of_jobs_take_texts_with_units():
    job = Job(submit="1d", run="90min", requested="2h", cancel="3h", nodes=1, memory_per_node="16GB")
    assert (job.submit, job.run, job.requested, job.cancel, job.memory_per_node) == (86400, 5400, 7200, 10800, 16e9)
    assert Dependency(1, think_time="1min").think_time == 60


@pytest.mark.parametrize("field", ["submit", "run", "requested", "cancel", "memory_per_node"])
def test_texts_that_are_no_quantities(field):
    with pytest.raises(ValueError, match=f"^{field}: must be a number.*got '2 parsecs'"):
        Job(**{"run": 1, field: "2 parsecs"})


def test_fields_of_tasks_and_specs_take_texts_with_units():
    task = Task(id=1, run="2min", memory="1MiB")
    assert (task.run, task.memory, DataObject("a", "4MB").size) == (120, 2**20, 4e6)
    assert NodeSpec(memory="64GB", load_power="1.5kW").load_power == 1500
    assert QueueSpec(name="q", max_requested="24h").max_requested == 86400
    outage = OutageSpec(at="1h", until="2h", processors=1)
    assert (outage.at, outage.until) == (3600, 7200)
    assert ReservationSpec(name="r", start="1h", end="2h", processors=1).end == 7200
    assert MemoryPoolSpec(name="ram", size="16GB").size == 16e9
    with pytest.raises(
        ValueError, match="memory: must be a number >= 0 or a quantity such as '2h' or '16GB', got 'big'"
    ):
        NodeSpec(memory="big")
