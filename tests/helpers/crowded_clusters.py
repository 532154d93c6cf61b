"""Random clusters on which everything happens at once, and what processes outside the scheduler do to them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import attrs
import simpy
from hypothesis import strategies as st

from simmodel import Cluster, Environment, InputError, Job, Workload
from simmodel.foundation.errors import ImpossibleWork
from simmodel.platform import ClusterSpec, ConsumableSpec, FailureModel
from simmodel.policies.preemption import Preemptive
from tests.helpers.cluster_cases import Restless, jobs, outages, partitions, queues, with_reservations

POLICIES: dict[str, Any] = {
    **{name: name for name in ("fcfs", "easy", "conservative", "conservative-keep", "best-fit")},
    "preemptive": Preemptive,
    "restless": Restless,
}
TIMES = st.integers(0, 60)


class Change(NamedTuple):
    """A change of the capacity of a partition, at an instant (s): a method of its pool and the argument."""

    at: int
    place: str
    method: str
    what: Any


class Claimed(NamedTuple):
    """A claim of a process: its begin and its seconds, the place and the request."""

    at: int
    seconds: int
    place: str
    request: dict[str, Any]


class Crowd(NamedTuple):
    """A cluster, its jobs, and everything that happens besides."""

    spec: ClusterSpec
    policy: str
    options: dict[str, Any]
    jobs: list[Job]
    replayed: bool
    claims: list[Claimed]
    changes: list[Change]
    seed: int


class Stubborn(NamedTuple):
    """A body that ignores every interrupt."""

    seconds: float

    def __call__(self, env: Any, job: Any, grant: Any) -> Any:
        until = env.now + self.seconds
        while env.now < until:
            with suppress(simpy.Interrupt):
                yield env.timeout(until - env.now)


class Greedy(NamedTuple):
    """A body that claims a processor more of the place it runs at, for some seconds."""

    seconds: float

    def __call__(self, env: Any, job: Any, grant: Any) -> Any:
        yield env.timeout(1)
        with job.place.claim(1, duration=self.seconds) as more:
            yield more
            yield env.timeout(self.seconds)


@st.composite
def crowds(draw: st.DrawFn) -> Crowd:
    parts = [draw(partitions("counted", False)), draw(partitions("nodes", True))]
    parts += [draw(partitions("more"))] if draw(st.booleans()) else []
    parts = draw(st.permutations(parts))
    failing = draw(st.sampled_from([None, None, *(part.name for part in parts)]))
    spec = ClusterSpec(
        partitions=parts,
        queues=draw(queues(parts)),
        consumables=[ConsumableSpec(name="licence", amount=1.0)] if draw(st.booleans()) else [],
        outages=draw(st.lists(outages(parts), max_size=3)),
        failures=[]
        if failing is None
        else [FailureModel(partition=failing, mean_time_between_failures=150, mean_time_to_repair=9)],
        on_failure=draw(st.sampled_from(["resubmit", "lose"])),
    )
    spec = draw(with_reservations(spec, TIMES, 5))
    count = draw(st.integers(1, 12))
    options = {
        "decide_on": draw(st.sampled_from(["instant", "instant", "event"])),
        "event_order": draw(st.sampled_from(["submits-first", "ends-first"])),
        "overrun": draw(st.sampled_from(["stop", "stop", "continue"])),
    }
    return Crowd(
        spec,
        draw(st.sampled_from(sorted(POLICIES))),
        options,
        [_with_odd_body(draw, draw(jobs(number, count, spec))) for number in range(1, count + 1)],
        draw(st.booleans()),
        draw(st.lists(_claims(spec), max_size=4)),
        sorted(draw(st.lists(_changes(spec), max_size=5))),
        draw(st.integers(0, 99)),
    )


def _with_odd_body(draw: st.DrawFn, job: Job) -> Job:
    """Return a job, if it has a body perhaps with one that ignores interrupts or claims more."""
    if job.body is None:
        return job
    body: Any = draw(st.sampled_from([job.body, job.body, Stubborn(draw(TIMES)), Greedy(draw(TIMES))]))
    return attrs.evolve(job, body=body)


@st.composite
def _claims(draw: st.DrawFn, spec: ClusterSpec) -> Claimed:
    place = draw(st.sampled_from([each.name for each in (*spec.partitions, *spec.reservations)]))
    request: dict[str, Any] = {"processors": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        request = {"nodes": draw(st.integers(1, 2)), "gpus_per_node": draw(st.sampled_from([0, 0, 1]))}
    request["priority"] = draw(st.integers(0, 2))
    request["preempt"] = draw(st.booleans())
    seconds = draw(st.integers(0, 30))
    request["duration"] = draw(st.sampled_from([None, seconds]))
    return Claimed(draw(TIMES), seconds, place, request)


@st.composite
def _changes(draw: st.DrawFn, spec: ClusterSpec) -> Change:
    part = draw(st.sampled_from(spec.partitions))
    at = draw(TIMES)
    if not part.nodes:
        method = draw(st.sampled_from(["resize", "resize", "take_down", "bring_up"]))
        return Change(at, part.name, method, draw(st.integers(0 if method == "resize" else 1, 10)))
    method = draw(st.sampled_from(["leave", "join", "leave", "join", "take_down", "bring_up"]))
    return Change(at, part.name, method, draw(st.integers(0, len(part.node_names) - 1)))


# ---------------------------------------------------------------------- the run


def run_crowd(crowd: Crowd, until: float, *observers: Any) -> tuple[Cluster, list[Any]]:
    """Run a cluster and everything on it; return it and the ids of the jobs that it refused.

    ``observers`` are functions that return an observer of the cluster.
    """
    env = Environment(seed=crowd.seed)
    policy = POLICIES[crowd.policy]
    cluster = Cluster(env, crowd.spec, policy if isinstance(policy, str) else policy(), **crowd.options)
    for each in observers:
        env.observe(each(cluster))
    refused: list[Any] = []
    if crowd.replayed:
        cluster.replay(Workload.from_jobs(crowd.jobs))
    else:
        for job in sorted(crowd.jobs, key=lambda job: job.submit):
            env.process(_submit(env, cluster, job, refused))
    for claim in crowd.claims:
        env.process(_hold(env, cluster, claim))
    for change in crowd.changes:
        env.process(_change(env, cluster, change))
    env.run(until=until)
    return cluster, refused


def _submit(env: Environment, cluster: Cluster, job: Job, refused: list[Any]) -> Any:
    yield env.timeout(job.submit)
    try:
        cluster.submit(job)
    except ImpossibleWork:
        refused.append(job.id)


def _hold(env: Environment, cluster: Cluster, claim: Claimed) -> Any:
    yield env.timeout(claim.at)
    with suppress(simpy.Interrupt, ImpossibleWork), cluster.pools[claim.place].claim(**claim.request) as grant:
        yield grant
        yield env.timeout(claim.seconds)


def _change(env: Environment, cluster: Cluster, change: Change) -> Any:
    yield env.timeout(change.at)
    pool: Any = cluster.pools[change.place]
    with suppress(InputError):  # as a node that cannot leave twice
        getattr(pool, change.method)(change.what)
