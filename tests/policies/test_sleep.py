"""Sleep after idle times, against closed forms of queues with setup times and numerical Markov chains.

Sources: one server: A. Gandhi, M. Harchol-Balter, I. Adan, "Server farms with setup costs", Performance Evaluation
67(11), 2010; an exceptional first service: P. D. Welch, Operations Research 12(5), 1964.
"""

from __future__ import annotations

from itertools import product
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Job, Workload, simulate, what_if
from simmodel.metrics import energy_by
from simmodel.platform import ClusterSpec, NodePower, NodeSpec, PartitionSpec
from simmodel.policies import SleepAfter
from simmodel.runs import start

LAMBDA, MU, BOOT = 0.5, 1.0, 5.0
WATTS = {"boot": 150.0, "off": 10.0, "idle": 100.0, "load": 100.0}  # load: on top of idle


def spec_of(nodes: int, boot: Any) -> ClusterSpec:
    power = NodePower(idle=100, load=200, off=10, boot=(boot, 150))
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=nodes, cores=1, power=power)])])


def poisson(jobs: int, arrivals: float, seed: int) -> Workload:
    """Return jobs of one processor with exponential gaps and run times, which no policy knows."""
    rng = np.random.default_rng(seed)
    submit, run = np.cumsum(rng.exponential(1 / arrivals, jobs)), rng.exponential(1 / MU, jobs)
    one = np.ones(jobs, dtype=int)
    return Workload({"submit": submit, "run": run, "processors": one, "requested": np.full(jobs, 1e9)})


def measured(
    nodes: int, boot: Any, arrivals: float, policy: str, jobs: int, runs: int, boots: int = 0
) -> dict[str, Any]:
    """Return the mean response (s) and the mean share of each state, by run; ``boots``: the seed of the first boots."""
    found: dict[str, list[float]] = {"response": [], **{state: [] for state in WATTS}, "power": []}
    for seed in range(runs):
        result = simulate(spec_of(nodes, boot), poisson(jobs, arrivals, seed), policy, seed=boots + seed)
        found["response"].append(float((result.jobs["end"] - result.jobs["submit"]).mean()))
        table, seconds = energy_by(result, "state"), result.ended - result.started
        joules = dict(zip(table["state"].tolist(), table["energy"].tolist(), strict=True))
        for state, watts in WATTS.items():
            found[state].append(joules.get(state, 0.0) / watts / seconds)
        found["power"].append(sum(joules.values()) / seconds)
    return found


def is_inside(runs: list[float], truth: float) -> bool:
    """Whether a value is in the 95 % interval of the mean of runs; of few runs, in one that is twice as wide."""
    values = np.array(runs)
    quantile = {4: 2 * 3.182, 20: 2.093}[len(values)]
    return bool(abs(values.mean() - truth) <= quantile * values.std(ddof=1) / sqrt(len(values)))


SIZES = [pytest.param(700, 4, id="short"), pytest.param(20_000, 20, marks=pytest.mark.long, id="long")]
EXPONENTIAL = {"distribution": "exponential", "mean": BOOT}


@pytest.mark.parametrize(("jobs", "runs"), SIZES)
def test_one_server_with_exponential_setup(jobs: int, runs: int) -> None:
    found = measured(1, EXPONENTIAL, LAMBDA, "sleep-after(0, fcfs)", jobs, runs)
    alpha, rho = 1 / BOOT, LAMBDA / MU
    boots, sleeps = (1 - rho) * LAMBDA / (LAMBDA + alpha), (1 - rho) * alpha / (LAMBDA + alpha)
    assert is_inside(found["response"], 1 / (MU - LAMBDA) + BOOT)
    assert is_inside(found["boot"], boots)
    assert is_inside(found["off"], sleeps)
    assert is_inside(found["power"], 200 * rho + 150 * boots + 10 * sleeps)


@pytest.mark.parametrize(("jobs", "runs"), SIZES)
def test_one_server_with_fixed_setup(jobs: int, runs: int) -> None:
    found = measured(1, BOOT, LAMBDA, "sleep-after(0, fcfs)", jobs, runs)
    waits = (2 * BOOT + LAMBDA * BOOT**2) / (2 * (1 + LAMBDA * BOOT))
    assert is_inside(found["response"], 1 / (MU - LAMBDA) + waits)


