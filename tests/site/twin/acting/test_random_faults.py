"""Random sequences of faults around a twin that acts on a real Slurm: no job is held, lost or run twice afterwards."""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random
from time import sleep

import pytest

from simmodel_site.twin.audit_replay import replay_audit
from tests.site.helpers.acting_plant import ActingPlant, acting_plant
from tests.site.helpers.slurm_cluster import SlurmCluster, wait_until

pytestmark = pytest.mark.live


class Faults:
    """Draws faults and lets them happen."""

    def __init__(self, plant: ActingPlant, seed: int) -> None:
        self.plant, self.drawn = plant, Random(seed)
        self.happened: list[str] = []

    def sequence(self) -> None:
        """Let jobs come and two to five faults happen; then wait for the end of all jobs, whatever is left alive."""
        plant, drawn = self.plant, self.drawn
        self.happened = []
        plant.jobs.clear()
        plant.ran.write_text("")
        for name in ("watchdog", "twin"):
            if name not in plant.processes:
                plant.start(name)
        for _ in range(drawn.randint(2, 5)):
            for _ in range(drawn.randint(0, 3)):
                plant.submit(drawn.choice((1, 8, 20, 32)), drawn.choice((0.1, 0.5, 2.0)))
            sleep(drawn.choice((0.0, 0.1, 0.5, 1.5)))
            self.happen(drawn.choice(("twin", "watchdog", "both", "return", "freeze", "stop", "beat")))
        plant.all_over(plant.act.maximum_delay + 60)
        assert not plant.held()
        Path(plant.act.stop_file).unlink(missing_ok=True)

    def happen(self, fault: str) -> None:
        """Let one fault happen."""
        plant, drawn = self.plant, self.drawn
        self.happened.append(fault)
        names = {"twin": ["twin"], "watchdog": ["watchdog"], "both": drawn.sample(["twin", "watchdog"], 2)}
        if fault in names:
            for name in names[fault]:
                if name in plant.processes:
                    plant.kill(name)
        elif fault == "return":
            for name in ("twin", "watchdog"):
                if name not in plant.processes:
                    plant.start(name)
        elif fault == "freeze" and "twin" in plant.processes:
            process = plant.processes["twin"]
            process.send_signal(signal.SIGSTOP)
            sleep(drawn.choice((0.5, plant.act.stale_after + 2)))
            process.send_signal(signal.SIGCONT)
        elif fault == "stop":
            Path(plant.act.stop_file).touch()
        elif fault == "beat":
            Path(plant.act.heartbeat).write_text(drawn.choice(("", "0 1 hold", "99999999999 1 hold", "x")))


def check(slurm: SlurmCluster, folder: Path, sequences: int, seed: int) -> None:
    with acting_plant(slurm, folder) as plant:
        faults = Faults(plant, seed)
        for number in range(sequences):
            try:
                faults.sequence()
            except AssertionError as error:
                raise AssertionError(f"sequence {number}: {faults.happened}: {error}") from None
        for name in list(plant.processes):
            plant.kill(name, signal.SIGTERM)
        wait_until(lambda: not plant.held(), 30, plant.story)
        found = replay_audit(folder / "audit.jsonl")
        assert (found.decisions - found.reproduced, found.first) == (0, "")


def test_after_random_faults_every_job_has_run_once(slurm: SlurmCluster, tmp_path: Path) -> None:
    check(slurm, tmp_path, 1, 1)


@pytest.mark.exhaustive
def test_after_two_hundred_sequences_of_faults_every_job_has_run_once(slurm: SlurmCluster, tmp_path: Path) -> None:
    check(slurm, tmp_path, 200, 2)
