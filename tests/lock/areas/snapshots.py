"""Runs that are cut at several instants, and go on from their snapshots."""

from __future__ import annotations

from typing import Any

from simmodel import Job
from tests.lock import api, work
from tests.lock.areas.brokers import SIZES, SLOWDOWNS, homes
from tests.lock.cases import case
from tests.lock.digests import of_jobs, of_tasks

CUTS = (0.5, 40, 111)


def add() -> None:
    """Add the cases."""
    for at in CUTS:
        for policy in ("fcfs", "easy", "conservative", "conservative-keep", "multifactor", "wfp+easy", "best-fit"):
            for name, mode in work.MODES.items():
                case(
                    "snapshots-clusters",
                    f"{policy}, {name}, at {at:g}",
                    lambda at=at, policy=policy, mode=mode: _batch(16, work.log(31, 50), policy, at, **mode),
                )
        for policy, spec, seed in (
            ("easy", "nodes", 2),
            ("conservative", "nodes", 2),
            ("preemptive", "suspend", 6),
            ("preemptive", "requeue", 7),
            ("easy", "failing", 4),
        ):
            case(
                "snapshots-clusters",
                f"{policy} on {spec}, at {at:g}",
                lambda at=at, policy=policy, spec=spec, seed=seed: _detailed(spec, policy, seed, at),
            )
        case(
            "snapshots-clusters",
            f"another policy, arrivals and a seed, at {at:g}",
            lambda at=at: of_jobs(
                api.go_on(
                    api.cut_batch(16, work.log(31, 50), "fcfs", at),
                    "sjf+easy",
                    arrivals=[Job(id=900 + i, submit=at + 3 * i, processors=5, run=12.0) for i in range(5)],
                    until=200,
                    seed=9,
                )
            ),
        )
        for policy in api.names_of("task policies"):
            for name, rules in (("as it is", {}), ("overlap", {"overlap": True, "transfers": "parallel"})):
                case(
                    "snapshots-machines",
                    f"{policy}, {name}, at {at:g}",
                    lambda at=at, policy=policy, rules=rules: _machine(policy, at, **rules),
                )
        for broker in ("random", "round-robin", "sgs-t", "sgs-w", "least-loaded", "siloed", "share:0.6"):
            for name, slowdowns in SLOWDOWNS.items():
                case(
                    "snapshots-brokers",
                    f"{broker}, {name}, at {at:g}",
                    lambda at=at, broker=broker, slowdowns=slowdowns: _brokered(broker, at, slowdowns=slowdowns),
                )
        for name, mode in work.MODES.items():
            case(
                "snapshots-brokers",
                f"sgs-t, {name}, actual, at {at:g}",
                lambda at=at, mode=mode: _brokered("sgs-t", at, by="actual", policy="conservative", **mode),
            )


def _batch(spec: Any, log: Any, policy: str, at: float, **options: Any) -> dict[str, Any]:
    return of_jobs(api.go_on(api.reread(api.cut_batch(spec, log, policy, at, **options))))


def _detailed(spec: str, policy: str, seed: int, at: float) -> dict[str, Any]:
    specs = {"nodes": work.nodes, "failing": lambda: work.failing("resubmit")}
    made = specs[spec]() if spec in specs else work.preempting(spec)
    jobs = work.jobs(seed, 40, kind="nodes" if spec == "nodes" else "queues", waits=spec == "nodes")
    snapshot = api.cut_batch(made, api.log_of(jobs), policy, at, seed=3)
    return of_jobs(api.go_on(api.reread(snapshot), until=3000))


def _machine(policy: str, at: float, **rules: Any) -> dict[str, Any]:
    given = [(0.0, work.flow(1)), (30.0, work.tasks(2)), (55.5, work.flow(3, 12))]
    return of_tasks(api.go_on(api.reread(api.cut_machine(work.machine(model_error=0.3), given, policy, at, **rules))))


def _brokered(broker: str, at: float, **options: Any) -> dict[str, Any]:
    return of_jobs(api.go_on(api.reread(api.cut_brokered(SIZES, homes(broker, 20), broker, at, seed=4, **options))))
