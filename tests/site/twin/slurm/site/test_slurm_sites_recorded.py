"""Two sites recorded with a real slurmctld and slurmdbd 22.05.8, from the reading of their own files alone.

``gpus``: GPUs that the accounting does not track, arrays, whole nodes, licences, memory in all forms. ``life``: holds,
releases, requeues, drains, a node that goes down, updates, a reservation, jobs that never start.
``python -m tests.site.helpers.slurm_sites gpus FOLDER`` records one afresh.
"""

from __future__ import annotations

import pytest

from simmodel_site.twin.slurm.site.folder import read_folder
from simmodel_site.twin.slurm.site.replayed import replay
from tests.site.helpers.slurm_sites import RECORDED, measured

NAMES = ("gpus", "life")


@pytest.mark.parametrize("name", NAMES)
def test_jobs_start_when_they_did_if_the_instants_of_cycles_are_given(name: str) -> None:
    """At most 3 of 100 starts are more than a cycle apart, and 95 of 100 placements agree with AllocTRES."""
    found = measured(RECORDED / name)
    assert found.runs >= 50
    assert len(found.beyond) <= 0.03 * found.runs
    assert found.agreeing >= 0.95


def test_what_the_accounting_of_gpus_does_not_tell_is_counted() -> None:
    """Submit lines tell the GPUs of jobs; scripts that ask for them would not show, and other files are passed over."""
    found = read_folder(RECORDED / "gpus")
    assert sum(bool(job.gpus_per_node) for job in found.jobs) > 30
    text = "on nodes with GPUs, which the accounting does not count"
    assert [each.what.partition(":")[0] for each in found.unsupported] == [text]
    assert set(found.passed_over) == {"commands.csv", "slurmctld.log.gz"}


def test_what_happened_to_jobs_is_told_by_their_rows_and_the_log() -> None:
    found = read_folder(RECORDED / "life")
    away = [(each.nodes, each.kind, each.at % 60, each.until % 60) for each in found.described.spec.outages]
    assert away == [
        (("n2",), "drain", pytest.approx(58.169), pytest.approx(15.004)),
        (("n3",), "drain", pytest.approx(18.945), pytest.approx(32.506)),
    ]
    assert list(map(str, found.unsupported)) == [
        "jobs: rejected at their submission: 2 (left out)",
        "jobs: requeued: 3 (when they were)",
    ]
    options = {job.id: job.options for job in found.jobs}
    assert options[8] == "--hold=now+18.195"  # since its submission
    assert options[12] == "--hold=now+0.683,now+14.223"  # later
    assert options["5 (run 1)"] == "--requeued=5"
    assert options[5] == "--begin=now+121 --requeued=5"  # Slurm lets jobs that were requeued wait for two minutes
    assert options[17] == "--hold=now+9.459 --begin=now+121"  # requeued, held and released
    assert [job.id for job in found.jobs if job.never_ran] == [14, 36]
    assert replay(found).departures == ()
