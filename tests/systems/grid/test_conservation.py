"""Whatever happens, no job, no byte and no room is lost."""

from hypothesis import given, strategies as st

from simmodel.resources import Network  # noqa: F401 # the public name exists
from tests.helpers.grid_cases import INSTANTS, grid_with, grids, jobs


@given(st.data(), st.sampled_from(["round-robin", "least-loaded", "random"]), st.integers(0, 3))
def test_jobs_bytes_and_cores_are_conserved(data, policy, cancelled):
    spec = data.draw(grids())
    drawn = [data.draw(jobs(number)) for number in range(data.draw(st.integers(1, 8)))]
    env, grid, live = grid_with(spec, policy, drawn)
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
