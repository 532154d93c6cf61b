"""Models of storages: a burst buffer in closed form and against small steps, a tape library by hand."""

from random import Random

import pytest

from simmodel import Job, simulate
from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.platform import FileSpec, GridSpec, SiteSpec, StorageSpec
from simmodel.platform.kinds import to_dict
from simmodel.platform.toml import from_dict
from simmodel.resources import Storage, make_storage
from simmodel.runs import start
from simmodel.work import File

BUFFER = {"buffer": 90.0, "bandwidth": 100.0}
LIBRARY = {"drives": 2, "mount": 60.0, "seek": 5.0, "tape": 100.0}


def burst_buffer(env=None, **options):
    spec = StorageSpec(name="bb", write_bandwidth=10.0, model="burst-buffer", options={**BUFFER, **options})
    return make_storage(env or Environment(), spec)


def library(env=None, files=(), **options):
    spec = StorageSpec(name="tape", read_bandwidth=10.0, model="tape-library", options={**LIBRARY, **options})
    made = make_storage(env or Environment(), spec)
    for name, size in files:
        made.add(name, size)
    return made


# ---------------------------------------------------------------------- burst buffer


def write_time(size, buffer=90.0, fast=100.0, drain=10.0):
    """Return how long a write into an empty buffer takes: at ``fast`` until it is full, then as fast as it drains."""
    until_full = buffer / (fast - drain)
    return size / fast if size <= fast * until_full else until_full + (size - fast * until_full) / drain


@pytest.mark.parametrize("size", [1.0, 50.0, 100.0, 101.0, 400.0])
def test_a_write_into_an_empty_buffer_in_closed_form(size):
    made = burst_buffer()
    write = made.write(size)
    made.env.run()
    assert write.end == pytest.approx(write_time(size), rel=1e-12)


def test_the_buffer_drains_between_writes():
    env = Environment()
    made = burst_buffer(env)
    env.run(made.write(100))
    assert (env.now, made.level, made.full) == (1.0, 90.0, True)
    env.run(until=4.0)
    write = made.write(200)  # 60 left; full again after 1/3 s and 100/3 bytes; the rest at 10
    env.run(write)
    assert write.end == pytest.approx(4 + 1 / 3 + (200 - 100 / 3) / 10)
    env.run(until=60.0)
    again = made.write(100)  # empty again long since
    env.run(again)
    assert again.end == 61.0


def test_writers_share_the_buffer_and_then_what_drains():
    made = burst_buffer()
    both = [made.write(size) for size in (50, 100)]
    made.env.run()
    # 50 each by 1.0 (full): the first has ended; the other has 50 left at 10.
    assert [each.end for each in both] == pytest.approx([1.0, 6.0])


def test_a_buffer_slower_than_the_storage_is_bypassed():
    made = burst_buffer(bandwidth=5.0)
    write = made.write(100)
    made.env.run()
    assert write.end == 10.0


def test_reads_go_past_the_buffer():
    spec = StorageSpec(read_bandwidth=20.0, write_bandwidth=10.0, model="burst-buffer", options=BUFFER)
    made = make_storage(Environment(), spec)
    made.write(400)
    read = made.read(100)
    made.env.run()
    assert read.end == 5.0


def test_random_writes_as_in_small_steps():
    rng = Random(3)
    for _ in range(4):
        plan = sorted((rng.randint(0, 40) / 4, rng.randint(10, 150)) for _ in range(6))
        env = Environment()
        made = burst_buffer(env)
        writes = []
        for at, size in plan:
            env.call_at(at, lambda made=made, size=size, writes=writes: writes.append(made.write(size)))
        env.run()
        step, now, level = 1 / 512, 0.0, 0.0
        left = {i: float(size) for i, (_, size) in enumerate(plan)}
        ends = {}
        while left:
            active = [i for i in left if plan[i][0] <= now + 1e-12]
            inflow = 0.0 if not active else 100.0 if level < 90.0 else 10.0
            level = min(max(level + (inflow - 10.0) * step, 0.0), 90.0)
            now += step
            for i in active:
                left[i] -= inflow * step / len(active)
                if left[i] <= 0:
                    ends[i] = now
                    del left[i]
        assert [each.end for each in writes] == pytest.approx([ends[i] for i in range(6)], abs=0.2)


# ---------------------------------------------------------------------- tape library, by hand


FILES = [("a", 60), ("b", 50), ("c", 40), ("d", 100)]


def test_files_fill_the_tapes_in_the_order_of_their_arrival():
    assert library(files=FILES).tapes == {"a": 0, "b": 0, "c": 1, "d": 1}


def test_reads_wait_for_drives_mounts_and_seeks():
    made = library(files=FILES)
    reads = {name: made.read(made.files[name], file=name) for name in "acbd"}
    made.env.run()
    # a: mount 60, seek 5, 6 s; then b from the mounted tape: 5 + 5. c: 60 + 5 + 4; then d: 5 + 10.
    assert {name: read.end for name, read in reads.items()} == {"a": 71.0, "b": 81.0, "c": 69.0, "d": 84.0}


