"""What a calibration says unasked: intervals, parameters that the record cannot identify, queues it cannot explain."""

import csv
import gzip
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, load_workload
from simmodel.experiments import Calibration, calibrate
from tests.helpers.calibration_cases import hidden_grid
from tests.helpers.data_files import data_file

RNG = np.random.default_rng(4)
SECONDS = RNG.lognormal(6, 1, 120)
NOISE = np.exp(0.1 * RNG.standard_normal(120))


def line(speed: float = 1.0, setup: float = 0.0, cores: int = 5, efficiency: float = 1.0) -> dict[str, Any]:
    """Return walltimes on which the number of cores has no effect, and efficiency the same as speed."""
    return {"walltime": SECONDS / speed / efficiency + setup}


RECORD = {"walltime": line(1.5, 60.0)["walltime"] * NOISE}


def test_intervals_are_near_the_hidden_values_and_a_flat_parameter_is_named() -> None:
    ranges = {"speed": (0.25, 4, "log"), "setup": (0, 200), "cores": (1, 100, "log-integer")}
    found = calibrate(line, RECORD, ranges, budget=70, level=0.99)
    speed, setup, cores = found.identified
    assert 1.3 < speed.low < 1.55 < speed.high < 1.8
    assert 20 < setup.low < 60 < setup.high < 120
    assert (speed.verdict, setup.verdict) == ("identified", "identified")
    assert (cores.verdict, cores.low, cores.high) == ("flat", 1, 100)
    assert "cores is not identifiable: the record does not tell its values from 1 to 100 apart" in found.limits
    assert found.report().endswith(found.limits[-1])


def test_two_parameters_that_make_up_for_each_other_are_named() -> None:
    found = calibrate(line, RECORD, {"speed": (0.25, 4, "log"), "efficiency": (0.25, 4, "log")}, budget=60)
    assert [each.verdict for each in found.identified] == ["ridged", "ridged"]
    assert found.limits[0].startswith("speed is known only together with efficiency: speed * efficiency = 1.")


def test_the_refined_values_are_no_worse_than_the_best_trial() -> None:
    ranges = {"speed": (0.25, 4, "log"), "setup": (0, 200)}
    rough = calibrate(line, RECORD, ranges, method="random", budget=20, intervals=False)
    fine = calibrate(line, RECORD, ranges, method="random", budget=20, intervals=True)
    assert rough.loss == min(trial.outcome["loss"] for trial in rough.trials)
    assert fine.loss < rough.loss
    assert not rough.identified


def test_values_that_are_far_off_in_one_direction_alone_are_refined() -> None:
    def model(speed: float = 1.0, overhead: float = 60.0) -> dict[str, Any]:
        return {"walltime": SECONDS / speed, "queue_time": np.full(120, overhead)}

    record = {name: times * NOISE for name, times in model(1.5, 75.0).items()}
    ranges = {"speed": (0.25, 4, "log"), "overhead": (30, 3600, "log")}
    begin = {"speed": 1.5, "overhead": 1200.0}
    found = calibrate(model, record, ranges, ["walltime", "queue_time"], budget=1, start=begin, intervals=True)
    assert found.values["speed"] == pytest.approx(1.5, rel=0.04)
    assert found.values["overhead"] == pytest.approx(75, rel=0.04)


def test_intervals_cover_as_often_as_they_say() -> None:
    inside = 0
    for seed in range(20):
        noise = np.exp(0.1 * np.random.default_rng(seed).standard_normal(120))
        record = {"walltime": line(1.5)["walltime"] * noise}
        [speed] = calibrate(line, record, {"speed": (1, 2)}, budget=8, seed=seed, level=0.9).identified
        inside += speed.low <= 1.5 <= speed.high
    assert 14 <= inside <= 20  # of a binomial distribution of 20 draws and 0.9: all but 1 %


def test_the_cores_of_a_site_that_never_fills_cannot_be_known() -> None:
    case = hidden_grid(2, 30, cores=(400, 800), seed=3)
    ranges = {"sites.S00.speed": (0.25, 4, "log"), "sites.S00.hosts[0].cores": (300, 4000, "log-integer")}
    found = calibrate(case.model, case.record, ranges, budget=18)
    assert [each.verdict for each in found.identified] == ["identified", "flat"]
    assert any("sites.S00.hosts[0].cores is not identifiable" in sentence for sentence in found.limits)


# ---------------------------------------------------------------------- 67 jobs of BNL


def bnl(loss: str, **options: Any) -> Calibration:
    """Calibrate a scale of CPU times and an overhead on the single-core jobs of BNL."""
    log = load_workload(data_file("cgsim/panda_BNL_jan2025_67.csv.gz"))
    single = log.where(log["processors"] == 1)

    def model(scale: float = 1.0, overhead: float = 0.0) -> dict[str, Any]:
        return {"job": single["job"], "walltime": single["run"] * scale + overhead}

    return calibrate(model, single, {"scale": (0.5, 2, "log"), "overhead": (0, 600)}, loss, budget=150, **options)


