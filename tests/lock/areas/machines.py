"""Task sets and workflows on machines: every task policy, ready machine, ready work and rule."""

from __future__ import annotations

from typing import Any

from simmodel.policies import HEFT
from tests.lock import api, work
from tests.lock.cases import case
from tests.lock.digests import of_tasks

RULES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "overlap": {"overlap": True},
    "parallel transfers": {"transfers": "parallel"},
    "no contention": {"contention": False, "transfers": "parallel"},
    "decided at submission": {"decide": "submit"},
    "decided when ready": {"decide": "ready", "overlap": True},
}
CHANGES: dict[str, dict[str, Any]] = {
    "priority queue": {"queue": "priority"},
    "suspending": {"queue": "priority", "preemption": "suspend"},
    "requeueing": {"queue": "priority", "preemption": "requeue"},
    "no dma": {"dma": False},
    "model error": {"model_error": 0.4},
    "little memory": {"vram": 130.0, "card": 130.0},
    "little memory, lfu": {"vram": 130.0, "card": 130.0, "evict": "lfu"},
    "little memory, size": {"vram": 130.0, "card": 130.0, "evict": "size"},
}


def _run(spec: Any, given: Any, policy: Any, **options: Any) -> dict[str, Any]:
    return of_tasks(api.run_machine(spec, given, policy, **options))


def _over_time() -> list[tuple[float, Any]]:
    return [(0.0, work.flow(1)), (30.0, work.tasks(2)), (55.5, work.flow(3, 12))]


def add() -> None:
    """Add the cases."""
    policies = api.names_of("task policies")
    for policy in policies:
        for name, rules in RULES.items():
            case(
                "machines-policies",
                f"{policy}, {name}, a workflow",
                lambda policy=policy, rules=rules: _run(work.machine(), work.flow(1), policy, **rules),
            )
            case(
                "machines-policies",
                f"{policy}, {name}, over time",
                lambda policy=policy, rules=rules: _run(work.machine(), _over_time(), policy, **rules),
            )
        for name, changes in CHANGES.items():
            case(
                "machines-rules",
                f"{policy}, {name}",
                lambda policy=policy, changes=changes: _run(
                    work.machine(**changes),
                    [(0.0, work.tasks(4)), (20.0, work.tasks(5, at_once=False))],
                    policy,
                    seed=2,
                ),
            )
        for spec in ("hetsim-slow-setup", "hetsim-fast"):
            for given in ("fork-join-dressed", "layered:n=30"):
                case(
                    "machines-ready",
                    f"{given} on {spec}, {policy}",
                    lambda policy=policy, spec=spec, given=given: _run(api.platform(spec), given, policy),
                )
    case(
        "machines-policies", "HEFT without insertion", lambda: _run(work.machine(), work.flow(1), HEFT(insertion=False))
    )
    case("machines-policies", "until 40", lambda: _run(work.machine(), _over_time(), "hrr", until=40.0))
    machines = [name for name in api.names_of("platforms") if api.is_machine(api.platform(name))]
    for spec in machines:
        for policy in ("hrr", "earliest-finish", "heft-setup"):
            for given in ("random:tasks=60", "database:tasks=60", "layered:n=25"):
                case(
                    "machines-ready",
                    f"{given} on {spec}, {policy}",
                    lambda spec=spec, policy=policy, given=given: _run(api.platform(spec), given, policy),
                )
    for given in (
        "daggen-100",
        "layered-100",
        "mixed-1000",
        "random-families",
        "fork-join-dressed",
        "graphs-over-time",
    ):
        for policy in ("hrr", "greedy-ds", "earliest-start"):
            case(
                "machines-work",
                f"{given}, {policy}",
                lambda given=given, policy=policy: _run(api.platform("xeon-2s"), given, policy),
            )
    case("machines-work", "database-10k", lambda: _run(api.platform("a100x4"), "database-10k", "earliest-start"))