@pytest.mark.parametrize(("jobs", "runs"), SIZES)
def test_one_server_that_sleeps_late(jobs: int, runs: int) -> None:
    """The first job of a busy period finds the server asleep with the probability that none has come in between."""
    after = 1.5
    asleep = exp(-LAMBDA * after)
    found = measured(1, EXPONENTIAL, LAMBDA, f"sleep-after({after}, fcfs)", jobs, runs)
    first, second = BOOT * asleep, 2 * BOOT**2 * asleep  # moments of the setup of a busy period
    waits = (2 * first + LAMBDA * second) / (2 * (1 + LAMBDA * first))
    assert is_inside(found["response"], 1 / (MU - LAMBDA) + waits)
    cycle = 1 / LAMBDA + (first + 1 / MU) / (1 - LAMBDA / MU)
    assert is_inside(found["boot"], first / cycle)
    assert is_inside(found["off"], asleep / LAMBDA / cycle)


def chain(servers: int, arrivals: float, boots: float, most: int = 120) -> tuple[float, float, float]:
    """Return the mean response (s) and the mean numbers of servers that boot and that sleep.

    A job that finds no server awake takes one that sleeps, and keeps it. States: busy and booting servers, jobs that
    wait; a server that nobody waits for sleeps at once.
    """
    states = [(busy, up, 0) for busy, up in product(range(servers + 1), repeat=2) if busy + up < servers] + [
        (busy, servers - busy, wait) for busy in range(servers + 1) for wait in range(most)
    ]
    number = {state: i for i, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for (busy, up, wait), i in number.items():
        came = (busy, up, wait + 1) if busy + up == servers else (busy, up + 1, 0)
        went = (busy, up, wait - 1) if wait else (busy - 1, up, 0)
        for other, rate in ((came, arrivals), ((busy + 1, up - 1, wait), up * boots), (went, busy * MU)):
            if rate and other in number:
                rates[i, number[other]] += rate
                rates[i, i] -= rate
    rates[:, 0] = 1.0
    shares = np.linalg.solve(rates.T, np.eye(len(states))[0])
    there = sum(share * sum(state) for share, state in zip(shares, states, strict=True))
    booting = sum(share * up for share, (_, up, _) in zip(shares, states, strict=True))
    asleep = sum(share * (servers - busy - up) for share, (busy, up, _) in zip(shares, states, strict=True))
    return there / arrivals, booting, asleep


def test_the_chain_of_one_server_is_the_closed_form() -> None:
    response, booting, asleep = chain(1, LAMBDA, 1 / BOOT)
    assert response == pytest.approx(7.0)
    assert booting == pytest.approx(0.5 * 0.5 / 0.7)
    assert asleep == pytest.approx(0.5 * 0.2 / 0.7)


@pytest.mark.parametrize(("jobs", "runs"), SIZES)
def test_several_servers_against_their_chain(jobs: int, runs: int) -> None:
    """With boots of other seeds (0, 200, 300) the mean of the long form is 4.07, 4.12 and 4.06, for 4.10."""
    servers, arrivals = 3, 1.5
    found = measured(servers, EXPONENTIAL, arrivals, "sleep-after(0, fcfs)", jobs, runs, 100)
    response, booting, asleep = chain(servers, arrivals, 1 / BOOT)
    assert is_inside(found["response"], response)
    assert is_inside(found["boot"], booting)
    assert is_inside(found["off"], asleep)


# ---------------------------------------------------------------------- the policy


def test_spare_nodes_stay_awake() -> None:
    jobs = [Job(nodes=6, run=100), Job(submit=500, run=10, nodes=4), Job(submit=520, run=10, nodes=1)]
    result = simulate(spec_of(6, 60), jobs, "sleep-after(50, easy, spare=2)")
    assert result.jobs["start"].tolist() == [0.0, 560.0, 570.0]
    slept = [(row["time"], row["nodes"]) for row in result.changes.rows() if row["cause"] == "sleep"]
    assert slept[0] == (150.0, (0, 1, 2, 3))


def test_what_if_other_nodes_slept_later() -> None:
    jobs = [Job(run=10, requested=10), Job(submit=400, run=10, requested=10)]
    simulation = start(spec_of(1, 60), jobs, "easy")
    simulation.run(until=400)
    found = what_if(simulation.snapshot(), ["sleep-after(0)", "sleep-after(600)", "easy"])
    assert len(found.table) == 3


def test_nothing_sleeps_without_a_boot() -> None:
    result = simulate(4, [Job(run=1)], "sleep-after(300, fcfs)")
    assert "puts no node to sleep: none has a boot in its power" in str(result.report)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SleepAfter(-1), "seconds: must be a time >= 0, got -1"),
        (lambda: SleepAfter("soon"), "seconds: "),
        (lambda: SleepAfter(float("nan")), "seconds: must be a time >= 0, got nan"),
        (lambda: SleepAfter(5, spare=-1), "spare: must be a whole number of nodes >= 0, got -1"),
        (lambda: SleepAfter(5, spare=1.5), "spare: must be a whole number of nodes >= 0, got 1.5"),  # type: ignore[arg-type]
    ],
)
def test_wrong_parameters_are_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        make()
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
