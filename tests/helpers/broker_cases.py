"""Drawn cases of two clusters under a broker, and the brute-force alternative."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from simmodel.environment import Environment
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.runs.scenario import simulate
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.work.workload import Workload

MODES = (
    {},
    {"decide_on": "event", "event_order": "ends-first"},
    {"decide_on": "event", "event_order": "submits-first"},
)


class Case(NamedTuple):
    """Two clusters, their workloads, and the options of all runs."""

    sizes: tuple[int, int]
    policies: tuple[str, str]
    logs: tuple[Workload, Workload]
    slowdowns: Any
    options: dict[str, Any]
    by: str
    seed: int
    cores: int = 0  # of exclusive nodes; 0: counted processors

    def platform(self, which: int) -> int | ClusterSpec:
        """Return the platform of one of the clusters."""
        size, cores = self.sizes[which], self.cores
        if not cores:
            return size
        nodes = NodeSpec(count=-(-size // cores), cores=cores)
        return ClusterSpec(partitions=[PartitionSpec(nodes=[nodes], exclusive=True)])

    def broker(self, policy: Any) -> tuple[Environment, Broker]:
        """Return a broker at time 0 with all its submissions planned."""
        env = Environment(seed=self.seed)
        clusters = [
            Cluster(env, self.platform(which), policy=policy, name="ab"[which], **self.options)
            for which, policy in enumerate(self.policies)
        ]
        broker = Broker(env, clusters, policy, slowdowns=self.slowdowns, by=self.by)
        for home, log in zip("ab", self.logs, strict=True):
            broker.replay(log, home)
        return env, broker


@st.composite
def cases(
    draw: st.DrawFn,
    max_jobs: int = 10,
    *,
    policies: tuple[str, ...] = ("fcfs", "easy", "conservative", "sjf+easy", "wfp+conservative"),
    modes: tuple[dict[str, str], ...] = MODES,
    shortest: int = 0,
    cores: tuple[int, ...] = (0,),
) -> Case:
    """Draw a case, whose ``cores`` are one of those given."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = (int(rng.integers(1, 12)), int(rng.integers(1, 12)))
    logs = []
    for k in range(2):
        count = int(rng.integers(1, max_jobs + 1))
        run = rng.integers(shortest, 20, count).astype(np.float64)
        columns = {
            "job": np.arange(1, count + 1) + 100 * k,
            "submit": np.sort(rng.integers(0, int(rng.integers(1, 4 * count + 2)), count)).astype(np.float64),
            "run": run,
            "requested": np.maximum(run, 1) * rng.choice([0.5, 1, 1, 1.5, 3], count),
            "processors": rng.integers(1, max(sizes) + 1, count),
            "user": rng.integers(1, 4, count),
        }
        logs.append(Workload(columns, name="ab"[k], processors=sizes[k]))
    slowdowns = draw(st.sampled_from([None, (1.0, 1.5), {("a", "b"): 2.0, ("b", "a"): 1.25}]))
    options = {"estimates": draw(st.sampled_from(["requested", "exact", "cqsim"])), **draw(st.sampled_from(modes))}
    pair = (draw(st.sampled_from(policies)), draw(st.sampled_from(policies)))
    by = draw(st.sampled_from(["requested", "actual"]))
    of_nodes = draw(st.sampled_from(cores))
    return Case(sizes, pair, (logs[0], logs[1]), slowdowns, options, by, draw(st.integers(0, 5)), of_nodes)


def alone(case: Case, which: int, jobs: list[tuple[float, float, float, int]]) -> np.ndarray:
    """Return the starts of jobs (submit, run, requested, processors) on one of the clusters without the broker."""
    submit, run, requested, processors = (np.array(column, dtype=np.float64) for column in zip(*jobs, strict=True))
    columns = {"submit": submit, "run": run, "requested": requested, "processors": processors.astype(np.int64)}
    return simulate(case.platform(which), Workload(columns), case.policies[which], **case.options).jobs["start"]
