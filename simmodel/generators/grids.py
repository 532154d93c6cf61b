"""Grids in tiers, as those of particle physics, and jobs that read their files.

The figures are round ones of our own, small enough for a laptop: they show effects, and describe no real grid.
"""

from __future__ import annotations

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.foundation.units import parse_quantity
from simmodel.generators.distributions import Amount, amounts, share, stream, whole
from simmodel.platform.cluster import NodeSpec
from simmodel.platform.grid import FileSpec, GridSpec, SiteSpec
from simmodel.platform.network import LinkSpec, NetworkSpec
from simmodel.platform.storage import StorageSpec
from simmodel.work.job import Job
from simmodel.work.task import File
from simmodel.work.workload import Workload

__all__ = ["grid_jobs", "tiered_grid", "tiered_grid_jobs"]

_MB, _TB = 1e6, 1e12
_LARGE = 5  # sites to one of tier 1


def tiered_grid(
    sites: int = 30, *, files: int = 1000, seed: int | None = None, rng: np.random.Generator | None = None
) -> GridSpec:
    """Return a grid of one site of tier 0, one of tier 1 for each five sites, and the others of tier 2.

    A site has hosts of 16 or 32 cores of speeds from 0.7 to 1.4, and a storage with room for its files. A site of tier
    2 has a link of 0.5 Gbit/s to a site of tier 1, which has one of 10 Gbit/s to tier 0, and of 5 Gbit/s to the next of
    tier 1. Each file is at one site of tier 1, and some are at one or two more sites.

    Parameters
    ----------
    sites
        their number
    files
        the number of files; sizes are log-normal, 4 GB in the median
    seed, rng
        the seed, or a random stream

    Raises
    ------
    InputError
        a number is invalid

    >>> grid = tiered_grid(12, files=10, seed=1)
    >>> [site.name for site in grid.sites if site.tier < 2], len(grid.sites), len(grid.network.links)
    (['T0', 'T1-1', 'T1-2'], 12, 12)
    """
    count, many = whole("sites", sites, least=1), whole("files", files)
    drawn = stream(rng, seed)
    ones = max(1, count // _LARGE) if count > 1 else 0
    names = ["T0", *(f"T1-{i}" for i in range(1, ones + 1)), *(f"T2-{i:02}" for i in range(1, count - ones))]
    tiers = [0, *[1] * ones, *[2] * (count - ones - 1)]
    made = [_site(name, tier, drawn) for name, tier in zip(names, tiers, strict=True)]
    links, found = _links(names, ones, drawn), _files(made, many, drawn)
    return GridSpec(
        name=f"tiers-{count}",
        sites=[_with_room(site, found) for site in made],
        network=NetworkSpec(links=links),
        files=found,
        retries=2,
        description=f"A grid of {count} sites in three tiers.",
        source="Invented; no real grid. Made by simmodel.generators.tiered_grid.",
    )


_HOSTS = ((6, 7), (2, 5), (1, 4))  # hosts of a site by tier: at least, less than
_CAPACITY = (20 * _TB, 8 * _TB, 0.6 * _TB)
_DISK = (4e9, 2e9, 0.8e9)  # bytes/s


def _site(name: str, tier: int, rng: np.random.Generator) -> SiteSpec:
    cores = 32 if tier < 2 else int(rng.choice([16, 32]))
    low, high = _HOSTS[tier]
    kinds = 1 if tier else 2
    hosts = [
        NodeSpec(
            name=f"{name}-{'ab'[kind]}",
            count=int(rng.integers(low, high)) // kinds,
            cores=cores,
            speed=round(float(rng.uniform(0.7, 1.4)), 2),
        )
        for kind in range(kinds)
    ]
    disk = StorageSpec(capacity=_CAPACITY[tier], read_bandwidth=_DISK[tier], write_bandwidth=_DISK[tier] / 2)
    return SiteSpec(name=name, hosts=hosts, storage=disk, tier=tier)


def _with_room(site: SiteSpec, files: list[FileSpec]) -> SiteSpec:
    """Return a site whose storage is a quarter larger than its files together, if these do not fit."""
    given = sum(file.size for file in files if site.name in file.sites)
    if given <= site.storage.capacity:
        return site
    return attrs.evolve(site, storage=attrs.evolve(site.storage, capacity=1.25 * given))


def _links(names: list[str], ones: int, rng: np.random.Generator) -> list[LinkSpec]:
    """Return the links: of each site to one of the tier above, and between neighbours in tier 1."""

    def link(a: str, b: str, bandwidth: float, low: float, high: float) -> LinkSpec:
        latency = round(float(rng.uniform(low, high)), 4)
        return LinkSpec(name=f"{a}--{b}", bandwidth=bandwidth, latency=latency, between=(a, b))

    large = names[1 : ones + 1]
    found = [link(names[0], name, 1.25e9, 0.01, 0.05) for name in large]
    ring = zip(large, [*large[1:], *(large[:1] if ones > 2 else ())], strict=False)
    found += [link(a, b, 0.625e9, 0.02, 0.08) for a, b in ring]
    return found + [link(large[i % ones], name, 0.0625e9, 0.002, 0.015) for i, name in enumerate(names[ones + 1 :])]


def _files(sites: list[SiteSpec], files: int, rng: np.random.Generator) -> list[FileSpec]:
    """Return the files: each at a site of tier 1, a third of them at one or two sites more."""
    large = [site.name for site in sites if site.tier == 1] or [sites[0].name]
    others = [site.name for site in sites if site.name not in large]
    sizes = np.maximum(np.rint(4000 * np.exp(rng.normal(0, 0.8, files))), 1) * _MB
    found = []
    for i, size in enumerate(sizes.tolist(), 1):
        more = int(rng.integers(1, 3)) if others and rng.random() < 1 / 3 else 0
        at = [large[int(rng.integers(len(large)))], *rng.choice(others, min(more, len(others)), replace=False).tolist()]
        found.append(FileSpec(name=f"f{i:04}", size=size, sites=at))
    return found


def grid_jobs(
    grid: GridSpec,
    jobs: int = 1000,
    *,
    span: float | str = "24h",
    run: Amount | None = None,
    multicore: float = 0.25,
    inputs: float = 2,
    popularity: float = 1.0,
    output: Amount = ("100MB", "500MB"),
    seed: int | None = None,
    rng: np.random.Generator | None = None,
) -> Workload:
    """Return jobs that read the files of a grid.

    Parameters
    ----------
    grid
        the grid
    jobs
        their number
    span
        s within which they arrive, at a constant mean rate
    run
        run time on a core of speed 1, s; default: log-normal with parameters 8.2 and 1 (1 h in the median), at most
        a day
    multicore
        the share of jobs with 8 cores; the others have one
    inputs
        the most files that a job reads: it reads from 0 to this number, each number as often
    popularity
        the exponent of Zipf's law: the file of rank k is read in proportion to ``k ** -popularity``; 0: all alike
    output
        bytes of the one file that a job writes; 0: it writes none
    seed, rng
        the seed, or a random stream

    The home of a job is a site, drawn in proportion to its cores.

    Raises
    ------
    InputError
        a number is invalid

    >>> log = grid_jobs(tiered_grid(12, files=50, seed=1), 100, seed=2)
    >>> log, log.specs[0].inputs, log.specs[0].site
    (<Workload tiers-12 jobs: 100 jobs>, (), 'T2-04')
    """
    count, most = whole("jobs", jobs, least=1), whole("inputs", inputs)
    wide = share("multicore", multicore)
    if not 0 <= popularity < np.inf:
        raise InputError(f"must be a number >= 0, got {popularity!r}", place="popularity")
    drawn = stream(rng, seed)
    submit = np.sort(drawn.uniform(0, parse_quantity(span, "s", place="span"), count)).round(3)
    given = (
        np.minimum(np.exp(drawn.normal(8.2, 1.0, count)), 86400) if run is None else amounts("run", run, count, drawn)
    )
    cores = np.where(drawn.random(count) < wide, 8, 1)
    size = np.array([site.capacity for site in grid.sites], dtype=float)
    homes = drawn.choice(len(size), count, p=size / size.sum())
    read = _inputs(grid, count, most, popularity, drawn)
    written = np.rint(amounts("output", output, count, drawn, unit="B")).tolist()
    seconds = np.round(given, 3).tolist()
    made = [
        Job(
            id=i + 1,
            submit=submit[i],
            processors=int(cores[i]),
            run=seconds[i],
            site=grid.sites[homes[i]].name,
            inputs=read[i],
            outputs=[File(f"o{i + 1}", written[i])] if written[i] else (),
        )
        for i in range(count)
    ]
    return Workload.from_jobs(made, name=f"{grid.name} jobs")


def _inputs(grid: GridSpec, jobs: int, most: int, popularity: float, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return the files that each job reads, by Zipf's law over the files in a random order of rank."""
    names = [file.name for file in grid.files]
    if not names or not most:
        return [()] * jobs
    weight = np.arange(1, len(names) + 1, dtype=float) ** -popularity
    order = rng.permutation(len(names))
    drawn = order[rng.choice(len(names), (jobs, most), p=weight / weight.sum())].tolist()
    counts = rng.integers(0, most + 1, jobs).tolist()
    return [
        tuple(dict.fromkeys(names[file] for file in row[:number])) for row, number in zip(drawn, counts, strict=True)
    ]


def tiered_grid_jobs(
    jobs: int = 1000,
    *,
    sites: int = 30,
    files: int = 1000,
    grid_seed: int = 1,
    span: float | str = "24h",
    run: Amount | None = None,
    multicore: float = 0.25,
    inputs: float = 2,
    popularity: float = 1.0,
    output: Amount = ("100MB", "500MB"),
    seed: int | None = None,
    rng: np.random.Generator | None = None,
) -> Workload:
    """Return the jobs of :func:`grid_jobs` for ``tiered_grid(sites, files=files, seed=grid_seed)``.

    >>> len(tiered_grid_jobs(10, sites=5, files=20))
    10
    """
    return grid_jobs(
        tiered_grid(sites, files=files, seed=grid_seed),
        jobs,
        span=span,
        run=run,
        multicore=multicore,
        inputs=inputs,
        popularity=popularity,
        output=output,
        rng=stream(rng, seed),
    )
