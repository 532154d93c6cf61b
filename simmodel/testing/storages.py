"""The check of custom storages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from simmodel.environment import Environment
from simmodel.foundation.errors import Stalled
from simmodel.platform.grid import FileSpec, GridSpec, SiteSpec
from simmodel.platform.storage import StorageSpec
from simmodel.resources.data.storage import make_storage
from simmodel.resources.network.shared_channel import Access
from simmodel.testing.resources import check_jobs
from simmodel.work import File
from simmodel.work.job import Job

__all__ = ["check_storage"]


def check_storage(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of storages: files, reads and writes of one, and a grid whose jobs read and write there.

    All accesses end, also when others are cancelled; the files and the room reserved never exceed the capacity; the
    same run gives the same result; all jobs of the grid end, and it continues from a snapshot as if it had not been
    cut.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    spec = StorageSpec(
        name="own", capacity=2000, read_bandwidth=20.0, write_bandwidth=10.0, model=model, options=options
    )
    name = model.__name__
    assert _accesses(spec, name) == _accesses(spec, name), (
        f"{name}: the same run gives another result (does it share state between objects?)"
    )
    files = [FileSpec(name=f"f{i}", size=40.0 + 11 * i, sites=["a"]) for i in range(8)]
    jobs = [
        Job(
            id=i,
            submit=1.5 * i,
            run=1.0 + i % 3,
            requested=10_000,
            inputs=[f"f{i % 8}"],
            outputs=[File(name=f"o{i}", size=25.0 + 9 * i)] if i % 3 else (),
        )
        for i in range(12)
    ]
    grid = GridSpec(sites=[SiteSpec(name="a", cores=3, storage=spec)], files=files)
    check_jobs(grid, jobs, "round-robin", name, snapshots=model.snapshots)


def _accesses(spec: StorageSpec, name: str) -> list[float]:
    """Read and write files, some of which are cancelled, and return the ends of the accesses (s)."""
    env = Environment(seed=1)
    storage = make_storage(env, spec)
    for i in range(8):
        storage.add(f"f{i}", 50.0 + 40 * i)
    found: list[Access] = []

    def begin(i: int) -> None:
        file = f"f{i * 3 % 8}"
        if i % 3 == 2:
            found.append(storage.write(30.0 + 17 * i, file=file))
        else:
            found.append(storage.read(storage.files[file], file=file))
        assert storage.used <= spec.capacity, f"{name}: {storage.used:g} of {spec.capacity:g} bytes are used"

    for i in range(14):
        env.call_at(0.7 * i, partial(begin, i))
    env.call_at(4.5, lambda: found[1].cancel())
    env.call_at(6.5, lambda: storage.reserve("big", 600.0, lambda: storage.add("big", 600.0)))
    try:
        env.run()
    except Stalled as error:
        raise AssertionError(f"{name}: accesses never end: {error}") from None
    for i, each in enumerate(found):
        if i != 1:
            assert each.status == "done", f"{name}: {each.describe()}, all bytes should be"
    assert not storage.waiting, f"{name}: files still wait for room at the end"
    assert len(storage.reading) + len(storage.writing) == 0, f"{name}: accesses are left at the end"
    return [float(each.end or 0.0) for each in found]
