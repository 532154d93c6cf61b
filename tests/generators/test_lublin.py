"""The Lublin-Feitelson model against figures of the authors' own program."""

import attrs
import numpy as np
import pytest

from simmodel.generators.lublin_feitelson import BATCH, INTERACTIVE, TYPELESS, bucket_weights, lublin

# Half-hours from midnight, of the authors' formula
WEIGHTS = {
    "batch": """0.5462 0.5011 0.4589 0.4194 0.3826 0.3483 0.3166 0.2873 0.2602 0.2354 0.3472 0.4484 0.5590 0.6760 0.7964
        0.9172 1.0353 1.1480 1.2531 1.3484 1.4326 1.5044 1.5631 1.6085 1.6405 1.6594 1.6659 1.6607 1.6448 1.6190 1.5846
        1.5427 1.4944 1.4408 1.3830 1.3219 1.2586 1.1938 1.1283 1.0628 0.9980 0.9342 0.8720 0.8116 0.7534 0.6977 0.6445
        0.5939""",
    "interactive": """0.5135 0.4588 0.4087 0.3629 0.3213 0.2836 0.2497 0.2193 0.1921 0.1679 0.1187 0.1797 0.2576 0.3524
        0.4630 0.5874 0.7225 0.8647 1.0100 1.1542 1.2931 1.4229 1.5403 1.6427 1.7280 1.7949 1.8426 1.8711 1.8810 1.8732
        1.8491 1.8103 1.7587 1.6962 1.6248 1.5463 1.4626 1.3755 1.2865 1.1970 1.1082 1.0212 0.9368 0.8557 0.7784 0.7054
        0.6368 0.5728""",
    "typeless": """0.5078 0.4561 0.4085 0.3649 0.3250 0.2888 0.2560 0.2263 0.1997 0.1758 0.1649 0.2389 0.3293 0.4351
        0.5543 0.6840 0.8208 0.9609 1.1002 1.2349 1.3615 1.4769 1.5785 1.6644 1.7332 1.7843 1.8174 1.8331 1.8321 1.8155
        1.7848 1.7415 1.6874 1.6243 1.5538 1.4777 1.3976 1.3149 1.2310 1.1470 1.0640 0.9828 0.9040 0.8284 0.7563 0.6880
        0.6238 0.5637""",
}

# Central values over samples of 200,000 jobs of the authors' program, and tolerances (its seeds differ by up to 3 % in
# the mean gap, whose distribution has a long tail; the median run falls between two modes).
FIGURES = {
    "batch": {"gap": 3558, "size": 13.88, "serial": 0.2935, "powers": 0.9675, "run": 9517, "median": 849, "ln": 6.957,
              "sd": 2.75, "correlation": 0.116, "load": 0.363},
    "interactive": {"gap": 617, "size": 8.06, "serial": 0.154, "powers": 0.845, "run": 243, "median": 13, "ln": 2.88,
                    "sd": 1.71, "correlation": 0.150, "load": 0.038},
    "typeless": {"gap": 910, "size": 12.12, "serial": 0.244, "powers": 0.869, "run": 4369, "median": 107.5, "ln": 5.46,
                 "sd": 2.97, "correlation": 0.2105, "load": 0.717},
}  # fmt: skip
TOLERANCE = {"gap": 0.03, "size": 0.015, "serial": 0.015, "powers": 0.005, "run": 0.03, "median": 0.06, "ln": 0.006,
             "sd": 0.01, "correlation": 0.07, "load": 0.06}  # fmt: skip


@pytest.mark.parametrize("kind", [BATCH, INTERACTIVE, TYPELESS], ids=lambda kind: kind.name)
def test_the_daily_cycle_has_the_published_weights(kind):
    weights = bucket_weights(kind.a_number, kind.b_number)
    assert weights.round(4).tolist() == [float(word) for word in WEIGHTS[kind.name].split()]
    assert weights.mean() == pytest.approx(1)


def figures(log):
    size, run, submit = log["processors"], log["run"], log["submit"]
    return {
        "gap": np.diff(submit).mean(),
        "size": size.mean(),
        "serial": (size == 1).mean(),
        "powers": (size & (size - 1) == 0).mean(),
        "run": run.mean(),
        "median": np.median(run),
        "ln": np.log(run).mean(),
        "sd": np.log(run).std(),
        "correlation": np.corrcoef(size, np.log(run))[0, 1],
        "load": (size * run).sum() / 128 / submit[-1],
    }


@pytest.mark.parametrize("kind", [BATCH, INTERACTIVE, TYPELESS], ids=lambda kind: kind.name)
def test_the_figures_are_those_of_the_authors_program(kind):
    found = figures(lublin(400_000, 128, (kind,), seed=1))
    for name, expected in FIGURES[kind.name].items():
        assert found[name] == pytest.approx(expected, rel=TOLERANCE[name]), name


def test_the_daily_cycle_stays_in_long_samples():
    for jobs in (20_000, 400_000):
        log = lublin(jobs, 128, (TYPELESS,), seed=2)
        share = np.bincount((log["submit"] % 86400 // 3600).astype(int), minlength=24) / jobs
        assert 0.006 < share[4] < 0.0095
        assert 0.070 < share[13] < 0.081


def test_two_classes_are_merged_in_the_order_of_arrival():
    log = lublin(60_000, 128, seed=3)
    assert (np.diff(log["submit"]) >= 0).all()
    assert log["job"].tolist() == list(range(1, 60_001))
    # interactive jobs come 3558 / 617 times as often
    assert (log["queue"] == 0).mean() == pytest.approx(3558 / (3558 + 617), abs=0.01)
    batch = log["run"][log["queue"] == 1]
    assert np.log(batch).mean() == pytest.approx(6.95, abs=0.08)


def test_all_classes_are_drawn_to_the_end():
    # Two streams of one kind equal one of twice the rate, up to the end: neither stops early.
    log = lublin(50_000, 128, (BATCH, attrs.evolve(BATCH, queue=5)), seed=4)
    last = log["queue"][-5000:]
    assert (last == 5).mean() == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize("processors", [1, 2, 3, 100, 128, 1000, 65536])
def test_no_job_is_larger_than_the_machine(processors):
    size = lublin(5000, processors, seed=5)["processors"]
    assert size.min() == 1
    assert size.max() <= processors
    if processors >= 100:
        assert size.max() > processors / 2


def test_run_times_keep_their_limits_and_seeds_repeat():
    log = lublin(30_000, 128, (BATCH,), seed=6)
    assert log["run"].max() <= np.exp(12)
    assert log["run"].min() >= 1
    assert (log["run"] == np.floor(log["run"])).all()
    again = lublin(30_000, 128, (BATCH,), rng=np.random.default_rng(6))
    assert (log["submit"] == again["submit"]).all()
    assert (log["run"] == again["run"]).all()
    assert (lublin(100, seed=0)["run"] != lublin(100, seed=1)["run"]).any()
    with pytest.raises(ValueError, match="rng and seed exclude each other"):
        lublin(10, rng=np.random.default_rng(1), seed=0)
    with pytest.raises(ValueError, match="jobs: must be >= 1, got 0"):
        lublin(0)
    with pytest.raises(ValueError, match="serial: must be a share from 0 to 1, got 2"):
        attrs.evolve(BATCH, serial=2)
