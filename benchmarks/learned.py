"""Train agents and judge them beside heuristics.

``python benchmarks/learned.py train CASE [SEED ...]`` writes the weights of each seed and its history into
``benchmarks/learned``; ``python benchmarks/learned.py judge CASE ...`` prints the table of
:func:`simmodel.learn.judge` on weeks that lie after all from which the agents have learned. The cases:

``next``     lublin_256 without backfilling, RLScheduler's game: the chosen job is next until it starts; heuristics too
``fresh``    the agents of ``next`` on twenty new sequences of the generator that lublin_256 comes from; judged only
``again``    the same, but agent and heuristics choose again at each event
``easy``     the same, EASY around it
``kth``, ``sdsc``, ``theta``    real logs by weeks: DRAS's two levels, which job gets a reservation and which fill
``clusters``, ``sites``         which of four clusters of different speed, or of twenty sites with files, takes a job

Of lublin_256 the five sequences of 1,024 jobs from job 4,881 on are unseen, run times are the requests; agents are
chosen on the two sequences before, and learn from the 2,832 jobs before these. Logs are split in the same way by time.
In ``next`` both parts are redrawn: the arrivals stay, and their jobs are dealt to them anew, for more sequences.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import process_time

import attrs
import numpy as np
from kernel_agent import Network, learn

from simmodel import Start, load_workload, simulate
from simmodel.generators.grids import tiered_grid, tiered_grid_jobs
from simmodel.generators.lublin_feitelson import TYPELESS, lublin as lublin_jobs
from simmodel.learn import SchedulingEnv, Trained, agent_policy, backfill_env, batch_env, judge, route_env
from simmodel.scheduling.protocol import Policy
from simmodel.scheduling.registry import policy
from simmodel.work.workload import Workload

DATA = Path(os.environ.get("SIMMODEL_DATA", Path(__file__).parents[2] / "shared" / "data"))
STORE = Path(__file__).parent / "learned"
METRIC = "bounded_slowdown_mean"
DAY, WEEK = 86400.0, 7 * 86400.0


class Held(Policy):
    """The heuristics of the game in which the chosen job is next until it starts."""

    decides = "jobs"

    def __init__(self, order: str) -> None:
        self.order = order
        self.name = f"{order}, held"
        self._key, self._next = policy(order), None

    def decide(self, view) -> Iterator[Start]:
        """Start the job that is next, and choose again, while they fit."""
        while view.waiting:
            if self._next is None:
                self._next = view.waiting.by(self._key).head()
            job, place = self._next, view.places[0]
            if not place.fits(job):
                return
            self._next = None
            yield Start(job, place)


@attrs.frozen
class Case:
    """What is learned and on what it is judged: spans in s after the first job."""

    make: Callable[..., SchedulingEnv]
    platform: object
    log: Workload
    learned: tuple[float, float]
    chosen: list[tuple[float, float]]
    weeks: list[tuple[float, float]]
    jobs: int = 256
    heuristics: list[Policy] | None = None
    options: dict = attrs.field(factory=dict)
    training: dict = attrs.field(factory=dict)
    redrawn: tuple[Workload, list[Workload]] | None = None  # what is learned from and chosen by, instead of the spans
    agents: str | None = None  # the case whose agents are judged, if it is another

    def env(self) -> SchedulingEnv:
        """Return an environment of the part to learn from."""
        options = {"jobs": self.jobs, "when": "differences", **self.options}
        if self.redrawn is not None:
            return self.make(self.platform, self.redrawn[0], **options)
        return self.make(self.platform, self.log, span=self.learned, **options)

    def value(self, network: Network) -> float:
        """Return the value by which a network is chosen."""
        if self.redrawn is not None:
            parts = self.redrawn[1]
        else:
            at = since(self.log)
            parts = [self.log.where((at >= begin) & (at < end)) for begin, end in self.chosen]
        agent = self.policy(network)
        found = [simulate(self.platform, part, agent, **self.options).metrics()[METRIC] for part in parts]
        return float(np.mean(found))

    def policy(self, network: Network) -> Policy:
        """Return the agent as a policy."""
        return agent_policy(network, self.make(self.platform, self.log, **self.options))


def since(log: Workload) -> np.ndarray:
    """Return the submissions in s after the first one."""
    return log["submit"] - log["submit"].min()


def dealt(log: Workload, times: int, seed: int) -> Workload:
    """Return the arrivals of a log several times, one after the other, with its jobs dealt to them anew each time."""
    rng, at = np.random.default_rng(seed), since(log)
    rows = np.concatenate([rng.permutation(len(log)) for _ in range(times)])
    length = at[-1] * len(log) / (len(log) - 1)
    submit = np.concatenate([np.floor(at + n * length) for n in range(times)])
    return log.where(rows).replace(submit=submit, job=np.arange(1, len(rows) + 1))


def cut(log: Workload, jobs: int = 1024) -> list[Workload]:
    """Return the sequences of so many jobs in a log."""
    return [log.where(slice(first, first + jobs)) for first in range(0, len(log), jobs)]


def lublin(**options) -> Case:
    """Return a case of lublin_256."""
    log = load_workload(DATA / "swf" / "lublin_256.swf.gz")
    at = np.append(since(log), since(log)[-1] + 1.0)
    edges = [2832, 3856, 4880, *range(5904, 10001, 1024)]
    spans = [(float(at[a]), float(at[b])) for a, b in pairwise(edges)]
    held = [Held(name) for name in ("fcfs", "sjf", "smallest", "wfp", "unicef", "f1", "f2", "f3", "f4")]
    return Case(
        partial(batch_env, **options),
        256,
        log,
        (0.0, spans[0][0]),
        spans[:2],
        spans[2:],
        jobs=1024,
        heuristics=None if options else held,
        options={"estimates": "exact"},
        training={"groups": 1} if options else {"groups": 2, "rounds": 90, "every": 6, "rate": 2e-3, "average": 0.8},
        redrawn=None
        if options
        else (dealt(log.where(slice(2832)), 20, 1), cut(dealt(log.where(slice(2832, 4880)), 12, 2))),
    )


def fresh() -> Case:
    """Return the case ``next`` with other jobs: twenty sequences that the generator of lublin_256 draws."""
    log = lublin_jobs(20 * 1024, 256, [TYPELESS], seed=2026)
    at = np.append(since(log)[::1024], since(log)[-1] + 1.0)
    weeks = [(float(a), float(b)) for a, b in pairwise(at)]
    return attrs.evolve(lublin(), log=log, weeks=weeks, redrawn=None, agents="next")


def real(file: str, processors: int, rounds: int = 6) -> Case:
    """Return a case of a log: 60 % of its weeks to learn from, 15 % to choose by, the rest to judge."""
    log = load_workload(DATA / "swf" / file)
    weeks = int(since(log)[-1] // WEEK)
    first, second = int(0.6 * weeks), int(0.75 * weeks)
    spans = [(week * WEEK, (week + 1) * WEEK) for week in range(weeks)]
    training = {"rounds": rounds}
    return Case(
        backfill_env, processors, log, (0.0, first * WEEK), spans[first:second], spans[second:], training=training
    )


def clusters() -> Case:
    """Return a case of four clusters of 16 processors of speeds 0.5 to 2 with EASY, and twelve days of jobs."""
    log = load_workload("lublin:jobs=20000,processors=16", seed=1)
    log = log.replace(submit=np.floor(log["submit"] / 9.0))
    days = [(day * DAY, (day + 1) * DAY) for day in range(14)]
    places = {"half": 16, "one": 16, "three halves": 16, "two": 16}
    options = {"slowdowns": [2, 1, 2 / 3, 0.5], "policies": "easy"}
    return Case(route_env, places, log, (0.0, 6 * DAY), days[6:7], days[7:14], options=options, training={"rounds": 6})


def sites() -> Case:
    """Return a case of a grid of twenty sites and five days of jobs that read files."""
    log = tiered_grid_jobs(24_000, sites=20, files=1000, span="120h", seed=2)
    halves = [(half * DAY / 2, (half + 1) * DAY / 2) for half in range(10)]
    grid = tiered_grid(20, files=1000, seed=1)
    return Case(route_env, grid, log, (0.0, 2 * DAY), halves[4:5], halves[5:], training={"rounds": 6})


CASES: dict[str, Callable[[], Case]] = {
    "next": lublin,
    "fresh": fresh,
    "again": partial(lublin, hold=False),
    "easy": partial(lublin, hold=False, backfill="easy"),
    "kth": partial(real, "KTH-SP2-1996-2.1-cln.swf.gz", 100, 10),
    "sdsc": partial(real, "SDSC-SP2-1998-4-filtered.swf.gz", 128),
    "theta": partial(real, "theta_2022.swf.gz", 4360),
    "clusters": clusters,
    "sites": sites,
}


def unit() -> float:
    """Return y, in CPU seconds."""
    begin = process_time()
    sum(i * i for i in range(10**7))
    return process_time() - begin


def train(name: str, seed: int) -> None:
    """Train and store an agent: its weights each time that a network is the best so far, its history at the end."""
    case, y, best, begin = CASES[name](), unit(), np.inf, process_time()
    path = STORE / f"{name}_{seed}.npz"
    path.parent.mkdir(exist_ok=True)

    def valid(network: Network) -> float:
        nonlocal best
        value = case.value(network)
        if value < best:
            best = value
            np.savez(path, *network.weights)
        print(f"{name} seed {seed}: {value:.1f} after {process_time() - begin:.0f} s CPU", flush=True)
        return value

    found = learn(case.env, valid, seed=seed, **case.training)
    history = [[round(each, 2) if each == each else None for each in row] for row in found.history]
    about = {"y": round(y, 3), "value": found.value, "columns": "steps, CPU s, mean return, chosen by"}
    path.with_suffix(".json").write_text(json.dumps({**about, "history": history}))
    steps, seconds, *_ = found.history[-1]
    print(f"{name} seed {seed}: {steps:,} steps, {seconds:.0f} s CPU, {seconds / y / 60:.1f} min / y,"
          f" chosen by {found.value:.1f}", flush=True)  # fmt: skip


def stored(path: Path) -> Network:
    """Return a network that was stored."""
    with np.load(path) as weights:
        return Network(list(weights.values()))


def judged(name: str):
    """Return the judgement of the stored agents of a case."""
    case, agents = CASES[name](), []
    for path in sorted(STORE.glob(f"{case.agents or name}_*.npz")):
        *_, last = json.loads(path.with_suffix(".json").read_text())["history"]
        span = None if case.agents else (0.0, case.chosen[-1][1])
        agents.append(Trained(case.policy(stored(path)), int(last[0]), last[1], span))
    return judge(
        {"agent": agents},
        case.log,
        case.weeks,
        case.platform,
        metric=METRIC,
        heuristics=case.heuristics,
        **case.options,
    )


if __name__ == "__main__":
    if sys.argv[1] == "train":
        for each in sys.argv[3:] or range(5):
            train(sys.argv[2], int(each))
    else:
        for each in sys.argv[2:]:
            found = judged(each)
            seeds = ", ".join(f"{value:.4g}" for value in found.values["agent"].mean(axis=1))
            print(f"{each}\n{found.summary()}\nseeds of the agent: {seeds}")
            for other in [name for name in found.heuristics if name.startswith("sjf")]:
                apart = found.difference("agent", other)
                print(f"agent less {other}: {apart.mean:.3g} ({apart.low:.3g} to {apart.high:.3g})")
            print()
