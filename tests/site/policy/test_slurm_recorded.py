"""The policy slurm against recorded runs of slurmctld 22.05.8: decisions, plans, starts, priorities."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from simmodel import simulate
from simmodel_site.policy.clocks import BackfillClock, Turn
from simmodel_site.policy.priority import Asked, basic, multifactor
from tests.helpers.data_files import data_file
from tests.site.helpers.slurm_decisions import Cycle, cycles_of, plans_of
from tests.site.helpers.slurm_measure import by_turns, free, given, measure, origin_of, platform, workload
from tests.site.helpers.slurm_recorder import events_of
from tests.site.helpers.slurm_runs import Recorded, numbers, recorded

RUNS = ("defaults", "fast", "tiers", "factors", "shapes", "tree", "preempt")


def run_of(name: str) -> Recorded:
    data_file(f"slurm/runs/{name}/events.csv")
    return recorded(name)


@cache
def cycles(name: str, easy: bool = False) -> list[Cycle]:
    return cycles_of(run_of(name), easy=easy)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", RUNS)
def test_cycles_start_the_recorded_jobs_on_the_recorded_nodes(name: str) -> None:
    """From the true state before each cycle; what differs lies within 30 ms of an end."""
    found = cycles(name)
    wrong = [cycle for cycle in found if not cycle.same]
    assert len(wrong) <= 0.02 * len(found)
    ends = run_of(name).ends.values()
    assert all(any(0 <= cycle.at - end <= 0.030 for end in ends) for cycle in wrong)


def test_nearly_all_cycles_of_all_runs_are_the_same() -> None:
    found = [cycle for name in RUNS for cycle in cycles(name)]
    assert len(found) > 500
    assert sum(cycle.same for cycle in found) >= 0.99 * len(found)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", RUNS)
def test_plans_of_waiting_jobs_are_the_recorded_ones(name: str) -> None:
    """All plans of a cycle: which jobs, when and on which nodes."""
    found = plans_of(run_of(name))
    assert sum(recorded == modelled for recorded, modelled in found) >= 0.94 * len(found)
    pairs = [pair for recorded, modelled in found for pair in zip(recorded, modelled, strict=False)]
    assert sum(ours == theirs for ours, theirs in pairs) >= 0.95 * sum(len(recorded) for recorded, _ in found)


@pytest.mark.long  # smaller: the other tests of the file
def test_a_textbook_easy_decides_otherwise() -> None:
    found = [cycle for name in RUNS for cycle in cycles(name, True)]
    assert sum(cycle.same for cycle in found) < 0.95 * len(found)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", RUNS)
def test_starts_are_the_recorded_ones_if_cycles_are_given(name: str) -> None:
    found = measure(run_of(name), given(run_of(name)))
    assert found.beyond == 0
    assert found.error < 0.1


def test_the_same_jobs_make_way_in_the_same_order() -> None:
    """In the cycles, from the true state; and in a simulation of the whole run in which only the cycles are given."""
    run = run_of("preempt")
    decided = [each for cycle in cycles("preempt") for each in cycle.modelled.preempted]
    assert [victim for victim, _ in decided] == run.preempted
    assert measure(run, given(run)).victims == run.preempted == [6, 4, 13, 18, 11, 15, 47, 17]


BEYOND = {"defaults": 0.10, "fast": 0.25, "tiers": 0.10, "factors": 0.10, "shapes": 0.10, "tree": 0.10, "preempt": 0.10}
"""The parts of starts that may differ by more than a cycle."""


def predicted(run: Recorded) -> list[tuple[float, float]]:
    """Return the instants of the cycles of the backfill loop after the first, each with that which the clock told.

    The clock learns what the log tells: submissions, starts, ends, jobs of closed partitions in the main loop; plans
    that begin where another ends; marks of nodes as planned.
    """
    clock = BackfillClock(run.settings.bf_interval, run.cycles("backfill")[0])
    found, changed, marked, ends = [], False, False, set[str]()
    for line in run.log:
        if line.what == "backfill":
            found.append((line.at, clock.next(True).at))
            clock.ran(Turn(line.at))
            begin, changed, marked, ends = line.at, False, False, set()
        elif line.what == "planned":
            changed = changed or line.words[1] in ends
            ends.add(line.words[2])
        elif line.what == "backfill start":
            changed = True
        elif line.what == "marked":
            marked = True
        elif line.what == "over":
            clock.over(line.at - begin, changed, marked)
        elif line.what in ("submitted", "ended", "main start", "closed", "preempted", "requeued", "cleaned"):
            clock.ask(line.at)
    return found[1:]


def test_cycles_of_the_backfill_loop_come_when_something_has_changed() -> None:
    """The two others of tree: nodes that register are not in the log; 50 looks of a second take 50.1 s."""
    of = {name: predicted(run_of(name)) for name in RUNS}
    wrong = {name: sum(abs(at - told) > 0.1 for at, told in found) for name, found in of.items()}
    assert sum(map(len, of.values())) == 322
    assert {name: count for name, count in wrong.items() if count} == {"tree": 2}
    late = [at for (before, _), (at, told) in pairwise(of["preempt"]) if told - before > 6]
    assert len(late) == 2


def test_jobs_that_wait_for_a_leaf_switch_get_one_or_wait_their_time() -> None:
    """Those of --switches=1@60, an hour: at most max_switch_wait, 300 s. Four jobs want more than a leaf has."""
    run = run_of("tree")
    result = simulate(platform(run), workload(run), given(run)).runs
    start = dict(zip(result["job"].tolist(), result["start"].tolist(), strict=True))
    nodes = dict(zip(result["job"].tolist(), result["nodes"].tolist(), strict=True))
    wished = [job for job in run.jobs.values() if "--switches" in job.options]
    assert len(wished) > 20
    for job in wished:
        assert tuple(nodes[job.id]) == numbers(run.starts[str(job.id)][1])
        if len({node // 4 for node in nodes[job.id]}) > 1:
            assert start[job.id] + origin_of(run) - job.at >= 300
    assert sum((job.nodes or 1) > 4 for job in wished) == 4


@pytest.mark.few(2)
@pytest.mark.parametrize("name", RUNS)
def test_starts_are_near_if_turns_are_given(name: str) -> None:
    """Which turns run, and when the backfill loop does, is the model's, but for the runs that a message starts."""
    found = measure(run_of(name), by_turns(run_of(name)))
    assert found.beyond <= 0.10 * found.jobs
    assert abs(found.wait - 1) < 0.08
    assert found.order >= 0.95
    assert name not in ("fast", "shapes", "tree") or found.beyond == 0


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "beyond"), BEYOND.items())
def test_starts_are_near_if_only_phases_are_given(name: str, beyond: float) -> None:
    """A deviation of a second can decide which job is next: docs/explanation/slurm_fidelity.md has what is reached."""
    found = measure(run_of(name), free(run_of(name)), as_recorded=False)
    assert found.beyond <= beyond * found.jobs
    assert abs(found.wait - 1) < 0.05
    assert found.order >= 0.95


