"""Ready grids and their jobs: as the generator makes them, of the stated shape, and the same for one seed."""

from collections import Counter

import numpy as np
import pytest

from simmodel import load_platform, load_workload
from simmodel.foundation.errors import InputError
from simmodel.generators import grid_jobs, tiered_grid
from tests.helpers.examples import up_to


def test_the_ready_grid_is_the_one_that_the_generator_makes():
    assert load_platform("tiers-30") == tiered_grid(30, seed=1)


def test_the_ready_jobs_belong_to_the_ready_grid():
    grid, log = load_platform("tiers-30"), load_workload("tiers-30-day")
    sites, files = {site.name for site in grid.sites}, {file.name for file in grid.files}
    assert len(log) == 6000
    assert {job.site for job in log.specs} <= sites
    assert {file for job in log.specs for file in job.inputs} <= files
    assert set(log["processors"].tolist()) == {1, 8}
    assert 0 <= log["submit"].min() <= log["submit"].max() <= 86400
    offered = (log["run"] * log["processors"]).sum() / 86400
    assert 0.5 < offered / sum(site.capacity * site.speed for site in grid.sites) < 0.7


@pytest.mark.parametrize("sites", [1, 2, 5, 30, 61])
def test_tiers_are_joined_and_every_job_fits_somewhere(sites):
    grid = tiered_grid(sites, files=20, seed=3)
    assert len(grid.sites) == sites
    tiers = Counter(site.tier for site in grid.sites)
    assert tiers[0] == 1
    assert max(host.cores for site in grid.sites for host in site.hosts) >= 8
    joined = {grid.sites[0].name}
    for _ in grid.sites:
        joined |= {name for link in grid.network.links if joined & set(link.between) for name in link.between}
    assert joined == {site.name for site in grid.sites}
    assert len(grid_jobs(grid, 50, seed=1)) == 50


def test_one_seed_gives_one_workload_and_popularity_follows_zipf():
    grid = tiered_grid(5, files=50, seed=1)
    first, again, other = (grid_jobs(grid, up_to(20_000, 6_000), inputs=1, seed=seed) for seed in (1, 1, 2))
    assert first.specs == again.specs
    assert first.specs != other.specs
    counts = sorted(Counter(file for job in first.specs for file in job.inputs).values(), reverse=True)
    expected = sum(counts) / np.arange(1, 51) / (1 / np.arange(1, 51)).sum()
    assert all(abs(drawn - mean) < 4 * mean**0.5 for drawn, mean in zip(counts[:5], expected[:5], strict=True))


def test_wrong_numbers_are_refused():
    with pytest.raises(InputError, match="sites: must be a whole number >= 1, got 0"):
        tiered_grid(0)
    with pytest.raises(InputError, match="popularity: must be a number >= 0, got -1"):
        grid_jobs(tiered_grid(2), 1, popularity=-1)
