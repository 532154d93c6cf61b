"""Events of a scheduler for tests of the twin: short ways to write them, drawn histories, and checks of the mirror."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.snapshots import ClusterSnapshot
from simmodel_site.twin import (
    Changed,
    Demand,
    Ended,
    Event,
    Mirror,
    NodesChanged,
    OnHold,
    Released,
    Requeued,
    Started,
    Submitted,
)

ALPS: dict[str, Any] = {"cluster": "alps"}


def about(job: int | str, time: float, submit: float = 0.0) -> dict[str, Any]:
    return {"cluster": "alps", "job": job, "submit": submit, "time": time}


def submitted(job: int | str, submit: float, processors: int = 1, requested: float = 60.0, **more: Any) -> Submitted:
    held = more.pop("held", False)
    request = Demand(processors=processors, requested=requested, **more)
    return Submitted(**about(job, submit, submit), request=request, held=held)


def told(mirror: Mirror, *events: Event) -> Mirror:
    """Tell a mirror events, and look at it after each; its state is what is built from scratch."""
    for event in events:
        mirror.apply(event)
        check(mirror)
    return mirror


def check(mirror: Mirror, *, but: tuple[str, ...] = ()) -> None:
    """Check that the state is whole, and the same, but for some fields, as of a mirror that is built from scratch."""
    snapshot = mirror.snapshot()
    snapshot.check()
    document = json.loads(json.dumps(mirror.state_document()))
    again = Mirror.from_document(document, mirror.spec, mirror.policy, **mirror.options.values())
    same(again.snapshot(), snapshot, but=but)


def same(found: ClusterSnapshot, expected: ClusterSnapshot, *, but: tuple[str, ...] = ()) -> None:
    """Check that two snapshots are equal, field by field, but for some."""
    fields, others = expected.document(), found.document()
    differ = {name: (others.get(name), value) for name, value in fields.items() if others.get(name) != value}
    if differ.keys() - set(but):
        raise AssertionError(f"differ: {differ}")
    assert but or found == expected


def running(mirror: Mirror) -> dict[Any, float]:
    return {run.id: run.started for run in mirror.snapshot().running}


def waiting(mirror: Mirror) -> list[Any]:
    return [work.id for work in mirror.snapshot().waiting]


NODES = ClusterSpec(
    partitions=[
        PartitionSpec(name="a", nodes=[NodeSpec(count=3, cores=4)]),
        PartitionSpec(name="b", processors=6),
    ],
    default_partition="b",
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Draw what a scheduler did, in order: it starts what fits, and ends, requeues, holds, changes and drains."""
    events: list[Event] = []
    free = {"a0": 4, "a1": 4, "a2": 4, "b": 6}
    names = {"a0": "node0", "a1": "node1", "a2": "node2"}
    jobs: dict[int, dict[str, Any]] = {}
    now = 0.0
    for _ in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0.0, 1.5, 2.0, 7.0]))
        what = draw(
            st.sampled_from(["submit", "submit", "start", "start", "end", "requeue", "hold", "change", "nodes"])
        )
        waiting = [job for job, each in jobs.items() if each["state"] == "waiting" and not each["held"]]
        busy = [job for job, each in jobs.items() if each["state"] == "running"]
        if what == "submit":
            job = len(jobs) + 1
            name = draw(st.sampled_from([job, f"{job}_1"]))
            size, part = draw(st.integers(1, 4)), draw(st.sampled_from(["a", "b", "a,b"]))
            held = draw(st.booleans()) and draw(st.booleans())
            depends = draw(st.sampled_from([(), (), (jobs[1]["name"],)])) if jobs else ()
            request = {"processors": size, "requested": 60.0, "partition": part}
            request["dependencies"] = tuple(
                (each, draw(st.sampled_from(["end", "start", "success"]))) for each in depends
            )
            jobs[job] = {"name": name, "submit": now, "state": "waiting", "held": held, "request": request, "at": None}
            events.append(Submitted(**about(name, now, now), request=Demand(**request), held=held))
        elif what == "start" and waiting:
            job = jobs[draw(st.sampled_from(waiting))]
            size = job["request"]["processors"]
            able = [at for at, left in free.items() if left >= size and at[0] in job["request"]["partition"]]
            if able:
                at = draw(st.sampled_from(able))
                free[at] -= size
                job |= {"state": "running", "at": at}
                nodes = ((names[at], size),) if at in names else ()
                events.append(Started(**about(job["name"], now, job["submit"]), partition=at[0], nodes=nodes))
        elif what in ("end", "requeue") and busy:
            job = jobs[draw(st.sampled_from(busy))]
            free[job["at"]] += job["request"]["processors"]
            job["state"] = "over" if what == "end" else "waiting"
            told_about = about(job["name"], now, job["submit"])
            if what == "end":
                events.append(Ended(**told_about, status=draw(st.sampled_from(["completed", "failed"]))))
            else:
                events.append(Requeued(**told_about))
        elif what == "hold":
            others = [job for job, each in jobs.items() if each["state"] == "waiting"]
            if others:
                job = jobs[draw(st.sampled_from(others))]
                job["held"] = not job["held"]
                kind = OnHold if job["held"] else Released
                events.append(kind(**about(job["name"], now, job["submit"])))
                now += 0.25
        elif what == "change" and (waiting or busy):
            job = jobs[draw(st.sampled_from(waiting + busy))]
            job["request"] |= {
                "requested": draw(st.sampled_from([5.0, 30.0])),
                "priority": draw(st.sampled_from([0.0, 2.0])),
            }
            events.append(Changed(**about(job["name"], now, job["submit"]), request=Demand(**job["request"])))
            now += 0.25
        elif what == "nodes":
            node, state = draw(st.sampled_from([*names.values()])), draw(st.sampled_from(["up", "down", "draining"]))
            events.append(NodesChanged(**ALPS, time=now, state=state, nodes=(node,)))
            events.append(
                NodesChanged(**ALPS, time=now, state=state, processors=draw(st.integers(1, 3)), partition="b")
            )
            now += 0.25
    return events
