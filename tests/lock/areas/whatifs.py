"""What-ifs of clusters, machines and brokers: policies, branches, arrivals, objectives."""

from __future__ import annotations

from typing import Any

from simmodel import Branch, Job
from tests.lock import api, work
from tests.lock.areas.brokers import SIZES, homes
from tests.lock.cases import case
from tests.lock.digests import of_whatif

POLICIES = ["fcfs", "easy", "sjf+easy", "conservative", "conservative-keep", "multifactor"]
SETTINGS = {
    "generator": "synthetic",
    "parameters": {"jobs": 12, "run": 15.0, "size": 3, "gap": 7.0},
}


def _ended(sample: Any) -> float:
    return float(sample.ended)


def cluster(at: float = 60, policy: str = "easy") -> Any:
    return api.cut_batch(16, work.log(44, 60, gap=4), policy, at)


def machine(at: float = 40) -> Any:
    return api.cut_machine(work.machine(), [(0.0, work.flow(1)), (30.0, work.tasks(2))], "hrr", at)


def brokered(at: float = 60) -> Any:
    return api.cut_brokered(SIZES, homes("siloed", 20), "sgs-t", at)


def first_waiting(snapshot: Any) -> Any:
    return snapshot.waiting[0].id


def branches(snapshot: Any) -> dict[str, Any]:
    waiting = first_waiting(snapshot)
    now = snapshot.now
    more = Job(id="more", processors=4, run=20.0)
    return {
        "as it is": None,
        "switched": Branch("fcfs").switch(now + 20, "sjf+easy").switch(now + 60, "easy"),
        "cancelled": Branch("easy").cancel(waiting, at=now + 1),
        "submitted": Branch("easy").submit(more).submit(Job(processors=2, run=5.0, id="later"), at=now + 30),
        **Branch("easy").fork(now + 10, ["fcfs", "conservative"]),
    }


def add() -> None:
    """Add the cases."""
    objectives = {
        "wait": "raw:wait_mean",
        "two": "0.5*wait_max+0.5*slowdown_mean",
        "schedtwin": "schedtwin",
        "end": _ended,
    }
    for at in (30, 60, 130):
        for name, objective in objectives.items():
            case(
                "whatifs",
                f"cluster at {at}, by {name}",
                lambda at=at, objective=objective: of_whatif(api.whatif(cluster(at), POLICIES, objective=objective)),
            )
        case(
            "whatifs",
            f"cluster at {at}, horizon and actual run times",
            lambda at=at: of_whatif(api.whatif(cluster(at), POLICIES, horizon=40, actual=True)),
        )
        case(
            "whatifs",
            f"cluster at {at}, drawn arrivals",
            lambda at=at: of_whatif(
                api.whatif(cluster(at), ["fcfs", "easy", None], arrivals=SETTINGS, samples=3, seed=7)
            ),
        )
        case(
            "whatifs",
            f"cluster at {at}, given arrivals",
            lambda at=at: of_whatif(
                api.whatif(
                    cluster(at),
                    ["fcfs", "easy"],
                    arrivals=[Job(submit=at + 4.0 * i, processors=3, run=9) for i in range(6)],
                )
            ),
        )
        case("whatifs", f"cluster at {at}, branches", lambda at=at: _branches(cluster(at)))
        case(
            "whatifs",
            f"machine at {at}, every policy",
            lambda at=at: of_whatif(api.whatif(machine(at), api.names_of("task policies"), objective=_ended)),
        )
        case(
            "whatifs",
            f"machine at {at}, waits",
            lambda at=at: of_whatif(api.whatif(machine(at), ["hrr", "heft", None], horizon=60, actual=True)),
        )
        for name, given in {
            "brokers": ["sgs-t", "sgs-w", "least-loaded", "round-robin", "siloed", "random", None],
            "policies of clusters": {
                "own": None,
                "b by sjf": Branch("sgs-t", policies={"b": "sjf+easy"}),
                "switched": Branch("siloed").switch(at + 30, "sgs-t"),
            },
        }.items():
            case(
                "whatifs",
                f"brokered at {at}, {name}",
                lambda at=at, given=given: of_whatif(api.whatif(brokered(at), given)),
            )
        case(
            "whatifs",
            f"brokered at {at}, drawn arrivals",
            lambda at=at: of_whatif(
                api.whatif(brokered(at), ["sgs-t", "least-loaded"], arrivals=SETTINGS, samples=2, seed=3)
            ),
        )
    case(
        "whatifs",
        "cluster of nodes, started by hand",
        lambda: _by_hand(api.cut_batch(work.nodes(), api.log_of(work.jobs(1, 40)), "fcfs", 30)),
    )


def _branches(snapshot: Any) -> dict[str, Any]:
    return of_whatif(api.whatif(snapshot, branches(snapshot)))


def _by_hand(snapshot: Any) -> dict[str, Any]:
    waiting = first_waiting(snapshot)
    return of_whatif(
        api.whatif(
            snapshot,
            {"easy": "easy", "later": Branch("easy").start(waiting, at=snapshot.now + 200), "fcfs": "fcfs"},
            horizon=2000,
        )
    )
