"""The bully effect: what holds of its signs, and that slowdowns bound stretches."""

from __future__ import annotations

import numpy as np
import pytest

from simmodel.foundation.errors import InputError
from simmodel.studies.bully import BULLY_PLACEMENTS, bully_claims, bully_study
from simmodel.work.table import Table


@pytest.fixture(scope="module")
def found():
    return bully_study(seeds=5)


@pytest.mark.long  # smaller: the other tests of the file
def test_jobs_are_slowed_at_least_by_others(found):
    assert len(found) == 5 * 2 * len(BULLY_PLACEMENTS)
    assert np.all(found["stretch"] >= 1 - 1e-12)
    assert np.all(found["slowdown"] >= found["stretch"] - 1e-12)  # alone they take at least as long as they compute
    assert np.all(found["jobs"][found["kind"] == "heavy"] == 3)
    for seed in range(5):  # the same jobs under each placement
        assert len(set(found["jobs"][(found["seed"] == seed) & (found["kind"] == "light")].tolist())) == 1


def test_random_nodes_expose_light_jobs_and_spread_heavy_ones(found):
    claims = {row["claim"]: row for row in bully_claims(found).rows()}
    assert claims["light: random > contiguous"]["holds"]
    assert claims["light: random > contiguous"]["seeds"] == 5
    assert claims["heavy: contiguous > random"]["holds"]
    assert claims["light, the worst: random > hybrid"]["seeds"] == 5
    assert claims["heavy: random > hybrid"]["seeds"] == 5
    assert not claims["light: both > hybrid"]["holds"]
    contiguous = (found["placement"] == "contiguous") & (found["kind"] == "light")
    assert np.all(found["slowdown"][contiguous] < 1.001)  # there is nothing to gain
    assert np.all(found["worst"] >= found["slowdown"])


def test_fast_networks_slow_nobody():
    found = bully_study("dragonfly:9,2;2;8;4 bandwidth=1PBps", seeds=1)
    assert np.allclose(found["slowdown"], 1, rtol=1e-12)


def test_other_networks_are_refused():
    with pytest.raises(InputError, match="hybrid"):
        bully_study("torus:24,24 bandwidth=1GBps", seeds=1, placements=["hybrid"])


def test_seeds_that_are_copies_show_nothing():
    rows = [
        (placement, seed, kind) for placement in BULLY_PLACEMENTS for seed in range(3) for kind in ("heavy", "light")
    ]
    columns = dict(zip(("placement", "seed", "kind"), map(list, zip(*rows, strict=True)), strict=True))
    slowdown = [1.5 if row[0] == "random" else 1.2 for row in rows]
    claims = bully_claims(Table({**columns, "slowdown": slowdown, "worst": slowdown}))
    assert np.isinf(claims["error"]).all()
    assert not claims["holds"].any()
    assert claims["difference"][0] == pytest.approx(0.3)