def test_one_drive_serves_in_order_and_changes_tapes():
    made = library(files=FILES, drives=1)
    reads = {name: made.read(made.files[name], file=name) for name in "acb"}
    made.env.run()
    # a 60+5+6 = 71; c 60+5+4 more = 140; b 60+5+5 more = 210.
    assert {name: read.end for name, read in reads.items()} == {"a": 71.0, "c": 140.0, "b": 210.0}


def test_a_tape_in_a_busy_drive_is_waited_for_while_others_are_served():
    made = library(files=FILES)
    reads = {name: made.read(made.files[name], file=name) for name in "abd"}
    made.env.run()
    # b waits for the tape of a though the second drive is free; d takes that one.
    assert {name: read.end for name, read in reads.items()} == {"a": 71.0, "b": 81.0, "d": 75.0}


def test_a_read_that_is_cancelled_leaves_its_drive():
    made = library(files=FILES, drives=1)
    first, second, third = (made.read(made.files[name], file=name) for name in "acb")
    made.env.run(until=10)
    second.cancel()
    first.cancel()
    made.env.run()
    assert third.end == 60 + 5 + 5  # its tape is on its way into the drive, for the first


def test_writes_go_to_the_disk_in_front():
    spec = StorageSpec(read_bandwidth=10, write_bandwidth=20, model="tape-library", options=LIBRARY)
    made = make_storage(Environment(), spec)
    write = made.write(100)
    made.env.run()
    assert write.end == 5.0


def test_what_a_library_cannot_do_is_refused():
    with pytest.raises(InputError, match="file: must be a file of storage tape, got None"):
        library(files=FILES).read(10)
    with pytest.raises(InputError, match="storage s: TapeLibrary needs a read_bandwidth, that of a drive"):
        make_storage(Environment(), StorageSpec(name="s", model="tape-library", options=LIBRARY))
    with pytest.raises(InputError, match="storage s: BurstBuffer needs a write_bandwidth, at which the buffer drains"):
        make_storage(Environment(), StorageSpec(name="s", model="burst-buffer", options=BUFFER))
    with pytest.raises(InputError, match="options of storage bb: bandwidth: must be > 0, got 0"):
        burst_buffer(bandwidth=0)
    with pytest.raises(InputError, match=r"options of storage tape: drives: must be a whole number >= 1, got 1.5"):
        library(drives=1.5)
    with pytest.raises(InputError, match=r"options of storage s: must be empty: a disk has none, got {'fast': 1}"):
        make_storage(Environment(), StorageSpec(name="s", options={"fast": 1}))


# ---------------------------------------------------------------------- in grids


def grid(storage):
    site = SiteSpec(name="a", cores=2, storage=storage)
    return GridSpec(sites=[site], files=[FileSpec(name=name, size=size, sites="a") for name, size in FILES])


TAPE = StorageSpec(read_bandwidth=10.0, model="tape-library", options=LIBRARY)
BURST = StorageSpec(write_bandwidth=10.0, model="burst-buffer", options=BUFFER)


def test_jobs_read_from_tapes():
    jobs = [Job(id=name, inputs=[name], run=7, requested=1000) for name in "ac"]
    result = simulate(grid(TAPE), jobs)
    assert result.jobs["end"].tolist() == [78.0, 76.0]
    cut = start(grid(TAPE), jobs)
    cut.run(until=20)
    with pytest.raises(SnapshotError, match="storage a cannot be copied: TapeLibrary has snapshots = False"):
        cut.snapshot()


def writers():
    return [
        Job(id=i, submit=0.3 * i, run=1 + i % 3, requested=20, outputs=[File(name=f"o{i}", size=30.0 + 17 * i)])
        for i in range(12)
    ]


@pytest.mark.parametrize("cut", [1.2, 1.9, 2.5, 6.0, 30.0])
def test_a_grid_with_a_burst_buffer_goes_on_from_a_snapshot(cut):
    whole = simulate(grid(BURST), writers()).jobs
    begun = start(grid(BURST), writers())
    begun.run(until=cut)
    rest = simulate(begun.snapshot()).jobs
    ends = dict(zip(whole["job"].tolist(), whole["end"].tolist(), strict=True))
    assert len(rest)
    assert {job: ends[job] for job in rest["job"].tolist()} == dict(
        zip(rest["job"].tolist(), rest["end"].tolist(), strict=True)
    )


def test_models_of_storages_are_stored_in_documents():
    class Local(Storage):
        pass

    spec = grid(BURST)
    assert from_dict(to_dict(spec)) == spec
    assert to_dict(spec)["sites"][0]["storage"]["options"] == BUFFER
    with pytest.raises(InputError, match="model: must be a class that can be imported, got"):
        StorageSpec(model=Local)
