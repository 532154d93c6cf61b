"""The environments as gymnasium expects them: spaces, masks, ends, rewards, episodes, forks, vectors."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from simmodel import Job, Start, Workload, simulate, start
from simmodel.foundation.errors import InputError
from simmodel.learn import (
    Act,
    ChooseNext,
    Episodes,
    Filter,
    JobWindow,
    Reward,
    SchedulingEnv,
    agent_policy,
    backfill_env,
    batch_env,
    route_env,
    split_by_time,
)
from simmodel.platform import ClusterSpec, OutageSpec, PartitionSpec
from tests.helpers.learning import at_random, first, mixed_log, other_future, play
from tests.helpers.paths import ROOT

NAMES = ("Batch", "Backfill", "Route")
LOG = mixed_log()


def small(name, log=LOG, **options):
    """Return a ready environment over a small busy system."""
    if name == "Batch":
        return batch_env(8, log, window=16, **options)
    return backfill_env(8, log, window=16, **options) if name == "Backfill" else route_env((8, 8, 12), log, **options)


# ---------------------------------------------------------------------- gymnasium


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing_wrong(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"simmodel/{name}-v0").unwrapped)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("name", NAMES)
def test_vectorised_environments_step_as_single_ones(name, mode):
    envs = gymnasium.make_vec(f"simmodel/{name}-v0", 2, vectorization_mode=mode)
    try:
        observations, infos = envs.reset(seed=[3, 4])
        for _ in range(20):
            actions = infos["action_mask"].argmax(axis=1)
            observations, _, _, _, infos = envs.step(actions)
            assert observations in envs.observation_space
    finally:
        envs.close()
    alone = gymnasium.make(f"simmodel/{name}-v0")
    info = alone.reset(seed=4)[1]
    for _ in range(20):
        seen, _, _, _, info = alone.step(int(info["action_mask"].argmax()))
    assert all((seen[key] == observations[key][1]).all() for key in seen)


@pytest.mark.parametrize("name", NAMES)
def test_unknown_options_are_type_errors_as_libraries_expect(name):
    """Stable-Baselines3 asks for a render mode first, and does without if that is a TypeError."""
    assert gymnasium.make(f"simmodel/{name}-v0", render_mode=None).render_mode is None
    for options in ({"render_mode": "rgb_array"}, {"windw": 3}, {"warm": [snapshot_of_one()], "windw": 3}):
        with warnings.catch_warnings(action="ignore"), pytest.raises(TypeError, match=r"must be None|unknown option"):
            gymnasium.make(f"simmodel/{name}-v0", **options)
    with pytest.raises(InputError, match="unknown option 'windw'; known options: "):
        small(name, windw=3)


def snapshot_of_one():
    return start(4, [Job(processors=4, run=9, requested=9)], "fcfs").run(until=1).snapshot()


def test_the_same_seed_gives_the_same_episode_in_each_process():
    code = (
        "import hashlib; from simmodel.learn import batch_env\n"
        "observation, _ = batch_env(window=9).reset(seed=11)\n"
        "print(hashlib.sha256(observation['jobs'].tobytes()).hexdigest())"
    )
    run = [subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True) for _ in range(2)]
    assert run[0].stdout == run[1].stdout != ""


def test_importing_simmodel_loads_none_of_it():
    code = (
        "import simmodel, sys; simmodel.simulate\n"
        "print([name for name in sys.modules if 'gymnasium' in name or 'simmodel.learn' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------- what an agent sees


@pytest.mark.parametrize("name", NAMES)
def test_observations_stay_in_their_ranges(name):
    env = small(name, mixed_log(300, seed=5))
    _, info = env.reset(seed=1)
    choose, ended = at_random(2), False
    while not ended:
        observation, _, ended, _, info = env.step(choose(env, info))
        assert observation in env.observation_space


def test_columns_of_a_window_by_hand():
    jobs = [
        Job(processors=4, run=100, requested=100),
        Job(submit=10, processors=2, run=5),
        Job(submit=20, processors=1, run=5, requested=60),
    ]
    env = batch_env(4, jobs, window=3)
    env.reset(seed=0)
    observation, _, _, _, info = env.step(0)
    assert info["seconds"] == 10
    observation, _, _, _, info = env.step(0)  # next, and starts at 100
    scale = np.log1p(30 * 86400)
    row = [1, 0.25, np.log1p(60) / scale, np.log1p(60) / scale / 2, np.log1p(80) / scale, 1]
    assert info["seconds"] == 90
    assert observation["jobs"] == pytest.approx(np.array([row, [0] * 6, [0] * 6]), abs=1e-6)
    free, waiting, *ends = observation["cluster"].tolist()
    assert (free, waiting) == pytest.approx((0.5, np.log1p(1) / np.log1p(1e5)))
    assert ends == [0.0] * 15 + [0.5]  # the running job has no request: its end is unknown


def test_speeds_of_places_are_those_for_the_job():
    env = route_env((8, 8, 8), LOG, slowdowns=[2, 1, 0.5])
    observation, _ = env.reset(seed=0)
    assert observation["places"][:, 6].tolist() == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_rows_follow_the_queue(backfill):
    """After each step the rows are those of a window that is filled anew."""
    env = batch_env(16, mixed_log(250, seed=6), window=12, backfill=backfill)
    choose = at_random(4)
    _, info = env.reset(seed=0)
    for _ in range(60):
        observation, _, ended, _, info = env.step(choose(env, info))
        if ended:
            break
        anew = JobWindow(12)(env.view)
        assert (observation["jobs"] == anew["jobs"]).all()
        assert observation["cluster"] == pytest.approx(anew["cluster"])


class Leak(JobWindow):
    """A window that shows run times, which no policy may see."""

    def __call__(self, view):
        found = super().__call__(view)
        for row, job in enumerate(self.jobs(view)):
            found["jobs"][row, 2] = min(1.0, job._duration / 1e5)
        return found


def moved(make, draws, cut=25):
    """Return how many other futures of an episode change what is seen or allowed at a decision."""
    env = make(LOG)
    choose = at_random(7)
    taken = []

    def noted(env, info):
        taken.append(choose(env, info))
        return taken[-1]

    before, _, info = play(env, noted, steps=cut)
    now, jobs, rng = env.simulation.env.now, env.simulation.result().jobs, np.random.default_rng(5)
    changed = 0
    for _ in range(draws):
        other, actions = make(other_future(LOG, jobs, now, rng)), iter(taken)
        seen, _, told = play(other, lambda _env, _info, actions=actions: next(actions), steps=cut)
        same = told["action_mask"].tobytes() == info["action_mask"].tobytes()
        changed += not (same and all(seen[key].tobytes() == before[key].tobytes() for key in before))
    return changed


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "draws", [60, pytest.param(300, marks=pytest.mark.long), pytest.param(1000, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("name", NAMES)
def test_observations_do_not_depend_on_the_future(name, draws):
    assert moved(lambda log: small(name, log), draws) == 0


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("name", ["Batch", "Route"])
def test_other_futures_move_nothing_where_jobs_request_no_time(name, hold):
    """EASY, around the agent and at the places of a broker, planned such jobs with their run times."""
    options = (
        {"backfill": "easy", "hold": hold} if name == "Batch" else {"policies": "easy" if hold else "conservative"}
    )
    assert moved(lambda log: small(name, log.replace(requested=np.full(len(log), np.nan)), **options), 40) == 0


def test_who_gives_estimates_has_them():
    bare = [Job(processors=4, run=10), Job(processors=2, run=5)]
    for options in ({}, {"estimates": "exact"}):
        env = batch_env(4, bare, backfill="easy", **options)
        env.reset(seed=0)
        told = [job.planned for job in env.view.waiting]
        assert told == ([10, 5] if options else [np.inf] * 2)
    warm = [start(4, bare, "fcfs").run(until=1).snapshot()]
    with pytest.raises(InputError, match="warm: must request times, but job 1 does not: policies beside"):
        batch_env(warm=warm, backfill="easy")
    assert batch_env(warm=warm).reset(seed=0)[1]["action_mask"].sum() == 1


@pytest.mark.parametrize("give", [list, tuple, Workload.from_jobs, lambda jobs: Workload.from_jobs(jobs).to_pandas()])
def test_jobs_without_requests_have_no_end_in_any_form_of_work(give):
    if give not in (list, tuple, Workload.from_jobs):
        pytest.importorskip("pandas")
    bare = [Job(processors=4, run=10), Job(processors=2, run=5), Job(processors=2, run=5, requested=7)]
    env = batch_env(4, give(bare), backfill="easy")
    env.reset(seed=0)
    assert [job.planned for job in env.view.waiting] == [np.inf, np.inf, 7]


def test_a_leak_is_found():
    def leaking(log):
        shown = Leak(16)
        return SchedulingEnv(Episodes(8, log), shown, ChooseNext(shown))

    assert moved(leaking, 20) == 20


# ---------------------------------------------------------------------- masks and ends

WAITS = [Job(processors=4, run=10, requested=10), Job(submit=1, processors=4, run=10, requested=10)]


@pytest.mark.parametrize("action", [1, 7, -1, 0.0, "a", np.array([0]), False, None], ids=str)
def test_wrong_actions_are_errors(action):
    env = batch_env(4, WAITS, window=3)
    env.reset(seed=0)
    with pytest.raises(InputError, match="action: must be"):
        env.step(action)
    env.step(np.int64(0))


def test_a_step_needs_an_episode():
    env = batch_env(4, WAITS)
    with pytest.raises(InputError, match="must be reset before the first step and after the end"):
        env.step(0)
    play(env, first)
    with pytest.raises(InputError, match="must be reset before the first step and after the end"):
        env.step(0)
    with pytest.raises(InputError, match="must await an action"):
        env.fork()


@pytest.mark.parametrize("mask", [[True], [1, 1, 1], [[True] * 3], [False] * 3, None], ids=str)
def test_wrong_masks_are_errors(mask):
    env = SchedulingEnv(
        Episodes(4, WAITS),
        lambda view: np.zeros(1, dtype=np.float32),
        lambda view, action: (),
        observation_space=spaces.Box(0, 1, (1,)),
        action_space=spaces.Discrete(3),
        mask=lambda view: mask,
    )
    with pytest.raises(InputError, match=r"mask: must return booleans of shape \(3,\), one of them true, got"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window: must be a whole number >= 1, got 0"),
        ({"window": 2.5}, "window: must be a whole number >= 1, got 2.5"),
        ({"window": True}, "window: must be a whole number >= 1, got True"),
        ({"policy": "sjf"}, "policy: must not be given: the agent decides"),
        ({"seed": 3}, r"seed: must not be given: the agent decides, and reset\(seed=\) seeds"),
        ({"warm": "queue.json"}, "warm: must be a list of snapshots or their files, got 'queue.json'"),
        ({"warm": ["queue.json"]}, "queue.json: no such file"),
        ({"warm": [4]}, r"warm: must be a list of snapshots or their files, got \[4\]"),
        ({"accept": max}, "accept: must be a Filter, got <built-in function max>"),
        ({"backfill": "esay"}, "unknown backfill 'esay'; did you mean 'easy'"),
        ({"hold": "no"}, "hold: must be True or False, got 'no'"),
        ({"candidates": "sfj"}, "unknown order 'sfj'|unknown policy 'sfj'"),
        ({"jobs": 61}, "jobs: must be from 1 to 60, the jobs of workload in the span, got 61"),
    ],
    ids=str,
)
def test_wrong_options_are_errors(options, message):
    with pytest.raises(InputError, match=message):
        batch_env(8, LOG, **{"backfill": "easy", **options})


def test_a_mask_is_the_agents_own():
    env = batch_env(4, WAITS, window=3)
    env.reset(seed=0)
    env.action_masks()[:] = False
    assert env.action_masks().tolist() == [True, False, False]


def test_a_reset_takes_no_options():
    with pytest.raises(InputError, match="options: must be empty, got 'jobs'"):
        batch_env(8, LOG).reset(seed=0, options={"jobs": 3})


def test_waiting_is_allowed_while_something_is_to_come():
    env = batch_env(4, WAITS, window=3, wait=True)
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [True, False, False, True]  # the second job is to come
    _, _, _, _, info = env.step(3)
    assert info["action_mask"].tolist() == [True, True, False, False]
    with pytest.raises(InputError, match=r"must be one that the mask allows \(0, 1\), got 3"):
        env.step(3)
    _, _, _, _, info = env.step(0)
    assert info["action_mask"].tolist() == [True, False, False, True]  # a job runs
    at_once = [Job(processors=4, run=10, requested=10) for _ in range(5)]
    for make in (batch_env, backfill_env):
        options = {"wait": True} if make is batch_env else {}
        _, info = make(4, at_once, window=8, **options).reset(seed=0)
        assert info["action_mask"].tolist() == [True] * 5 + [False] * 4


def test_once_nothing_is_to_come_only_jobs_that_fit_are_allowed():
    """Three of four processors fail for ever: a job that needs more would hold back the others for ever."""
    down = OutageSpec(at=5, until=float("inf"), processors=3)
    spec = ClusterSpec(partitions=[PartitionSpec(processors=4)], outages=[down])
    jobs = [
        Job(submit=10, processors=size, run=10, requested=10, cancel=cancel) for size, cancel in ((2, 900), (1, None))
    ]
    for make in (batch_env, backfill_env):
        env = make(spec, jobs, window=3)
        _, info = env.reset(seed=0)
        assert info["action_mask"].tolist()[:2] == [False, True]  # a cancellation changes nothing for the better
        _, _, _, _, info = env.step(1)
        while "reason" not in info:
            assert info["action_mask"].tolist()[:1] == [True]
            _, _, _, _, info = env.step(0)
        assert info["reason"] == "done"


def test_a_limit_truncates():
    env = batch_env(4, WAITS, until=5.0)
    env.reset(seed=0)
    assert env.step(0)[2:4] == (False, False)
    _, reward, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, info["reason"], reward) == (False, True, "limit", -1.0)


# ---------------------------------------------------------------------- rewards


@pytest.mark.parametrize("objective", ["wait_mean", "bounded_slowdown_max", "raw: turnaround_mean + 2*slowdown_mean"])
@pytest.mark.parametrize("when", ["end", "differences"])
@pytest.mark.parametrize("name", NAMES)
def test_the_sum_of_rewards_is_the_objective(name, when, objective):
    env = small(name, reward=objective, when=when)
    _, total, info = play(env, at_random(1))
    assert total == pytest.approx(-info["objective"], abs=1e-9)
    if objective in (metrics := env.simulation.result().metrics()):
        assert info["objective"] == pytest.approx(metrics[objective])


def test_differences_come_with_the_jobs_that_end():
    env = batch_env(4, WAITS, reward="wait_mean", when="differences")
    env.reset(seed=0)
    assert env.step(0)[1] == 0.0
    assert env.step(0)[1] == pytest.approx(-4.5)


def test_metrics_by_name_and_functions_of_the_result():
    env = batch_env(4, WAITS, reward="makespan")
    assert play(env, first)[2]["objective"] == 20.0
    env = batch_env(4, WAITS, reward=lambda result: float(result.jobs["end"].max()))
    assert play(env, first)[1] == -20.0


def test_wrong_rewards_are_errors():
    with pytest.raises(InputError, match="when: must be 'end' for 1\\*utilisation, which is not known before it"):
        Reward("raw:utilisation", "differences")
    with pytest.raises(InputError, match="unknown when 'always'"):
        Reward("wait_mean", "always")
    env = batch_env(4, WAITS, reward="wait_maen")
    with pytest.raises(InputError, match="unknown measure or metric 'wait_maen'; did you mean 'wait_mean'"):
        env.reset(seed=0)
    with pytest.raises(InputError, match="low: must be at most high, 1, got 5"):
        Filter(5, 1)


# ---------------------------------------------------------------------- episodes


def test_episodes_are_slices_of_a_span():
    log = Workload({"submit": np.arange(100.0), "run": [1] * 100, "processors": [1] * 100})
    draw = Episodes(4, log, jobs=10, span=(20, 50))
    rng = np.random.default_rng(0)
    firsts = set()
    for _ in range(30):
        jobs = draw(rng).run().result().jobs["job"]
        assert (np.diff(jobs) == 1).all()
        assert len(jobs) == 10
        assert 21 <= jobs[0] <= jobs[-1] <= 50
        firsts.add(int(jobs[0]))
    assert len(firsts) > 10


def test_spans_that_overlap_are_refused():
    with pytest.raises(InputError, match="spans: must not overlap, as train and test do from 80 s on"):
        split_by_time(4, LOG, {"train": (0, 100), "test": (80, 900)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 61}, "jobs: must be from 1 to 60, the jobs of workload in the span, got 61"),
        ({"jobs": 0}, "jobs: must be from 1 to 60"),
        ({"span": (5, 5)}, "span: must be two instants >= 0 s, the first one before the second"),
        ({"span": ("soon", 5)}, "span: must be two instants"),
        ({"span": 5}, "span: must be two instants"),
        ({"span": (1, 2, 3)}, "span: must be two instants"),
        ({"span": ("900d", "901d")}, "span: has no jobs of workload, got"),
        ({"jobs": 2.5}, "jobs: must be from 1 to 60"),
        ({"jobs": 3, "workload": None}, "workload: missing"),
        ({"jobs": 3, "workload": "lublin:jobs=5,processors=8"}, "must be None for a generator"),
    ],
)
def test_wrong_episodes_are_errors(options, message):
    with pytest.raises(InputError, match=message):
        Episodes(8, **{"workload": LOG, **options})


def test_warm_episodes_continue_a_snapshot():
    snapshot = start(8, LOG, "easy").run(until=1500).snapshot()
    env = batch_env(None, Workload({"submit": [2000.0], "run": [5], "processors": [8]}), warm=[snapshot], window=64)
    observation, info = env.reset(seed=0)
    assert env.simulation.env.now >= 1500
    assert info["action_mask"].sum() > 3
    assert play(env, first)[2]["reason"] == "done"
    twice = [env.reset(seed=0)[0]["jobs"].tobytes() for _ in range(2)]
    assert twice[0] == twice[1] == observation["jobs"].tobytes()


def test_snapshots_are_read_from_their_files(tmp_path):
    two = [Job(processors=4, run=9, requested=9), Job(processors=4, run=7, requested=7)]
    for name, snapshot in (
        ("c.json", start(4, two, "fcfs").run(until=1).snapshot()),
        ("b.json.gz", start((4, 4), two, "round-robin").run(until=1).snapshot()),
    ):
        path = tmp_path / name
        snapshot.to_json(path)
        for given in (path, str(path)):
            assert simulate(given).jobs["end"].tolist() == simulate(snapshot).jobs["end"].tolist()
    env = batch_env(warm=[tmp_path / "c.json", str(tmp_path / "c.json")])
    _, info = env.reset(seed=0)
    assert (env.simulation.result().started, info["action_mask"].sum()) == (1, 1)


def test_jobs_of_warm_episodes_come_from_the_instant_of_the_snapshot_on():
    snapshot = start(8, [Job(processors=8, run=100, requested=100)], "easy").run(until=60).snapshot()
    for work, count in (("lublin:jobs=20,processors=8", None), (LOG, 5)):
        draw = Episodes(8, work, warm=[snapshot], jobs=count)
        submits = [draw(np.random.default_rng(seed), "fcfs").run().result().jobs["submit"] for seed in (1, 1, 2)]
        assert [each[0] for each in submits] == [0.0] * 3
        assert [each[1] for each in submits] == [60.0] * 3
        assert (submits[0] == submits[1]).all()
        assert (submits[0] != submits[2]).any()
    late = Workload({"submit": [75.0], "run": [5], "processors": [8]})
    assert Episodes(8, late, warm=[snapshot])(np.random.default_rng(1), "fcfs").run().result().jobs["start"][-1] == 100


def test_a_filter_keeps_episodes_within_its_bounds():
    draw = Episodes(8, LOG, jobs=20)
    accept = Filter.of_medians(draw, 40)
    kept = Episodes(8, LOG, jobs=20, accept=accept)
    rng = np.random.default_rng(1)
    values = [Reward().value(kept(rng, "sjf").run()) for _ in range(20)]
    assert all(accept.low <= value <= accept.high for value in values)
    none = Episodes(8, LOG, jobs=20, accept=Filter(0.0, 0.5))
    with pytest.raises(InputError, match="accept: must accept at least one of 1,000 episodes"):
        none(rng)


def test_an_episode_needs_a_decision():
    env = batch_env(4, Workload({"submit": [0], "run": [1], "processors": [9]}))
    with pytest.raises(InputError, match="episode: has no decision for the agent: done"):
        env.reset(seed=0)


def test_other_systems_are_refused():
    with pytest.raises(InputError, match="system: must have one place"):
        batch_env((4, 4), LOG).reset(seed=0)
    with pytest.raises(InputError, match="system: must be a broker or a grid"):
        route_env(8, LOG).reset(seed=0)


# ---------------------------------------------------------------------- forks


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "forks", [20, pytest.param(60, marks=pytest.mark.long), pytest.param(200, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("name", NAMES)
def test_forks_go_on_alike(name, forks):
    """The same actions lead to the same starts and rewards, in forks of forks too; no copy changes another."""
    env = small(name, when="differences")
    rng = np.random.default_rng(9)
    for number in range(forks):
        play(env, at_random(number), steps=int(rng.integers(1, 50)), seed=number)
        copy = env.fork()
        if number % 3 == 0:
            play_on(copy, at_random(77))
            copy = env.fork().fork()
        info = {"action_mask": env.action_masks()}
        assert (copy.action_masks() == info["action_mask"]).all()
        ends = [play_on(each, at_random(number + 1)) for each in (env, copy)]
        assert ends[0] == pytest.approx(ends[1], abs=1e-9)
        own, other = (
            dict(zip(*(each.simulation.result().jobs[key].tolist() for key in ("job", "start")), strict=True))
            for each in (env, copy)
        )
        assert all(own[job] == began for job, began in other.items())


def play_on(env, choose):
    """Play an episode to its end; return the sum of the rewards and the objective."""
    info, total, ended = {"action_mask": env.action_masks()}, 0.0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(choose(env, info))
        ended, total = terminated or truncated, total + reward
    return total, info["objective"]


def test_forks_continue_the_random_stream():
    env = batch_env(window=16)
    env.reset(seed=5)
    copy = env.fork()
    assert all((env.reset()[0]["jobs"] == copy.reset()[0]["jobs"]).all() for _ in range(3))


# ---------------------------------------------------------------------- custom environments


class OldestOrNone(Act):
    """Starts the oldest job that fits, or nothing, and starts nothing by itself."""

    def __init__(self, shown):
        self.shown, self.space, self.open = shown, spaces.Discrete(2), True

    def __call__(self, view, action):
        self.open = bool(action)
        return [Start(job, job.place) for job in view.waiting if action and job.place.fits(job)][:1]

    def resume(self, view):
        self.open = True
        return ()

    def asks(self, view):
        return self.open and any(job.place.fits(job) for job in view.waiting)


def test_a_class_makes_an_environment():
    shown = JobWindow(8)
    env = SchedulingEnv(Episodes(8, LOG), shown, OldestOrNone(shown), "wait_mean")
    _, _, info = play(env, lambda _env, _info: 1)
    assert "action_mask" not in info
    whole = simulate(8, LOG, agent_policy(lambda seen, mask: 1, env))
    assert info["objective"] == pytest.approx(whole.jobs["wait"].mean())


def test_functions_make_an_environment():
    def observe(view):
        return np.array([view.places[0].free / view.places[0].capacity], dtype=np.float32)

    def act(view, action):
        if action:
            for job in view.waiting:
                if view.places[0].fits(job):
                    yield Start(job, view.places[0])

    def mask(view):
        return np.array([len(view.waiting) > 1, True])

    env = SchedulingEnv(
        Episodes(8, LOG),
        observe,
        act,
        "wait_mean",
        observation_space=spaces.Box(0, 1, (1,)),
        action_space=spaces.Discrete(2),
        mask=mask,
    )
    _, _, info = play(env, lambda _env, _info: 1)
    assert info["objective"] == pytest.approx(
        simulate(8, LOG, agent_policy(lambda seen, mask: 1, env)).jobs["wait"].mean()
    )
    with pytest.raises(InputError, match="observation_space: missing"):
        SchedulingEnv(Episodes(8, LOG), observe, act)
    with pytest.raises(InputError, match="act: must be a function, got 3"):
        SchedulingEnv(Episodes(8, LOG), observe, 3)
    env = SchedulingEnv(lambda rng: None, env.observe, env.act)
    with pytest.raises(InputError, match="system: must return a Simulation, got None"):
        env.reset(seed=0)
    with pytest.raises(InputError, match="action_space: missing"):
        SchedulingEnv(Episodes(8, LOG), observe, act, observation_space=spaces.Box(0, 1, (1,)))
