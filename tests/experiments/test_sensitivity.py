"""Sensitivity: indices against the closed forms of functions, screening, and models that are simulated."""

import math
from pathlib import Path

import numpy as np
import pytest

from simmodel import InputError, Scenario
from simmodel.experiments import Study, sensitivity

# ---------------------------------------------------------------------- functions with closed forms


def ishigami(x1: float, x2: float, x3: float) -> float:
    return math.sin(x1) + 7 * math.sin(x2) ** 2 + 0.1 * x3**4 * math.sin(x1)


ANGLES = dict.fromkeys(("x1", "x2", "x3"), (-math.pi, math.pi))


def ishigami_indices() -> tuple[list[float], list[float], float]:
    """Return first order and total indices, and that of the pair of x1 and x3."""
    a, b = 7.0, 0.1
    first = (1 + b * math.pi**4 / 5) ** 2 / 2
    second = a**2 / 8
    pair = b**2 * math.pi**8 * 8 / 225
    variance = first + second + pair
    firsts, totals = [first, second, 0.0], [first + pair, second, pair]
    return [each / variance for each in firsts], [each / variance for each in totals], pair / variance


WEIGHTS = (0.0, 1.0, 4.5, 9.0, 99.0, 99.0, 99.0, 99.0)


def sobol_g(**x: float) -> float:
    return math.prod((abs(4 * value - 2) + a) / (1 + a) for value, a in zip(x.values(), WEIGHTS, strict=True))


UNIT = {f"x{i}": (0.0, 1.0) for i in range(len(WEIGHTS))}


def sobol_g_indices() -> tuple[list[float], list[float]]:
    parts = [1 / (3 * (1 + a) ** 2) for a in WEIGHTS]
    whole = math.prod(1 + part for part in parts)
    totals = [part * whole / (1 + part) / (whole - 1) for part in parts]
    return [part / (whole - 1) for part in parts], totals


def test_sobol_indices_of_ishigami_are_those_of_its_closed_form() -> None:
    firsts, totals, pair = ishigami_indices()
    found = sensitivity(ishigami, ANGLES, method="sobol", samples=1024, pairs=True)
    assert found.table["first"].tolist() == pytest.approx(firsts, abs=0.02)
    assert found.table["total"].tolist() == pytest.approx(totals, abs=0.02)
    rows = {(row["first"], row["second"]): row for row in found.pairs.rows()}
    assert rows["x1", "x3"]["index"] == pytest.approx(pair, abs=0.02)
    assert rows["x1", "x2"]["index"] == pytest.approx(0, abs=0.02)
    for row, first, total in zip(found.table.rows(), firsts, totals, strict=True):
        assert row["first_low"] <= first <= row["first_high"]
        assert row["total_low"] <= total <= row["total_high"]
    assert len(found.runs) == 1024 * (2 * 3 + 2)


def test_sobol_indices_of_sobols_g_are_those_of_its_closed_form() -> None:
    firsts, totals = sobol_g_indices()
    found = sensitivity(sobol_g, UNIT, method="sobol", samples=1024)
    assert found.table["first"].tolist() == pytest.approx(firsts, abs=0.02)
    assert found.table["total"].tolist() == pytest.approx(totals, abs=0.02)
    assert found.influential() == ["x0", "x1"]


def test_morris_screens_the_parameters_that_matter() -> None:
    found = sensitivity(sobol_g, UNIT, samples=30)
    assert found.influential() == ["x0", "x1", "x2", "x3"]  # x4 to x7 move it by a hundredth
    assert found.influential(least=0.3) == ["x0", "x1"]
    angles = sensitivity(ishigami, ANGLES, samples=60)
    rows = {row["parameter"]: row for row in angles.table.rows()}
    assert rows["x3"]["mu_star"] > 1  # no first-order index, but it interacts
    assert abs(rows["x3"]["mu"]) < rows["x3"]["mu_star"] / 2
    assert rows["x3"]["sigma"] > rows["x3"]["mu_star"]


def test_morris_effects_of_a_linear_function_are_its_slopes() -> None:
    found = sensitivity(lambda a, b, c: 5 * a - 2 * b, {"a": (0, 1), "b": (0, 2), "c": (1, 100, "log")}, samples=4)
    assert found.table["mu_star"].tolist() == pytest.approx([5, 4, 0])
    assert found.table["mu"].tolist() == pytest.approx([5, -4, 0])
    assert found.table["sigma"].tolist() == pytest.approx([0, 0, 0], abs=1e-9)


def test_groups_are_moved_together() -> None:
    def model(a: float, b: float, c: float) -> float:
        return a * b + c

    ranges = dict.fromkeys("abc", (0, 1))
    found = sensitivity(model, ranges, method="sobol", groups={"pair": ["a", "b"]})
    rows = {row["parameter"]: row["first"] for row in found.table.rows()}
    variance = 1 / 9 - 1 / 16 + 1 / 12
    assert rows == pytest.approx({"pair": (1 / 9 - 1 / 16) / variance, "c": 1 / 12 / variance}, abs=0.05)
    assert sensitivity(model, ranges, groups={"pair": ["a", "b"]}).parameters == ["pair", "c"]


def test_an_output_that_nothing_moves_has_no_influence() -> None:
    for method in ("morris", "sobol"):
        found = sensitivity(lambda x, y: 3.0, {"x": (0, 1), "y": (0, 1)}, method=method, samples=8)
        assert found.influential() == []


# ---------------------------------------------------------------------- simulated models


