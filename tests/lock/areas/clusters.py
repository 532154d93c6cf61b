"""Clusters of nodes, GPUs, memory and licences; limits, failures, reservations, preemption, dependencies, bodies."""

from __future__ import annotations

from typing import Any

from simmodel import Job, Preempt, Start, WakeAt
from tests.lock import api, work
from tests.lock.cases import case
from tests.lock.digests import of_jobs

POLICIES = ("fcfs", "easy", "sjf+easy", "conservative", "conservative-keep", "multifactor", "best-fit", "window")


def _run(spec: Any, jobs: Any, policy: Any, **options: Any) -> dict[str, Any]:
    options.setdefault("until", 5000)
    return of_jobs(api.run_batch(spec, list(jobs), policy, **options))


def add() -> None:
    """Add the cases."""
    for policy in POLICIES:
        for placement in ("first-fit", "best-fit", "packed"):
            for exclusive in (False, True):
                case(
                    "clusters-nodes",
                    f"{policy}, {placement}{', exclusive' if exclusive else ''}",
                    lambda policy=policy, placement=placement, exclusive=exclusive: _run(
                        work.nodes(placement, exclusive=exclusive), work.jobs(1, 30), policy
                    ),
                )
        for placement in (None, "first-fit", "packed", "spread"):
            for speed in (1.0, 2.0):
                case(
                    "clusters-hosts",
                    f"{policy}, {placement or 'default'}, speed {speed:g}",
                    lambda policy=policy, placement=placement, speed=speed: _run(
                        work.hosts(placement, speed=speed), work.jobs(9, 60, kind="plain", gap=4), policy
                    ),
                )
        for name, mode in work.MODES.items():
            case(
                "clusters-nodes",
                f"{policy}, {name}, dependencies",
                lambda policy=policy, mode=mode: _run(work.nodes(), work.jobs(2, 40, waits=True), policy, **mode),
            )
            case(
                "clusters-dependencies",
                f"{policy}, {name}",
                lambda policy=policy, mode=mode: _run(
                    12, work.jobs(3, 60, kind="plain", waits=True), policy, events=True, **mode
                ),
            )
        for on_failure in ("resubmit", "lose"):
            for distribution in ("exponential", "weibull"):
                case(
                    "clusters-failures",
                    f"{policy}, {on_failure}, {distribution}",
                    lambda policy=policy, on_failure=on_failure, distribution=distribution: _run(
                        work.failing(on_failure, distribution), work.jobs(4, 40, kind="queues"), policy, seed=3
                    ),
                )
        case(
            "clusters-failures",
            f"{policy}, outages and a reservation of processors",
            lambda policy=policy: _run(work.plain_outages(), work.jobs(5, 50, kind="plain"), policy, events=True),
        )
    for mode in ("requeue", "suspend"):
        for seed in (6, 7, 8):
            for name, options in work.MODES.items():
                case(
                    "clusters-preemption",
                    f"preemptive, {mode}, {name}, jobs {seed}",
                    lambda mode=mode, seed=seed, options=options: _run(
                        work.preempting(mode), work.jobs(seed, 40, kind="queues"), "preemptive", **options
                    ),
                )
    for quantum in (5, 12):
        case(
            "clusters-preemption",
            f"round robin of {quantum} s",
            lambda quantum=quantum: _run(2, _equals(), _round_robin(quantum), until=400),
        )
    case("clusters-preemption", "bodies", lambda: _run(6, _bodies(), "easy"))
    case("clusters-preemption", "bodies, conservative", lambda: _run(6, _bodies(), "conservative", decide_on="event"))


def _equals() -> list[Job]:
    return [Job(id=i, submit=float(i // 2), processors=1 + i % 2, run=20.0 + i) for i in range(8)]


def _round_robin(quantum: float) -> Any:
    def decide(view: Any) -> Any:
        for run in view.running:
            if view.waiting and view.now - run.started >= quantum:
                yield Preempt(run.work, "suspend", "its turn is over")
        for job in view.waiting:
            if view.places[0].fits(job):
                yield Start(job, view.places[0])
        if view.running or view.waiting:
            yield WakeAt(view.now + quantum)

    return decide


def _bodies() -> list[Job]:
    def steps(env: Any, job: Any, _grant: Any) -> Any:
        for step in range(3):
            yield env.timeout(2.5 + step + job.id % 3)

    return [
        Job(id=i, submit=float(i), processors=1 + i % 4, body=steps, requested=30.0 if i % 2 else 9.0)
        for i in range(1, 13)
    ]