@pytest.mark.parametrize("name", ["defaults", "fast", "tiers", "factors", "shapes", "preempt", "tree"])
def test_priorities_are_those_that_slurmctld_gave(name: str) -> None:
    run = run_of(name)
    told = {line.words[0]: float(line.words[1]) for line in run.log if line.what == "submitted"}
    partitions = {each.name: each for each in run.partitions}
    largest = max(each.job_factor for each in run.partitions)
    default = next(each.name for each in run.partitions if each.default)
    nodes = len(run.site.nodes or ())
    found = {}
    for number, job in enumerate(run.jobs.values()):
        nice = float(job.options.get("--nice", 0))
        if run.settings.multifactor:
            part = partitions[job.options.get("-p", default)].job_factor / largest
            size = (job.nodes or 1) / nodes
            found[str(job.id)] = multifactor(Asked(size, size, 0.0, part, nice), run.settings)
        else:
            found[str(job.id)] = basic(number, nice)
    assert found == told


@pytest.mark.parametrize("name", ["shapes", "preempt"])
def test_events_of_a_run_that_is_recorded_anew_are_read_from_its_log(name: str) -> None:
    """With tasks of arrays; cycles that find no job are not among the recorded events."""
    run = run_of(name)
    found = [row[1:5] for row in events_of(run.lines()) if not row[1].startswith("cycle")]
    told = [(row["what"], row["job"], row["task"], row["nodes"]) for row in run.events]
    assert found == [row for row in told if not row[0].startswith("cycle")]
