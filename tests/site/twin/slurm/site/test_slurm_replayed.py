"""The simulated schedule of a site's Slurm beside the recorded one, and the effect of changed settings."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import attrs
import numpy as np
import pytest

from simmodel import InputError
from simmodel.work.table import Table
from simmodel.work.workload import Workload
from simmodel_site.twin.slurm.site.folder import SlurmFolder, read_folder
from simmodel_site.twin.slurm.site.replayed import Replay, change, changed_settings, replay
from tests.helpers.data_files import data_file
from tests.site.helpers.slurm_sacct import sacct_line, site_folder

TIGHT = """
ClusterName=small
SlurmctldHost=head
SchedulerParameters=bf_interval=10,bf_max_time=60
NodeName=n[1-4] CPUs=1
PartitionName=batch Nodes=ALL Default=YES
"""


@cache
def run_of(name: str) -> SlurmFolder:
    return read_folder(data_file(f"slurm/runs/{name}/slurm.conf").parent)


@cache
def replayed(name: str) -> Replay:
    return replay(run_of(name))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "beyond", "other"), [("defaults", 0.1, 0), ("fast", 0.9, 3), ("tiers", 0.6, 4), ("factors", 0.25, 1)]
)
def test_recorded_starts_are_decisions_of_the_policy(name: str, beyond: float, other: int) -> None:
    """Accounting is in whole seconds: a schedule that is free to run drifts away, but its decisions are the same."""
    found = replayed(name)
    assert len(found.jobs) == 80
    assert found.beyond <= beyond * 80
    assert len(found.departures) <= other
    waits = [float((found.jobs[each] - found.jobs["submit"]).mean()) for each in ("recorded", "simulated")]
    assert waits[1] == pytest.approx(waits[0], rel=0.1)
    assert found.order > 0.9
    assert f"cycle of {found.cycle:g} s: {found.beyond} of 80" in found.report()


@pytest.mark.long  # smaller: the other tests of the file
def test_what_the_policy_lacks_shows_in_the_decisions() -> None:
    """Without the topology a third of the recorded starts of the run with a tree of switches are no decisions."""
    found = run_of("tree")
    assert len(replayed("tree").departures) <= 2
    bare = attrs.evolve(found, described=attrs.evolve(found.described, policy="slurm(bf_interval=5)"))
    jobs = tuple(attrs.evolve(each, job=attrs.evolve(each.job, options="")) for each in found.recorded)
    site = attrs.evolve(found.site, settings={"SchedulerParameters": "bf_interval=5"})
    assert len(replay(attrs.evolve(bare, recorded=jobs, site=site)).departures) > 20


def test_arrays_memory_and_licences_are_decided_as_recorded() -> None:
    assert len(replayed("shapes").departures) <= 3


def test_each_run_of_requeued_jobs_is_followed() -> None:
    """Eight jobs made way for others: 88 starts of 80 jobs."""
    found = replayed("preempt")
    assert len(found.departures) <= 3
    assert f"the record led to: {len(found.departures)} of 88" in found.report()
    assert "80 jobs submitted" in found.folder.report()


def test_the_policy_explains_a_log_with_arrays_and_dependencies() -> None:
    site = run_of("shapes")
    waits = np.array([each.start - each.job.submit for each in site.recorded])
    found = site.described.explained_by(Workload.from_jobs(site.jobs).replace(wait=waits))
    assert found.policy == site.described.policy
    assert found.explained[found.policy] > max(share for name, share in found.explained.items() if name != found.policy)


# ---------------------------------------------------------------------- worked by hand


def small(folder: Path, starts: dict[int, int]) -> SlurmFolder:
    """Four nodes: job 1 has 3 of them for 100 s; job 2 needs all for 10 min, job 3 needs one, and job 4 comes later."""
    options = {1: "-N 3", 2: "-N 4", 3: "-N 1", 4: "-N 4"}
    submits = {1: 0, 2: 10, 3: 20, 4: 400}
    lines = [
        sacct_line(job, options[job], submit=submits[job], start=at, run=100 if job == 1 else 60)
        for job, at in starts.items()
    ]
    return read_folder(site_folder(folder, lines, TIGHT))


def test_a_schedule_as_slurm_makes_it_has_no_departure(tmp_path: Path) -> None:
    """Job 3 ends its limit of 10 min at the earliest when job 2, planned at 600 s, would start: it waits behind it."""
    found = replay(small(tmp_path, {1: 3, 2: 105, 3: 167, 4: 402}))
    assert found.beyond == 0
    assert found.departures == ()
    assert found.order == 1.0
    assert found.report().splitlines()[1] == "starts that differ by more than a cycle of 10 s: 0 of 4"


def test_a_start_that_slurm_would_not_make_is_named_with_the_reason(tmp_path: Path) -> None:
    """Job 3 starts at once, although it delays job 2."""
    found = replay(small(tmp_path, {1: 3, 3: 23, 2: 105, 4: 402}))
    assert [(each.job, each.at, each.kind) for each in found.departures] == [(3, 23.0, "early")]
    lines = found.report().splitlines()
    assert lines[-2].startswith("the first that differs: job 3, started at 2024-05-01T12:00:23, 1")
    assert lines[-2].endswith(" s later in the simulation")
    assert lines[-1] == (
        "  the policy decides otherwise: 2024-05-01T12:00:23: Slurm starts job 3, the policy does not: "
        "it starts no job; job 2 is at the head, 1 processor is free"
    )


def test_a_start_that_comes_late_is_not_a_departure_of_a_decision(tmp_path: Path) -> None:
    """All were started a minute later than they could: no loop ran, for all that accounting tells."""
    found = replay(small(tmp_path, {1: 63, 2: 165, 3: 227, 4: 462}))
    assert found.departures == ()
    assert found.beyond == 4
    lines = found.report().splitlines()
    assert lines[-2].startswith("the first that differs: job 1, started at 2024-05-01T12:01:03, 60 s earlier")
    assert lines[-1] == "  in its recorded state the policy starts it too: the loops run at other instants"


def too_large(folder: Path, starts: dict[int, int]) -> SlurmFolder:
    """The jobs of ``small``, of which the second asks for a fifth node."""
    small(folder, starts)
    log = folder / "jobs.txt"
    log.write_text(log.read_text().replace("-N 4 run", "-N 5 run", 1))
    return read_folder(folder)


def test_jobs_that_never_start_in_the_simulation_are_named_and_in_no_mean(tmp_path: Path) -> None:
    """Job 2 asks for 5 of 4 nodes; job 3 waits no more behind it."""
    found = replay(too_large(tmp_path, {1: 3, 3: 23, 2: 105, 4: 402}))
    assert found.order == 1.0
    lines = found.report().splitlines()
    assert lines[2] == "never start in the simulation, left out of the means: 1 job: 2"
    assert "inf" not in lines[3]
    assert "mean wait 2.7 s recorded" in lines[3]
    told = change(too_large(tmp_path, {1: 3, 3: 23, 2: 105, 4: 402}), ["PriorityFavorSmall=YES"], phases=2)
    assert told.left_out == (2,)
    assert told.report().splitlines()[-1] == "never start in the simulation, left out: 1 job: 2"


def test_where_no_job_starts_in_the_simulation_there_is_nothing_to_compare(tmp_path: Path) -> None:
    site = too_large(tmp_path, {2: 105})
    for wrong in (lambda: replay(site), lambda: change(site, ["PriorityFavorSmall=YES"])):
        with pytest.raises(InputError, match="no job starts in the simulation"):
            wrong()


# ---------------------------------------------------------------------- changes


def backfilled(folder: Path) -> SlurmFolder:
    """One long job after another on 3 of 4 nodes, and narrow jobs that only the backfill loop can start."""
    lines = []
    for hour in range(4):
        at = 3600 * hour
        wide = [(1, "-N 3", at, at + 3, 540), (2, "-N 4", at + 10, at + 546, 60)]
        narrow = [(3 + i, "-N 1 -t 1", at + 20 + 120 * i, at + 25 + 120 * i, 30) for i in range(4)]
        for number, options, submit, start, run in [*wide, *narrow]:
            line = sacct_line(10 * hour + number, options, submit=submit, start=start, run=run)
            lines.append(line.replace("00:10:00", "00:01:00") if number > 2 else line)
    return read_folder(site_folder(folder, lines, TIGHT))


def test_a_longer_interval_makes_backfilled_jobs_wait_longer(tmp_path: Path) -> None:
    """16 of 24 jobs wait for a cycle, of 10 s or of 60 s; the others wait as before."""
    found = change(backfilled(tmp_path), ["bf_interval=60"])
    mean = found.effects[0].difference
    assert 0 < mean.low < mean.mean < 60 * 16 / 24
    assert found.effects[0].value - found.effects[0].before == pytest.approx(mean.mean)
    assert found.effects[3].difference.high < 10  # the longest waits are those of wide jobs
    assert "bf_interval=60" in found.after
    assert "worse by" in found.report().splitlines()[3]
    assert found.table["difference_low"].tolist() == [each.difference.low for each in found.effects]


@pytest.mark.long  # smaller: the other tests of the file
def test_the_interval_holds_the_mean_over_other_phases(tmp_path: Path) -> None:
    site = backfilled(tmp_path)
    difference = change(site, ["bf_interval=30"], phases=5).effects[0].difference
    assert change(site, ["bf_interval=30"], phases=13).effects[0].difference.mean in difference


def test_a_change_that_does_nothing_is_the_same(tmp_path: Path) -> None:
    found = change(small(tmp_path, {1: 3, 2: 105, 3: 167, 4: 402}), ["PriorityFavorSmall=YES"], phases=2)
    assert {(each.before == each.value, each.verdict) for each in found.effects} == {(True, "the same")}
    assert found.report().count("the same") == 4 + 1  # phases, the same for both


def test_changes_have_slurms_names(tmp_path: Path) -> None:
    site = small(tmp_path, {1: 3})
    told = changed_settings(
        site, ["bf_interval=5", "default_queue_depth=7", "PriorityWeightJobSize=3", "bf_interval=30"]
    )
    assert (told.bf_interval, told.default_queue_depth, told.weight_size) == (30.0, 7, 3.0)
    assert changed_settings(site).bf_interval == 10.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("bf_interval", "--set: must be NAME=VALUE, got 'bf_interval'"),
        ("bf_intervall=3", "unknown parameter 'bf_intervall'; did you mean 'bf_interval'?"),
        ("bf_interval=soon", "bf_interval: must be a number, got 'soon'"),
        ("bf_interval=10", "--set: bf_interval=10: it changes nothing that policy slurm heeds"),
        ("SlurmctldDebug=5", "--set: SlurmctldDebug=5: it changes nothing that policy slurm heeds"),
        ("PreemptType=preempt/other", "PreemptType: must be preempt/none, preempt/partition_prio or preempt/qos, got"),
        ("SelectType=select/linear", "--set: SelectType=select/linear: policy slurm does not model it"),
    ],
)
def test_wrong_changes_are_refused(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        change(small(tmp_path, {1: 3}), [text])
    assert sentence in str(error.value)


def test_without_jobs_there_is_nothing_to_compare(tmp_path: Path) -> None:
    site = small(tmp_path, {1: 3})
    (tmp_path / "jobs.txt").unlink()
    bare = read_folder(tmp_path)
    for wrong in (lambda: replay(bare), lambda: change(bare, ["bf_interval=5"]), lambda: change(site, [])):
        with pytest.raises(InputError):
            wrong()


def test_the_order_of_many_jobs_is_that_of_neighbours(tmp_path: Path) -> None:
    """Every tenth pair of neighbours changes places, of all pairs that are less than 500 apart."""
    recorded = np.arange(4000.0)
    simulated = recorded.copy()
    simulated[0::10], simulated[1::10] = recorded[1::10], recorded[0::10]
    jobs = Table({"job": np.arange(4000), "submit": recorded, "recorded": recorded, "simulated": simulated})
    found = Replay(folder=small(tmp_path, {1: 3}), policy="slurm", cycle=10.0, jobs=jobs)
    assert found.order == pytest.approx(1 - 400 / sum(4000 - step for step in range(1, 500)))
