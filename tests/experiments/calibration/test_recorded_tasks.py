"""Recorded workflows as models of their machines: hidden speeds are found, and those of WfCommons carry over."""

import attrs
import numpy as np
import pytest

from simmodel import InputError, Task, Workflow
from simmodel.experiments import RecordedTasks, calibrate
from simmodel.work.task import RecordedMachine
from tests.helpers.data_files import data_file

SPEEDS = {"a": 0.6, "b": 1.0, "c": 1.7}
USUAL = {"align": 30.0, "merge": 200.0}


def recorded(*, noise: float = 0.1, count: int = 25) -> Workflow:
    """Return tasks of two families that ran on three machines, and one of a family of its own."""
    rng = np.random.default_rng(5)
    tasks = [Task(id="first", run=50, family="split", machines=["a"], started=0)]
    for family, seconds in USUAL.items():
        for name, speed in SPEEDS.items():
            runs = seconds / speed * np.exp(noise * rng.standard_normal(count))
            tasks += [
                Task(id=f"{family}-{name}{i}", run=run, family=family, machines=[name], started=float(i))
                for i, run in enumerate(runs.tolist())
            ]
    return Workflow(tasks, machines=[RecordedMachine(name=name, cores=8) for name in SPEEDS])


def test_hidden_speeds_of_machines_are_found() -> None:
    model = RecordedTasks(workflow=recorded(), holdout=0.2)
    found = calibrate(model, model.record, model.parameters(), budget=16, holdout=0.2, separable=True)
    scale = found.values["b"]
    assert [each.verdict for each in found.identified] == ["identified"] * 3
    for name, speed in SPEEDS.items():  # relative to each other: the usual times have the scale
        assert found.values[name] / scale == pytest.approx(speed, rel=0.06)  # the means of 40 logarithms: 1.61 for c
    assert found.loss < 0.1 < 0.2 < found.loss_before
    assert found.fit.losses(found.times_after, testing=True)["loss"] < 0.11


@pytest.mark.long
def test_a_machine_may_have_a_speed_for_each_family() -> None:
    flow = recorded(noise=0.0).map(
        lambda task: attrs.evolve(task, run=task.run * 2) if task.id.startswith("merge-c") else task
    )
    model = RecordedTasks(workflow=flow, by_family=True)
    assert model.usual == {"align": 30.0, "merge": 200 / 0.85}
    found = calibrate(model, model.record, model.parameters(), budget=16, separable=True)
    assert found.values["c align"] == pytest.approx(1.7, rel=0.01)
    assert found.values["c merge"] == pytest.approx(1.0, rel=0.01)
    assert found.loss < 0.01


def test_each_task_runs_where_and_as_long_as_it_should() -> None:
    model = RecordedTasks(workflow=recorded(noise=0.0))
    jobs = model(a=0.5).tasks
    spent = dict(zip(jobs["task"].tolist(), (jobs["end"] - jobs["start"]).tolist(), strict=True))
    where = dict(zip(jobs["task"].tolist(), jobs["processor"].tolist(), strict=True))
    assert (spent["align-a0"], spent["align-b0"], spent["merge-c0"]) == pytest.approx((60, 30, 200))
    assert spent["first"] == 50  # a family that ran on one machine takes no part
    assert all(where[task.id] == task.machines[0] for task in model.workflow)


def test_tasks_that_are_held_out_have_no_say_in_the_usual_times() -> None:
    flow = recorded(noise=0.0)
    late = flow.map(lambda task: attrs.evolve(task, run=9 * task.run) if task.started >= 20 else task)
    assert RecordedTasks(workflow=late, holdout=0.2).usual == {"align": 30.0, "merge": 200.0}
    model = RecordedTasks(workflow=late, holdout=0.2)
    found = calibrate(model, model.record, model.parameters(), budget=6, holdout=0.2, separable=True, intervals=False)
    observed = found.fit.observed
    assert observed is not None
    assert all(int(str(task).split("-")[1][1:]) >= 20 for task in observed.jobs["job"][observed.held_out].tolist())
    assert observed.held_out.sum() == 30


def test_wrong_workflows_and_speeds_are_refused() -> None:
    lone = Workflow([Task(id=i, run=3, family="f", machines=["a"]) for i in range(9)])
    with pytest.raises(
        InputError, match="workflow: must have a family with run times of 3 tasks or more on each of two"
    ):
        RecordedTasks(workflow=lone)
    with pytest.raises(InputError, match="parameters: unknown speed 'd'"):
        RecordedTasks(workflow=recorded())(d=2.0)


FIGURES = {  # errors of the tasks held out: as one speed for all, one a machine, one a machine and family
    "1000genome-chameleon-16ch-100k-001": (0.269, 0.181, 0.156),
    "blast-chameleon-medium-001": (0.036, 0.033, 0.033),
    "bwa-chameleon-large-001": (0.717, 0.325, 0.325),
    "cycles-chameleon-1l-3c-12p-001": (0.432, 0.348, 0.329),
    "montage-chameleon-dss-15d-001": (0.862, 0.791, 0.674),
    "soykb-chameleon-50fastq-20ch-001": (0.291, 0.275, 0.275),
    "srasearch-chameleon-50a-003": (0.621, 0.415, 0.415),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.exhaustive) for name in FIGURES])
def test_speeds_of_recorded_machines_carry_over_to_tasks_held_out(name: str) -> None:
    path = data_file(f"wfformat/{name}.json.gz")
    errors = []
    for by_family in (False, True):
        model = RecordedTasks.read(path, by_family=by_family, holdout=0.3, least=10)
        found = calibrate(model, model.record, model.parameters(), budget=24, holdout=0.3, separable=True)
        errors += [found.fit.losses(times, testing=True)["loss"] for times in (found.times_before, found.times_after)]
    assert (errors[0], errors[1], errors[3]) == pytest.approx(FIGURES[name], abs=0.01)
    assert errors[0] == errors[2]
    print(f"\n{name}: {errors[0]:.1%}, {errors[1]:.1%}, {errors[3]:.1%}")