def test_a_scenario_is_moved_by_its_paths() -> None:
    small = Scenario(platform=8, workload="probe-4", policy="easy")
    ranges = {"partitions[0].processors": (4, 16, "integer"), "policy": ["fcfs", "easy"], "seed": (0, 5, "integer")}
    found = sensitivity(small, ranges, ["wait_mean", "makespan"], samples=6)
    assert found.outputs == ["wait_mean", "makespan"]
    assert "seed" not in found.influential("wait_mean")
    assert found.influential("makespan")[0] == "partitions[0].processors"
    assert len(found.runs) == 6 * 4
    with pytest.raises(InputError, match="unknown metric 'wait_maen'; did you mean 'wait_mean'"):
        sensitivity(small, ranges, "wait_maen", samples=2)


def test_runs_that_a_file_has_are_not_made_again(tmp_path: Path) -> None:
    calls: list[float] = []

    def model(x: float, y: float) -> float:
        calls.append(x)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return x + 2 * y

    ranges, file = {"x": (0, 1), "y": (0, 1)}, tmp_path / "runs.sqlite"
    with pytest.raises(KeyboardInterrupt):
        sensitivity(model, ranges, samples=10, study=file)
    counts = Study(file).counts
    assert counts == {"queued": counts["queued"], "running": 0, "finished": 6, "failed": 0}
    found = sensitivity(model, ranges, samples=10, study=file)
    assert len(calls) == 7 + counts["queued"] + 1  # one is made again, to see whether the model is random
    assert found.table["mu_star"].tolist() == pytest.approx([1, 2])
    assert sensitivity(model, ranges, samples=10, study=file).table["mu_star"].tolist() == pytest.approx([1, 2])
    assert len(calls) == 7 + counts["queued"] + 1
    with pytest.raises(InputError, match="is a study with another design"):
        sensitivity(model, ranges, samples=20, study=file)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "moris"}, "method: unknown method 'moris'; did you mean 'morris'?"),
        ({"samples": 1}, "samples: must be a whole number >= 2, got 1"),
        ({"method": "sobol", "samples": 100}, "samples: must be a power of 2 for Sobol's method, got 100"),
        ({"groups": {"g": ["x", "z"]}}, "groups: unknown parameter 'z'"),
        ({"groups": {"g": ["x"], "h": ["x"]}}, "groups: x must be in one group, got g and h"),
        ({"level": 1}, "level: must be between 0 and 1"),
        ({"parameters": {"x": (1, 0)}}, "x: must have low < high"),
        ({"parameters": {"q": (0, 1)}}, "parameters: unknown keyword 'q'"),
        ({"outputs": 3}, "outputs: must be"),
        ({"outputs": []}, "outputs: must be at least one, got none"),
        ({"outputs": ["value", "value"]}, "outputs: duplicate name 'value'"),
        ({"outputs": {"odd": lambda x: math.nan}}, "odd: must be a number in all runs"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict, sentence: str) -> None:
    given = {"parameters": {"x": (0, 1), "y": (0, 1)}, **arguments}
    with pytest.raises(InputError) as caught:
        sensitivity(lambda x, y: x + y, **given)
    assert sentence in str(caught.value)


def test_plots_show_the_most_influential_parameter_first() -> None:
    found = sensitivity(ishigami, ANGLES, samples=8)
    figure = found.plot()
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == found.of()["parameter"].tolist()
    assert len(found.plot_effects(title="Effects").axes[0].texts) == 4
    grouped = sensitivity(ishigami, ANGLES, samples=8, groups={"g": ["x1", "x2"]})
    assert np.isnan(grouped.table["sigma"][0])
    assert " ± " in grouped.summary().splitlines()[1]
    tiny = sensitivity(lambda x, y: 3 * x + 1e-14 * y, {"x": (0, 1), "y": (0, 1)}).summary()
    assert tiny.splitlines()[2].split() == ["y", "0", "0"]  # the rounding of sums
    grouped.plot_effects()
    both = sensitivity(ishigami, ANGLES, method="sobol", samples=16)
    assert len(both.plot().axes[0].patches) == 6
    with pytest.raises(InputError, match="Morris' method"):
        both.plot_effects()


def test_noise_is_not_influential() -> None:
    named = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)

        def noisy(x: float, y: float, rng: np.random.Generator = rng, effect: float = 6.0 * (seed % 2)) -> float:
            return effect * x + float(rng.standard_normal())

        found = sensitivity(noisy, {"x": (0, 1), "y": (0, 1)}, seed=seed)
        assert (found.table["mu_star_low"] >= 0).all()
        assert found.noise["value"] > 1
        assert "(noise)" in found.summary()
        assert not seed % 2 or "x" in found.influential()
        named += len(set(found.influential()) - ({"x"} if seed % 2 else set()))
    assert named <= 6  # of 60 that have no effect: 5 % each, and luck


def test_a_function_that_is_not_random_is_run_once_more_and_has_no_noise() -> None:
    calls = []

    def counted(x: float, y: float) -> float:
        calls.append(x)
        return x

    found = sensitivity(counted, {"x": (0, 1), "y": (0, 1)}, samples=5)
    assert (len(calls), found.noise) == (16, {"value": 0.0})


@pytest.mark.parametrize("method", ["morris", "sobol"])
def test_two_calls_give_the_same_intervals(method: str) -> None:
    one, two = (sensitivity(ishigami, ANGLES, method=method, samples=8) for _ in range(2))
    assert repr(list(one.table.rows())) == repr(list(two.table.rows()))
