"""Portfolios, comparisons, explorations, replications."""

from __future__ import annotations

from typing import Any

from simmodel import Portfolio
from tests.lock import api, work
from tests.lock.areas.brokers import SIZES, homes
from tests.lock.cases import case
from tests.lock.digests import of_jobs, of_values


def add() -> None:
    """Add the cases."""
    portfolios = {
        "as it is": {},
        "wait": {"objective": "wait_mean"},
        "two": {"objective": "0.5*wait_max+0.5*slowdown_mean", "ties": ("sjf+easy", "easy")},
        "interval": {"interval": 30.0},
        "hysteresis": {"hysteresis": 0.2},
        "horizon": {"horizon": 50.0, "every": True},
    }
    for name, options in portfolios.items():
        for seed in (51, 52):
            case(
                "portfolios",
                f"{name}, log {seed}",
                lambda options=options, seed=seed: of_jobs(
                    api.run_batch(16, work.log(seed, 30), Portfolio(["easy", "sjf+easy", "wfp+easy"], **options))
                ),
            )
    case(
        "portfolios",
        "in a text",
        lambda: _beside(
            api.portfolio_compared(16, work.log(53, 30), "portfolio(fcfs, sjf, backfill=easy, objective=wait_max)")
        ),
    )
    case("portfolios", "beside its policies", lambda: _beside(api.portfolio_compared(16, work.log(54, 25), None)))
    case(
        "portfolios",
        "by event",
        lambda: of_jobs(api.run_batch(16, work.log(55, 20), "portfolio", decide_on="event", event_order="ends-first")),
    )
    case("experiments", "policies compared", lambda: _compared("easy", "fcfs", "sjf+easy", "conservative"))
    case("experiments", "brokers compared", _brokers)
    case(
        "experiments",
        "machines explored",
        lambda: _explored(["hetsim-slow", "hetsim-fast"], ["random:tasks=12", "layered:n=12"], ["hrr", "heft"]),
    )
    case("experiments", "clusters explored", lambda: _explored(["small"], {"log": work.log(56)}, ["fcfs", "easy"]))


def _beside(found: Any) -> dict[str, Any]:
    return {
        **of_jobs(found.portfolio),
        **of_values(names=found.names, scores=found.scores, table=found.shares.rows() and list(found.shares.rows())),
    }


def _compared(*policies: str) -> dict[str, Any]:
    found = api.compared(16, work.log(57), list(policies))
    return of_values(table=[list(row.values()) for row in found.table.rows()])


def _brokers() -> dict[str, Any]:
    found = api.compared_brokers(SIZES, homes("siloed", 20), ["siloed", "sgs-t", "random"], repeat=3, seed=2, edges=2)
    parts = [[list(row.values()) for row in found.by(what).rows()] for what in ("processors", "walltime")]
    return of_values(parts=parts, waits=[found.waits(each) for each in ("siloed", "sgs-t", "random")])


def _explored(platforms: Any, works: Any, policies: Any) -> dict[str, Any]:
    found = api.explored(platforms, works, policies, seeds=3)
    names = [name for name in found.samples.names if not name.startswith("decision")]
    return of_values(samples=[found.samples[name] for name in names])
