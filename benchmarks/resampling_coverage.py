"""Whether the interval of a difference between two policies, from resamples of one log, covers the true difference.

Run ``python benchmarks/resampling_coverage.py`` (half an hour of CPU; ``--repetitions 40``: a third). Logs are
drawn from a model of users: Lublin and Feitelson's sizes, run times and hours of the day (:mod:`simmodel.generators`),
in applications that a user runs again and again, in sessions, more on weekdays, by users who stay and users who come
and go. The truth is the mean difference over logs whose load is within 1 % of a chosen one, and so within 2 % of each
other's: one of them after the other is "the log". Beside it stands the truth over logs of any load.

Printed for each pair of policies and each kind of interval: how often it covers the truth, how often the policies are
called different, and its width beside that of as many independent logs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from time import process_time

import attrs
import numpy as np
from numpy.typing import NDArray

from simmodel import Workload, simulate
from simmodel.generators import lublin
from simmodel.generators.estimates import POPULAR
from simmodel.generators.lublin_feitelson import BATCH, bucket_weights
from simmodel.metrics.statistics import t_quantile
from simmodel.policies import Easy, Order
from simmodel.work import offered_load, resampling_doubts

DAY, WEEK = 86_400.0, 604_800.0
DAYS = np.array([1.0, 1.0, 1.0, 1.0, 0.9, 0.45, 0.4])
Numbers = NDArray[np.float64]


@attrs.frozen(kw_only=True)
class Users:
    """A model of users.

    Parameters
    ----------
    processors, weeks
        of the machine and of the log
    staying, coming
        users who stay all the time, and users who come in a week, for ``stay`` weeks on average
    sessions
        of a user in a week, on average; log-normal among users, as widely as ``spread``
    jobs
        of a session, on average
    heavy
        the share of the load of a further user; 0: there is none
    """

    processors: int = 64
    weeks: int = 10
    staying: int = 80
    coming: float = 10.0
    stay: float = 2.0
    sessions: float = 2.2
    spread: float = 0.5
    jobs: float = 4.0
    heavy: float = 0.0

    def log(self, rng: np.random.Generator) -> Workload:
        """Return one log."""
        early = 6 * self.stay  # weeks before the log, from which users are still there
        come = rng.poisson(self.coming * (self.weeks + early))
        begin = np.concatenate([np.zeros(self.staying), rng.uniform(-early, self.weeks, come)])
        end = np.concatenate(
            [np.full(self.staying, self.weeks), begin[self.staying :] + rng.exponential(self.stay, come)]
        )
        begin, end = np.maximum(begin, 0), np.minimum(end, self.weeks)
        begin, end = begin[end > begin], end[end > begin]
        rate = self.sessions * (1 - self.heavy) * np.exp(rng.normal(-(self.spread**2) / 2, self.spread, len(begin)))
        count = rng.poisson(rate * (end - begin))
        user = np.repeat(np.arange(len(count)), count)
        week = np.minimum(begin[user] + rng.random(len(user)) * (end - begin)[user], self.weeks - 1e-9)
        day = rng.choice(7, len(user), p=DAYS / DAYS.sum())
        hour = rng.choice(48, len(user), p=bucket_weights(BATCH.a_number, BATCH.b_number) / 48) + rng.random(len(user))
        session = np.floor(week) * WEEK + day * DAY + hour * 1800
        size, run = _pool(self.processors)
        kinds = 3  # applications of a user
        app = rng.integers(len(size), size=(len(count), kinds))
        mine = app[user, np.minimum(rng.geometric(0.6, len(user)) - 1, kinds - 1)]
        jobs = rng.geometric(1 / (1 + (self.jobs - 1) / (1 + run[mine] / 3600)))  # long ones fewer at a time
        of = np.repeat(np.arange(len(user)), jobs)
        gap = rng.exponential(900, len(of))
        before = np.cumsum(gap) - gap
        later = before - before[np.concatenate([[0], np.cumsum(jobs)[:-1]])][of]
        times = np.maximum(1, np.floor(run[mine[of]] * np.exp(rng.normal(0, 0.4, len(of)))))
        times = np.minimum(times, 129_600)
        over = np.array([1.2, 2.0, 4.0])[user[of] % 3]
        limits = np.append(np.sort(POPULAR), [86_400, 172_800])
        submit = np.floor(session[of] + later)
        columns = {"submit": submit, "run": times, "processors": size[mine[of]], "user": user[of] + 1}
        columns["requested"] = limits[np.searchsorted(limits, np.minimum(times * over, 172_800))]
        if self.heavy:
            columns = self._beside_a_heavy_user(columns, rng)
            submit = columns["submit"]
        order = np.argsort(submit, kind="stable")
        return Workload({name: column[order] for name, column in columns.items()}, processors=self.processors)

    def _beside_a_heavy_user(self, columns: dict[str, Numbers], rng: np.random.Generator) -> dict[str, Numbers]:
        """Add a user with jobs of about four hours on a quarter of the machine, eight at a time."""
        others = float(columns["run"] @ columns["processors"])
        session = rng.geometric(
            1 / 8, rng.poisson(self.heavy / (1 - self.heavy) * others / (self.processors * 3600 * 8))
        )
        run = np.floor(14_400 * np.exp(rng.normal(-0.08, 0.4, session.sum())))
        begin = np.repeat(
            rng.integers(7 * self.weeks, size=len(session)) * DAY + rng.uniform(8, 18, len(session)) * 3600, session
        )
        own = {
            "submit": np.floor(begin + rng.exponential(600, len(run))),
            "run": run,
            "processors": np.full(len(run), self.processors // 4),
            "user": np.zeros(len(run), dtype=np.int64),
            "requested": np.full(len(run), 86_400.0),
        }
        return {name: np.concatenate([column, own[name]]) for name, column in columns.items()}


@cache
def _pool(processors: int) -> tuple[NDArray[np.int64], Numbers]:
    """Return sizes and run times of the model by Lublin and Feitelson."""
    jobs = lublin(20_000, processors, classes=(BATCH,), seed=1)
    return np.minimum(jobs["processors"], processors // 2), jobs["run"]


PAIRS: dict[str, tuple[str, str]] = {
    "easy-sjbf less easy": ("easy-sjbf", "easy"),
    "easy by chance less easy by chance": ("chance-1", "chance-2"),
}
METRICS = ("wait_mean", "bounded_slowdown_mean")
COLUMNS = (*METRICS, *(f"{metric} in %" for metric in METRICS))


def _policy(name: str) -> str | Easy:
    """Return a policy; ``chance-1`` is EASY that tries candidates in an order of chance, and ``chance-2`` another."""
    if not name.startswith("chance"):
        return name
    number = int(name[-1]) * 104_729
    key = lambda job: (job.id * 7919 + number) * 2_654_435_761 % 2**32  # noqa: E731
    return Easy("fcfs", candidates=Order(name, key=key))


def differences(log: Workload) -> Numbers:
    """Return the difference of each metric, also in percent (columns), between the policies of each pair (rows)."""
    names = dict.fromkeys(name for pair in PAIRS.values() for name in pair)
    found = {name: simulate(None, log, _policy(name)).metrics() for name in names}
    runs = {name: np.array([metrics[each] for each in METRICS]) for name, metrics in found.items()}
    less = [(runs[one] - runs[other], runs[other]) for one, other in PAIRS.values()]
    return np.array([np.concatenate([by, 100 * by / of]) for by, of in less])


def logs(model: Users, load: float | None, count: int, seed: int) -> Iterator[Workload]:
    """Draw logs; with a load, only those within 1 % of it."""
    rng = np.random.default_rng(seed)
    while count:
        log = model.log(rng)
        if load is None or abs(offered_load(log) / load - 1) <= 0.01:
            count -= 1
            yield log


def repeated(resamples: int, log: Workload) -> tuple[Numbers, Numbers, float]:
    """Return the differences on a log and on resamples of it, and the CPU seconds of the resampling alone."""
    before = process_time()
    drawn = [log.resampled(seed=seed) for seed in range(resamples)]
    took = process_time() - before
    return differences(log), np.array([differences(each) for each in drawn]), took


def intervals(of_log: Numbers, resampled: Numbers) -> dict[str, tuple[Numbers, Numbers]]:
    """Return the intervals of 95 % by kind: t times the standard deviation of the resamples, and their percentiles."""
    half = t_quantile(0.975, len(resampled) - 1) * resampled.std(axis=0, ddof=1)
    mean = resampled.mean(axis=0)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return {
        "mean of the resamples +- t sd": (mean - half, mean + half),
        "the log +- t sd": (of_log - half, of_log + half),
        "percentiles": (low, high),
    }


def report(found: list[tuple[Numbers, Numbers, float]], truth: Numbers, free: Numbers) -> None:
    """Print coverage, calls of a difference, and widths."""
    resamples = len(found[0][1])
    of_each = [intervals(of_log, drawn) for of_log, drawn, _ in found]
    for row, pair in enumerate(PAIRS):
        for column, metric in enumerate(COLUMNS):
            at = (row, column)
            true, spread = truth[:, *at].mean(), truth[:, *at].std(ddof=1)
            print(f"\n{pair}, {metric}: {true:.4g} (standard deviation {spread:.4g}; ", end="")
            print(f"logs of any load: {free[:, *at].mean():.4g}, {free[:, *at].std(ddof=1):.4g})")
            means = np.array([drawn[:, *at].mean() for _, drawn, _ in found])
            sds = np.array([drawn[:, *at].std(ddof=1) for _, drawn, _ in found])
            print(f"  resamples: mean {means.mean():.4g}, standard deviation {np.median(sds):.4g} (median)")
            for kind in of_each[0]:
                low, high = (np.array([each[kind][end][at] for each in of_each]) for end in (0, 1))
                covers = ((low <= true) & (true <= high)).mean()
                free_covers = ((low <= free[:, *at].mean()) & (free[:, *at].mean() <= high)).mean()
                differs = ((low > 0) | (high < 0)).mean()
                width = np.median(high - low) / (2 * t_quantile(0.975, resamples - 1) * spread)
                print(f"  {kind}: covers {covers:.1%}, at any load {free_covers:.1%}, differ {differs:.1%}, ", end="")
                print(f"width {width:.2f} of that of independent logs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=20)
    parser.add_argument("--truth", type=int, default=400, help="independent logs")
    parser.add_argument("--weeks", type=int, default=10, help="of each log")
    parser.add_argument("--heavy", type=float, default=0.0, help="share of the load of one further user")
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    model = Users(weeks=given.weeks, heavy=given.heavy)
    begin = process_time()
    with ProcessPoolExecutor(given.workers) as pool:
        truth = np.array(list(pool.map(differences, logs(model, given.load, given.truth, given.seed + 1), chunksize=8)))
        free = np.array(list(pool.map(differences, logs(model, None, given.truth, given.seed + 2), chunksize=8)))
        ours = list(logs(model, given.load, given.repetitions, given.seed + 3))
        found = list(pool.map(partial(repeated, given.resamples), ours))
    sizes = [len(log) for log in ours]
    print(
        f"{given.repetitions} logs of {given.weeks} weeks, {np.mean(sizes):.0f} jobs, load {given.load} +- 1 %; ",
        end="",
    )
    print(f"{given.resamples} resamples each, {np.mean([took for *_, took in found]) / given.resamples:.3f} s for one")
    print("doubts:", sorted({doubt for log in ours for doubt in resampling_doubts(log)})[:5])
    report(found, truth, free)
    print(f"\n{process_time() - begin:.0f} s of CPU here")


if __name__ == "__main__":
    main()
