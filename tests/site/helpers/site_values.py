"""Values of the classes that users of the site hold."""

from collections.abc import Iterator
from typing import Any

from simmodel_site.twin import Advice, LastDecision, Mirror, RedisSettings, Shadow, Status, TwinConfig, replay_log
from simmodel_site.twin.advisor import AdvisedStart
from simmodel_site.twin.audit_replay import AuditReplay
from simmodel_site.twin.described import Unsupported
from simmodel_site.twin.events import (
    Changed,
    Demand,
    Ended,
    JobReport,
    NodesChanged,
    Noticed,
    OnHold,
    Passed,
    Released,
    Requeued,
    Started,
    StateReport,
    Submitted,
)
from simmodel_site.twin.slurm.describe import described
from simmodel_site.twin.slurm.records import NodeRecord, PartitionRecord, Site
from tests.helpers.public_classes import JOBS, classes_of, values_of

__all__ = ["site_classes", "site_values"]


def site_classes() -> dict[str, type]:
    """Return the classes that the twin exports, and those of the values that users get, by name."""
    return classes_of(_events(), ["simmodel_site.twin"])


def site_values() -> dict[str, Any]:
    """Return one value of each of these classes of which users hold values, by the name of the class."""
    return values_of(list(_events()), site_classes())


def _events() -> Iterator[Any]:
    request = Demand(processors=2, requested=60.0)
    yield request
    waiting = JobReport(job="<7>", submit=1.0, state="waiting", request=request)
    yield waiting
    about: Any = {"cluster": "<alps>", "time": 3.0}
    yield StateReport(**about, jobs=(waiting,))
    yield NodesChanged(**about, state="down", nodes=("n1",))
    yield Passed(**about)
    yield Noticed(**about, what="ended", job="<7>")
    about |= {"job": "<7>", "submit": 1.0}
    yield Submitted(**about, request=request)
    yield Changed(**about, request=request)
    yield from (each(**about) for each in (Started, Ended, Requeued, OnHold, Released))
    mirror = Mirror(4, "<alps>")
    mirror.apply(Submitted(**about, request=request))
    yield mirror
    yield Shadow(mirror).report()
    yield from _advice()
    node, batch = NodeRecord(name="<n1>", cpus=4), PartitionRecord(name="batch", nodes="<n1>")
    yield described(Site(nodes=(node,), partitions=(batch,)))
    yield Unsupported("partition <batch>", "LLN=YES", "not modelled")


def _advice() -> Iterator[Any]:
    start = AdvisedStart("<7>", 1.0, "batch")
    yield start
    yield Advice(number=1, time=3.0, digest="", policy="<easy>", reason="<quick>", starts=(start,))
    yield AuditReplay(decisions=2, reproduced=1, first="line 3: <differs>")
    source = {"kind": "lines", "path": "<events>", "follow": False}
    yield RedisSettings(url="unix:///run/redis/redis.sock", user="<twin>")
    last = LastDecision(number=3, time=9.0, policy="easy")
    yield from (last, Status(cluster="<alps>", time=9.0, last=last))
    yield TwinConfig(cluster="<alps>", platform="theta", source=source)
    yield replay_log(4, JOBS, "easy")
