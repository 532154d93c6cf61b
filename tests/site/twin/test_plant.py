"""A plant in a second process, which starts what the twin advises, runs as if it was simulated under the policy."""

from pathlib import Path

import numpy as np
import pytest

from simmodel import Workload, load_workload, simulate
from simmodel_site.twin import replay_audit
from tests.helpers.data_files import data_file
from tests.site.helpers.plant_runs import (
    begin_plant,
    begin_twin,
    ending,
    jobs_of,
    plant_run,
    prepare_folder,
    starts_of,
    stop,
)
from tests.site.helpers.redis_server import RedisServer
from tests.site.helpers.slurm_cluster import wait_until


def differing(folder: Path, workload: Workload, policy: str = "portfolio", server: RedisServer | None = None) -> int:
    """Return the number of jobs that the plant starts at another instant than a simulation.

    ``server``: where the events go, instead of a file.
    """
    result = simulate(None, workload, policy)
    if server is None:
        found = plant_run(folder, workload, result.processors, policy)
    else:
        url = server.settings.url
        found = plant_run(folder, workload, result.processors, policy, f'kind = "redis"\nurl = "{url}"', url)
    started = result.jobs.where(np.isfinite(result.jobs["start"]))
    assert len(found) == len(started)
    return sum(found[str(row["job"])] != row["start"] for row in started.rows())


@pytest.mark.long
def test_the_plant_starts_every_job_of_schedtwin_as_simulated(tmp_path: Path) -> None:
    assert differing(tmp_path, load_workload("schedtwin")) == 0
    found = replay_audit(tmp_path / "audit.jsonl")
    assert found.decisions == found.reproduced > 200


def test_the_plant_starts_every_job_as_simulated_through_a_stream(tmp_path: Path, own_redis: RedisServer) -> None:
    log = load_workload("schedtwin")
    if own_redis.program != "redis-server":  # all of it with the Redis of the system
        log = log.where(np.arange(30))
    assert differing(tmp_path, log, server=own_redis) == 0
    found = replay_audit(tmp_path / "audit.jsonl")
    assert found.decisions == found.reproduced > len(log)


@pytest.mark.long  # without failures: the test before
def test_a_stream_and_a_twin_that_die_delay_the_plant_and_change_nothing(
    tmp_path: Path, own_redis: RedisServer
) -> None:
    log = load_workload("schedtwin").where(np.arange(30))
    expected = simulate(None, log, "portfolio")
    url = own_redis.settings.url
    prepare_folder(tmp_path, expected.processors, "portfolio", f'kind = "redis"\nurl = "{url}"')
    own_redis.kill()  # it comes only after the twin
    twin = begin_twin(tmp_path)
    plant = begin_plant(tmp_path, jobs_of(log, expected.processors), expected.processors, url)
    audit = tmp_path / "audit.jsonl"
    with ending(twin, plant):
        for lines in (20, 50, 80):
            own_redis.start()
            wait_until(lambda lines=lines: audit.exists() and audit.read_bytes().count(b"\n") > lines, 120, "advice")
            own_redis.kill()
        twin.kill()  # and the twin with it, wherever it is
        twin.communicate()
        own_redis.start()
        again = begin_twin(tmp_path)
        with ending(again):
            assert plant.wait(timeout=600) == 0
            stop(again)
    assert starts_of(tmp_path) == {str(row["job"]): row["start"] for row in expected.jobs.rows()}
    found = replay_audit(audit)
    assert found.decisions == found.reproduced > len(log)


@pytest.mark.long  # other jobs: the tests before
def test_jobs_of_no_length_are_decided_on_again_at_the_same_instant(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    jobs = 60
    log = Workload(
        {
            "submit": np.sort(rng.integers(0, 40, jobs)),
            "run": rng.choice([0, 0, 3, 9], jobs),
            "requested": rng.choice([10, 20], jobs),
            "processors": rng.integers(1, 5, jobs),
        },
        processors=4,
    )
    assert differing(tmp_path, log, "portfolio(fcfs, sjf, backfill=easy)") == 0


def long_log(name: str) -> Workload:
    log = load_workload(data_file("swf/theta_2022.swf.gz") if name == "theta_2022" else name)
    return log.where(np.arange(min(len(log), 2000)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["lublin-128-week", "theta_2022"])
def test_the_plant_starts_every_job_of_a_long_log_as_simulated(name: str, tmp_path: Path) -> None:
    assert differing(tmp_path, long_log(name)) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["lublin-128-week", "theta_2022"])
def test_the_plant_starts_every_job_of_a_long_log_as_simulated_through_a_stream(
    name: str, tmp_path: Path, own_redis: RedisServer
) -> None:
    assert differing(tmp_path, long_log(name), server=own_redis) == 0
