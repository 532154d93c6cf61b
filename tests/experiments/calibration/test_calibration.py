"""Calibration: hidden values are found, by every method, with one search a site or one for all."""

from typing import Any

import numpy as np
import pytest

from simmodel import InputError, SimmodelError
from simmodel.experiments import Calibration, calibrate
from simmodel.experiments.search_methods import SEARCHES
from tests.helpers.calibration_cases import hidden_grid

SECONDS = np.random.default_rng(1).lognormal(6, 1, 60)


def line(speed: float = 1.0, setup: float = 0.0) -> dict[str, Any]:
    """Return walltimes that are CPU times at a speed, after a setup."""
    return {"walltime": SECONDS / speed + setup}


RANGES = {"speed": (0.25, 4, "log"), "setup": (0, 200)}
RECORD = line(1.5, 60.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("method", SEARCHES)
def test_every_method_comes_near_hidden_values(method: str) -> None:
    budget = {"gp": 30, "grid": 170, "sobol": 170, "random": 170}.get(method, 80)
    found = calibrate(line, RECORD, RANGES, method=method, budget=budget)
    near = {"gp": 0.03, "cmaes": 0.02, "tpe": 0.06}.get(method, 0.1)
    assert found.loss < near
    assert found.loss_before == pytest.approx(np.abs(SECONDS - RECORD["walltime"]).sum() / RECORD["walltime"].sum())
    assert (len(found.trials), len(found.failed)) == (budget, 0)


def test_the_same_call_finds_the_same() -> None:
    first, again, other = (
        calibrate(line, RECORD, RANGES, "walltime", "cmaes", budget=25, seed=seed) for seed in (1, 1, 2)
    )
    assert first.values == again.values != other.values


@pytest.mark.long  # smaller: the other tests of the file
def test_a_search_for_each_site_shares_the_simulations() -> None:
    case = hidden_grid(3, 40, cores=(100, 300), seed=1)
    found = calibrate(case.model, case.record, case.parameters, ["walltime", "queue_time"], budget=45)
    assert found.separable
    assert found.loss < 0.12 < 0.3 < found.loss_before
    for name, value in case.hidden.items():
        assert found.values[name] == pytest.approx(value, rel=0.3), name
    joint = calibrate(case.model, case.record, case.parameters, ["walltime", "queue_time"], budget=20, separable=False)
    assert not joint.separable
    assert joint.loss > found.loss
    assert found.scenario.get("sites.S00.speed") == pytest.approx(found.values["sites.S00.speed"])


def test_a_broker_that_looks_at_all_sites_is_not_separable() -> None:
    case = hidden_grid(2, 40, cores=(20, 40), seed=1)
    model = case.model.evolve(policy="least-loaded")
    assert not calibrate(model, case.record, case.parameters, budget=5).separable


def test_a_trial_that_is_surely_worse_is_stopped_early() -> None:
    case = hidden_grid(1, 60, cores=(200, 300), seed=6)
    arguments: Any = (case.model, case.record, {"sites.S00.speed": (0.25, 4, "log")}, "walltime", "random")
    whole = calibrate(*arguments, budget=24, intervals=False)
    early = calibrate(*arguments, budget=24, intervals=False, stop_early=True)
    assert early.values == whole.values
    stopped = [trial for trial in early.trials if "stopped" in trial.outcome]
    assert 3 <= len(stopped) < 20
    for trial in stopped:  # what was known when it stopped bounds its loss
        assert trial.outcome["loss"] <= whole.trials[trial.number].outcome["loss"] * (1 + 1e-12)
    assert f"24 trials, {len(stopped)} stopped early" in early.report()
    with pytest.raises(InputError, match="stop_early: must be False with a function"):
        calibrate(line, RECORD, RANGES, stop_early=True)
    with pytest.raises(InputError, match="stop_early: must be False with the loss walltime-quantiles"):
        calibrate(case.model, case.record, case.parameters, "walltime-quantiles", stop_early=True)


def test_trials_that_fail_are_counted() -> None:
    def model(speed: float = 1.0) -> dict[str, Any]:
        if speed > 2:
            raise ValueError("too fast")
        return line(speed)

    found = calibrate(model, line(1.5), {"speed": (0.5, 4)}, method="random", budget=40)
    assert 0 < len(found.failed) < 40
    assert "too fast" in found.failed["error"][0]
    assert found.values["speed"] == pytest.approx(1.5, abs=0.2)
    with pytest.raises(SimmodelError, match=r"all 5 trials failed: .*too fast"):
        calibrate(model, line(1.5), {"speed": (2.5, 4)}, budget=5)


def test_a_function_may_be_the_loss() -> None:
    found = calibrate(lambda x, y: (x - 3) ** 2 + (y - 1) ** 2, None, {"x": (0, 9), "y": (0, 9)}, None, budget=150)
    assert (found.values["x"], found.values["y"]) == (pytest.approx(3, abs=0.05), pytest.approx(1, abs=0.05))
    squares = calibrate(line, RECORD, RANGES, lambda got, record: ((got["walltime"] - record["walltime"]) ** 2).mean())
    assert squares.values["speed"] == pytest.approx(1.5, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "cma"}, "method: unknown method 'cma'; did you mean 'cmaes'?"),
        ({"budget": 0}, "budget: must be a whole number >= 1, got 0"),
        ({"loss": "waltime"}, "loss: unknown loss 'waltime'; did you mean 'walltime'?"),
        ({"loss": {"walltime": -1}}, "loss.walltime: must be a number > 0, got -1"),
        ({"loss": lambda got, record: float("nan")}, "all 3 trials failed: loss: is nan"),
        ({"parameters": {"sped": (1, 2)}}, "parameters: unknown keyword 'sped'; did you mean 'speed'?"),
        ({"parameters": {"speed": (2, 1)}}, "speed: must have low < high, got 2 and 1"),
        ({"record": {"walltime": [1.0]}}, "model: must return as many jobs as the record has (1), got 60"),
        ({"record": {"runtime": [1.0]}}, "record: unknown quantity 'walltime'; known quantities: runtime"),
        ({"record": {"walltime": [np.nan] * 60}}, "record: must have jobs with a known walltime, got none"),
        ({"record": None}, "record: must be given with a model that is a function"),
        ({"holdout": 1.5}, "holdout: must be a share between 0 and 1, or a number of jobs below 60, got 1.5"),
        ({"start": {"sped": 1}}, "start: unknown parameter 'sped'; did you mean 'speed'?"),
        ({"method": "grid"}, "budget: must be at least 5 for a grid of 2 parameters, got 3"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"record": RECORD, "parameters": RANGES, "budget": 3, **arguments}
    with pytest.raises(SimmodelError) as caught:
        calibrate(line, given.pop("record"), given.pop("parameters"), **given)
    assert sentence in str(caught.value)


