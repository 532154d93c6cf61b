"""Every public class has a short repr; values that users hold are small tables in notebooks."""

import pytest

from simmodel.foundation.errors import SimmodelError
from simmodel.platform import ClusterSpec, PartitionSpec
from simmodel.records.steps import Steps
from simmodel.results import Result
from simmodel.scheduling import Observer, Policy, Predictor
from simmodel.work import Job
from simmodel.work.table import Table
from tests.helpers.public_classes import public_classes, public_values
from tests.helpers.repr_checks import one_line_and_a_small_table

BASES = {
    *("Eviction", "JobSystemSnapshot", "Observer", "Options", "Snapshot", "System"),
    *("NodeChoice", "Score", "SharingRule"),
}
"""Base classes, of which no value is made."""
VALUES = {name: each for name, each in public_values().items() if name not in BASES}
LIVE = {
    *("Environment", "RealtimeEnvironment", "Simulation", "Scheduler", "View", "Usage", "Problem"),
    *("Cluster", "Machine", "Broker", "Grid", "Site", "JobSystem", "Destination", "JobRecorder"),
    *("Claim", "CountPool", "DeviceTable", "GpuUse", "Host", "Link", "ManyCores", "MemoryPool"),
    *("HostPool", "Network", "NodePool", "PIMRank", "Pool", "Processor", "Transfer"),
    *("Catalogue", "Growth", "SharedChannel", "Storage"),
    *("Alarm", "BatchedProcessor", "SharedProcessor"),
    *("BrokeredJob", "JobRequest", "Learning", "LiveJob", "LiveTask", "Request", "Run"),
}
"""Parts of running simulations: a repr, no table."""


def is_value(value: type) -> bool:
    if issubclass(value, (BaseException, Policy, Predictor)) or getattr(value, "_is_protocol", False):
        return False
    if issubclass(value, (tuple, dict)):  # named tuples print their fields
        return False
    return value.__name__ not in LIVE | BASES


def test_values_of_all_public_classes_are_made() -> None:
    assert sorted(name for name, each in public_classes().items() if is_value(each) and name not in VALUES) == []
    assert public_classes().keys() >= LIVE | BASES, "exceptions that no longer exist"


def made_classes() -> list[str]:
    """Return the names of the public classes of which values are made: neither bases, protocols nor errors."""
    return sorted(
        name
        for name, value in public_classes().items()
        if not (name in BASES or getattr(value, "_is_protocol", False) or issubclass(value, SimmodelError))
    )


@pytest.mark.parametrize("name", made_classes())
def test_every_class_has_a_repr(name: str) -> None:
    value = public_classes()[name]
    assert value.__repr__ not in (object.__repr__, Observer.__repr__)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_have_one_line_and_a_small_table(name: str) -> None:
    one_line_and_a_small_table(name, VALUES[name])


def test_reprs_of_specs_can_be_read_back_if_short() -> None:
    job = Job(processors=3, run=10)
    assert eval(repr(job)) == job
    assert eval(repr(VALUES["Slowdown"]), {"Slowdown": type(VALUES["Slowdown"])}) == VALUES["Slowdown"]


def test_long_values_are_abbreviated() -> None:
    long = repr(Job(user="x" * 500, run=10))
    assert long.startswith("Job(")
    assert long.endswith("xxx...)")
    assert len(long) < 120
    many = ClusterSpec(partitions=[PartitionSpec(name=f"p{i}", processors=4) for i in range(100)])
    assert repr(many) == "ClusterSpec(partitions=<100 items>)"
    assert "100 items" in many._repr_html_()


def test_tables_print_their_first_and_last_rows() -> None:
    table = Table({"job": range(1000), "wait": [0.5] * 1000})
    lines = str(table).splitlines()
    assert lines[0].split() == ["job", "wait"]
    assert lines[1].split() == ["0", "0.5"]
    assert lines[-1].split() == ["999", "0.5"]
    assert "... 985 more rows ..." in lines
    assert len(lines) == 17
    assert str(Table({})) == repr(Table({}))
    jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    assert len(str(Result(jobs=jobs).jobs).splitlines()) == 3
    assert repr(table) == "<Table of 1,000 rows: job, wait>"


def test_empty_steps_say_none() -> None:
    assert repr(Steps([], [], 0)) == "<Steps: none>"