def best_line(cpu: Any, wall: Any) -> tuple[float, float]:
    """Return the scale and the overhead with the least mean of ratios: some two jobs lie on the best line."""
    best = (np.inf, 1.0, 0.0)
    for i in range(len(cpu)):
        for j in range(i):
            if cpu[i] != cpu[j]:
                scale = (wall[i] - wall[j]) / (cpu[i] - cpu[j])
                overhead = wall[i] - scale * cpu[i]
                best = min(best, (float((np.abs(cpu * scale + overhead - wall) / wall).mean()), scale, overhead))
    return best[1:]


def test_what_the_jobs_of_bnl_tell() -> None:
    sums, ratios = bnl("walltime"), bnl("walltime-ratios")
    assert int(sums.errors["jobs"][0]) == 65
    assert round(sums.loss_before, 3) == 0.038
    assert sums.loss < 1.05 * 0.036  # that of logarithms, which may be a little larger than the least one:
    assert round(bnl("walltime", method="cmaes", intervals=False).loss, 3) == 0.036
    assert (round(ratios.loss_before, 3), round(ratios.loss, 3)) == (0.081, 0.072)
    assert any("BNL: at most 4 of the 65 jobs run at once" in sentence for sentence in ratios.limits)
    assert any("described, not explained" in sentence for sentence in ratios.limits)


def test_a_fit_to_the_first_jobs_of_bnl_does_not_carry_over_to_the_last() -> None:
    found = bnl("walltime-ratios", holdout=20)
    row = next(found.errors.rows())
    assert row["jobs"] == 45
    assert round(row["walltime-ratios before, held out"], 3) == 0.046
    assert row["walltime-ratios after, held out"] == pytest.approx(0.145, abs=0.002)
    assert any("does not carry over to the jobs held out: their loss rises from 0.0462" in s for s in found.limits)
    observed = found.fit.observed
    assert observed is not None
    log = load_workload(data_file("cgsim/panda_BNL_jan2025_67.csv.gz"))
    first = log.where(np.isin(log["job"], observed.jobs["job"][~observed.held_out]))
    scale, overhead = best_line(first["run"], first["recorded_end"] - first["recorded_start"])
    assert (found.values["scale"], found.values["overhead"]) == (
        pytest.approx(scale, rel=0.01),
        pytest.approx(overhead, rel=0.1),
    )


def bnl_columns() -> tuple[Any, Any]:
    """Return the CPU times and the walltimes of the single-core jobs of BNL, read without simmodel."""
    with gzip.open(data_file("cgsim/panda_BNL_jan2025_67.csv.gz"), "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["corecount"] == "1"]
    begin, end = (np.array([row[name] for row in rows], "datetime64[s]") for name in ("starttime", "endtime"))
    return np.array([float(row["cpuconsumptiontime"]) for row in rows]), (end - begin).astype(float)


def test_numpy_alone_finds_the_same_figures_of_bnl() -> None:
    cpu, wall = bnl_columns()
    scale, overhead = (each[..., None] for each in np.meshgrid(np.linspace(0.95, 1.05, 401), np.arange(0, 100, 0.5)))
    away = np.abs(scale * cpu + overhead - wall)
    assert round(np.abs(cpu - wall).sum() / wall.sum(), 3) == 0.038
    assert round((np.abs(cpu - wall) / wall).mean(), 3) == 0.081
    assert round((away.sum(axis=-1) / wall.sum()).min(), 3) == 0.036
    assert round((away / wall).mean(axis=-1).min(), 3) == 0.072
    fitted, held = ((away / wall)[..., jobs].mean(axis=-1) for jobs in (slice(45), slice(45, None)))
    assert round((np.abs(cpu - wall) / wall)[45:].mean(), 3) == 0.046
    # The best line leaves 14.5 % on the other jobs. Lines that fit the first 45 to 0.002 points of their 4.58 %
    # as well leave 14.4 to 14.6 %: the last digit is that of the search. One job of 22 s makes up 12 points of it.
    as_good = held[fitted <= fitted.min() + 2e-5]
    assert (round(as_good.min(), 3), round(as_good.max(), 3)) == (0.144, 0.146)
    best = np.unravel_index(np.argmin(fitted), fitted.shape)
    assert (wall[45:].min(), round((away / wall)[best][45:].max() / 20, 2)) == (22, 0.12)


def test_all_jobs_of_bnl_have_too_few_of_several_cores() -> None:
    log = load_workload(data_file("cgsim/panda_BNL_jan2025_67.csv.gz"))

    def model(scale: float = 1.0) -> dict[str, Any]:
        return {"job": log["job"], "walltime": log["run"] * scale}

    found = calibrate(model, log, {"scale": (0.05, 2, "log")}, budget=30)
    assert "BNL multi: 2 jobs, too few to trust the error or the fit" in found.limits


def test_a_function_as_the_loss_has_no_errors_by_site() -> None:
    found = calibrate(lambda x: x**2, None, {"x": (-1, 1)}, None, budget=5)
    with pytest.raises(InputError, match="loss: must be a ready one for errors by site, got a function"):
        _ = found.errors
    assert found.limits == []