def test_a_record_must_have_the_sites_and_jobs_of_the_model() -> None:
    case = hidden_grid(2, 10, seed=2)
    some = case.record.where(case.record["site"] == "S00")
    with pytest.raises(InputError, match=r"parameters, sites.S01.speed: the record has no jobs of 'S01' to fit it to"):
        calibrate(case.model, some, case.parameters)
    others = case.record.with_columns(site=np.full(len(case.record), "X"))
    with pytest.raises(InputError, match="record: has no jobs of the sites of the parameters: it has 'X', not 'S00'"):
        calibrate(case.model, others, case.parameters)
    with pytest.raises(InputError, match="20 of its 20 jobs are not in the simulation, such as 1001"):
        calibrate(case.model, case.record.with_columns(job=case.record["job"] + 1000), case.parameters)
    with pytest.raises(InputError, match="unknown name 'S07'"):
        calibrate(case.model, case.record, {"sites.S07.speed": (0.5, 2)})


def test_its_repr_says_the_loss() -> None:
    found: Calibration = calibrate(line, RECORD, RANGES, budget=10)
    assert repr(found) == f"<Calibration of 2 parameters: loss {found.loss:.4g}, 10 trials>"
    assert found.summary().splitlines()[0].split()[:3] == ["parameter", "before", "after"]
