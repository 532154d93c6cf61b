"""Logs on clusters that count processors: every policy, order, backfilling, mode and ready part."""

from __future__ import annotations

from typing import Any

from simmodel import Backfill, Order
from simmodel.policies import Conservative, Easy
from simmodel.policies.multifactor import Multifactor
from simmodel.policies.ordering import BestFit
from simmodel.policies.planning import ConservativeKeep
from simmodel.policies.window import Window
from tests.lock import api, work
from tests.lock.cases import case
from tests.lock.digests import columns, digest, exact, of_jobs, rounded

FEW = ("fcfs", "sjf", "wfp", "easy", "easy-sjbf", "conservative", "conservative-keep", "multifactor", "best-fit")
ORDERS = ["fcfs", "sjf", "ljf", "smallest", "largest", "wfp", "unicef", "f1", "f2", "f3", "f4", "multifactor"]
SLOW = ("window", "portfolio")


def _run(platform: Any, log: Any, policy: Any, **options: Any) -> dict[str, Any]:
    return of_jobs(api.run_batch(platform, log, policy, **options))


def add() -> None:
    """Add the cases."""
    policies = api.names_of("policies")
    for policy in policies:
        for name, mode in work.MODES.items():
            for seed in (1, 2) if policy in SLOW else (1, 2, 3):
                count = 30 if policy in SLOW else 70
                case(
                    "batch-policies",
                    f"{policy}, {name}, log {seed}",
                    lambda policy=policy, mode=mode, seed=seed, count=count: _run(
                        16, work.log(seed, count), policy, **mode
                    ),
                )
    for order in ORDERS:
        for kind in ("easy", "conservative", "conservative-keep"):
            for name in ("instant", "event, ends first"):
                case(
                    "batch-orders",
                    f"{order}+{kind}, {name}",
                    lambda order=order, kind=kind, name=name: _run(
                        16, work.log(4, 60, gap=7), f"{order}+{kind}", **work.MODES[name]
                    ),
                )
    for policy in FEW:
        for name, mode in work.MODES.items():
            for estimates in ("requested", "exact", "cqsim"):
                for overrun in ("stop", "continue"):
                    case(
                        "batch-modes",
                        f"{policy}, {name}, {estimates}, {overrun}",
                        lambda policy=policy, mode=mode, estimates=estimates, overrun=overrun: _run(
                            16, work.log(5, 60, fractions=True), policy, estimates=estimates, overrun=overrun, **mode
                        ),
                    )
    _add_predictions()
    _add_objects()
    _add_ready()


def _add_predictions() -> None:
    for policy in ("easy", "easy-sjbf", "conservative", "conservative-keep"):
        for name, mode in work.MODES.items():
            for estimates in ("predicted", "recent-two", "own-past(0.8)"):
                case(
                    "batch-modes",
                    f"{policy}, {name}, {estimates}",
                    lambda policy=policy, mode=mode, estimates=estimates: _run(
                        16, work.log(5, 60, fractions=True), policy, estimates=estimates, **mode
                    ),
                )


def _add_objects() -> None:
    made = {
        "Easy(candidates)": lambda: Easy("sjf", candidates="smallest"),
        "Backfill none": lambda: Backfill("ljf", "none"),
        "Backfill easy": lambda: Backfill("wfp", "easy"),
        "Conservative(sjf)": lambda: Conservative("sjf"),
        "ConservativeKeep(wfp)": lambda: ConservativeKeep("wfp"),
        "Multifactor": lambda: Multifactor(age=10, size=500, fair_share=2000, max_age=300, half_life=100),
        "Multifactor with shares": lambda: Multifactor(fair_share=5000, shares={1: 3.0, 2: 1.0}, small_first=True),
        "Multifactor with EASY": lambda: Easy(Multifactor(half_life=50)),
        "Order": lambda: Order("by size", key=lambda job: (-job.processors, job.id)),
        "BestFit": BestFit,
        "Window": Window,
        "a function": lambda: _in_turn,
    }
    for name, policy in made.items():
        for seed in (6, 7):
            case(
                "batch-modes",
                f"object {name}, log {seed}",
                lambda policy=policy, seed=seed: _run(16, work.log(seed, 30), policy()),
            )
    for policy in ("easy", "conservative", "conservative-keep", "sjf+easy", "window", "preemptive"):
        for name, mode in work.MODES.items():

            def promised(policy: str = policy, mode: Any = mode) -> dict[str, Any]:
                result, rows = api.run_with_promises(16, work.log(8, 40), policy, **mode)
                return {**of_jobs(result), "promises": len(rows), "promised": digest(map(exact, rows))}

            case("batch-promises", f"{policy}, {name}", promised)
    for make in (Easy, Conservative, ConservativeKeep):

        def told(make: Any = make) -> dict[str, Any]:
            result, rows = api.run_with_promises(16, work.log(9, 40), make(promises=True))
            return {**of_jobs(result), "promises": len(rows), "promised": digest(map(exact, rows))}

        case("batch-promises", f"{make.__name__}(promises=True)", told)
    for until in (50, 173.5):
        for policy in ("easy", "conservative-keep"):
            case(
                "batch-modes",
                f"{policy} until {until}, with events",
                lambda policy=policy, until=until: _run(16, work.log(9), policy, until=until, events=True),
            )


def _in_turn(view: Any) -> Any:
    from simmodel import Start

    for job in sorted(view.waiting, key=lambda job: (job.processors, job.id)):
        if view.places[0].fits(job):
            yield Start(job, view.places[0])


def _add_ready() -> None:
    first = {"lublin-1024": 400, "lublin-256": 500, "lublin-128-week": 250, "poisson-mm4": 300}
    logs = [name for name in api.names_of("workloads") if _of_jobs(name)]
    for log in logs:
        count = first.get(log)

        def drawn(log: str = log, count: int | None = count) -> dict[str, Any]:
            loaded = api.workload(log)
            names = ["job", "submit", "run", "processors", "requested_processors", "status", "queue", "requested"]
            head = loaded.where(slice(0, 2000))
            return {
                "jobs": len(loaded),
                "processors": loaded.processors,
                "columns": digest(columns(head, names, by=rounded)),
            }

        case("batch-ready", f"{log} as drawn", drawn)
        for policy in ("fcfs", "easy", "conservative", "conservative-keep", "multifactor", "unicef+easy", "f4"):
            case(
                "batch-ready",
                f"{log}, {policy}",
                lambda log=log, count=count, policy=policy: _run(None, api.workload(log, count), policy),
            )
    for name in api.names_of("platforms"):
        if api.is_cluster(api.platform(name)):
            for policy in ("easy", "conservative"):
                for log in ("lublin-128-week", "schedtwin", "probe-4"):
                    case(
                        "batch-ready",
                        f"{log} on {name}, {policy}",
                        lambda name=name, log=log, policy=policy: _run(
                            api.platform(name), api.workload(log, 200), policy
                        ),
                    )


JOBS = ("lublin-1024", "lublin-128-week", "lublin-256", "poisson-mm4", "probe-4", "schedtwin")


def _of_jobs(name: str) -> bool:
    return name in JOBS
