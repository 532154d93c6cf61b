"""What the pages in docs/ say of the code is true: the tables of attributes that policies can read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from simmodel import Broker, Cluster, Environment, Job, Machine, TaskSet, load_platform
from simmodel.scheduling import Estimate, Load, Place, View
from simmodel.work import LiveData
from tests.helpers.doc_pages import PAGES

TOUR = PAGES["docs/tour.md"]
SECTIONS = ("View", "Place", "Job", "Task", "Run", "Estimate", "Load")
_NAME = re.compile(r"`(\w+)(?:\(.*\))?`")


def tables() -> dict[str, list[str]]:
    """Return the names in the tables of the interface of a policy, by the class in their header."""
    found: dict[str, list[str]] = {}
    for section in SECTIONS:
        header = ""
        for line in TOUR.section(section).splitlines():
            first = line.strip("|").split(" | ")[0].strip()
            if match := re.match(r"\| `(\w+)` \| \|$", line):
                header = match[1]
                found[header] = []
            elif line.startswith("| `") and (match := _NAME.fullmatch(first)):
                found[header].append(match[1])
            else:
                assert not line.startswith("| "), f"{section}: {line}"
    return found


TABLES = tables()


def live() -> Iterator[Any]:
    """Yield an object of each class that a policy meets."""
    env = Environment()
    cluster, other = Cluster(env, 4), Cluster(env, 4, name="other")
    machine = Machine(env, load_platform("hetsim-slow"))
    broker = Broker(env, [cluster, other], "round-robin")
    tasks = machine.submit(TaskSet([3.0])).tasks
    job = cluster.submit(Job(processors=2, run=10))
    yield from (cluster.view, machine.view, broker.view, cluster.places[0], machine.places[0], broker.places[0])
    yield from (job, tasks[0], cluster.load)
    env.run(until=1)
    yield from (job.run, machine.view.running[0], cluster.estimate(Job(run=5)))


LIVE = list(live())


def ancestors(each: object) -> set[str]:
    """Return the names of the classes of an object; runs of tasks count as ``Run``."""
    names = {cls.__name__ for cls in type(each).__mro__}
    return names | ({"Run"} if "RunningTask" in names else set()) | ({"Place"} if isinstance(each, Place) else set())


def public(cls: type) -> set[str]:
    return {name for name in (*vars(cls), *getattr(cls, "__slots__", ())) if not name.startswith("_")}


@pytest.mark.parametrize("name", TABLES)
def test_every_attribute_in_a_table_exists(name: str) -> None:
    objects = [each for each in LIVE if name in ancestors(each)]
    assert objects
    for each in objects:
        assert [attribute for attribute in TABLES[name] if not hasattr(each, attribute)] == [], each
    assert len(set(TABLES[name])) == len(TABLES[name])


@pytest.mark.parametrize("cls", [View, Place, Estimate, Load])
def test_a_table_lists_all_attributes(cls: type) -> None:
    listed = public(cls) - {"count", "index"}  # of tuples
    assert set(TABLES[cls.__name__]) == listed


def test_jobs_and_tasks_have_no_other_attributes_but_those_of_systems() -> None:
    job = next(each for each in LIVE if type(each).__name__ == "LiveJob")
    task = next(each for each in LIVE if type(each).__name__ == "LiveTask")
    of_systems = {"adopt", "earlier", "env", "index", "later", "over", "plan", "remember", "requeue", "rules", "seq"}
    of_systems |= {"suspend", "watched"}
    assert public(type(job)) - of_systems == set(TABLES["LiveJob"])
    of_machines = {"assigned", "attempts", "core", "core_since", "done_share", "index", "row", "set", "share", "stamps"}
    assert public(type(task)) - of_machines - {"submission"} == set(TABLES["LiveTask"])
    assert {"size", "copies", "coming"} <= public(LiveData)
