"""A twin that decides when jobs of a real Slurm start, and what happens to them when anything dies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from simmodel_site.twin.audit import read_audit
from simmodel_site.twin.audit_replay import replay_audit
from tests.site.helpers.acting_plant import ActingPlant, acting_plant
from tests.site.helpers.redis_server import stream_of
from tests.site.helpers.slurm_cluster import SlurmCluster, wait_until

pytestmark = pytest.mark.live


@pytest.fixture
def plant(slurm: SlurmCluster, tmp_path: Path) -> Iterator[ActingPlant]:
    with acting_plant(slurm, tmp_path) as made:
        yield made


def test_jobs_start_in_the_order_of_the_policy_and_the_log_tells_it_all(plant: ActingPlant) -> None:
    plant.start("twin")
    first = plant.submit(24, 3.0)
    wide = plant.submit(20, 1.0)
    small = plant.submit(8, 1.0)  # EASY starts it before the wide one
    plant.all_over()
    started = plant.ran.read_text().split()
    assert started.index(small) < started.index(wide)
    plant.kill("twin", signal.SIGTERM)
    lines = list(read_audit(plant.folder / "audit.jsonl"))
    released = [str(line.values["action"]["job"]) for line in lines if line.kind == "action"]
    assert sorted(released) == sorted([first, wide, small])
    assert {line.values["outcome"]["what"] for line in lines if line.kind == "outcome"} == {"done"}
    found = replay_audit(plant.folder / "audit.jsonl")
    assert (found.decisions - found.reproduced, found.first) == (0, "")


def test_jobs_that_are_none_of_the_twins_are_not_held(plant: ActingPlant) -> None:
    plant.start("twin")
    later = plant.submit(1, 0.1, "--begin=now+3")
    by_hand = plant.submit(1, 0.1, "--hold")
    assert not plant.held()
    wait_until(lambda: later in plant.runs(), 30, plant.story)
    plant.slurm.run("scontrol", "release", by_hand)
    plant.all_over()


def test_the_watchdog_releases_what_a_killed_twin_held(plant: ActingPlant) -> None:
    plant.start("watchdog")
    plant.start("twin")
    for _ in range(3):
        plant.submit(32, 2.0)
    assert plant.held()
    plant.kill("twin")
    wait_until(lambda: not plant.held(), plant.act.stale_after + 8, plant.story)
    plant.submit(1, 0.1)
    plant.all_over()


@pytest.mark.parametrize("order", [("twin", "watchdog"), ("watchdog", "twin")])
def test_without_twin_and_watchdog_slurm_itself_starts_the_jobs_in_time(
    plant: ActingPlant, order: tuple[str, str]
) -> None:
    plant.start("watchdog")
    plant.start("twin")
    for _ in range(2):
        plant.submit(32, 1.0)
    at = monotonic()
    for name in order:
        plant.kill(name)
    wait_until(lambda: not plant.held(), plant.act.maximum_delay + 5, plant.story)
    assert monotonic() - at <= plant.act.maximum_delay + 5
    plant.all_over()


def test_after_the_heartbeat_has_gone_stale_the_next_submission_releases_everything(plant: ActingPlant) -> None:
    plant.start("twin")
    for _ in range(3):
        plant.submit(32, 1.0)
    plant.kill("twin")
    held = len(plant.held())
    sleep(plant.act.stale_after + 1.5)
    assert held == len(plant.held()) >= 1
    plant.submit(1, 0.1)
    wait_until(lambda: not plant.held(), 8, plant.story)
    plant.all_over()


def test_only_jobs_of_the_chosen_partitions_are_held(plant: ActingPlant) -> None:
    slurm, script = plant.slurm, plant.slurm.folder / "job_submit.lua"
    before = script.read_text()
    plant.start("twin")
    try:
        for name, held in (("batch", True), ("other", False)):
            sleep(1.1)  # Slurm reads the script again if it is younger by a second
            script.write_text(before.replace("local chosen = nil", f'local chosen = {{["{name}"] = true}}'))
            plant.submit(slurm.nodes, 3.0)
            two = {plant.submit(slurm.nodes, 0.1, *option) for option in ((), ("--partition=batch",))}
            assert two & set(plant.held()) == (two if held else set())
            plant.all_over()
    finally:
        sleep(1.1)
        script.write_text(before)


@pytest.mark.parametrize("beat", ["99999999999 1 hold", "0 1 hold", "no number", "\x00"])
def test_a_heartbeat_of_another_time_holds_nothing(plant: ActingPlant, beat: str) -> None:
    Path(plant.act.heartbeat).write_text(beat)
    plant.submit(1, 0.1)
    assert not plant.held()
    plant.all_over()


def test_a_restarted_twin_goes_on_and_nothing_starts_twice(plant: ActingPlant) -> None:
    plant.start("twin")
    for _ in range(4):
        plant.submit(16, 2.0)
    wait_until(lambda: plant.runs(), 20, plant.story)
    plant.kill("twin")
    plant.start("twin")
    plant.all_over()
    plant.kill("twin", signal.SIGTERM)
    found = replay_audit(plant.folder / "audit.jsonl")
    assert (found.decisions - found.reproduced, found.first) == (0, "")


def test_the_stop_file_ends_all_holding_at_once(plant: ActingPlant) -> None:
    plant.start("twin")
    for _ in range(3):
        plant.submit(32, 1.0)
    Path(plant.act.stop_file).touch()
    wait_until(lambda: not plant.held(), 10, plant.story)
    plant.submit(1, 0.1)
    assert not plant.held()
    plant.all_over()


def test_a_controller_that_dies_and_returns_loses_and_repeats_nothing(plant: ActingPlant) -> None:
    plant.start("watchdog")
    plant.start("twin")
    plant.submit(32, 12.0)
    for _ in range(3):
        plant.submit(32, 1.0)
    sleep(7.0)  # until Slurm has saved what waits and runs: what it has not saved it forgets or repeats itself
    plant.slurm.kill_controller()
    sleep(1.0)
    plant.slurm.start_controller()
    plant.all_over(120)


@pytest.mark.parametrize("order", ["stream", "stream, twin", "twin, stream"])
def test_a_stream_that_dies_holds_up_nothing(slurm: SlurmCluster, tmp_path: Path, order: str) -> None:
    with stream_of(slurm) as stream, acting_plant(slurm, tmp_path, stream=stream) as plant:
        plant.start("watchdog")
        plant.start("twin")
        for _ in range(3):
            plant.submit(slurm.nodes, 1.0)
        wait_until(lambda: plant.runs(), 30, plant.story)
        for name in order.split(", "):
            stream.kill() if name == "stream" else plant.kill("twin")
        plant.submit(1, 0.1)
        plant.all_over()
        stream.start()
        if "twin" not in plant.processes:
            plant.start("twin")
        plant.submit(1, 0.1)
        plant.all_over()


def test_with_a_full_disk_for_the_audit_log_everything_is_given_back(plant: ActingPlant) -> None:
    plant.start("twin", file_limit=8000)
    wait_until(lambda: "cannot be written" in plant.said("twin") or Path(plant.act.heartbeat).exists(), 30)
    for _ in range(4):
        plant.submit(16, 1.0)
    wait_until(lambda: "cannot be written" in plant.said("twin"), 30, plant.story)
    wait_until(lambda: not plant.held(), 15, plant.story)
    plant.all_over()


@pytest.mark.parametrize("mode", ["priority", "hold-and-release"])
def test_hostile_names_comments_and_scripts_pass_unharmed(slurm: SlurmCluster, tmp_path: Path, mode: str) -> None:
    with acting_plant(slurm, tmp_path, mode=mode) as plant:
        plant.start("twin")
        trap = plant.folder / "trap"
        words = ['"; scontrol shutdown; "', f"$(touch {trap})\n`id`", "\x1b[31m", "a" * 1000, "--begin=now", "'\n#"]
        wide = [
            plant.submit(24, 4.0),
            plant.submit(20, 1.0),
        ]  # the second waits, and Slurm lets the others wait behind it
        jobs = [plant.submit(1, 0.1, f"--job-name={word}", f"--comment={word}") for word in words]
        large = f"#!/bin/sh\necho $SLURM_JOB_ID >> {plant.ran}\n" + f": '{words[1]}'\n" * (10**6 // 60)
        jobs.append(plant.submit_script(large, 1, 0.1, "--job-name=large"))
        plant.all_over()
        told = [plant.slurm.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%j")[:-1] for job in jobs]
        assert told == [*words, "large"]
        told = [plant.slurm.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%k")[:-1] for job in jobs[:-1]]
        assert told == words
        assert not trap.exists()
        plant.kill("twin", signal.SIGTERM)
        lines = [line.values["action"] for line in read_audit(plant.folder / "audit.jsonl") if line.kind == "action"]
        assert {str(line["job"]) for line in lines} >= {*jobs, *(wide if mode == "hold-and-release" else [])}
