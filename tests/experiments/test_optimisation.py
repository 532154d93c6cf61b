"""Optimisation: the front of a search against that of all points, and runs that are kept, joined and continued."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import InputError, Scenario, SimmodelError
from simmodel.experiments import Study, optimise
from simmodel.metrics import hypervolume
from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec

MACHINE = MachineSpec(
    pools=[MemoryPoolSpec(name="ram")],
    architectures=[ArchitectureSpec(name="cpu"), ArchitectureSpec(name="gpu", performance=(2, 9))],
    processors=[
        ProcessorSpec(name="cpu", type="CPUCore", architecture="cpu", pool="ram", idle_power=5, load_power=15),
        ProcessorSpec(name="gpu", type="GPU", architecture="gpu", pool="ram", setup=5, idle_power=25, load_power=200),
    ],
)
POLICIES = ["hrr", "heft", "peft", "min-min", "max-min"]


def cost(_: object, values: dict[str, Any]) -> float:
    return float(values["processors.cpu.count"] + 6 * values["processors.gpu.count"])


def share_of_front(tasks: int, choices: dict[str, Any], budget: int, seed: int, population: int = 30) -> float:
    """Return the hypervolume of a search as a share of that of all points, and check what all points agree on."""
    model = Scenario(platform=MACHINE, workload=f"layered:n={tasks},fat=0.6")
    objectives = {"makespan": "makespan", "energy": "energy", "cost": cost}
    every = optimise(model, choices, objectives, "all")
    found = optimise(model, choices, objectives, budget=budget, seed=seed, population=population)
    assert len(found.runs) == budget
    losses = np.column_stack([every.front[name] for name in objectives])
    corner = losses.max(axis=0) + 0.1 * np.ptp(losses, axis=0)  # a little beyond the worst of the front
    known = {tuple(row[name] for name in choices): row for row in every.runs.rows()}
    for row in found.runs.rows():
        assert known[tuple(row[name] for name in choices)]["energy"] == row["energy"]
    return found.hypervolume(corner) / every.hypervolume(corner)


@pytest.mark.long  # smaller: the other tests of the file
def test_a_search_finds_most_of_the_front_of_a_small_space() -> None:
    choices = {"processors.cpu.count": (1, 8, "integer"), "processors.gpu.count": [1, 2, 3, 4], "policy": POLICIES[1:4]}
    assert share_of_front(12, choices, 48, seed=1, population=12) > 0.8


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [0, 1])
def test_300_runs_reach_95_percent_of_the_front_of_3000_machines_and_policies(seed: int) -> None:
    choices = {
        "processors.cpu.count": (1, 15, "integer"),
        "processors.gpu.count": (1, 8, "integer"),
        "processors.gpu.setup": [0, 2, 5, 10, 20],
        "policy": POLICIES,
    }
    assert math.prod((15, 8, 5, 5)) == 3000
    assert share_of_front(30, choices, 300, seed) >= 0.95


# ---------------------------------------------------------------------- functions with a known front


def schaffer(x: float, shift: int = 0) -> dict[str, float]:
    """Return two parabolas: the front is where x is from 0 to 2."""
    return {"left": x**2, "right": (x - 2) ** 2 + shift}


def test_the_front_of_schaffers_function_is_found() -> None:
    found = optimise(schaffer, {"x": (-10, 10), "shift": [0, 1]}, ["left", "right"], budget=240, population=20)
    front = found.front
    near = (front["x"] > -0.1) & (front["x"] < 2.1)
    assert near.mean() > 0.9
    assert (front["shift"] == 0).mean() > 0.9
    assert found.hypervolume([5, 5]) > 0.95 * (25 - 8 / 3 - 1)  # under the curve: 8/3 from x = 0 to 2; beside it: 1
    assert found.values(0) == {"x": front["x"][0], "shift": 0}
    assert "240 runs" in repr(found)


def test_maximised_objectives_are_those_of_their_negatives() -> None:
    def model(x: int, y: int) -> dict[str, float]:
        return {"gain": float(x * (7 - x) + y), "price": float(x + 2 * y)}

    choices = {"x": (0, 7, "integer"), "y": (0, 3, "integer")}
    fronts = [
        optimise(model, choices, ["-gain", "price"], "all"),
        optimise(model, choices, ["gain", "price"], "all", maximise=["gain"]),
        optimise(model, choices, {"gain": "-gain", "price": "price"}, "all"),
        optimise(model, choices, {"gain": lambda found: -found["gain"], "price": "price"}, "all"),
    ]
    numbers = [found.front["number"].tolist() for found in fronts]
    assert numbers[0] == numbers[1] == numbers[2] == numbers[3]
    assert fronts[0].front["gain"].tolist() == (-fronts[3].front["gain"]).tolist()
    assert fronts[0].hypervolume([0, 10]) == fronts[3].hypervolume([0, 10])
    assert "more is better" in fronts[0].plot().axes[0].get_xlabel()


def test_no_point_is_run_twice_and_a_space_ends() -> None:
    calls: list[tuple[int, int]] = []

    def model(x: int, y: int) -> dict[str, float]:
        calls.append((x, y))
        return {"a": float(x), "b": float(-x - y)}

    choices = {"x": (0, 3, "integer"), "y": [0, 1, 2]}
    for method in ("nsga-ii", "random", "all"):
        calls.clear()
        found = optimise(model, choices, ["a", "b"], method, budget=100, population=5)
        assert sorted(calls) == sorted({*calls})
        assert len(calls) == len(found.runs) == 12


# ---------------------------------------------------------------------- scenarios, files and failures


def test_each_point_of_a_front_is_a_scenario() -> None:
    model = Scenario(platform=16, workload="probe-4", policy="fcfs")
    choices = {"policy": ["fcfs", "easy"], "partitions[0].processors": (4, 12, "integer")}

    def size(result: Any) -> float:
        return float(result.processors)

    found = optimise(model, choices, ["wait_mean", size], budget=12, population=4)
    for i, row in enumerate(found.front.rows()):
        again = found.scenario(i)
        assert again.platform.processors == row["partitions[0].processors"] == row["size"]
        assert again.run().metrics()["wait_mean"] == row["wait_mean"]
    with pytest.raises(InputError, match="point: must be below"):
        found.scenario(1000)
    with pytest.raises(InputError, match="a function was optimised"):
        optimise(schaffer, {"x": (0, 1)}, ["left"], budget=2).scenario(0)


def test_a_stopped_search_goes_on_where_it_was(tmp_path: Path) -> None:
    calls: list[float] = []

    def model(x: float, stop: int = -1) -> dict[str, float]:
        calls.append(x)
        if len(calls) == 17:
            raise KeyboardInterrupt
        return schaffer(x)

    arguments: Any = (model, {"x": (-5, 5)}, ["left", "right"])
    whole = optimise(schaffer, {"x": (-5, 5)}, ["left", "right"], budget=45, population=10)
    file = tmp_path / "search.sqlite"
    with pytest.raises(KeyboardInterrupt):
        optimise(*arguments, budget=30, population=10, study=file)
    assert Study(file).counts["finished"] == 16
    optimise(*arguments, budget=30, population=10, study=file)
    assert len(calls) == 31
    found = optimise(*arguments, budget=45, population=10, study=file)
    assert len(calls) == 46
    assert found.runs["x"].tolist() == whole.runs["x"].tolist()
    with pytest.raises(InputError, match="is a study with another objectives"):
        optimise(model, {"x": (-5, 5)}, ["left"], budget=45, population=10, study=file)


def test_an_executor_changes_nothing() -> None:
    arguments: Any = (schaffer, {"x": (-5, 5), "shift": [0, 1]}, ["left", "right"])
    here = optimise(*arguments, budget=30, population=8)
    with ThreadPoolExecutor(3) as threads:
        there = optimise(*arguments, budget=30, population=8, executor=threads)
    assert here.runs["x"].tolist() == there.runs["x"].tolist()


def test_runs_that_fail_are_counted() -> None:
    def model(x: int) -> dict[str, float]:
        return {"a": 1 / x, "b": float(x)}

    found = optimise(model, {"x": (0, 20, "integer")}, ["a", "b"], budget=21, population=6)
    assert (len(found.runs), len(found.failed)) == (20, 1)
    assert "ZeroDivisionError" in found.failed["error"][0]
    assert repr(found).endswith("20 runs, 1 failed>")
    with pytest.raises(SimmodelError, match="all 3 runs failed: ZeroDivisionError"):
        optimise(lambda x: 1 / 0, {"x": [1, 2, 3]}, ["value"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "nsga"}, "method: unknown method 'nsga'; did you mean 'nsga-ii'?"),
        ({"budget": 0}, "budget: must be a whole number >= 1, got 0"),
        ({"population": 1}, "population: must be a whole number >= 2, got 1"),
        ({"objectives": []}, "objectives: must be at least one, got none"),
        ({"objectives": None}, "objectives: must be at least one, got none"),
        ({"objectives": ["left", "-left"]}, "objectives: duplicate name 'left'"),
        ({"maximise": ["lef"]}, "maximise: unknown objective 'lef'; did you mean 'left'?"),
        ({"choices": {"x": [object(), object()]}}, "x: choices: must be names, files or numbers"),
        (
            {"choices": {"x": (0, 1)}, "method": "all"},
            "x: must be choices or whole numbers for method 'all', got linear",
        ),
        ({"choices": {}}, "parameters: must be at least one, got none"),
        ({"choices": {"y": (0, 1)}}, "parameters: unknown keyword 'y'"),
        ({"objectives": ["letf"]}, "unknown metric 'letf'; did you mean 'left'?"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"choices": {"x": (-5, 5)}, "objectives": ["left", "right"], "budget": 3, **arguments}
    with pytest.raises(SimmodelError) as caught:
        optimise(schaffer, given.pop("choices"), given.pop("objectives"), **given)
    assert sentence in str(caught.value)


def test_a_plot_shows_runs_and_front() -> None:
    found = optimise(schaffer, {"x": (-5, 5), "shift": [0, 1]}, ["left", "right"], budget=20, population=8)
    axes = found.plot(colour="shift").axes[0]
    assert axes.get_title(loc="left") == "Pareto front"
    assert len(found.plot(["right", "left"], title="").axes[0].lines) == 3
    with pytest.raises(InputError, match="unknown objective 'up'"):
        found.plot(["left", "up"])
    with pytest.raises(InputError, match="must be two to draw, got 1"):
        found.plot(["left"])
    with pytest.raises(InputError, match="colour: unknown choice 'z'"):
        found.plot(colour="z")
    assert hypervolume([[1, 1]], [2, 2]) == 1
