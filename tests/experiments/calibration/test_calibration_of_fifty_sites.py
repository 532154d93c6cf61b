"""Fifty sites with hidden speeds and overheads are calibrated in shared simulations; the figures are in the test."""

from time import process_time

import numpy as np
import pytest

from simmodel.experiments import calibrate
from tests.helpers.calibration_cases import hidden_grid

LIMIT = 120.0  # CPU seconds in units of the sum below


def unit() -> float:
    """Return the CPU seconds of a fixed piece of Python."""
    begun = process_time()
    sum(i * i for i in range(10**7))
    return process_time() - begun


@pytest.mark.exhaustive
def test_fifty_sites_are_calibrated_in_two_minutes() -> None:
    case = hidden_grid(50, 200)
    sizes = {site.name: site.capacity for site in case.model.platform.sites}
    largest = max(sizes, key=lambda name: sizes[name])
    cores = f"sites.{largest}.hosts[0].cores"
    ranges = {**case.parameters, cores: (sizes[largest] // 4, 4 * sizes[largest], "log-integer")}
    begun = process_time()
    found = calibrate(case.model, case.record, ranges, ["walltime", "queue_time"], budget=30, holdout=0.2)
    spent = process_time() - begun
    away = {name: abs(found.values[name] / value - 1) for name, value in case.hidden.items()}
    speeds = [value for name, value in away.items() if name.endswith("speed")]
    overheads = [value for name, value in away.items() if name.endswith("mean")]
    print(
        f"\nloss {found.loss_before:.1%} -> {found.loss:.1%}; speeds within {max(speeds):.1%} (median "
        f"{np.median(speeds):.1%}), overheads within {max(overheads):.1%} (median {np.median(overheads):.1%}); "
        f"{spent:.0f} s = {spent / unit():.0f} units; {len(found.trials)} trials"
    )
    print(*found.limits, sep="\n")
    assert found.separable
    assert found.loss_before > 0.7
    assert found.loss <= 0.12
    assert max(speeds) <= 0.05
    assert max(overheads) <= 0.1
    assert [each.verdict for each in found.identified if each.name == cores] == ["flat"]
    assert any(cores in sentence for sentence in found.limits)
    assert spent / unit() < LIMIT
