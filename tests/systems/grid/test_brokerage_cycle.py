"""Brokers that rest between their decisions, by hand and in snapshots."""

import numpy as np
import pytest

from simmodel import Environment, Job, Start, simulate, start, what_if
from simmodel.foundation.errors import InputError
from simmodel.platform import DelaySpec, GridSpec, SiteOutageSpec, SiteSpec
from simmodel.scheduling import Policy
from simmodel.scheduling.protocol import WakeAt
from simmodel.snapshots import Snapshot
from simmodel.systems import Broker, Cluster
from simmodel.systems.grid.system import Grid


def grid_with(cycle, at, policy="round-robin", seed=0, **options):
    env = Environment(seed=seed)
    sites = [SiteSpec(name=name, cores=2) for name in "ab"]
    grid = Grid(env, GridSpec(sites=sites, cycle=cycle, **options), policy)
    for number, instant in enumerate(at):
        grid.submit(Job(id=number, run=4), at=instant)
    return env, grid


def assigned(grid):
    return grid.result().jobs["assigned"].tolist()


def test_jobs_wait_for_the_next_turn_of_the_broker():
    env, grid = grid_with("10s", [3, 4, 12.5, 13, 14, 40])
    env.run()
    # it decides at 3, then at 13 with what came in time and at that instant, then at 23, and at 40, as nothing came
    assert assigned(grid) == [3, 13, 13, 13, 23, 40]
    assert env.now == 44


def test_a_broker_that_rests_has_no_events_but_the_end_of_its_rest():
    env, grid = grid_with(1000, [0, 1])
    job = grid.submit(Job(id="late", run=1), at=2)
    env.run(until=5)
    assert [event[0] for event in env._queue if event[3].callbacks].count(1000) == 1
    grid.cancel(job)
    env.run()
    assert assigned(grid)[:2] == [0, 1000]


def test_the_rest_of_a_broker_may_be_drawn():
    env, grid = grid_with(DelaySpec(distribution="exponential", mean=10), np.arange(0, 100, 0.125).tolist(), seed=4)
    env.run()
    turns = np.unique(assigned(grid))
    drawn = np.diff(turns)
    assert 4 < len(turns) < 25
    assert len(np.unique(drawn)) == len(drawn)
    expected = Environment(seed=4).rng("grid.cycle").exponential(10, len(drawn))
    np.testing.assert_allclose(turns[1], expected[0])


def test_a_broker_decides_at_its_turn_when_a_site_has_come_back():
    outages = [SiteOutageSpec(site=name, at=0, until=6, kind="closed") for name in "ab"]
    env, grid = grid_with(5, [0, 1], outages=outages)
    env.run()
    assert assigned(grid) == [10, 10]  # asked at 0, 5 in vain, at 10 with open sites


def test_a_question_from_outside_waits_for_the_turn_too():
    sites = [SiteSpec(name=name, cores=2) for name in "ab"]
    jobs = [Job(id=i, submit=float(i), run=4) for i in range(3)]
    sim = start(GridSpec(sites=sites, cycle=10), jobs, "round-robin")
    asked = []
    while (view := sim.next_decision()) is not None:
        asked.append((view.now, len(view.waiting)))
        sim.decide([Start(job, view.places[0]) for job in view.waiting])
    assert asked == [(0, 1), (10, 2)]


def test_a_negative_cycle_is_refused_and_zero_is_none():
    with pytest.raises(InputError, match="mean: must be a finite number >= 0"):
        grid_with(-1, [])
    assert GridSpec(sites=[SiteSpec(name="a", cores=1)], cycle=0).cycle is None


@pytest.mark.few(5)
@pytest.mark.parametrize("cycle", [7, DelaySpec(distribution="exponential", mean=7)])
@pytest.mark.parametrize("cut", [0.5, 3.25, 7.0, 12.75, 20.5, 31.0, 44.5])
def test_a_cut_in_the_rest_of_the_broker_changes_no_assignment(cycle, cut):
    at = np.random.default_rng(3).uniform(0, 50, 30).tolist()
    env, grid = grid_with(cycle, at, seed=1)
    env.run(until=cut)
    read = Snapshot.from_json(grid.snapshot().to_json())
    ended = set(grid.result().jobs["job"][grid.result().jobs["state"] == "finished"].tolist())
    rest = simulate(read)
    env.run()
    whole = {row["job"]: row["assigned"] for row in grid.result().jobs.rows() if row["job"] not in ended}
    assert {row["job"]: row["assigned"] for row in rest.jobs.rows()} == whole


def test_what_ifs_begin_with_the_rest_of_the_broker():
    env, grid = grid_with(10, [0, 1, 2])
    env.run(until=5)
    found = what_if(grid.snapshot(), ["round-robin", "random"])
    assert [each.samples[0].ended for each in found] == [14, 14]


class Holds(Policy):
    """Holds all jobs until 20 s."""

    name = "holds"
    decides = "systems"

    def decide(self, view):
        if view.now < 20:
            yield WakeAt(20.0)
            return
        for job in view.waiting:
            yield Start(job, view.places[0])


@pytest.mark.parametrize("kind", [Grid, Broker])
def test_instants_at_which_the_policy_of_a_broker_wants_to_be_asked_are_in_snapshots(kind):
    env = Environment()
    if kind is Grid:
        system = Grid(env, GridSpec(sites=[SiteSpec(name="a", cores=2)]), Holds())
    else:
        system = Broker(env, [Cluster(env, 2, name="a")], Holds())
    system.submit(Job(run=5))
    env.run(until=10)
    snapshot = system.snapshot()
    assert snapshot.alarms == (20.0,)
    later = Environment(10)
    again = kind.from_snapshot(later, Snapshot.from_json(snapshot.to_json()), Holds())
    later.run()
    assert again.result().jobs["end"].tolist() == [25.0]
    now = Environment(10)
    kind.from_snapshot(now, snapshot, "round-robin")
    now.run()
    assert now.now == 15  # another policy is asked at once
