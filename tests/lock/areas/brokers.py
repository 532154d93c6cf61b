"""Several clusters under a broker: every broker, tie rule, slowdown, home and estimate."""

from __future__ import annotations

from typing import Any

from tests.lock import api, work
from tests.lock.cases import case
from tests.lock.digests import of_jobs

BROKERS = (
    "random",
    "round-robin",
    "sgs-t",
    "sgs-w",
    "least-loaded",
    "least-loaded:processors",
    "least-loaded:jobs",
    "siloed",
    "share:0.6",
    "shares",
)
TIES = ("first", "least-loaded", "home", "random")
SIZES = {"a": 12, "b": 16, "c": 8}
SLOWDOWNS: dict[str, Any] = {
    "alike": None,
    "slower": (1.0, 1.5, 0.75),
    "by home": {("a", "b"): 2.0, ("b", "a"): 1.25, ("a", "c"): 1.1},
}


def homes(broker: Any = None, count: int = 30) -> dict[str | None, Any]:
    """Return logs with their homes; one has none where the broker bears it."""
    return {
        "a": work.log(21, count, 12, first=1),
        "b": work.log(22, count, 16, first=101),
        "c" if broker == "siloed" else None: work.log(23, count, 8, first=201),
    }


def _run(clusters: Any, logs: Any, broker: Any, **options: Any) -> dict[str, Any]:
    return of_jobs(api.run_brokered(clusters, logs, broker, **options))


def add() -> None:
    """Add the cases."""
    for broker in BROKERS:
        for name, slowdowns in SLOWDOWNS.items():
            for by in ("requested", "actual"):
                case(
                    "brokers",
                    f"{broker}, {name}, {by}",
                    lambda broker=broker, slowdowns=slowdowns, by=by: _run(
                        SIZES, homes(broker), broker, slowdowns=slowdowns, by=by, seed=5
                    ),
                )
        for name, mode in work.MODES.items():
            for policy in ("fcfs", "conservative"):
                case(
                    "brokers",
                    f"{broker}, {name}, {policy}",
                    lambda broker=broker, mode=mode, policy=policy: _run(
                        {"a": 16, "b": 16}, {"b": work.log(24, 60)}, broker, policy=policy, estimates="cqsim", **mode
                    ),
                )
    for broker in ("sgs-t", "sgs-w", "least-loaded"):
        for ties in TIES:
            for seed in (0, 1):
                case(
                    "brokers",
                    f"{broker}, ties {ties}, seed {seed}",
                    lambda broker=broker, ties=ties, seed=seed: _run(
                        {"a": 16, "b": 16}, {"a": work.log(25, 40), "b": work.log(26, 40, first=101)}, broker,
                        ties=ties, seed=seed,
                    ),
                )  # fmt: skip
    several = {"a": "conservative-keep", "b": "easy", "c": "sjf+easy"}
    for overrun in ("stop", "continue"):
        case(
            "brokers",
            f"a policy each, overrun {overrun}",
            lambda overrun=overrun: _run(SIZES, homes(), "sgs-t", policy=several, overrun=overrun),
        )
    for broker in ("sgs-t", "least-loaded", "random"):
        case(
            "brokers",
            f"clusters with details, {broker}",
            lambda broker=broker: _run(
                {"x": work.failing("resubmit"), "y": work.plain_outages(), "z": 12},
                {"x": api.log_of(work.jobs(9, 40, kind="plain", waits=True))},
                broker,
                until=2000,
            ),
        )
        case(
            "brokers",
            f"stopped at 100, {broker}",
            lambda broker=broker: _run(SIZES, homes(broker), broker, until=100, seed=2),
        )
        case(
            "brokers",
            f"schedtwin on two clusters, {broker}",
            lambda broker=broker: _run([32, 64], api.workload("schedtwin"), broker, policy="wfp+easy"),
        )
