"""Drawn grids and jobs, with files, outages and little room."""

from hypothesis import strategies as st

from simmodel import Environment, Job
from simmodel.platform import (
    DelaySpec,
    FileSpec,
    GridSpec,
    LinkSpec,
    NetworkSpec,
    NodeSpec,
    SiteOutageSpec,
    SiteSpec,
    StorageSpec,
)
from simmodel.systems.grid.system import Grid
from simmodel.work import File

NAMES = ("a", "b", "c")
INSTANTS = st.integers(0, 60)


@st.composite
def grids(draw, outages=True):
    """Draw a grid of up to three sites; without outages: without draws of random numbers in its life, too."""
    count = draw(st.integers(1, 3))
    names = NAMES[:count]
    sites = []
    for name in names:
        hosts = draw(st.booleans())
        sites.append(
            SiteSpec(
                name=name,
                **({"hosts": [NodeSpec(count=2, cores=4)]} if hosts else {"cores": draw(st.integers(1, 8))}),
                storage=StorageSpec(
                    capacity=draw(st.sampled_from([40, 60, 100, float("inf")])),
                    read_bandwidth=draw(st.sampled_from([5, float("inf")])),
                    write_bandwidth=draw(st.sampled_from([5, float("inf")])),
                ),
                staging=draw(st.sampled_from(["before", "inside"])),
                overhead=draw(
                    st.sampled_from([None, 2, *([DelaySpec(distribution="exponential", mean=3)] if outages else [])])
                ),
                limit=draw(st.sampled_from([None, 3])),
            )
        )
    links = [
        LinkSpec(name=f"{x}{y}", bandwidth=draw(st.sampled_from([1, 4])), latency=0.5, between=(x, y))
        for i, x in enumerate(names)
        for y in names[i + 1 :]
        if draw(st.integers(0, 4))
    ]
    files = [
        FileSpec(name=f"f{i}", size=draw(st.integers(1, 18)), sites=[draw(st.sampled_from(names))])
        for i in range(draw(st.integers(0, 2)))
    ]
    planned = [
        SiteOutageSpec(
            site=draw(st.sampled_from(names)),
            at=at,
            until=at + draw(st.integers(1, 20)),
            kind=draw(st.sampled_from(["down", "closed"])),
        )
        for at in draw(st.lists(INSTANTS, max_size=3 if outages else 0))
    ]
    return GridSpec(
        sites=sites,
        network=NetworkSpec(links=links),
        files=files,
        outages=planned,
        retries=draw(st.integers(0, 2)),
        cycle=draw(st.sampled_from([None, None, 3])),
    )


@st.composite
def jobs(draw, number, latest=60):
    """Draw a job that is submitted at ``latest`` (s) at the latest."""
    return Job(
        id=number,
        submit=draw(st.integers(0, latest)),
        processors=draw(st.integers(1, 6)),
        run=draw(st.integers(0, 12)),
        inputs=draw(st.lists(st.sampled_from(["f0", "f1", "nowhere"]), max_size=2)),
        outputs=[File(f"o{number}", draw(st.integers(0, 30)))] if draw(st.booleans()) else [],
    )


def grid_with(spec, policy, jobs, seed=7):
    """Return a new environment, its grid, and the submitted jobs; those that no site can ever run are left out."""
    env = Environment(seed=seed)
    grid = Grid(env, spec, policy)
    live = []
    for job in jobs:
        try:
            live.append(grid.submit(job, at=job.submit))
        except ValueError:
            continue
    return env, grid, live


@st.composite
def busy_grids(draw, outages=True):
    """Draw a grid whose sites send each other files most of the time, over slow links and into little room.

    Its sizes and bandwidths are such that ends of transfers over different links do not coincide but for rounding.
    """
    names = NAMES[: draw(st.integers(2, 3))]
    sites = []
    for name in names:
        hosts = draw(st.booleans())
        kind = {"hosts": [NodeSpec(count=2, cores=4)]} if hosts else {"cores": draw(st.integers(2, 8))}
        slow = st.sampled_from([1.3, 2.1, 4.7])
        storage = StorageSpec(
            capacity=draw(st.sampled_from([28, 30, 36])),
            read_bandwidth=draw(slow),
            write_bandwidth=draw(slow),
            evict=draw(st.sampled_from(["lru", "lfu", "size", "fifo"])),
        )
        disks = [(draw(slow), draw(slow))] if hosts and draw(st.booleans()) else []
        staging = draw(st.sampled_from(["before", "inside"]))
        sites.append(SiteSpec(name=name, **kind, storage=storage, disks=disks, staging=staging))
    links = [
        LinkSpec(
            name=f"{x}{y}",
            bandwidth=draw(st.sampled_from([0.53, 0.97])) + 0.07 * i + 0.11 * (y == "c"),
            latency=0.5,
            between=(x, y),
        )
        for i, x in enumerate(names)
        for y in names[i + 1 :]
    ]
    files = [
        FileSpec(name=f"f{i}", size=draw(st.integers(2, 6)) + 0.1 * i + 0.03, sites=[draw(st.sampled_from(names))])
        for i in range(4)
    ]
    planned = [
        SiteOutageSpec(site=draw(st.sampled_from(names)), at=at, until=at + draw(st.integers(1, 20)))
        for at in draw(st.lists(st.integers(0, 30), max_size=2 if outages else 0))
    ]
    return GridSpec(
        sites=sites,
        network=NetworkSpec(links=links),
        files=files,
        outages=planned,
        retries=draw(st.integers(0, 2)),
        cycle=draw(st.sampled_from([None, None, 3])),
    )


@st.composite
def data_jobs(draw, number, latest=10):
    """Draw a job that reads files, and may write one."""
    return Job(
        id=number,
        submit=draw(st.integers(0, latest)),
        processors=draw(st.integers(1, 2)),
        run=draw(st.integers(0, 12)),
        inputs=draw(st.lists(st.sampled_from(["f0", "f1", "f2", "f3"]), min_size=1, max_size=3, unique=True)),
        outputs=[File(f"o{number}", draw(st.integers(1, 12)))] if draw(st.booleans()) else [],
    )


@st.composite
def cases(draw, outages=True, latest=10):
    """Draw a grid and its jobs."""
    if draw(st.booleans()):
        return draw(busy_grids(outages)), [draw(data_jobs(number, latest)) for number in range(draw(st.integers(2, 8)))]
    count = draw(st.integers(1, 8))
    return draw(grids(outages)), [draw(jobs(number, 6 * latest)) for number in range(count)]
