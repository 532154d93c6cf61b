"""Setup costs of a machine from traces of starts and ends: found, or named as not identifiable."""

import numpy as np
import pytest

from simmodel.experiments import Calibration, calibrate
from simmodel.experiments.calibration.losses import RelativeError
from tests.helpers.calibration_cases import SETUPS, gaps, hidden_machine, with_costs


def calibrated(count: int, families: int, budget: int = 100) -> Calibration:
    """Calibrate the setup costs of a machine on the trace of that many tasks."""
    model = hidden_machine(count, families)
    ranges = dict.fromkeys(SETUPS, (0, 300))
    return calibrate(model, model.record, ranges, RelativeError(quantity="gap"), budget=budget)


def verdicts(found: Calibration) -> dict[str, str]:
    """Return the verdict on each cost."""
    return {each.name: each.verdict for each in found.identified}


def test_a_trace_without_noise_is_that_of_the_hidden_costs() -> None:
    model = hidden_machine(30, 3, noise=0.0)
    assert model(**SETUPS)["gap"] == pytest.approx(model.record["gap"], abs=1e-6)
    tasks = with_costs(model.scenario, SETUPS).run().tasks
    waited = {row["task"]: row["start"] - row["ready"] for row in tasks.rows()}
    found = gaps(tasks, model.flow)
    assert all(
        gap <= waited[task] + 1e-9 for task, gap in zip(found["task"].tolist(), found["gap"].tolist(), strict=True)
    )
    assert (found["gap"][found["class"] == "gpu"] >= SETUPS["gpu setup"] - 1e-9).all()


def test_hidden_setup_costs_are_found() -> None:
    found = calibrated(60, 3)
    assert verdicts(found) == dict.fromkeys(SETUPS, "identified")
    assert found.loss < 0.06 < 0.7 < found.loss_before
    for name, cost in SETUPS.items():
        assert found.values[name] == pytest.approx(cost, abs=5), name


@pytest.mark.long  # ridges: tests/experiments/calibration/test_identifiability.py
def test_setup_and_reconfiguration_are_known_only_together_if_no_two_tasks_are_of_one_family() -> None:
    found = calibrated(60, 0)
    assert verdicts(found) == dict.fromkeys(SETUPS, "identified") | dict.fromkeys(
        ("fpga setup", "fpga reconfiguration"), "ridged"
    )
    both = found.values["fpga setup"] + found.values["fpga reconfiguration"]
    assert both == pytest.approx(SETUPS["fpga setup"] + SETUPS["fpga reconfiguration"], rel=0.03)


@pytest.mark.long  # its short form: tests/experiments/calibration/test_identifiability.py
def test_one_reconfiguration_in_a_trace_says_nothing_of_its_cost() -> None:
    found = calibrated(60, 1)
    assert verdicts(found) == dict.fromkeys(SETUPS, "identified") | {"fpga reconfiguration": "flat"}
    assert any("fpga reconfiguration is not identifiable" in sentence for sentence in found.limits)


@pytest.mark.exhaustive
@pytest.mark.parametrize("families", [3, 0])
def test_costs_are_found_within_a_few_percent_in_a_trace_of_200_tasks(families: int) -> None:
    found = calibrated(200, families)
    print(f"\nloss {found.loss_before:.1%} -> {found.loss:.1%}")
    for each in found.identified:
        print(
            f"{each.name}: {SETUPS[each.name]} {found.values[each.name]:.1f} [{each.low:.1f}, {each.high:.1f}]", end=" "
        )
        print(each.verdict)
        if each.verdict == "identified":
            assert found.values[each.name] == pytest.approx(SETUPS[each.name], rel=0.05)
    ridged = [name for name, verdict in verdicts(found).items() if verdict == "ridged"]
    assert ridged == ([] if families else ["fpga setup", "fpga reconfiguration"])
    assert np.isfinite(found.loss)
