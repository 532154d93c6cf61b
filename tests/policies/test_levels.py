"""Jobs at a lower frequency of their nodes: times, limits, moves, energy, snapshots, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Job, Preempt, Snapshot, Start, View, WakeAt, Workload, load_result, load_workload, simulate, start
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.metrics import energy, energy_by
from simmodel.platform import ClusterSpec, NodePower, NodeSpec, OutageSpec, PartitionSpec
from simmodel.scheduling import Decision, Policy, SetLevel
from simmodel.work import Elastic
from tests.helpers.examples import up_to

TAURUS = NodePower(idle=95, levels=[(1.0, 190.7), (0.8, 142.9), (0.5, 120.0)])
LEVELS = dict(TAURUS.levels)


def cluster(count: int = 4, **options: object) -> ClusterSpec:
    nodes = [NodeSpec(count=count, cores=4, power=TAURUS)]
    return ClusterSpec(partitions=[PartitionSpec(nodes=nodes)], **options)  # type: ignore[arg-type]


class Levels(Policy):
    """Start jobs in order at levels in turn; every few seconds the running ones move to the next level."""

    decides = "jobs"
    preempts = True

    def __init__(self, every: float = 0.0, stretch: bool = True, mode: str = "") -> None:
        self.every = every
        self.stretch = stretch
        self.mode = mode

    def decide(self, view: View, /) -> Iterator[Decision]:
        place, now = view.places[0], view.now
        steps = round(now / self.every) if self.every else 0
        if self.every and now == steps * self.every:
            for run in view.running:
                job = run.work
                if self.mode and (job.seq + steps) % 4 == 0 and now > run.started and job.attempts < 3:
                    yield Preempt(job, self.mode)  # type: ignore[arg-type]
                else:
                    yield SetLevel(job, place.levels[(job.seq + steps) % 3], stretch=self.stretch)
        for job in view.waiting:
            if not place.fits(job):
                break
            level = place.levels[job.seq % 3]
            if job.history is not None and job.history.resumes:
                yield Start(job, place)
            elif level == 1:
                yield Start(job, place, stretch=self.stretch)
            else:
                yield Start(job, place, level=level, stretch=self.stretch)
        if self.every and (len(view.waiting) or view.running):
            yield WakeAt((steps + 1) * self.every)


def one(level: float | None, stretch: bool = True) -> object:
    def rule(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            yield Start(job, view.places[0], level=level, stretch=stretch)

    return rule


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("level", [1.0, 0.8, 0.5])
def test_times_and_limits_stretch_by_the_sensitivity_of_the_job(beta: float, level: float) -> None:
    jobs = [Job(nodes=1, run=run, requested=100, frequency_sensitivity=beta) for run in (80, 120)]
    sim = start(cluster(), jobs, one(level)).run(until=1)
    factor = beta * (1 / level - 1) + 1
    assert [run.expected_end for run in sim.system.view.running] == pytest.approx([100 * factor] * 2)
    result = sim.run().result()
    assert result.jobs["end"].tolist() == pytest.approx([80 * factor, 100 * factor])
    assert result.jobs["status"].tolist() == ["completed", "timeout"]
    assert result.runs["level"].tolist() == [level] * 2


def test_a_limit_that_is_not_stretched_stops_jobs_and_the_share_is_told() -> None:
    jobs = [Job(nodes=1, run=run, requested=100) for run in (60, 90, 120, 70)]
    result = simulate(cluster(), jobs, one(0.8, stretch=False))
    assert result.jobs["end"].tolist() == [75, 100, 100, 87.5]
    assert result.jobs["status"].tolist() == ["completed", "timeout", "timeout", "completed"]
    assert "executions at a level: 4; stopped there by a limit not stretched: 1 (25.0%)" in str(result.report)


def test_a_job_that_goes_up_again_in_time_is_not_stopped() -> None:
    def rule(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            yield Start(job, view.places[0], level=0.5, stretch=False)
        yield WakeAt(20)
        if view.now == 20:
            yield SetLevel(view.running[0].work, 1.0, stretch=False)

    result = simulate(cluster(), [Job(nodes=1, run=80, requested=100)], rule)
    assert result.jobs["end"].tolist() == [90]
    assert result.jobs["status"].tolist() == ["completed"]


@settings(max_examples=up_to(60, 8), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.sampled_from([1.0, 0.8, 0.5])), max_size=6),
    st.integers(1, 100),
    st.sampled_from([0.0, 0.25, 1.0]),
)
def test_moves_keep_the_amount_of_work(moves: list[tuple[int, float]], run: int, beta: float) -> None:
    at = np.cumsum([gap for gap, _ in moves]).tolist()
    plan = dict(zip(at, [level for _, level in moves], strict=True))

    def rule(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            yield Start(job, view.places[0], level=0.8)
        for each in view.running:
            if view.now in plan:
                yield SetLevel(each.work, plan[view.now])
        for each in at:
            if each > view.now:
                yield WakeAt(each)

    def factor(level: float) -> Fraction:
        return Fraction(beta) * (1 / Fraction(level).limit_denominator(100) - 1) + 1

    left, now, level, joules = Fraction(run), Fraction(0), 0.8, Fraction(0)
    for instant, other in [*plan.items(), (10**9, 1.0)]:
        until = min(Fraction(instant), now + left * factor(level))
        left -= (until - now) / factor(level)
        joules += Fraction(LEVELS[level]) * (until - now)
        now, level = until, other
        if not left:
            break
    result = simulate(cluster(1), [Job(nodes=1, cores_per_node=4, run=run, frequency_sensitivity=beta)], rule)
    assert result.jobs["end"].tolist() == pytest.approx([float(now)])
    assert energy(result).total == pytest.approx(float(joules), rel=1e-12)


def drawn(seed: int, count: int = 14) -> list[Job]:
    rng = np.random.default_rng(seed)
    jobs = []
    for number in range(count):
        run = int(rng.integers(1, 40))
        shape = {"nodes": int(rng.integers(1, 4)), "cores_per_node": int(rng.integers(1, 5))}
        about = {"frequency_sensitivity": float(rng.choice([0, 0.5, 1])), "keeps_work": bool(rng.integers(2))}
        limit = run + int(rng.integers(-5, 20)) if run > 5 else None
        submit = float(rng.integers(0, 60))
        jobs.append(Job(id=number + 1, submit=submit, run=run, requested=limit, **shape, **about))  # type: ignore[arg-type]
    return jobs


DOWN = [OutageSpec(at=33, until=41, nodes=[0]), OutageSpec(at=52, until=60, nodes=[1, 2])]


def rows(result: object, since: float) -> dict[int, tuple[float, str]]:
    jobs = result.jobs  # type: ignore[attr-defined]
    columns = (jobs[name].tolist() for name in ("job", "end", "status"))
    return {job: (end, status) for job, end, status in zip(*columns, strict=True) if end >= since}


@pytest.mark.parametrize("mode", ["", "requeue", "suspend"])
@pytest.mark.parametrize("stretch", [True, False])
def test_a_run_that_is_cut_anywhere_and_continued_is_the_same(mode: str, stretch: bool) -> None:
    jobs, spec = drawn(3), cluster(outages=DOWN)
    whole = simulate(spec, jobs, Levels(7.0, stretch, mode))
    for at in np.arange(2.0, whole.ended, 11.5).tolist():
        text = start(spec, jobs, Levels(7.0, stretch, mode)).run(until=at).snapshot().to_json()
        rest = start(Snapshot.from_json(text), policy=Levels(7.0, stretch, mode)).run().result()
        assert rows(rest, at) == rows(whole, at)
        late = [sorted(np.nan_to_num(each.runs["level"][each.runs["start"] > at])) for each in (whole, rest)]
        assert late[0] == late[1]


@settings(max_examples=up_to(40, 5), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["", "requeue", "suspend"]), st.booleans())
def test_energies_follow_from_the_rows(seed: int, mode: str, stretch: bool) -> None:
    result = simulate(cluster(), drawn(seed), Levels(7.0, stretch, mode))
    joules = 4 * TAURUS.idle * (result.ended - result.started)
    for row in result.runs.rows():
        full = 190.7 if np.isnan(row["level"]) else LEVELS[row["level"]]
        joules += (row["end"] - row["start"]) * row["processors"] / 4 * (full - TAURUS.idle)
    assert energy(result).total == pytest.approx(joules, rel=1e-12)
    assert energy_by(result)["energy"].sum() == pytest.approx(joules, rel=1e-12)


def test_a_requeued_job_starts_again_as_it_was_asked_for() -> None:
    jobs = [Job(nodes=3, run=30, requested=40)]
    down = cluster(outages=[OutageSpec(at=10, until=11, nodes=[0])])
    assert simulate(down, jobs, Levels()).jobs["end"].tolist() == [40]
    assert simulate(down, jobs, one(0.5)).jobs["end"].tolist() == [10 + 60], "not twice as long as twice as long"


def test_predictions_are_stretched_with_the_limit() -> None:
    sim = start(cluster(), [Job(nodes=1, run=50, requested=100)], one(0.5), estimates="request").run(until=1)
    assert sim.system.view.running[0].work.asked == 200
    assert sim.run().result().jobs["end"].tolist() == [100]


def test_a_what_if_does_not_see_that_a_limit_will_stop_a_job() -> None:
    sim = start(cluster(), [Job(nodes=1, run=90, requested=100)], one(0.8, stretch=False)).run(until=1)
    level = sim.system.snapshot(actual=False).running[0].work.past.level
    assert (level.outcome, level.over) == ("completed", 0.0)


def test_easy_promises_with_the_stretched_limit() -> None:
    def rule(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            if job.id == 1:
                yield Start(job, view.places[0], level=0.8)
        head = next(iter(view.waiting), None)
        if head is not None:
            promised.append(view.places[0].earliest(head)[0])

    promised: list[float] = []
    jobs = [Job(id=1, nodes=4, cores_per_node=4, run=80, requested=100), Job(id=2, nodes=4, run=1, submit=1)]
    start(cluster(), jobs, rule).run(until=2)
    assert promised == [125.0]


def test_the_sensitivity_is_a_column_of_files(tmp_path: Path) -> None:
    log = Workload.from_jobs([Job(run=5, frequency_sensitivity=0.5), Job(run=6)])
    assert log["frequency_sensitivity"].tolist() == [0.5, 1.0]
    file = tmp_path / "log.csv"
    file.write_text("submit,run,processors,frequency_sensitivity\n0,10,1,0.5\n0,10,1,\n")
    jobs = load_workload(file).jobs()
    assert [job.frequency_sensitivity for job in jobs] == [0.5, 1.0]
    assert simulate(cluster(), file, one(0.5)).jobs["end"].tolist() == [15, 20]


@pytest.mark.parametrize(
    ("job", "decision", "text"),
    [
        (Job(run=1), {"level": 0.7}, "level: must be one of 1, 0.8, 0.5, the levels of all its nodes, got 0.7"),
        (Job(run=1), {"level": 0.8, "processors": 2}, "processors: must be None beside a level, got 2"),
        (Job(run=1, elastic=Elastic(1, 1, 2)), {"level": 0.8}, "level: must be None for a job with a size, an end or"),
        (Job(nodes=4, cores_per_node=4, run=1), {"level": 0.8}, "does not fit at level 0.8: 12 of 16 processors are"),
    ],
    ids=["unknown", "with a size", "elastic", "full"],
)
def test_a_start_that_is_impossible_is_one_sentence(job: Job, decision: dict[str, object], text: str) -> None:
    def rule(view: View) -> Iterator[Decision]:
        place = view.places[0]
        place.take_down([0])
        yield Start(next(iter(view.waiting)), place, **decision)  # type: ignore[arg-type]

    with pytest.raises(PolicyError, match=text.replace("(", r"\(")):
        simulate(cluster(), [job], rule)


def test_other_wrong_input_is_one_sentence() -> None:
    with pytest.raises(PolicyError, match=r"level: must be None, since its nodes have no levels, got 0\.8"):
        simulate(4, [Job(run=1)], one(0.8))
    for wrong in (1.5, -0.1, "x", True):
        with pytest.raises(InputError, match="frequency_sensitivity: must be a number from 0 to 1, got"):
            Job(run=1, frequency_sensitivity=wrong)  # type: ignore[arg-type]

    def rule(view: View) -> Iterator[Decision]:
        yield SetLevel("job 1", 0.8)

    with pytest.raises(PolicyError, match=r"cannot set the level of 'job 1' to 0\.8: it neither waits nor runs here"):
        simulate(cluster(), [Job(run=1)], rule)


def test_a_job_that_waits_is_planned_at_its_level() -> None:
    def rule(view: View) -> Iterator[Decision]:
        place = view.places[0]
        for job in list(view.waiting):
            yield SetLevel(job, 0.5)
            planned.append(job.planned)
            yield SetLevel(job, None)
            planned.append(job.planned)
            yield SetLevel(job, 0.8)
            if place.fits(job):
                yield Start(job, place)

    planned: list[float] = []
    result = simulate(cluster(), [Job(nodes=1, run=80, requested=100)], rule)
    assert planned == [200, 100]
    assert result.jobs["end"].tolist() == [100]
    assert result.runs["level"].tolist() == [0.8]


@pytest.mark.parametrize("kind", ["streamed", "sqlite", "csv"])
def test_levels_are_in_stored_results(kind: str, tmp_path: Path) -> None:
    def rule(view: View) -> Iterator[Decision]:
        for job in view.waiting:
            if not view.places[0].fits(job):
                break
            yield Start(job, view.places[0], level=0.8 if job.seq > 5 else None)

    jobs = [Job(id=each, nodes=1, cores_per_node=4, run=10) for each in range(1, 11)]
    path = tmp_path / "found.sqlite" if kind != "csv" else tmp_path / "found"
    result = simulate(cluster(), jobs, rule, **({"stream": path} if kind == "streamed" else {}))  # type: ignore[arg-type]
    if kind != "streamed":
        (result.to_csv if kind == "csv" else result.to_sqlite)(path)
    whole, read = simulate(cluster(), jobs, rule), load_result(path)
    assert sorted(np.nan_to_num(read.runs["level"])) == [0] * 6 + [0.8] * 4
    assert energy(read) == energy(whole)
