"""Whatever happens, no job, no byte and no room is lost."""

from hypothesis import given, strategies as st

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
from simmodel.resources import Network  # noqa: F401 # the public name exists
from simmodel.systems.grid.system import Grid
from simmodel.work import File

NAMES = ("a", "b", "c")
INSTANTS = st.integers(0, 60)


@st.composite
def grids(draw):
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
                overhead=draw(st.sampled_from([None, 2, DelaySpec(distribution="exponential", mean=3)])),
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
    outages = [
        SiteOutageSpec(
            site=draw(st.sampled_from(names)),
            at=at,
            until=at + draw(st.integers(1, 20)),
            kind=draw(st.sampled_from(["down", "closed"])),
        )
        for at in draw(st.lists(INSTANTS, max_size=3))
    ]
    return GridSpec(
        sites=sites, network=NetworkSpec(links=links), files=files, outages=outages, retries=draw(st.integers(0, 2))
    )


@st.composite
def jobs(draw, number):
    return Job(
        id=number,
        submit=draw(INSTANTS),
        processors=draw(st.integers(1, 6)),
        run=draw(st.integers(0, 12)),
        inputs=draw(st.lists(st.sampled_from(["f0", "f1", "nowhere"]), max_size=2)),
        outputs=[File(f"o{number}", draw(st.integers(0, 30)))] if draw(st.booleans()) else [],
    )


@given(st.data(), st.sampled_from(["round-robin", "least-loaded", "random"]), st.integers(0, 3))
def test_nothing_is_lost(data, policy, cancelled):
    spec = data.draw(grids())
    env = Environment(seed=7)
    grid = Grid(env, spec, policy)
    given_jobs = [data.draw(jobs(number)) for number in range(data.draw(st.integers(1, 8)))]
    live = []
    for job in given_jobs:
        try:
            live.append(grid.submit(job, at=job.submit))
        except ValueError:  # no site can ever run it
            continue
    for job in live[:cancelled]:
        env.call_at(data.draw(INSTANTS) + 0.25, lambda job=job: grid.cancel(job))
    moved = {"in": 0.0, "dropped": 0.0}

    class Watch:
        def file_added(self, _storage, _file, size, _cause):
            moved["in"] += size

        def file_dropped(self, _storage, _file, size, _cause):
            moved["dropped"] += size

    before = sum(sum(site.storage.files.values()) for site in grid.places)
    env.observe(Watch())
    env.run()

    result = grid.result()
    assert len(result.jobs) == len(live)
    assert set(result.jobs["state"].tolist()) <= {"finished", "failed", "rejected", "cancelled"}, result.jobs.rows()
    assert grid.unfinished == 0
    assert not grid.handed
    assert not grid.stays.present
    assert not grid.data.fetches
    for site in grid.places:
        storage = site.storage
        assert site.present == 0
        assert site.on_the_way == [0, 0, 0]
        assert site.free == site.capacity
        assert storage.used == sum(storage.files.values()) <= storage.capacity
        assert not any(storage.pins(file) for file in storage.files)
        assert not storage.waiting
        for file in storage.files:
            assert site.name in grid.data.catalogue.sites_of(file)
    for file in spec.files:  # no last replica goes by itself
        assert grid.data.catalogue.sites_of(file.name)
    assert sum(sum(site.storage.files.values()) for site in grid.places) == before + moved["in"] - moved["dropped"]
    ended = result.jobs.where(result.jobs["state"] == "finished")
    assert (ended["end"] <= ended["finished"]).all()
    assert (ended["assigned"] <= ended["queued"]).all()
    assert (ended["queued"] <= ended["start"]).all()
    assert (ended["start"] <= ended["executing"]).all()
    assert (result.utilisation().values <= 1 + 1e-9).all()
